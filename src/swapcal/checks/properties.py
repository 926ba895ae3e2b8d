"""What every property must be: an identification function, a loss and a value that belong together."""

import json
from typing import Any, NamedTuple

import numpy as np

from swapcal import properties
from swapcal.checks.check_rules import apply, expect, missing
from swapcal.checks.plain import expect_plain
from swapcal.errors import StateFileError
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["PROPERTY_RULES", "check_property"]

_SLACK = 1e-7
"""What a difference quotient may be wrong by; users' losses are differentiated numerically."""


def check_property(property: Elicitable) -> None:
    """Check that `property` does what `swapcal.roles.Elicitable` promises; `CheckFailed` says what it does not.

    Takes about a hundredth of a second, and a second where loss and value are found numerically.

    Parameters
    ----------
    property : Elicitable
        Such as `Mean()`, or a `Property` of your own functions.

    Examples
    --------
    >>> from swapcal import Mean, Property
    >>> check_property(Mean())
    >>> check_property(Property(lambda p, y: (p - y) ** 3, name="cubic"))
    """
    apply(PROPERTY_RULES, property, property)


class _Points(NamedTuple):
    """Forecasts over the domain and labels over the range; no forecast equals a label but for the ends."""

    forecasts: Float64Array
    labels: Float64Array


def _points(property: Elicitable, n: int) -> _Points:
    inside = property.low + (property.high - property.low) * (np.arange(n) + 0.37) / n
    labels = np.concatenate([[property.low], inside, [property.high]])
    if property.invalid_labels(labels) is not None:
        labels = np.array([property.low, property.high])
    return _Points(np.linspace(*property.domain, n), labels)


def _samples(property: Elicitable) -> list[Float64Array]:
    rng = np.random.default_rng(0)
    labels = _points(property, 50).labels
    return [labels[:1], labels[-1:], *(rng.choice(labels, size) for size in (1, 2, 3, 10, 41))]


def _v(property: Elicitable, p: Any, y: Any) -> Float64Array:
    return np.asarray(property.identification(p, y), dtype=np.float64)


def has_the_role(property: Elicitable) -> None:
    """A property has every member of `roles.Elicitable`.

    The forecaster, the audit and the bounds each use another part of it.
    """
    lacking = missing(property, Elicitable)
    expect(not lacking, f"it has no {', '.join(lacking)}")
    (low, high), (bottom, top) = (property.low, property.high), property.domain
    expect(np.isfinite([low, high, bottom, top]).all() and low < high and bottom < top, "a range is empty or infinite")
    expect(isinstance(property.assumption, str) and property.assumption, "its assumption is not said in words")


def labels_are_judged(property: Elicitable) -> None:
    """`invalid_labels` finds nothing wrong with labels in the range, and says what is wrong with others.

    It is the one place where a forecaster asks whether a label may be used.
    """
    width = property.high - property.low
    y = np.array([property.low, property.high])
    expect(property.invalid_labels(y) is None, f"it refuses its own ends: {property.invalid_labels(y)}")
    for bad in (np.nan, np.inf, property.low - width, property.high + width):
        why = property.invalid_labels(np.array([property.low, bad]))
        expect(isinstance(why, str) and why, f"it allows the label {bad}")


def identification_is_bounded(property: Elicitable) -> None:
    """|V(p, y)| is at most 1 for every forecast in the domain and every label.

    Gains are f(x) V with |f| <= 1, and every potential's inequality is for gains of size at most 1.
    """
    p, y = _points(property, 101)
    v = _v(property, p[:, None], y)
    expect(v.shape == (len(p), len(y)), f"V of a column of {len(p)} and a row of {len(y)} has shape {v.shape}")
    expect(np.isfinite(v).all() and np.abs(v).max() <= 1.0, f"its largest size is {np.abs(v).max()!r}")


def signs_at_the_ends(property: Elicitable) -> None:
    """V is at most 0 at the low end of the domain and at least 0 at the high end, for labels inside the range.

    Where all evidence has one sign the forecaster plays an end of the grid, and must be sure that this heals.
    """
    y = _points(property, 101).labels
    y = y[1:-1] if len(y) > 2 else y
    low, high = property.domain
    expect(_v(property, low, y).max() <= _SLACK, f"V({low:g}, y) reaches {_v(property, low, y).max():g}")
    expect(_v(property, high, y).min() >= -_SLACK, f"V({high:g}, y) falls to {_v(property, high, y).min():g}")


def monotone_as_claimed(property: Elicitable) -> None:
    """If `monotone` is true, V never falls as the forecast rises.

    A monotone V lets the forecaster take evidence at the forecasts themselves instead of at a border.
    """
    p, y = _points(property, 201)
    falls = -np.diff(_v(property, p[:, None], y), axis=0).min()
    expect(not property.monotone or falls <= _SLACK, f"V falls by {falls:g} between two forecasts")


def lipschitz_as_claimed(property: Elicitable) -> None:
    """V, or the mean of V over spread-out labels where V jumps, is no steeper than `lipschitz`.

    The rounding term of the bound ahead of a run is computed from it.
    """
    if property.lipschitz is None:
        return
    p, y = _points(property, 401)
    v = _v(property, p[:, None], y[1:-1] if len(y) > 2 else y)
    if not property.continuous:
        # Between forecasts ten steps apart, counting labels instead of measuring them matters less.
        v = v.mean(axis=1, keepdims=True)[::10]
    steepest = float(np.abs(np.diff(v, axis=0)).max()) * (len(v) - 1)
    allowed = property.lipschitz * (1.0 + 1e-6) + (0.0 if property.continuous else 0.2)
    expect(steepest <= allowed, f"a slope is {steepest:g} and lipschitz says {property.lipschitz:g}")


def continuous_as_claimed(property: Elicitable) -> None:
    """If `continuous` is true, V does not jump.

    Where it does, labels that heap on one value break the guarantee, and users are warned of such labels.
    """
    p, y = _points(property, 101)
    cell = np.abs(np.diff(_v(property, p[:, None], y), axis=0)).argmax(axis=0)
    left, right = p[cell], p[cell + 1]
    for _ in range(10):
        middle = 0.5 * (left + right)
        at_left, at, at_right = (_v(property, q, y) for q in (left, middle, right))
        lower = np.abs(at - at_left) >= np.abs(at_right - at)
        left, right = np.where(lower, left, middle), np.where(lower, middle, right)
    jump = np.abs(_v(property, right, y) - _v(property, left, y)).max()
    expect(not property.continuous or jump <= 0.02, f"V changes by {jump:g} within 1e-5 widths of the domain")


def loss_has_the_derivative(property: Elicitable) -> None:
    """The derivative of the loss in p is `loss_weight(p)` V(p, y), and the weight is not negative.

    Osband's principle: that is what makes the property's value the minimizer of the mean loss that people report.
    """
    low, high = property.domain
    step = 1e-5 * (high - low)
    y = _points(property, 15).labels
    # Off the ends, where a weight may be infinite, and off the labels, where a loss may have a kink.
    p = (low + (high - low) * (np.arange(40) + 0.527) / 40)[:, None]
    slopes = (np.asarray(property.loss(p + step, y)) - np.asarray(property.loss(p - step, y))) / (2.0 * step)
    weight = np.asarray(property.loss_weight(p))
    expected = weight * _v(property, p, y)
    worst = float(np.max(np.abs(slopes - expected) - 3e-5 * np.abs(expected)))
    expect(worst <= 3e-6 * (1.0 + np.abs(expected).max()), f"they differ by {worst:g}")
    expect(weight.min() >= 0.0, f"a weight is {weight.min():g}")


def value_is_the_root(property: Elicitable) -> None:
    """`value` of a sample lies in the domain, and the sample's mean identification changes its sign there.

    The identification function defines the property; a value elsewhere would be the value of another one.
    """
    low, high = property.domain
    for y in _samples(property):
        value = float(property.value(y))
        expect(low <= value <= high, f"value {value!r} is outside [{low:g}, {high:g}]")
        near = 1e-6 * (high - low)
        below, above = (_v(property, q, y).mean() for q in (max(value - near, low), min(value + near, high)))
        slack = 1e-12 if property.lipschitz is None or not property.continuous else 2e-6 * property.lipschitz
        # At the low end itself there is nothing below, and a step function is positive there.
        expect(value == low or below <= slack, f"the mean of V is {below:g} just below the value {value!r} of {y!r}")
        expect(above >= -slack, f"the mean of V is {above:g} just above the value {value!r} of {y!r}")


def value_minimizes_the_loss(property: Elicitable) -> None:
    """No forecast has a smaller mean loss on a sample than the sample's `value`.

    That is what it means that the loss elicits the property.
    """
    rivals = np.linspace(*property.domain, 57)[1:-1]
    for y in _samples(property):
        best = float(np.mean(property.loss(np.array([property.value(y)]), y)))
        others = np.mean(property.loss(rivals[:, None], y), axis=1)
        gain = best - float(others.min())
        expect(gain <= 1e-9 * (1.0 + np.abs(others).max()), f"a forecast beats the value of {y!r} by {gain:g}")


def numbers_equal_arrays(property: Elicitable) -> None:
    """Numbers give the same as arrays of them, but for rounding, and arrays that are passed in stay as they are.

    The forecaster calls with numbers, the audit with arrays, and what the one forecasts the other must recognize.
    """
    p, y = _points(property, 6)
    p = p[1:-1, None]
    before = p.copy(), y.copy()
    v, loss, weight = (
        np.asarray(a) for a in (property.identification(p, y), property.loss(p, y), property.loss_weight(p))
    )
    for i, forecast in enumerate(p[:, 0].tolist()):
        expect(np.isclose(property.loss_weight(forecast), weight[i, 0], rtol=1e-9), f"loss_weight({forecast!r})")
        for j, label in enumerate(y.tolist()):
            at = f"at p={forecast!r}, y={label!r}"
            expect(abs(float(property.identification(forecast, label)) - v[i, j]) <= 1e-12, f"V differs {at}")
            expect(
                np.isclose(property.loss(forecast, label), loss[i, j], rtol=1e-9, atol=1e-12), f"the loss differs {at}"
            )
    expect(np.array_equal(p, before[0]) and np.array_equal(y, before[1]), "an argument was changed")


def spec_is_plain(property: Elicitable) -> None:
    """`spec` is plain data, and if `properties.from_spec` knows it, rebuilds the property.

    State files hold specs and never code; a property of your own is passed to `load` again and compared by spec.
    """
    expect_plain(property.spec())
    try:
        again = properties.from_spec(json.loads(json.dumps(dict(property.spec()))))
    except StateFileError:
        return
    p, y = _points(property, 21)
    expect(again.spec() == property.spec(), f"the rebuilt one is {again!r}")
    expect(np.array_equal(_v(again, p[:, None], y), _v(property, p[:, None], y)), f"V of the rebuilt {again!r} differs")


PROPERTY_RULES = (
    has_the_role,
    labels_are_judged,
    identification_is_bounded,
    signs_at_the_ends,
    monotone_as_claimed,
    lipschitz_as_claimed,
    continuous_as_claimed,
    loss_has_the_derivative,
    value_is_the_root,
    value_minimizes_the_loss,
    numbers_equal_arrays,
    spec_is_plain,
)
