"""A whole recorded stream through a forecaster: the rounds of `predict` and `update`, without the objects between."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal import kernels, persistence, validation
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster

__all__ = ["play", "run"]

_CHUNK = 1 << 16
"""Rounds that a kernel plays in one call; between calls Python notices Ctrl-C."""


def run(forecaster: "Forecaster", X: Any, y: Any, hints: Any, features: Any, missing: str) -> Float64Array:
    """`Forecaster.run`: everything is checked first; what fails later leaves no trace."""
    f = forecaster
    skip = validation.one_of(missing, "missing", ("error", "skip")) == "skip"
    labels = validation.vector(y, "y", missing=skip)
    known = ~np.isnan(labels)
    if known.all():
        learned = labels = f._labels(labels)
    else:
        labels, learned = labels.copy(), f._labels(labels[known])
        labels[known] = learned
    given = None if hints is None else _hints(f, validation.vector(hints, "hints", len(labels), missing=skip))
    extras = validation.feature_rows(features, len(labels), f._n_features)
    out = np.empty(len(labels))
    before = persistence.snapshot(f) if _may_stop_halfway(f, len(labels)) else None
    groups = f.hypotheses.snapshot() if hasattr(f.hypotheses, "snapshot") else None
    try:
        contexts = _contexts(f, X, len(labels))
        if not f.property.continuous and f.jitter == 0.0:
            f._atoms.add_many(learned)
        play(f, contexts, labels, given, extras, out)
    except BaseException:
        if before is not None:
            persistence.restore(f, *before)
        if groups is not None:
            f.hypotheses.restore(groups)  # type: ignore[attr-defined]
        raise
    return out


def _hints(f: "Forecaster", hints: Float64Array) -> Float64Array:
    low, high = f.property.domain
    if f.outside == "clip":
        return np.clip(hints, low, high)
    for hint in hints[(hints < low) | (hints > high)][:1]:
        f._hint_value(hint)
    return hints


def _contexts(f: "Forecaster", X: Any, n_rows: int) -> Rows | Float64Array:
    """The contexts, checked: a dense array where the kernels can read it as it is, compressed sparse rows otherwise."""
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned
    readable = _is_native(f) and f._engine.reads_dense and plain and X.shape == (n_rows, f.hypotheses.n)
    limit = 1.0 if f.hypotheses.dual == "max" else np.finfo(np.float64).max
    # One pass without an array of the same size, which NumPy's isfinite would make.
    if readable and kernels.native.first_bad(X, limit) < 0:
        dense: Float64Array = X
        return dense
    return f.hypotheses.rows(X, n_rows)


def _may_stop_halfway(f: "Forecaster", n_rows: int) -> bool:
    """Whether something can come between two rounds: a part in Python that fails, or Ctrl-C between chunks."""
    return n_rows > _CHUNK or not _is_native(f)


def play(
    forecaster: "Forecaster",
    contexts: Rows | Float64Array,
    labels: Float64Array,
    hints: Float64Array | None,
    features: Float64Array | None,
    out: Float64Array,
) -> None:
    """Play all rounds; forecasts go to `out`. Labels and hints that are NaN are missing."""
    if _is_native(forecaster):
        _kernel(forecaster, contexts, labels, hints, features, out)
    else:
        _loop(forecaster, contexts, labels, hints, features, out)


def _is_native(f: "Forecaster") -> bool:
    return f._engine is not None and f._engine.runs_alone


def _kernel(
    f: "Forecaster",
    contexts: Rows | Float64Array,
    labels: Float64Array,
    hints: Float64Array | None,
    features: Float64Array | None,
    out: Float64Array,
) -> None:
    parts = [np.ascontiguousarray(a) for a in contexts] if isinstance(contexts, Rows) else [contexts]
    labels = np.ascontiguousarray(labels)
    hints, features = (None if a is None else np.ascontiguousarray(a) for a in (hints, features))
    done = 0
    while done < len(labels):
        run = f._engine.run_sparse if isinstance(contexts, Rows) else f._engine.run_dense
        stop = min(done + _CHUNK, len(labels))
        # The kernel stops where the grid is to be refined: that replaces the arrays.
        done = run(*parts, labels, hints, features, out, done, stop, f._rounds_to_refinement())
        f._refine_if_due()
    f._hinted = f._hinted or (hints is not None and not np.isnan(hints).all())


def _loop(
    f: "Forecaster",
    contexts: Rows | Float64Array,
    labels: Float64Array,
    hints: Float64Array | None,
    features: Float64Array | None,
    out: Float64Array,
) -> None:
    rows = contexts if isinstance(contexts, Rows) else f.hypotheses.rows(contexts, len(labels))
    ends, given = rows.indptr.tolist(), [math.nan] * len(labels) if hints is None else hints.tolist()
    for t, (label, hint) in enumerate(zip(labels.tolist(), given, strict=True)):
        row = Row(rows.indices[ends[t] : ends[t + 1]], rows.values[ends[t] : ends[t + 1]])
        case = f._case(row, None if math.isnan(hint) else hint, None if features is None else features[t])
        play = f._play(case)
        opened = f._pending.issue()
        played = f._draw(play, opened)
        out[t] = value = f.grid.midpoint(played)
        if math.isnan(label):
            f._pending.close(opened)
        else:
            f._learn(case, played, play.evidence_at(value), label, opened)
