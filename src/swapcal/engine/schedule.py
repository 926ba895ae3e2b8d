"""A whole recorded stream through a round: the numbers of `predict` and `update`, without the objects between."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from swapcal import inputs
from swapcal.engine import kernels
from swapcal.engine.pending import HINT, Asked, Chunk, HeldForecasts, HeldRounds, OpenRounds, Played, RoundInputs
from swapcal.engine.round import Round
from swapcal.errors import InvalidInput
from swapcal.protocols import Rows
from swapcal.sparse import can_be_cut, cut, row, sliced
from swapcal.typing import Float64Array, IntArray

# --------
# When the outcomes of a recorded stream are learned: before the first row at or after the moment they are known.

NEVER = np.iinfo(np.int64).max
# In `Schedule.late`: the outcome is missing, and waited for.
NOT_YET = 2


class Schedule(NamedTuple):
    """What is learned before each row: `codes[ends[i]:ends[i + 1]]` before row i, and the rest behind the last.

    A code of 0 or more is a row of the stream; below that, -1 - code is a line of those that wait from before. `late`
    tells the rows whose outcome is not simply learned next, 2 for those that wait though it is missing, and `due` until
    when they wait.
    """

    codes: IntArray
    ends: IntArray
    late: Any
    due: Float64Array


def nothing_late(n: int) -> Schedule:
    """The plan of `n` rows whose outcomes are all learned at once."""
    none = np.zeros(0, dtype=np.int64)
    return Schedule(none, np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.uint8), np.full(n, np.nan))


def to_seconds(values: Any, name: str, n: int) -> Float64Array:
    """Times or row numbers as seconds or counts; NaN for never.

    Examples
    --------
    >>> to_seconds(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"), "known", 2)
    array([86400.,    nan])
    """
    array = np.asarray(values)
    if array.dtype.kind == "M":
        seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6
        result = np.where(np.isnat(array), np.nan, seconds)
    else:
        result = inputs.floats(values, name, "times or row numbers").astype(np.float64)
    if result.shape != (n,):
        raise InvalidInput(f"{name} must have one entry for each of the {n} rows; got shape {result.shape}")
    return result


def schedule(
    known: Any,
    times: Any,
    n: int,
    first: int,
    waiting: tuple[IntArray, IntArray, Float64Array],
    order: str,
    settle: int | None,
    gone: Any,
) -> Schedule:
    """The plan of a stream of `n` rows whose first has the round number `first`.

    Parameters
    ----------
    known : array
        When the outcome of each row is known; NaN: never. Row numbers, counted from 0 at the first row here, or times.
    times : array or None
        The time of each row, not falling; None for row numbers.
    n, first : int
        Rows, and the round number of the first.
    waiting : tuple
        Lines, round numbers and due moments of rounds from before.
    order : {"arrival", "forecast"}
        "arrival": an outcome is learned when it is known. "forecast": not before those of all earlier forecasts are
        known, or have waited for `settle` rounds.
    settle : int or None
        After how many rounds nobody waits for an outcome any more; None: always.
    gone : array of bool
        Rows whose outcome will not come, so that nobody waits for it.

    Returns
    -------
    Schedule
        Whatever is known only after the last row waits for the next stream.
    """
    rows = np.arange(n, dtype=np.int64)
    if times is None:
        clock = (first + rows).astype(np.float64)
        due = to_seconds(known, "known", n) + first
    else:
        clock, due = to_seconds(times, "times", n), to_seconds(known, "known", n)
        wrong = np.isnan(clock) | (np.diff(clock, prepend=-np.inf) < 0.0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InvalidInput(f"times must not fall; the time of row {at} is missing or before that of the row above")
    early = due < clock
    if early.any():
        at = int(np.argmax(early))
        raise InvalidInput(f"the outcome of row {at} is known before the row itself; check known= and times=")
    lines, rounds, dues = waiting
    n_carried = len(lines)
    arrive = np.empty(n_carried + n, dtype=np.int64)
    for moments_of, part in ((dues, arrive[:n_carried]), (due, arrive[n_carried:])):
        part[:] = _rows(clock, moments_of) if times is not None else _row_numbers(moments_of, first, n)
    np.maximum(arrive[n_carried:], rows + 1, out=arrive[n_carried:])
    if order == "forecast":
        waited_for = np.concatenate([np.ones(n_carried, dtype=bool), ~gone])
        numbers = np.concatenate([rounds, first + rows])
        arrive[waited_for] = _in_order(arrive[waited_for], numbers[waited_for], first, settle)
    plan = learn_order if kernels.native is None else kernels.native.planned
    codes, ends, late = plan(arrive, lines)
    return Schedule(codes, ends, late, due)


def learn_order(arrive: IntArray, lines: IntArray) -> tuple[IntArray, IntArray, Any]:
    """Codes, ends and late rows of `Schedule`; has a compiled twin.

    Parameters
    ----------
    arrive : array
        Before which row each outcome is learned, those of the lines first; behind the last: not here.
    lines : array
        Rounds from before that wait.

    Returns
    -------
    tuple
        The first three parts of `Schedule`.

    Examples
    --------
    >>> [part.tolist() for part in learn_order(np.array([1, 3, 2, NEVER]), np.array([7]))]
    [[-8], [0, 0, 1, 1], [1, 0, 1]]
    """
    n_carried, n = len(lines), len(arrive) - len(lines)
    rows = np.arange(n, dtype=np.int64)
    codes = np.concatenate([-1 - lines, rows])
    # Round numbers increase, so ties keep their order; what is nearly sorted is sorted in linear time.
    sorted_by = np.argsort(arrive, kind="stable")
    arrive_sorted = arrive[sorted_by]
    inside = arrive_sorted < n
    codes = codes[sorted_by][inside]
    counts = np.bincount(arrive_sorted[inside], minlength=n + 1)
    # A row that is alone in being learned before the next one is learned at once.
    own = arrive[n_carried:]
    at_once = (own == rows + 1) & (own < n) & (counts[np.minimum(own, n)] == 1)
    late_codes = ~((codes >= 0) & at_once[np.maximum(codes, 0)])
    counts = np.bincount(arrive_sorted[inside][late_codes], minlength=n)
    ends = np.concatenate([[0], np.cumsum(counts[:n])]).astype(np.int64)
    return np.ascontiguousarray(codes[late_codes]), ends, (~at_once).astype(np.uint8)


def _rows(clock: Float64Array, due: Float64Array) -> IntArray:
    """The first row at or after a moment; far behind the last for those that never come."""
    rows = np.searchsorted(clock, due, side="left").astype(np.int64)
    rows[np.isnan(due) | (rows == len(clock))] = NEVER
    return rows


def _row_numbers(due: Float64Array, first: int, n: int) -> IntArray:
    """The same where the clock counts rows from `first` on."""
    numbers = np.ceil(due) - first
    with np.errstate(invalid="ignore"):
        numbers = np.where(numbers < n, numbers, n)  # and those that are NaN
    rows: IntArray = np.maximum(numbers, 0.0).astype(np.int64)
    return rows


def _in_order(arrive: IntArray, numbers: IntArray, first: int, settle: int | None) -> IntArray:
    """Every outcome not before those of all earlier forecasts, or their deadline; `numbers` increase."""
    deadline = arrive if settle is None else np.minimum(arrive, np.maximum(numbers - first + settle, 0))
    before = np.concatenate([[0], np.maximum.accumulate(deadline)[:-1]]) if len(deadline) else deadline
    result: IntArray = np.maximum(arrive, before)
    return result


_CHUNK = 1 << 16
_FEW = 1 << 12


class DelayRule(NamedTuple):
    """When outcomes are known, and in which order they are learned; the arguments of `Forecaster.run`."""

    known: Any
    times: Any
    order: str
    settle: int | None


def run(
    round: Round,
    X: Any,
    y: Any,
    hints: Any,
    features: Any,
    missing: str,
    late: DelayRule | None = None,
    waits: Any = None,
) -> Float64Array:
    """`Forecaster.run`: whatever fails, early or late, leaves no trace."""
    rules, state, engine = round.rules, round.state, round.engine
    skip = inputs.one_of(missing, "missing", ("error", "skip")) == "skip"
    labels = inputs.vector(y, "y", missing=skip)
    known = ~np.isnan(labels)
    if known.all():
        learned = labels = rules.labels(labels)
    else:
        labels, learned = labels.copy(), rules.labels(labels[known])
        labels[known] = learned
    guides = None if hints is None else rules.hint_values(inputs.vector(hints, "hints", len(labels), missing=skip))
    extras = inputs.feature_rows(features, len(labels), rules.n_features)
    out = np.empty(len(labels))
    alone = engine.alone and engine.accepts_features(extras)
    chunk = _chunk(rules.hypotheses.n)
    # A few native rounds are read before they are played, and nothing comes between them.
    keep = len(labels) > min(chunk, _FEW) or not alone
    fresh = keep and state.pending.issued == 0
    before = state.snapshot() if keep and not fresh else None
    # Rows that were read before teach a class nothing.
    learns = hasattr(rules.hypotheses, "snapshot") and not isinstance(X, Rows)
    groups = rules.hypotheses.snapshot() if learns else None  # type: ignore[attr-defined]
    play = play_alone if alone else _each
    first, whole = state.pending.issued, planned(state.pending, state.waiting, labels, late, waits)
    try:
        for start, contexts in _parts(round, X, len(labels), chunk, alone):
            if not start and rules.checks_ties:
                state.ties.add_many(learned)
            part = slice(start, start + chunk)
            hint_part, feature_part = (None if a is None else a[part] for a in (guides, extras))
            some = None if whole is None else _part(whole, first, start, min(start + chunk, len(labels)), state.waiting)
            play(round, Chunk(contexts, labels[part], hint_part, feature_part, out[part], some))
    except BaseException:
        round.adopt(rules)
        if fresh:
            state.start(rules)
        elif before is not None:
            state.restore(rules, *before)
        engine.assemble()
        if groups is not None:
            rules.hypotheses.restore(groups)  # type: ignore[attr-defined]
        raise
    if guides is not None:
        state.hinted = state.hinted or bool((~np.isnan(guides) & known).any())
    return out


def _chunk(n: int) -> int:
    """Rounds that are read and played at a time, for contexts of length n: between chunks Python notices Ctrl-C."""
    return min(max((1 << 23) // n, 1 << 10), _CHUNK)


def _parts(round: Round, X: Any, n_rows: int, chunk: int, alone: bool) -> Iterator[tuple[int, Rows | Float64Array]]:
    """The contexts in chunks, checked: arrays where a kernel can read them as they are, sparse rows otherwise."""
    hypotheses = round.rules.hypotheses
    if alone and round.engine.accepts(X, n_rows):
        yield from ((start, X[start : start + chunk]) for start in range(0, n_rows, chunk))
    elif n_rows > chunk and can_be_cut(X, n_rows):
        for start in range(0, n_rows, chunk):
            stop = min(start + chunk, n_rows)
            yield start, hypotheses.rows(cut(X, start, stop), stop - start)
    else:
        rows = hypotheses.rows(X, n_rows)
        for start in range(0, n_rows, chunk):
            yield start, sliced(rows, start, min(start + chunk, n_rows))


def _part(whole: Schedule, first: int, start: int, stop: int, held: HeldRounds) -> Schedule:
    """The plan of the rows from `start` up to `stop` of a call: rows of earlier parts are by then lines that wait."""
    codes, ends, late, due = whole
    inside = codes[ends[start] : ends[stop]]
    if start:
        lines, rounds, _ = held.dues()
        earlier = (inside >= 0) & (inside < start)
        places = np.searchsorted(rounds, first + inside[earlier])
        inside = np.where(inside >= 0, inside - start, inside)
        inside[earlier] = -1 - lines[places]
    return Schedule(inside, ends[start : stop + 1] - ends[start], late[start:stop], due[start:stop])


def planned(
    rounds: OpenRounds, held: HeldRounds | HeldForecasts, labels: Float64Array, late: DelayRule | None, waits: Any
) -> Schedule | None:
    """When the outcomes of the next rows are learned, with those that are held; None where nothing is late."""
    n, missing = len(labels), np.isnan(labels)
    later = None if waits is None else inputs.mask(waits, "waits", n) & missing
    held.let_go(rounds.issued - rounds.window)
    if late is None:
        if later is None:
            return None
        whole = nothing_late(n)
    else:
        order = inputs.one_of(late.order, "order", ("arrival", "forecast"))
        settle = None if late.settle is None else inputs.integer(late.settle, "settle", 1)
        known = np.where(missing, np.nan, to_seconds(late.known, "known", n))
        gone = missing if later is None else missing & ~later
        whole = schedule(known, late.times, n, rounds.issued, held.dues(), order, settle, gone)
    if later is not None:
        whole.late[later] = NOT_YET
    return whole


def delay_rule(known: Any, times: Any, order: str, settle: int | None) -> DelayRule | None:
    """The rule of these arguments of `run`; None where every outcome is known before the next row."""
    if known is None and times is not None:
        raise InvalidInput("times= says when rows come; say with known= when their outcomes are known")
    return None if known is None else DelayRule(known, times, order, settle)


def fill_in(round: Round, rounds: Any, y: Any, known: Any) -> Float64Array:
    """`Forecaster.fill_in`: all of them are learned, in this order, or none."""
    rules, state = round.rules, round.state
    numbers = inputs.vector(rounds, "rounds")
    labels = rules.labels(inputs.vector(y, "y", len(numbers)))
    lines, due = blanks(state.pending, state.waiting, numbers, known)
    shown = state.waiting.forecasts_of(lines)
    now = lines[np.isnan(due)]
    before = state.snapshot()
    try:
        state.waiting.fill(lines, labels, due)
        codes = Schedule(-1 - now, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.zeros(0))
        nothing = Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
        hinted = bool((~np.isnan(state.waiting.numbers[now, HINT])).any())
        play(round, Chunk(nothing, np.zeros(0), None, None, np.zeros(0), codes))
    except BaseException:
        state.restore(rules, *before)
        round.engine.assemble()
        raise
    if rules.checks_ties:
        state.ties.add_many(labels)
    state.hinted = state.hinted or hinted
    return shown


def blanks(
    rounds: OpenRounds, held: HeldRounds | HeldForecasts, numbers: Float64Array, known: Any
) -> tuple[IntArray, Float64Array]:
    """The lines of rounds that wait to be filled in, and when the outcomes are due, NaN for now; or why not."""
    due = np.full(len(numbers), np.nan) if known is None else to_seconds(known, "known", len(numbers))
    lines = held.find(numbers)
    for number in numbers[lines < 0].tolist():
        if not number.is_integer():
            raise InvalidInput(f"rounds are counted in whole numbers from 0; got {number!r}")
        rounds.check(int(number))
        raise InvalidInput(
            f"round {int(number)} does not wait to be filled in: its outcome is known and learned when that is due, or "
            "its Forecast was given to the caller, for update"
        )
    if len(np.unique(lines)) < len(lines):
        raise InvalidInput("rounds must have each round once; an outcome is learned once")
    return lines, due


def play_events(round: Round, asked: Asked, labels: Float64Array, plan: Schedule) -> Float64Array:
    """Cases that were checked, with outcomes of these and of rounds that are held, as the plan says."""
    state, hints, first_hint = round.state, asked.hints, False
    if not state.hinted:
        learned = plan.codes < 0
        first_hint = not np.isnan(state.waiting.numbers[-1 - plan.codes[learned], HINT]).all()
        if hints is not None:
            at_once = (plan.late == 0) & ~np.isnan(labels)
            first_hint |= not np.isnan(hints[plan.codes[~learned]]).all() or not np.isnan(hints[at_once]).all()
    if round.rules.checks_ties:
        state.ties.add_many(labels[~np.isnan(labels)])
    out = np.empty(len(labels))
    play(round, Chunk(asked.rows, labels, hints, asked.features, out, plan))
    if first_hint:
        state.hinted = True
        round.engine.assemble()
    return out[:, None]


def play(round: Round, part: Chunk) -> None:
    """Rounds that were checked, by the engine alone where it can; nothing is undone on an error."""
    alone = round.engine.alone and round.engine.accepts_features(part.features)
    (play_alone if alone else _each)(round, part)


def play_alone(round: Round, part: Chunk) -> None:
    """The engine plays by itself, and stops where more room is needed, which replaces the arrays."""
    n_rows, n_codes = len(part.labels), 0 if part.schedule is None else len(part.schedule.codes)
    progress = np.zeros(3 + (0 if part.schedule is None else n_rows), dtype=np.int64)
    while progress[0] < n_rows or progress[1] < n_codes:
        round.engine.run(part, progress)
        round.make_room(int(progress[2]))
        progress[2] = 0
        if round.rules.follows:
            round.follow(round.engine.beyond)


class Player(Protocol):
    """Whatever plays rows one by one: a round in Python, or a model that is made of several forecasters."""

    def predict(self, t: int) -> Any:
        """Forecast row `t`; all that its update will need."""

    def learn(self, ticket: Any, y: float) -> None:
        """Its outcome."""

    def forget(self, ticket: Any) -> None:
        """None will come."""

    def hold(self, ticket: Any, y: float, due: float) -> int:
        """Keep it until its outcome is due, NaN while it is not known; in which line."""

    def learn_held(self, line: int) -> None:
        """Learn what was held there, unless it has expired."""


def play_each(player: Player, labels: Float64Array, late: Schedule | None) -> None:
    """Row after row, as the schedule says; the twin of the compiled `run`."""
    lines: dict[int, int] = {}

    def learn(codes: IntArray) -> None:
        for code in codes.tolist():
            line = -1 - code if code < 0 else lines.pop(code, -1)
            if line >= 0:
                player.learn_held(line)

    for t, label in enumerate(labels.tolist()):
        if late is not None:
            learn(late.codes[late.ends[t] : late.ends[t + 1]])
        ticket = player.predict(t)
        if math.isnan(label) and (late is None or late.late[t] != NOT_YET):
            player.forget(ticket)
        elif late is not None and late.late[t]:
            lines[t] = player.hold(ticket, label, float(late.due[t]))
        else:
            player.learn(ticket, label)
    if late is not None:
        learn(late.codes[late.ends[len(labels)] :])


class _RoundTicket(NamedTuple):
    inputs: RoundInputs
    played: Played
    round: int


class _RoundPlayer:
    """A round in Python on some rows."""

    def __init__(self, round: Round, part: Chunk) -> None:
        assert isinstance(part.contexts, Rows)  # arrays are for kernels
        self.round, self.part, self.rows = round, part, part.contexts
        self.hints = [math.nan] * len(part.labels) if part.hints is None else part.hints.tolist()
        self.learn_held = round.learn_held

    def predict(self, t: int) -> _RoundTicket:
        playing, part, hint = self.round, self.part, self.hints[t]
        extra = None if part.features is None else part.features[t]
        case = playing.inputs(row(self.rows, t), None if math.isnan(hint) else hint, extra)
        opened, played, _ = playing.play(case)
        part.out[t] = played.shown
        return _RoundTicket(case, played, opened)

    def learn(self, ticket: _RoundTicket, y: float) -> None:
        self.round.learn(ticket.inputs, ticket.played, y, ticket.round)

    def forget(self, ticket: _RoundTicket) -> None:
        self.round.forget(ticket.inputs, ticket.played, ticket.round)

    def hold(self, ticket: _RoundTicket, y: float, due: float) -> int:
        return self.round.state.waiting.add(ticket.inputs, ticket.played, ticket.round, y, due)


def _each(round: Round, part: Chunk) -> None:
    """Round after round."""
    play_each(_RoundPlayer(round, part), part.labels, part.schedule)
