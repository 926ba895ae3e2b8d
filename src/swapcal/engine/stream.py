"""A whole recorded stream through a round: the numbers of `predict` and `update`, without the objects between."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.engine.arrivals import NOT_YET, Arrivals, arrivals, moments, nothing_late
from swapcal.engine.protocol import Learned, StreamPart
from swapcal.engine.round import Round
from swapcal.engine.rules import Rules
from swapcal.engine.waiting import HINT, Waiting
from swapcal.errors import InvalidInput
from swapcal.hypotheses.rows import can_be_cut, cut
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Late", "allowed_hints", "fill_in", "play", "run"]

_CHUNK = 1 << 16
_FEW = 1 << 12


class Late(NamedTuple):
    """When outcomes are known, and in which order they are learned; the arguments of `Forecaster.run`."""

    known: Any
    times: Any
    order: str
    settle: int | None


def run(
    round: Round, X: Any, y: Any, hints: Any, features: Any, missing: str, late: Late | None = None, waits: Any = None
) -> Float64Array:
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
    given = None if hints is None else allowed_hints(rules, checked.vector(hints, "hints", len(labels), missing=skip))
    extras = checked.feature_rows(features, len(labels), rules.n_features)
    out = np.empty(len(labels))
    alone = engine.alone and engine.takes(extras)
    chunk = _chunk(rules.hypotheses.n)
    # A few native rounds are read before they are played, and nothing comes between them.
    keep = len(labels) > min(chunk, _FEW) or not alone
    fresh = keep and state.pending.issued == 0
    before = state.snapshot() if keep and not fresh else None
    groups = rules.hypotheses.snapshot() if hasattr(rules.hypotheses, "snapshot") else None
    play = play_alone if alone else _each
    later = None if waits is None else _later(waits, known)
    state.waiting.let_go(state.pending.issued - state.pending.window)
    plan = None if late is None and later is None else _plan(round, late, labels, later)
    try:
        for start, contexts in _parts(round, X, len(labels), chunk, alone):
            if not start and rules.notices:
                state.atoms.add_many(learned)
            part = slice(start, start + chunk)
            guides, inputs = (None if a is None else a[part] for a in (given, extras))
            some = None if plan is None else plan.part(start, min(start + chunk, len(labels)), state.waiting)
            play(round, StreamPart(contexts, labels[part], guides, inputs, out[part], some))
    except BaseException:
        if fresh:
            state.start(rules)
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


def allowed_hints(rules: Rules, hints: Float64Array) -> Float64Array:
    """Hints in the property's domain; NaN is none."""
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


class ArrivalPlan:
    """The arrivals of a whole call, handed out in parts: rows of earlier parts are by then lines that wait."""

    def __init__(self, whole: Arrivals, first: int) -> None:
        self.whole, self.first = whole, first

    def part(self, start: int, stop: int, waiting: Waiting) -> Arrivals:
        """Those of the rows from `start` up to `stop`."""
        codes, ends, late, due = self.whole
        inside = codes[ends[start] : ends[stop]]
        if start:
            lines, rounds, _ = waiting.dues()
            earlier = (inside >= 0) & (inside < start)
            found = np.searchsorted(rounds, self.first + inside[earlier])
            inside = np.where(inside >= 0, inside - start, inside)
            inside[earlier] = -1 - lines[found]
        return Arrivals(inside, ends[start : stop + 1] - ends[start], late[start:stop], due[start:stop])


def _later(waits: Any, known: Any) -> Any:
    """Which outcomes are missing, and waited for."""
    given = np.asarray(waits)
    if given.dtype != np.bool_ or given.shape != known.shape:
        raise InvalidInput(
            f"waits must have True or False for each of the {len(known)} rows; got {checked.shown(waits)}"
        )
    return given & ~known


def _plan(round: Round, late: Late | None, labels: Float64Array, later: Any) -> ArrivalPlan:
    n, missing = len(labels), np.isnan(labels)
    gone = missing if later is None else missing & ~later
    if late is None:
        whole, first = nothing_late(n), round.state.pending.issued
    else:
        whole, first = _arrivals(round, late, labels, gone)
    if later is not None:
        whole.late[later] = NOT_YET
    return ArrivalPlan(whole, first)


def _arrivals(round: Round, late: Late, labels: Float64Array, gone: Any) -> tuple[Arrivals, int]:
    n = len(labels)
    order = checked.one_of(late.order, "order", ("arrival", "forecast"))
    settle = None if late.settle is None else checked.whole(late.settle, "settle", 1)
    first = round.state.pending.issued
    known = np.where(np.isnan(labels), np.nan, moments(late.known, "known", n))
    return arrivals(known, late.times, n, first, round.state.waiting.dues(), order, settle, gone), first


def fill_in(round: Round, rounds: Any, y: Any, known: Any) -> Float64Array:
    """`Forecaster.fill_in`: all of them are learned, in this order, or none."""
    rules, state = round.rules, round.state
    numbers = checked.vector(rounds, "rounds")
    labels = rules.labels(checked.vector(y, "y", len(numbers)))
    due = np.full(len(labels), np.nan) if known is None else moments(known, "known", len(labels))
    lines = state.waiting.find(numbers)
    for number, line in zip(numbers.tolist(), lines.tolist(), strict=True):
        if line < 0:
            _refuse(round, number)
    if len(np.unique(lines)) < len(lines):
        raise InvalidInput("rounds must have each round once; an outcome is learned once")
    shown = np.array([state.waiting.shown(line, state.values.born) for line in lines.tolist()])
    now = lines[np.isnan(due)]
    before = state.snapshot()
    try:
        state.waiting.fill(lines, labels, due)
        codes = Arrivals(-1 - now, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.zeros(0))
        nothing = Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
        hinted = bool((~np.isnan(state.waiting.numbers[now, HINT])).any())
        play(round, StreamPart(nothing, np.zeros(0), None, None, np.zeros(0), codes))
    except BaseException:
        state.restore(rules, *before)
        round.engine.assemble()
        raise
    if rules.notices:
        state.atoms.add_many(labels)
    state.hinted = state.hinted or hinted
    return shown


def _refuse(round: Round, number: float) -> None:
    """Say why the outcome of a round cannot be filled in."""
    if not number.is_integer():
        raise InvalidInput(f"rounds are counted in whole numbers from 0; got {number!r}")
    round.state.pending.check(int(number))
    raise InvalidInput(
        f"round {int(number)} does not wait to be filled in: its outcome is known and learned when that is due, or its "
        "Forecast was given to the caller, for update"
    )


def play(round: Round, part: StreamPart) -> None:
    """Rounds that were checked, by the engine alone where it can; nothing is undone on an error."""
    alone = round.engine.alone and round.engine.takes(part.features)
    (play_alone if alone else _each)(round, part)


def play_alone(round: Round, part: StreamPart) -> None:
    """The engine plays by itself, and stops where more room is needed, which replaces the arrays."""
    n_rows, n_codes = len(part.labels), 0 if part.arrivals is None else len(part.arrivals.codes)
    progress = np.zeros(3 + (0 if part.arrivals is None else n_rows), dtype=np.int64)
    while progress[0] < n_rows or progress[1] < n_codes:
        round.engine.run(part, progress)
        round.make_room(int(progress[2]))
        progress[2] = 0


def _each(round: Round, part: StreamPart) -> None:
    """Round after round."""
    contexts, hints, state, late = part.contexts, part.hints, round.state, part.arrivals
    assert isinstance(contexts, Rows)  # arrays are for kernels
    ends, given = contexts.indptr.tolist(), [math.nan] * len(part.labels) if hints is None else hints.tolist()
    lines: dict[int, int] = {}
    for t, (label, hint) in enumerate(zip(part.labels.tolist(), given, strict=True)):
        if late is not None:
            _learned(round, late.codes[late.ends[t] : late.ends[t + 1]], lines)
        inside = slice(ends[t], ends[t + 1])
        row = Row(contexts.indices[inside], contexts.values[inside])
        extra = None if part.features is None else part.features[t]
        case = round.see(row, None if math.isnan(hint) else hint, extra)
        play = round.play(case)
        opened = round.open()
        slot, phi = round.draw(play, opened)
        born = state.values.born
        value = float(born[slot])
        followed = round.show(opened, value, case.base)
        part.out[t] = value if followed else case.base
        other = float(born[play.lower + play.upper - slot])
        point = value if play.evidence_at is None else play.evidence_at
        played = Learned(slot, other, point, play.kind, phi, followed)
        missing = math.isnan(label)
        if missing and (late is None or late.late[t] != NOT_YET):
            round.drop(opened, value, case.base, played)
        elif late is not None and late.late[t]:
            lines[t] = state.waiting.add(case, played, opened, label, float(late.due[t]))
        else:
            round.learn(case, played, label, opened)
    if late is not None:
        _learned(round, late.codes[late.ends[len(part.labels)] :], lines)


def _learned(round: Round, codes: IntArray, lines: dict[int, int]) -> None:
    for code in codes.tolist():
        line = -1 - code if code < 0 else lines.pop(code, -1)
        if line >= 0:
            round.take(line)
