"""Reliability curves: the property of the outcomes in each bin of forecasts, with an interval."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.outcomes import OutcomeBins, root
from swapcal.audit.radii import adaptive_radius
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Curve", "make_curve"]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A reliability curve: where forecasts were (mean forecast of a bin), and what came (the property of its labels).

    All arrays have one entry for each bin that was forecast at all; [low, high] holds for all bins together.
    """

    forecast: Float64Array
    outcome: Float64Array
    low: Float64Array
    high: Float64Array
    count: Float64Array


def make_curve(
    property: Elicitable,
    outcomes: OutcomeBins,
    histograms: Float64Array,
    forecast: Float64Array,
    exact: Float64Array | None = None,
) -> Curve:
    """The curve of one group.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    outcomes : OutcomeBins
        The bins of the histograms.
    histograms : array, shape (bins, n)
        Outcomes in each bin of forecasts.
    forecast : array, shape (bins,)
        Mean forecast of each bin; NaN where there is none.
    exact : array, shape (bins,), optional
        The outcome of each bin, where it is known better than from a histogram.

    Notes
    -----
    The outcome q of a bin is the root of the mean identification of its outcomes, which for a mean is their mean, and
    for a quantile their quantile. Its interval is found by inverting that function: all q at which the mean
    identification is no further from 0 than its radius, `adaptive_radius` with the squares of V at the root. That is
    right for every property without a word about densities. It holds for all bins of a curve together with 95 %.
    """
    count = histograms.sum(axis=1)
    kept = np.flatnonzero((count > 0) & np.isfinite(forecast))
    histograms, count = histograms[kept], count[kept]
    points = outcomes.points(spread=not property.continuous)
    outcome = root(property, histograms, points) if exact is None else exact[kept]
    v = np.asarray(property.identification(outcome[:, None, None], points[None, :, :]))
    squares = np.sum(np.mean(v * v, axis=2) * histograms, axis=1)
    radius = adaptive_radius(squares, (1 - CONFIDENCE) / max(len(kept), 1)) / count
    # Both ends are halved together: calls cost more than numbers.
    ends = root(property, np.tile(histograms, (2, 1)), points, np.concatenate([-radius, radius]))
    return Curve(
        forecast=forecast[kept],
        outcome=outcome,
        low=np.minimum(ends[: len(kept)], outcome),
        high=np.maximum(ends[len(kept) :], outcome),
        count=count,
    )
