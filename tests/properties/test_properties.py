"""Properties: identities between identification function, loss and value, which hold for every instance."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_diagnostics.calibration import identification_function  # type: ignore[import-untyped]
from scipy import stats

from instances import PROPERTIES, REBUILDABLE
from swapcal.errors import NotElicitable, StateFileError
from swapcal.properties import (
    CVaR,
    Expectile,
    Log,
    Mean,
    Median,
    Mode,
    Moment,
    Probability,
    Property,
    Quantile,
    Spherical,
    Squared,
    Tsallis,
    Variance,
    from_spec,
)
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

every_property = pytest.mark.parametrize("property", PROPERTIES, ids=repr)
levels = st.floats(0.01, 0.99)
units = st.lists(st.floats(0.0, 1.0).map(lambda u: round(u, 6)), min_size=1, max_size=30).map(np.array)


def in_range(property: Elicitable, u: Float64Array) -> Float64Array:
    """Numbers of the unit interval as labels of the property."""
    if isinstance(property, Probability):
        return np.round(u)
    return np.clip(property.low + (property.high - property.low) * u, property.low, property.high)


def grids(property: Elicitable, n: int = 41) -> tuple[Float64Array, Float64Array]:
    """Forecasts in a column and labels in a row, ends included; off the ends no forecast equals a label."""
    forecasts = np.linspace(*property.domain, n)
    return forecasts[:, None], in_range(property, np.concatenate([[0.0], (np.arange(n - 1) + 0.37) / (n - 1), [1.0]]))


def is_quantile(property: Elicitable) -> bool:
    return isinstance(property, Quantile)


@every_property
def test_is_elicitable(property: Elicitable) -> None:
    assert isinstance(property, Elicitable)
    assert property.low < property.high
    assert property.domain[0] < property.domain[1]
    assert property.assumption.endswith(".")
    assert property.continuous is not is_quantile(property)


@every_property
def test_identification_stays_in_the_unit_interval(property: Elicitable) -> None:
    v = property.identification(*grids(property))
    assert np.abs(v).max() <= 1.0


@every_property
def test_sign_conditions(property: Elicitable) -> None:
    _, y = grids(property)
    if is_quantile(property):
        # The step at p = y is on the wrong side for the one label y = low, which has probability zero.
        assert property.identification(property.low, property.low) > 0.0
        y = y[1:]
    assert np.max(property.identification(property.domain[0], y)) <= 0.0
    assert np.min(property.identification(property.domain[1], y)) >= 0.0


@every_property
def test_monotone_and_lipschitz_as_claimed(property: Elicitable) -> None:
    p, y = grids(property, 201)
    v = np.asarray(property.identification(p, y))
    rises = np.diff(v, axis=0)
    assert property.monotone
    assert rises.min() >= -1e-9
    if property.lipschitz is not None and not is_quantile(property):
        steepest = rises.max() * (len(p) - 1)
        assert steepest <= property.lipschitz * (1.0 + 1e-9)
        # Claimed constants are not slack either: some slope attains them.
        assert steepest >= property.lipschitz * 0.9


def test_mean_identification_of_a_quantile_is_as_steep_as_the_density() -> None:
    quantile = Quantile(0.3, low=-1.0, high=3.0, density=2.0)
    # Uniform on half of the range: twice the density of the uniform distribution on all of it.
    y = np.linspace(0.0, 2.0, 4001)
    p = np.linspace(0.2, 1.8, 9)
    mean = np.mean(quantile.identification(p[:, None], y), axis=1)
    assert np.diff(mean) / (np.diff(p) / 4.0) == pytest.approx(np.full(8, quantile.density), rel=1e-2)
    assert "rho = 2" in quantile.assumption
    assert Quantile(0.3).lipschitz is None


@every_property
def test_loss_has_derivative_weight_times_identification(property: Elicitable) -> None:
    low, high = property.domain
    step = 1e-5 * (high - low)
    y = in_range(property, np.linspace(0.0, 1.0, 15))
    # Off the ends, where a weight may be infinite, and off the labels, where a loss may have a kink.
    p = (low + (high - low) * (np.arange(40) + 0.527) / 40)[:, None]
    derivative = (np.asarray(property.loss(p + step, y)) - property.loss(p - step, y)) / (2.0 * step)
    expected = property.loss_weight(p) * np.asarray(property.identification(p, y))
    assert derivative == pytest.approx(expected, rel=2e-5, abs=2e-6 * (1.0 + np.abs(expected).max()))
    assert np.min(property.loss_weight(p)) >= 0.0
    assert np.shape(property.loss_weight(p)) == p.shape


@every_property
def test_numbers_give_the_same_as_arrays(property: Elicitable) -> None:
    p, y = grids(property, 6)
    p = p[1:-1]
    v, loss, weight = property.identification(p, y), np.asarray(property.loss(p, y)), property.loss_weight(p)
    for i, forecast in enumerate(p[:, 0].tolist()):
        assert type(property.loss_weight(forecast)) is float
        assert property.loss_weight(forecast) == pytest.approx(np.asarray(weight)[i, 0], rel=1e-12)
        for j, label in enumerate(y.tolist()):
            one = property.identification(forecast, label)
            assert type(one) is float
            assert one == np.asarray(v)[i, j]
            assert type(property.loss(forecast, label)) is float
            assert property.loss(forecast, label) == pytest.approx(loss[i, j], rel=1e-12, abs=1e-15)


@every_property
@settings(max_examples=25, deadline=None)
@given(u=units)
def test_value_is_a_root_of_the_mean_identification(property: Elicitable, u: Float64Array) -> None:
    y = in_range(property, u)
    value = property.value(y)
    assert property.domain[0] <= value <= property.domain[1]
    if is_quantile(property):
        below = np.nextafter(value, -np.inf)
        assert np.mean(property.identification(below, y)) < 1e-12
        assert np.mean(property.identification(value, y)) > -1e-12
    else:
        assert np.mean(property.identification(value, y)) == pytest.approx(0.0, abs=1e-9)


@every_property
@settings(max_examples=25, deadline=None)
@given(u=units)
def test_value_minimizes_the_mean_loss(property: Elicitable, u: Float64Array) -> None:
    y = in_range(property, u)
    rivals = np.linspace(*property.domain, 57)[1:-1]
    best = np.mean(property.loss(np.array([property.value(y)]), y))
    others = np.mean(property.loss(rivals[:, None], y), axis=1)
    assert best <= others.min() + 1e-9 * (1.0 + np.abs(others).max())


@given(y=units)
def test_expectile_at_one_half_is_the_mean(y: Float64Array) -> None:
    assert Expectile(0.5).value(y) == pytest.approx(Mean().value(y), rel=1e-12, abs=1e-15)
    p = np.linspace(0.0, 1.0, 7)[:, None]
    assert np.array_equal(Expectile(0.5).identification(p, y), 0.5 * np.asarray(Mean().identification(p, y)))


@given(y=units)
def test_first_moment_and_squared_probability_are_the_mean(y: Float64Array) -> None:
    p = np.linspace(0.0, 1.0, 7)[:, None]
    for other in (Moment(1), Probability()):
        sample = y if isinstance(other, Moment) else np.round(y)
        for method in ("identification", "loss"):
            assert np.array_equal(getattr(other, method)(p, sample), getattr(Mean(), method)(p, sample))
        assert np.array_equal(other.loss_weight(p), Mean().loss_weight(p))
        assert other.value(sample) == pytest.approx(Mean().value(sample), rel=1e-15)


def test_median_is_the_quantile_at_one_half() -> None:
    assert Median() == Quantile(0.5)
    assert Median(low=-1.0, high=4.0, density=2.0) == Quantile(0.5, low=-1.0, high=4.0, density=2.0)


def test_tsallis_at_two_is_the_squared_loss() -> None:
    p, y = np.linspace(0.0, 1.0, 9)[:, None], np.array([0.0, 1.0])
    assert np.asarray(Tsallis(2.0).loss(p, y)) + y**2 == pytest.approx(np.asarray(Squared().loss(p, y)), abs=1e-15)
    assert np.array_equal(Tsallis(2.0).weight(p), Squared().weight(p))


@settings(deadline=None)
@given(y=units, level=levels)
def test_values_agree_with_scipy_and_numpy(y: Float64Array, level: float) -> None:
    assert Expectile(level).value(y) == pytest.approx(stats.expectile(y, level), rel=1e-9, abs=1e-12)
    assert Mean().value(y) == pytest.approx(np.mean(y), rel=1e-12)
    assert Moment(3).value(y) == pytest.approx(np.mean(y**3), rel=1e-12)
    # NumPy takes one label too many where level * n is a whole number that rounding has raised; see the next test.
    if abs(level * y.size - round(level * y.size)) > 1e-9:
        assert Quantile(level).value(y) == np.quantile(y, level, method="inverted_cdf")


def test_quantile_of_a_share_that_is_met_exactly() -> None:
    # 0.07 * 100 is rounded up to more than 7, yet 7 labels of 100 are a share of 0.07.
    assert Quantile(0.07).value(np.arange(1, 101) / 100) == 0.07
    assert Quantile(0.9).value(np.arange(10) / 10) == 0.8


def test_values_never_leave_the_labels_by_rounding() -> None:
    y = np.full(3, 0.1)
    assert y.mean() > 0.1
    for each in (Mean(high=0.1), Expectile(0.3, high=0.1), Moment(1, high=0.1)):
        assert each.value(y) == 0.1


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_identification_agrees_with_model_diagnostics(level: float) -> None:
    y, p = np.random.default_rng(0).random((2, 200))
    p[:20] = y[:20]
    theirs: dict[str, Any] = {
        name: identification_function(y, p, functional=name, level=level) for name in ("mean", "quantile", "expectile")
    }
    assert np.asarray(Mean().identification(p, y)) == pytest.approx(theirs["mean"], abs=1e-15)
    assert np.asarray(Quantile(level).identification(p, y)) == pytest.approx(theirs["quantile"], abs=1e-15)
    assert 2.0 * np.asarray(Expectile(level).identification(p, y)) == pytest.approx(theirs["expectile"], abs=1e-15)


@pytest.mark.parametrize(("kind", "arguments"), [(Mean, ()), (Quantile, (0.3,)), (Expectile, (0.8,)), (Moment, (1,))])
def test_change_of_label_units_changes_nothing_else(kind: Any, arguments: tuple[float, ...]) -> None:
    unit, other = kind(*arguments), kind(*arguments, low=-4.0, high=12.0)
    y, p = np.random.default_rng(1).random((2, 50))
    # Multiples of 2^-20, so that the change of units is exact and no rounding moves a label across a forecast.
    y, p = np.floor(y * 2**20) / 2**20, np.floor(p * 2**20) / 2**20
    assert np.array_equal(other.identification(16.0 * p - 4.0, 16.0 * y - 4.0), unit.identification(p, y))
    assert other.value(16.0 * y - 4.0) == pytest.approx(16.0 * unit.value(y) - 4.0, rel=1e-12)


@pytest.mark.parametrize(
    ("moment", "domain"),
    [
        (Moment(2, low=-1.0, high=2.0), (0.0, 4.0)),
        (Moment(2, low=-3.0, high=2.0), (0.0, 9.0)),
        (Moment(2, low=-3.0, high=-1.0), (1.0, 9.0)),
        (Moment(2, low=1.0, high=3.0), (1.0, 9.0)),
        (Moment(3, low=-2.0, high=1.0), (-8.0, 1.0)),
        (Moment(4, low=-2.0, high=0.0), (0.0, 16.0)),
    ],
)
def test_domain_of_moments(moment: Moment, domain: tuple[float, float]) -> None:
    assert moment.domain == domain


def test_proper_losses_at_the_ends() -> None:
    ends, y = np.array([0.0, 1.0])[:, None], np.array([0.0, 1.0])
    wrong = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert np.array_equal(Log().loss(ends, y), wrong)
    assert [[Log().loss(p, label) for label in (0.0, 1.0)] for p in (0.0, 1.0)] == wrong.tolist()
    assert np.array_equal(Log().weight(ends[:, 0]), [np.inf, np.inf])
    assert Log().weight(1.0) == np.inf
    assert np.array_equal(Spherical().loss(ends, y), [[-1.0, 0.0], [0.0, -1.0]])
    assert np.array_equal(Tsallis(1.5).weight(ends[:, 0]), [np.inf, 0.75])
    assert Tsallis(1.5).weight(0.0) == np.inf
    assert np.array_equal(Tsallis(1.5).loss(ends, y), [[0.0, 0.0], [0.5, -1.0]])


@pytest.mark.parametrize("property", REBUILDABLE, ids=repr)
def test_spec_and_repr_rebuild_an_equal_object(property: Elicitable) -> None:
    again = from_spec(json.loads(json.dumps(property.spec())))
    assert again == property
    assert hash(again) == hash(property)
    names = {kind.__name__: kind for kind in (Mean, Moment, Quantile, Expectile, Probability, Log, Spherical, Tsallis)}
    assert eval(repr(property), {"__builtins__": {}}, names) == property


def test_repr_shows_only_what_differs_from_the_defaults() -> None:
    shown = [
        Mean(),
        Mean(low=-1),
        Quantile(0.9),
        Quantile(np.float64(0.9), density=2),
        Probability(),
        Moment(2, high=3),
    ]
    assert [repr(each) for each in shown] == [
        "Mean()",
        "Mean(low=-1.0)",
        "Quantile(0.9)",
        "Quantile(0.9, density=2.0)",
        "Probability()",
        "Moment(2, high=3.0)",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "Mode"}, "unknown kind of property: 'Mode'"),
        ({"level": 0.5}, '"kind"'),
        ({"kind": ["Mean"]}, '"kind"'),
        ("Mean", '"kind"'),
        ({"kind": "Quantile"}, "damaged"),
        ({"kind": "Quantile", "level": "high"}, "damaged: level must be a finite number"),
        ({"kind": "Mean", "level": 0.5}, "damaged"),
        ({"kind": "Probability"}, "saved proper loss"),
        ({"kind": "Probability", "loss": {"kind": "Hinge"}}, "unknown kind of proper loss"),
        ({"kind": "Probability", "loss": {"kind": "Concave", "name": "mine"}}, "'mine'.*property="),
        (Property(lambda p, y: p - y, name="mine").spec(), "'mine'.*property="),
    ],
)
def test_specs_that_cannot_be_rebuilt(spec: Any, message: str) -> None:
    with pytest.raises(StateFileError, match=message):
        from_spec(spec)


@pytest.mark.parametrize(
    ("refused", "instead"), [(Variance, "Moment.2. and Mean"), (CVaR, "Quantile"), (Mode, "Probability")]
)
def test_properties_that_no_loss_elicits(refused: Any, instead: str) -> None:
    for arguments, options in (((), {}), ((0.9,), {}), ((), {"level": 0.9, "low": 0.0})):
        with pytest.raises(NotElicitable, match=instead):
            refused(*arguments, **options)
