"""What forecasts know: the loss of the best constant, and their own after the best change of each value."""

from typing import NamedTuple

import numpy as np

from swapcal.audit.outcomes import OutcomeBins, root
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Skill", "skill", "skill_of_mean"]

MOST_PLACES = 200


class Skill(NamedTuple):
    """Losses of the best constant and of ideally recalibrated forecasts, and the slope of the latter on forecasts.

    ideal: with the advantage taken off that fitting a value to each place has by chance. value: the best constant.
    """

    constant: float
    ideal: float
    slope: float | None
    value: float


def skill_of_mean(
    sums: tuple[float, float, float], fitted: Float64Array, value: Float64Array, count: Float64Array
) -> Skill:
    """The same for squared error, exactly, from sums alone.

    Parameters
    ----------
    sums : tuple of 3 floats
        Sums of w, w y and w y^2.
    fitted, value, count : array, shape (places,)
        Mean outcome, mean forecast and weight of each place.
    """
    weight, total, squares = sums
    mean = total / weight
    constant = max(squares / weight - mean * mean, 0.0)
    between = float(np.sum(count * (fitted - mean) ** 2)) / weight
    ideal = max(constant - between, 0.0)
    return Skill(constant, _fair(constant, ideal, len(value), weight), _slope(value, fitted, count), mean)


def _fair(constant: float, ideal: float, n_places: int, weight: float) -> float:
    """The ideal loss with what a value fitted to each place gains by chance given back."""
    return min(constant, ideal + constant * (n_places - 1) / max(weight, 1.0))


def _slope(value: Float64Array, fitted: Float64Array, count: Float64Array) -> float | None:
    share = count / count.sum()
    spread = share @ (value - share @ value) ** 2
    return float(share @ ((value - share @ value) * (fitted - share @ fitted)) / spread) if spread > 0 else None


def skill(
    property: Elicitable, outcomes: OutcomeBins, histograms: Float64Array, value: Float64Array, count: Float64Array
) -> Skill:
    """From one histogram of outcomes for each place, shape (places, bins of outcomes), in order of the forecasts.

    Notes
    -----
    A value fitted to each of m places gains about (m - 1) / T of the loss by chance, as for squared error; that much
    is given back. Where there are more than 200 places, neighbors are taken together.
    """
    histograms, value, count = _merged(histograms, value, count)
    points = outcomes.points(spread=True)
    roots = points if not property.continuous else outcomes.points(spread=False)
    overall = histograms.sum(axis=0, keepdims=True)
    best = root(property, overall, roots)
    constant = _loss(property, best, overall, points)
    fitted = root(property, histograms, roots)
    ideal = _loss(property, fitted, histograms, points)
    ideal = _fair(constant, ideal, len(value), float(count.sum()))
    return Skill(constant, ideal, _slope(value, fitted, count), float(best[0]))


def _loss(property: Elicitable, p: Float64Array, histograms: Float64Array, points: Float64Array) -> float:
    losses = np.asarray(property.loss(p[:, None, None], points[None, :, :])).mean(axis=2)
    return float(np.sum(losses * histograms) / np.sum(histograms))


def _merged(
    histograms: Float64Array, value: Float64Array, count: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    if len(value) <= MOST_PLACES:
        return histograms, value, count
    at = np.minimum((np.cumsum(count) - count) / count.sum() * MOST_PLACES, MOST_PLACES - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    together = np.add.reduceat(count, starts)
    return (
        np.add.reduceat(histograms, starts, axis=0),
        np.add.reduceat(value * count, starts) / together,
        together,
    )
