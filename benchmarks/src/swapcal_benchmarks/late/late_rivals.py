"""What a practitioner would do with late outcomes: refit a recalibration of the model on what is known by then.

Every rival sees the same as we do: for row t the outcomes whose `known` is at most t.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.tables.sources import package
from swapcal.typing import Float64Array
from swapcal_benchmarks.late import regression
from swapcal_benchmarks.late.late_cache import LateCache
from swapcal_benchmarks.late.late_stream import EVENT, QUANTILE, LateStream

__all__ = ["ISOTONIC", "RECENT", "REFIT", "RIVALS", "SEGMENTS", "refit_rows", "rival", "rivals_of", "with_groups"]

REFIT, RECENT, ISOTONIC, SEGMENTS = "refit", "refit, last 10,000", "rolling isotonic", "by segment"
WINDOW = 10_000
_FIRST, _LEAST, _MOST = 100, 50, 500


def rivals_of(stream: LateStream) -> list[str]:
    """Those that have a meaning: isotonic regression is of means."""
    return [name for name in RIVALS if name != ISOTONIC or stream.kind != QUANTILE]


def rival(stream: LateStream, name: str, kept: LateCache) -> Float64Array:
    """A rival's forecasts, kept as single precision."""
    limits = package("threadpoolctl", "the rivals", extra="bench").threadpool_limits

    def made() -> Float64Array:
        # The systems are small: on a busy machine, threads that wait for each other take 30 times as long as one.
        with limits(1):
            return RIVALS[name](stream).astype(np.float32)

    digest = f"{stream.digest()}-{_code()}"
    return kept.kept(f"{stream.label}, {name}", digest, made).astype(np.float64)


@cache
def _code() -> str:
    """Of what makes the rivals' forecasts: what is kept is made anew when it changes."""
    files = (Path(__file__), Path(str(regression.__file__)))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def refit_rows(stream: LateStream) -> Iterator[tuple[int, int, int]]:
    """First row, first row behind, and number of known outcomes of each stretch between two refits.

    The first at 100 known outcomes; then whenever they are a fifth more, but at least 50 and at most 500 more.
    """
    n, known = len(stream.y), stream.arrivals[1]
    seen = np.searchsorted(known, np.arange(n), side="right")
    start, used, due = 0, 0, _FIRST
    while start < n:
        stop = int(np.searchsorted(seen, due))
        if stop > start:
            yield start, min(stop, n), used
        start = stop
        if start < n:
            used = int(seen[start])
            due = used + min(max(used // 5, _LEAST), _MOST)


def _refitted(stream: LateStream, columns: Any, window: int | None) -> Float64Array:
    """The model's log-odds or number plus a linear function of columns, fitted to what is known."""
    kind, order = stream.kind, stream.arrivals[0]
    first = order[:_FIRST]
    unit = 1.0 if kind == EVENT or not len(first) else float(np.abs(stream.y[first] - stream.p[first]).mean()) or 1.0
    offset = log_odds(stream.p) if kind == EVENT else stream.p / unit
    y = stream.y / unit
    arrived, y_arrived, offset_arrived = columns[order], y[order], offset[order]
    fit = regression.Regression(kind, stream.level, columns.shape[1])
    result = stream.p.copy()
    for start, stop, used in refit_rows(stream):
        if used == 0:
            continue
        part = slice(0 if window is None else max(0, used - window), used)
        fit.refit(arrived[part], y_arrived[part], offset_arrived[part])
        result[start:stop] = unit * fit.predicted(columns[start:stop], offset[start:stop])
    return result


def log_odds(p: Float64Array) -> Float64Array:
    """Held away from 0 and 1."""
    inside = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.log(inside / (1.0 - inside))


def _number(stream: LateStream) -> Float64Array:
    """The model's log-odds or number, standardized by its first forecasts, all of them before the first fit."""
    z = log_odds(stream.p) if stream.kind == EVENT else stream.p
    first = z[:_FIRST]
    standard: Float64Array = (z - first.mean()) / (first.std() or 1.0)
    return standard


def with_groups(stream: LateStream) -> Any:
    """The model's number and an indicator of each group, all rows among them."""
    sparse = package("scipy.sparse", "the rivals", extra="bench")
    groups, source = stream.source.groups, stream.source
    indicators = sparse.csr_matrix(
        (groups.values, groups.indices, groups.indptr), shape=(len(stream.y), source.n_groups)
    )
    return sparse.hstack([sparse.csr_matrix(_number(stream)[:, None]), indicators], format="csr")


def by_segment(stream: LateStream) -> Any:
    """An intercept and a slope of the model's number for each segment, and for all."""
    sparse = package("scipy.sparse", "the rivals", extra="bench")
    n, codes, z = len(stream.y), stream.source.segments, _number(stream)
    size, rows = int(codes.max()) + 1, np.arange(n)
    parts = [
        sparse.csr_matrix((values, (rows, where)), shape=(n, width))
        for values, where, width in (
            (np.ones(n), codes, size),
            (z, codes, size),
            (np.ones(n), np.zeros(n, dtype=np.int64), 1),
            (z, np.zeros(n, dtype=np.int64), 1),
        )
    ]
    return sparse.hstack(parts, format="csr")


def _isotonic(stream: LateStream) -> Float64Array:
    isotonic = package("sklearn.isotonic", "the rivals", extra="bench").IsotonicRegression
    order = stream.arrivals[0]
    y, p = stream.y[order], stream.p[order]
    result = stream.p.copy()
    for start, stop, used in refit_rows(stream):
        if used:
            part = slice(max(0, used - WINDOW), used)
            result[start:stop] = isotonic(out_of_bounds="clip").fit(p[part], y[part]).predict(stream.p[start:stop])
    return result


RIVALS: dict[str, Callable[[LateStream], Float64Array]] = {
    REFIT: lambda stream: _refitted(stream, with_groups(stream), None),
    RECENT: lambda stream: _refitted(stream, with_groups(stream), WINDOW),
    ISOTONIC: _isotonic,
    SEGMENTS: lambda stream: _refitted(stream, by_segment(stream), None),
}
"""How each makes its forecasts."""
