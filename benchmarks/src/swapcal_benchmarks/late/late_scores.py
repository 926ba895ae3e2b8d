"""How forecasts of a stream are scored: loss beside the model's, coverage, the worst segment, and pairs of methods."""

from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array
from swapcal_benchmarks.late.late_stream import QUANTILE, LateStream

__all__ = ["LateScore", "Pair", "losses", "measure", "paired"]

PART = 500
"""Rows of a part, over which differences are averaged before their standard error is taken."""
FEWEST = 1000
"""Rows of a segment whose bias counts."""


@dataclass(frozen=True, slots=True)
class LateScore:
    """Loss in percent against the model's; coverage of a quantile, overall and in the last third; the worst bias.

    worst_bias: largest mean of outcome less forecast, or of coverage less level, among segments of 1,000 rows; None
    where there is no such segment.
    """

    loss: float
    coverage: float | None = None
    late_coverage: float | None = None
    worst_bias: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Difference of two methods' losses in percent of the model's, with its standard error over parts of 500 rows."""

    difference: float
    error: float

    @property
    def behind(self) -> bool:
        """Whether the first is worse beyond two standard errors."""
        return self.difference > 2.0 * self.error

    @property
    def ahead(self) -> bool:
        """Whether the first is better beyond two standard errors."""
        return self.difference < -2.0 * self.error


def losses(stream: LateStream, forecasts: Float64Array) -> Float64Array:
    """Of each row, whether or not its outcome was ever told: squared error, or pinball loss."""
    if len(forecasts) != len(stream.y):
        raise InvalidInput(f"{stream.label} has {len(stream.y)} rows; got {len(forecasts)} forecasts")
    error = forecasts - stream.y
    if stream.kind != QUANTILE:
        return np.square(error)
    found: Float64Array = error * ((error >= 0.0) - stream.level)
    return found


def measure(stream: LateStream, forecasts: Float64Array) -> LateScore:
    """Score any forecasts of a stream's rows.

    Examples
    --------
    >>> from swapcal_benchmarks.late.late_simulations import simulated_streams
    >>> stream = next(simulated_streams(1000))
    >>> measure(stream, stream.p).loss
    0.0
    """
    p = np.asarray(forecasts, dtype=np.float64)
    loss = 100.0 * (losses(stream, p).sum() / losses(stream, stream.p).sum() - 1.0)
    quantile = stream.kind == QUANTILE
    signs = (stream.y <= p) - stream.level if quantile else stream.y - p
    covered = stream.y <= p
    counts = np.bincount(stream.source.segments)
    sums = np.bincount(stream.source.segments, weights=signs)
    large = counts >= FEWEST
    return LateScore(
        float(loss),
        float(covered.mean()) if quantile else None,
        float(covered[2 * len(p) // 3 :].mean()) if quantile else None,
        float(np.abs(sums[large] / counts[large]).max()) if large.any() else None,
    )


def paired(stream: LateStream, forecasts: Float64Array, other: Float64Array) -> Pair:
    """The first method's loss less the second's."""
    difference = losses(stream, np.asarray(forecasts)) - losses(stream, np.asarray(other))
    n = max(2, len(difference) // PART)
    means = np.array([part.mean() for part in np.array_split(difference, n)])
    unit = 100.0 / losses(stream, stream.p).mean()
    return Pair(float(unit * difference.mean()), float(unit * means.std(ddof=1) / np.sqrt(n)))
