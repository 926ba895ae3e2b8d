"""The delays of a stream: at once, some rows, by day, heavy tail, real, dependent on the outcome, never."""

from collections.abc import Iterator

import numpy as np

from swapcal.simulate import streams
from swapcal.typing import Float64Array
from swapcal_benchmarks.late.late_stream import LateSource, LateStream

__all__ = ["AT_ONCE", "NEVER", "REAL", "delays"]

AT_ONCE, REAL, NEVER = "at once", "real", "a tenth of the high ones never"
_DAY = 200


def delays(source: LateSource) -> Iterator[LateStream]:
    """Every delay that a source can have; draws are fixed by a seed."""
    n, y = len(source.y), source.y
    yield LateStream(source, AT_ONCE, np.arange(1.0, n + 1.0))
    yield LateStream(source, "200 rows", streams.fixed(n, 200))
    yield LateStream(source, "2,000 rows", streams.fixed(n, 2000))
    if source.real is not None:
        yield LateStream(source, REAL, np.maximum(source.real, np.arange(n) + 1.0), depends=source.real_depends)
    yield LateStream(source, "by day", _next_day(source))
    yield LateStream(source, "heavy tail", streams.heavy_tailed(n, 50.0, 0))
    yield LateStream(source, "high ones fast", streams.by_outcome(y, 20.0, 3000.0, 0), depends=True)
    yield LateStream(source, "high ones slow", streams.by_outcome(y, 3000.0, 20.0, 0), depends=True)
    lost = (y > y.mean()) & (np.random.default_rng(0).random(n) < 0.1)
    yield LateStream(source, NEVER, np.where(lost, np.inf, streams.fixed(n, 200)), depends=True)


def _next_day(source: LateSource) -> Float64Array:
    if source.days is None:
        return streams.by_day(len(source.y), _DAY)
    return np.searchsorted(source.days, source.days, side="right").astype(np.float64)
