"""A whole recorded stream through a forecaster: the rounds of `predict` and `update`, without the objects between."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal import checked
from swapcal.engine import persistence
from swapcal.errors import SwapcalError
from swapcal.hints.state import LARGEST
from swapcal.hypotheses.rows import can_be_cut, cut
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster

__all__ = ["run"]

_CHUNK = 1 << 16


def run(forecaster: "Forecaster", X: Any, y: Any, hints: Any, features: Any, missing: str) -> Float64Array:
    """`Forecaster.run`: whatever fails, early or late, leaves no trace."""
    if not forecaster._running.acquire(blocking=False):
        raise SwapcalError("this forecaster runs in another thread; wait for it, or make one per thread")
    try:
        return _run(forecaster, X, y, hints, features, missing)
    finally:
        forecaster._running.release()


def _chunk(n: int) -> int:
    """Rounds that are read and played at a time, for contexts of length n: between chunks Python notices Ctrl-C."""
    return min(max((1 << 23) // n, 1 << 10), _CHUNK)


def _run(f: "Forecaster", X: Any, y: Any, hints: Any, features: Any, missing: str) -> Float64Array:
    skip = checked.one_of(missing, "missing", ("error", "skip")) == "skip"
    labels = checked.vector(y, "y", missing=skip)
    known = ~np.isnan(labels)
    if known.all():
        learned = labels = f._labels(labels)
    else:
        labels, learned = labels.copy(), f._labels(labels[known])
        labels[known] = learned
    given = None if hints is None else _hints(f, checked.vector(hints, "hints", len(labels), missing=skip))
    extras = checked.feature_rows(features, len(labels), f._n_features)
    out = np.empty(len(labels))
    alone = f._engine is not None and f._engine.runs_alone
    if alone and extras is not None:
        # The Python twin says what is wrong with a feature.
        alone = f._kernels.first_bad(np.require(extras, requirements=["C", "A"]), LARGEST) < 0
    chunk = _chunk(f.hypotheses.n)
    # A few native rounds are read before they are played, and nothing comes between them.
    keep = len(labels) > min(chunk, 1 << 12) or not alone
    fresh, n_bins = keep and f._pending.issued == 0, f.grid.n
    before = persistence.snapshot(f) if keep and not fresh else None
    groups = f.hypotheses.snapshot() if hasattr(f.hypotheses, "snapshot") else None
    play = _kernel if alone else _loop
    try:
        for start, contexts in _parts(f, X, len(labels), chunk, alone):
            if not start and not f.property.continuous and f.jitter == 0.0:
                f._atoms.add_many(learned)
            part = slice(start, start + chunk)
            guides, inputs = (None if a is None else a[part] for a in (given, extras))
            play(f, contexts, labels[part], guides, inputs, out[part])
    except BaseException:
        if fresh:
            f._start(n_bins)
        elif before is not None:
            persistence.restore(f, *before)
        if groups is not None:
            f.hypotheses.restore(groups)  # type: ignore[attr-defined]
        raise
    if given is not None:
        f._hinted = f._hinted or bool((~np.isnan(given) & known).any())
    return out


def _hints(f: "Forecaster", hints: Float64Array) -> Float64Array:
    low, high = f.property.domain
    if f.outside == "clip":
        return np.clip(hints, low, high)
    for hint in hints[(hints < low) | (hints > high)][:1]:
        f._hint_value(hint)
    return hints


def _parts(f: "Forecaster", X: Any, n_rows: int, chunk: int, alone: bool) -> Iterator[tuple[int, Rows | Float64Array]]:
    """The contexts in chunks, checked: arrays where a kernel can read them as they are, sparse rows otherwise."""
    if alone and _is_plain(f, X, n_rows):
        yield from ((start, X[start : start + chunk]) for start in range(0, n_rows, chunk))
    elif n_rows > chunk and can_be_cut(X, n_rows):
        for start in range(0, n_rows, chunk):
            stop = min(start + chunk, n_rows)
            yield start, f.hypotheses.rows(cut(X, start, stop), stop - start)
    else:
        rows = f.hypotheses.rows(X, n_rows)
        for start in range(0, n_rows, chunk):
            ends = rows.indptr[start : start + chunk + 1]
            inside = slice(ends[0], ends[-1])
            yield start, Rows(ends - ends[0], rows.indices[inside], rows.values[inside])


def _is_plain(f: "Forecaster", X: Any, n_rows: int) -> bool:
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned
    if not plain or not f._engine.reads_dense or X.shape != (n_rows, f.hypotheses.n):
        return False
    limit = 1.0 if f.hypotheses.dual == "max" else float(np.finfo(np.float64).max)
    # One pass without an array of the same size, which NumPy's isfinite would make.
    return bool(f._kernels.first_bad(X, limit) < 0)


def _kernel(
    f: "Forecaster",
    contexts: Rows | Float64Array,
    labels: Float64Array,
    hints: Float64Array | None,
    features: Float64Array | None,
    out: Float64Array,
) -> None:
    sparse = isinstance(contexts, Rows)
    parts = [np.require(a, requirements=["C", "A"]) for a in (contexts if sparse else [contexts])]
    labels = np.require(labels, requirements=["C", "A"])
    hints, features = (None if a is None else np.require(a, requirements=["C", "A"]) for a in (hints, features))
    done = 0
    while done < len(labels):
        run = f._engine.run_sparse if sparse else f._engine.run_dense
        # The kernel stops where the grid is to be refined: that replaces the arrays.
        done = run(*parts, labels, hints, features, out, done, len(labels), f._rounds_to_refinement())
        f._refine_if_due()


def _loop(
    f: "Forecaster",
    contexts: Rows | Float64Array,
    labels: Float64Array,
    hints: Float64Array | None,
    features: Float64Array | None,
    out: Float64Array,
) -> None:
    assert isinstance(contexts, Rows)  # arrays are for kernels
    ends, given = contexts.indptr.tolist(), [math.nan] * len(labels) if hints is None else hints.tolist()
    for t, (label, hint) in enumerate(zip(labels.tolist(), given, strict=True)):
        part = slice(ends[t], ends[t + 1])
        row = Row(contexts.indices[part], contexts.values[part])
        case = f._case(row, None if math.isnan(hint) else hint, None if features is None else features[t])
        play = f._play(case)
        opened = f._pending.issue()
        played = f._draw(play, opened)
        out[t] = value = f.grid.midpoint(played)
        if math.isnan(label):
            f._pending.close(opened)
        else:
            f._learn(case, played, play.evidence_at(value), label, opened)
