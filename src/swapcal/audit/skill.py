"""What forecasts know: the loss of the best constant, and their own after the best change of each value."""

from typing import NamedTuple

import numpy as np

from swapcal.audit.outcomes import OutcomeBins, root
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Skill", "skill"]

MOST_PLACES = 200


class Skill(NamedTuple):
    """Losses of the best constant and of ideally recalibrated forecasts, and the slope of the latter on forecasts.

    ideal: with the advantage taken off that fitting a value to each place has by chance.
    """

    constant: float
    ideal: float
    slope: float | None


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
    constant = _loss(property, root(property, overall, roots), overall, points)
    fitted = root(property, histograms, roots)
    ideal = _loss(property, fitted, histograms, points)
    ideal = min(constant, ideal + constant * (len(value) - 1) / max(count.sum(), 1.0))
    share = count / count.sum()
    spread = share @ (value - share @ value) ** 2
    slope = float(share @ ((value - share @ value) * (fitted - share @ fitted)) / spread) if spread > 0 else None
    return Skill(constant, float(ideal), slope)


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
