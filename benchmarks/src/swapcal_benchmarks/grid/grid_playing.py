"""A stream played by the package as it is, and scored by its audit."""

from typing import Any

import numpy as np

from swapcal.audits import Audit
from swapcal.engine.values import Grid
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.protocols import Rows
from swapcal.typing import Float64Array
from swapcal_benchmarks.grid.grid_row import HINTS, GridScores
from swapcal_benchmarks.grid.recipes import GridStream
from swapcal_benchmarks.speed.timed_streams import Compressed

__all__ = ["hints_of", "play", "score", "scored"]

SEED = 1
LEVELS = 10
_EVENTS = 500
_NEAR = 0.01
_TINY = 1e-12


def hints_of(stream: GridStream) -> dict[str, Float64Array | None]:
    """The hint of every round, by kind; what a learning one says follows from the outcomes before it."""
    learning = OnlineRegression().start(stream.property, stream.n).run(stream.rows, None, stream.frozen, stream.y)
    found = dict(zip(HINTS, (None, stream.frozen, learning, stream.truth), strict=True))
    return {kind: hint for kind, hint in found.items() if kind == "none" or hint is not None}


def play(stream: GridStream, kind: str, **settings: Any) -> Float64Array:
    """The forecasts of a forecaster with all defaults."""
    learner = OnlineRegression() if kind == "learning" else None
    forecaster = Forecaster(stream.property, Finite(stream.n), seed=SEED, hint=learner, **settings)
    given = {"none": None, "frozen": stream.frozen, "learning": stream.frozen, "truth": stream.truth}[kind]
    rows = stream.rows
    compressed = Compressed(rows.indptr, rows.indices, rows.values, (len(stream.y), stream.n))
    return forecaster.run(compressed, stream.y, given)


def scored(stream: GridStream, kind: str, hint: Float64Array | None, *, rare: bool) -> GridScores:
    """Play what is shown, and what the engine says, and score both."""
    return score(stream, play(stream, kind), play(stream, kind, protect="nothing"), hint, rare=rare)


def score(
    stream: GridStream, p: Float64Array, said: Float64Array, hint: Float64Array | None, *, rare: bool
) -> GridScores:
    """All scores of the forecasts that were shown, `p`; swap error and values are those of what the engine said."""
    y, truth = stream.y, stream.truth
    audit = Audit(stream.property, Finite(stream.n + LEVELS))
    audit.update_many(y, said, stream.rows if hint is None else _with_levels(stream, hint))
    more: dict[str, Any] = {}
    if hint is not None:
        far = np.abs(p - hint) > _NEAR * np.minimum(hint, 1.0 - hint)
        more |= {"hint_loss": _loss(stream, hint), "near": int(np.argmax(far)) if far.any() else len(p)}
    if truth is not None:
        more["truth_loss"] = _loss(stream, truth)
    if rare:
        more["log_loss"] = _log_loss(p, y)
        if hint is not None:
            more["hint_log_loss"] = _log_loss(hint, y)
        if truth is not None:
            more["truth_log_loss"] = _log_loss(truth, y)
        more["worst_group"] = _worst_group(stream, p)
    return GridScores(
        swap=audit.swap_multicalibration(),
        values=len(np.unique(said)),
        loss=_loss(stream, p),
        mean=float(p.mean()),
        rate=float(y.mean()),
        **more,
    )


def _with_levels(stream: GridStream, hint: Float64Array) -> Rows:
    """Every row with one more entry: the level set of its hint."""
    ends = stream.rows.indptr[1:]
    levels = stream.n + Grid(0.0, 1.0, LEVELS).bins(hint)
    steps = np.arange(len(stream.y) + 1)
    return Rows(
        stream.rows.indptr + steps,
        np.insert(stream.rows.indices, ends, levels),
        np.insert(stream.rows.values, ends, 1.0),
    )


def _loss(stream: GridStream, p: Float64Array) -> float:
    return float(np.mean(stream.property.loss(p, stream.y)))


def _log_loss(p: Float64Array, y: Float64Array) -> float:
    q = np.clip(p, _TINY, 1.0 - _TINY)
    return float(-np.mean(y * np.log(q) + (1.0 - y) * np.log(1.0 - q)))


def _worst_group(stream: GridStream, p: Float64Array) -> float | None:
    """The largest relative error of the mean forecast among groups with many events; None if there are none."""
    rows = stream.rows
    member = np.repeat(np.arange(len(p)), np.diff(rows.indptr))
    events, said = (np.bincount(rows.indices, each[member], minlength=stream.n) for each in (stream.y, p))
    many = events >= _EVENTS
    return float(np.abs(said[many] / events[many] - 1.0).max()) if many.any() else None
