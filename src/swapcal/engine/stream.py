"""A whole recorded stream through a round: the numbers of `predict` and `update`, without the objects between."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from swapcal import checked
from swapcal.engine.protocol import StreamPart
from swapcal.engine.round import Round
from swapcal.engine.rules import Rules
from swapcal.hypotheses.rows import can_be_cut, cut
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array

__all__ = ["run"]

_CHUNK = 1 << 16
_FEW = 1 << 12


def run(round: Round, X: Any, y: Any, hints: Any, features: Any, missing: str) -> Float64Array:
    """`Forecaster.run`: whatever fails, early or late, leaves no trace."""
    rules, state, engine = round.rules, round.state, round.engine
    skip = checked.one_of(missing, "missing", ("error", "skip")) == "skip"
    labels = checked.vector(y, "y", missing=skip)
    known = ~np.isnan(labels)
    if known.all():
        learned = labels = rules.labels(labels)
    else:
        labels, learned = labels.copy(), rules.labels(labels[known])
        labels[known] = learned
    given = None if hints is None else _hints(rules, checked.vector(hints, "hints", len(labels), missing=skip))
    extras = checked.feature_rows(features, len(labels), rules.n_features)
    out = np.empty(len(labels))
    alone = engine.alone and engine.takes(extras)
    chunk = _chunk(rules.hypotheses.n)
    # A few native rounds are read before they are played, and nothing comes between them.
    keep = len(labels) > min(chunk, _FEW) or not alone
    fresh, n_bins = keep and state.pending.issued == 0, state.grid.n
    before = state.snapshot() if keep and not fresh else None
    groups = rules.hypotheses.snapshot() if hasattr(rules.hypotheses, "snapshot") else None
    play = _whole if alone else _each
    try:
        for start, contexts in _parts(round, X, len(labels), chunk, alone):
            if not start and rules.notices:
                state.atoms.add_many(learned)
            part = slice(start, start + chunk)
            guides, inputs = (None if a is None else a[part] for a in (given, extras))
            play(round, StreamPart(contexts, labels[part], guides, inputs, out[part]))
    except BaseException:
        if fresh:
            state.start(rules, n_bins)
        elif before is not None:
            state.restore(rules, *before)
        engine.assemble()
        if groups is not None:
            rules.hypotheses.restore(groups)  # type: ignore[attr-defined]
        raise
    if given is not None:
        state.hinted = state.hinted or bool((~np.isnan(given) & known).any())
    return out


def _chunk(n: int) -> int:
    """Rounds that are read and played at a time, for contexts of length n: between chunks Python notices Ctrl-C."""
    return min(max((1 << 23) // n, 1 << 10), _CHUNK)


def _hints(rules: Rules, hints: Float64Array) -> Float64Array:
    low, high = rules.property.domain
    if rules.outside == "clip":
        return np.clip(hints, low, high)
    for hint in hints[(hints < low) | (hints > high)][:1]:
        rules.hint_value(hint)
    return hints


def _parts(round: Round, X: Any, n_rows: int, chunk: int, alone: bool) -> Iterator[tuple[int, Rows | Float64Array]]:
    """The contexts in chunks, checked: arrays where a kernel can read them as they are, sparse rows otherwise."""
    hypotheses = round.rules.hypotheses
    if alone and round.engine.plays(X, n_rows):
        yield from ((start, X[start : start + chunk]) for start in range(0, n_rows, chunk))
    elif n_rows > chunk and can_be_cut(X, n_rows):
        for start in range(0, n_rows, chunk):
            stop = min(start + chunk, n_rows)
            yield start, hypotheses.rows(cut(X, start, stop), stop - start)
    else:
        rows = hypotheses.rows(X, n_rows)
        for start in range(0, n_rows, chunk):
            ends = rows.indptr[start : start + chunk + 1]
            inside = slice(ends[0], ends[-1])
            yield start, Rows(ends - ends[0], rows.indices[inside], rows.values[inside])


def _whole(round: Round, part: StreamPart) -> None:
    """The engine plays by itself, and stops where the grid is to be refined, which replaces the arrays."""
    rules, state, done = round.rules, round.state, 0
    while done < len(part.labels):
        until = rules.refined_at(state.grid.n) - state.ledger.n_rounds
        done = round.engine.run(part, done, until)
        round.follow(None)


def _each(round: Round, part: StreamPart) -> None:
    """Round after round."""
    contexts, hints, state = part.contexts, part.hints, round.state
    assert isinstance(contexts, Rows)  # arrays are for kernels
    ends, given = contexts.indptr.tolist(), [math.nan] * len(part.labels) if hints is None else hints.tolist()
    for t, (label, hint) in enumerate(zip(part.labels.tolist(), given, strict=True)):
        inside = slice(ends[t], ends[t + 1])
        row = Row(contexts.indices[inside], contexts.values[inside])
        extra = None if part.features is None else part.features[t]
        case = round.see(row, None if math.isnan(hint) else hint, extra)
        play = round.engine.play(case)
        opened = state.pending.issue()
        played = round.draw(play, opened)
        part.out[t] = value = state.grid.midpoint(played)
        if math.isnan(label):
            state.pending.close(opened)
        else:
            round.learn(case, played, play.evidence_at(value), label, opened)
