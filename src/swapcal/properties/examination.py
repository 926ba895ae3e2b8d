"""What can be checked of a user's identification function: on a grid of 101 forecasts and 101 labels."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, FloatLike

__all__ = ["Examination", "examine", "probes", "require_agreement", "require_finite"]

_CELLS = 100

_SLACK = 1e-7
"""What a sign or an order may be wrong by, relative to the largest |V|: a thousand times the error of a difference."""

_HALVINGS, _JUMP = 10, 0.01
"""A jump is a change of V by 1 % of its peak within 1e-5 widths of the domain: there the step of a difference, which
spreads a kink of a loss, is as wide."""

Interval = tuple[float, float]
Bivariate = Callable[[FloatLike, FloatLike], FloatLike]


class Examination(NamedTuple):
    """What the grid has shown: the largest |V|, whether V never falls in p, and whether it never jumps."""

    peak: float
    monotone: bool
    continuous: bool


def _borders(interval: Interval) -> Float64Array:
    return np.linspace(*interval, _CELLS + 1)


def _middles(interval: Interval) -> Float64Array:
    """Points strictly inside, none of them a border: a step at p = y, or at the very end, does not fall on them."""
    return interval[0] + (interval[1] - interval[0]) * (np.arange(_CELLS) + 0.5) / _CELLS


def probes(domain: Interval, labels: Interval) -> tuple[Float64Array, Float64Array]:
    """A few forecasts and labels, below, above and far from one another, on which to try a function."""
    return _borders(domain)[[20, 50, 80, 50]], _borders(labels)[[45, 15, 30, 85]]


def examine(name: str, v: Bivariate, domain: Interval, labels: Interval, monotone: bool | None) -> Examination:
    """Measure V(p, y), and raise InvalidInput with the place where it cannot be an identification function."""
    if monotone is not None and not isinstance(monotone, bool):
        raise InvalidInput(f"{name}: monotone must be True, False or None; got {monotone!r}")
    forecasts, outcomes = _borders(domain), _borders(labels)
    grid = np.asarray(v(forecasts[:, None], outcomes))
    require_finite(name, grid, forecasts[:, None], outcomes)
    peak = float(np.abs(grid).max())
    if peak == 0.0:
        raise InvalidInput(f"{name}: V(p, y) is zero for all forecasts and labels, so it identifies nothing")
    outcomes = _middles(labels)
    for end, sign, allowed in ((domain[0], 1.0, "at most"), (domain[1], -1.0, "at least")):
        column = np.asarray(v(np.asarray([end]), outcomes))
        at = int(np.argmax(sign * column))
        if sign * column[at] > _SLACK * peak:
            raise InvalidInput(
                f"{name}: V({end:g}, {outcomes[at]:g}) = {column[at]:g}, but it must be {allowed} 0 at this end of the "
                "domain for every label; turn the sign of V, or set domain= to the range of the property's values"
            )
    falls = grid[:-1] - grid[1:]
    rising = bool(falls.max() <= _SLACK * peak)
    if monotone and not rising:
        i, j = np.unravel_index(int(falls.argmax()), falls.shape)
        raise InvalidInput(
            f"{name}: monotone=True, yet V(., {_borders(labels)[j]:g}) falls by {falls[i, j]:g} between the forecasts "
            f"{forecasts[i]:g} and {forecasts[i + 1]:g}; leave monotone out to have it measured"
        )
    jump = _largest_jump(v, forecasts, _borders(labels), falls)
    return Examination(peak, rising if monotone is None else monotone, jump <= _JUMP * peak)


def _largest_jump(v: Bivariate, forecasts: Float64Array, outcomes: Float64Array, falls: Float64Array) -> float:
    """The change of V that stays, over the labels, when the cell where it is largest is halved again and again."""
    cell = np.abs(falls).argmax(axis=0)
    left, right = forecasts[cell], forecasts[cell + 1]
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        at = np.asarray(v(middle, outcomes))
        lower = np.abs(at - v(left, outcomes)) >= np.abs(v(right, outcomes) - at)
        left, right = np.where(lower, left, middle), np.where(lower, middle, right)
    return float(np.abs(np.asarray(v(right, outcomes)) - v(left, outcomes)).max())


def require_finite(name: str, v: Float64Array, p: FloatLike, y: FloatLike) -> None:
    """Raise InvalidInput with the first pair (p, y) at which `v` is not finite."""
    finite = np.isfinite(v)
    if finite.all():
        return
    at = int(np.argmin(finite))
    forecasts, outcomes = np.broadcast_arrays(p, y)
    raise InvalidInput(
        f"{name}: V({forecasts.flat[at]:g}, {outcomes.flat[at]:g}) = {v.flat[at]}, but V must be finite for every "
        "forecast in the domain and every label; multiply it by a positive function of p that keeps it bounded (for a "
        "probability use Probability(loss))"
    )


def require_agreement(name: str, v: Bivariate, derivative: Bivariate, domain: Interval, labels: Interval) -> None:
    """Raise InvalidInput with a pair (p, y) at which the loss falls though V is positive, or rises though negative."""
    forecasts, outcomes = _borders(domain)[1:-1], _middles(labels)
    values = np.asarray(v(forecasts[:, None], outcomes))
    slopes = np.asarray(derivative(forecasts[:, None], outcomes))
    against = np.where(np.isfinite(slopes), -slopes * np.sign(values), np.inf)
    i, j = np.unravel_index(int(against.argmax()), against.shape)
    if against[i, j] > _SLACK * np.abs(slopes).max() or not np.isfinite(slopes[i, j]):
        raise InvalidInput(
            f"{name}: at ({forecasts[i]:g}, {outcomes[j]:g}) the loss has slope {slopes[i, j]:g} and V is "
            f"{values[i, j]:g}; the loss must rise in p where V is positive and fall where it is negative"
        )
