"""How each group fares over all of its rows: mean identification, an interval, and its error."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.radii import adaptive_radius
from swapcal.audit.summary import ColumnSummary
from swapcal.properties import Expectile, Mean, Moment, Probability, Quantile
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array
from swapcal.words.property_words import NamedProperty

__all__ = ["CONFIDENCE", "GroupBias", "extremes", "group_bias"]

CONFIDENCE = 0.95
"""Probability with which the intervals of all groups hold together."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBias:
    """One entry for each group: rows, mean identification (NaN without rows), its interval, and the error.

    error: sum over bins of n (sum of V within the group / n)^2, with n all rows of the bin: what the group alone would
    give as multicalibration error.
    """

    count: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    error: Float64Array


def group_bias(side: ColumnSummary, property: Elicitable | NamedProperty) -> GroupBias:
    """Sum the cells of each group up.

    The interval holds for any stream, whatever the forecasts depended on (`adaptive_radius`). It needs the sum of
    squared identifications, which a table of means does not have; a number between a and b with mean m has a mean
    square of at most (a + b) m - a b, which is exact for quantiles and for labels of 0 and 1, and wide for others.
    """
    counts = np.nan_to_num(np.asarray(side.counts, dtype=np.float64))
    bias = np.where(counts > 0.0, np.nan_to_num(side.bias), 0.0)
    rows = counts.sum(axis=0)
    sums = bias * counts
    middles = 0.5 * (side.edges[:-1] + side.edges[1:])
    ends = np.array([extremes(property, float(p)) for p in middles]).reshape(-1, 2)
    least, greatest = ends[:, :1], ends[:, 1:]
    squares = np.clip((least + greatest) * bias - least * greatest, bias * bias, 1.0)
    total = np.sum(squares * counts, axis=0)
    radius = adaptive_radius(total, (1.0 - CONFIDENCE) / max(1, len(rows)))
    here = rows > 0.0
    safe = np.where(here, rows, 1.0)
    mean = np.where(here, sums.sum(axis=0) / safe, np.nan)
    low, high = (np.where(here, np.clip(mean + sign * radius / safe, -1.0, 1.0), np.nan) for sign in (-1.0, 1.0))
    played = np.maximum(np.asarray(side.histogram, dtype=np.float64), counts.max(axis=1, initial=0.0))[:, None]
    error = np.sum(np.divide(sums * sums, played, out=np.zeros_like(sums), where=played > 0.0), axis=0)
    return GroupBias(rows, mean, low, high, error)


def extremes(property: Elicitable | NamedProperty, p: float) -> tuple[float, float]:
    """The least and the greatest identification that a forecast of `p` can meet."""
    # V falls as the label rises, for all properties of this package; a quantile jumps at the label itself.
    if isinstance(property, Quantile):
        return -property.level, 1.0 - property.level
    if isinstance(property, Moment):
        low, high = property.domain
        return (p - high) / (high - low), (p - low) / (high - low)
    if isinstance(property, Expectile | Mean | Probability):
        least, greatest = (float(property.identification(p, y)) for y in (property.high, property.low))
        return least, greatest
    return -1.0, 1.0
