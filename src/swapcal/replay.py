"""A whole recorded stream through a forecaster: the rounds of `predict` and `update`, without the objects between."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal import kernels
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.forecaster import Forecaster

__all__ = ["contexts", "may_stop_halfway", "play"]

_CHUNK = 1 << 16
"""Rounds that a kernel plays in one call; between calls Python notices Ctrl-C."""


def contexts(forecaster: "Forecaster", X: Any, n_rows: int) -> Rows | Float64Array:
    """The contexts, checked: a dense array where the kernels can read it as it is, compressed sparse rows otherwise."""
    f = forecaster
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned
    readable = _is_native(f) and f._engine.reads_dense and plain and X.shape == (n_rows, f.hypotheses.n)
    limit = 1.0 if f.hypotheses.dual == "max" else np.finfo(np.float64).max
    # One pass without an array of the same size, which NumPy's isfinite would make.
    if readable and kernels.native.first_bad(X, limit) < 0:
        dense: Float64Array = X
        return dense
    return f.hypotheses.rows(X, n_rows)


def may_stop_halfway(forecaster: "Forecaster", n_rows: int) -> bool:
    """Whether something can come between two rounds: a part in Python that fails, or Ctrl-C between chunks."""
    return n_rows > _CHUNK or not _is_native(forecaster)


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
