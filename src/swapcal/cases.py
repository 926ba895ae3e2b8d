"""The life of a case: ids, what becomes of each event, in which order outcomes are learned; and the pure step."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.engine import kernels, schedule, state
from swapcal.engine.pending import HINT, LABEL, Chunk
from swapcal.engine.round import Round
from swapcal.engine.rules import Rules
from swapcal.engine.schedule import Schedule
from swapcal.engine.state import State
from swapcal.errors import InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.protocols import Elicitable, Hypotheses, LearningHint, Rows
from swapcal.state import Packed, Saved, Shape, Stateful, kind_of, pack, unpack
from swapcal.typing import Float64Array, IntArray

# --------
# The life of a case: each event gets one status, from one table.

Id = str | int

STATES = ("unknown", "waiting", "known", "learned", "expired", "forgotten")
"""Of a case. Known: its outcome has come and is not learned yet. The last three are closed."""
STATUSES = (
    "forecast",
    "same forecast",
    "learned",
    "repeated",
    "unknown",
    "expired",
    "invalid",
    "held",
    "forgotten",
    "contradicted",
    "corrected",
    "conflict",
)
"""Of an event: what became of it."""
FORECAST, SAME, LEARNED, REPEATED, UNKNOWN, EXPIRED, INVALID = range(7)
EVENTS = ("predict", "predict other", "learn", "learn other", "learn invalid", "forget")
"""What may come: a case, or one with the id of another case; an outcome that is new or the one that had come, another
one, or one that is not allowed; the word that none will come."""

TABLE: dict[str, tuple[str, ...]] = {
    "unknown": ("forecast", "forecast", "unknown", "unknown", "unknown", "unknown"),
    "waiting": ("same forecast", "conflict", "learned", "learned", "invalid", "forgotten"),
    "known": ("same forecast", "conflict", "repeated", "contradicted", "contradicted", "contradicted"),
    "learned": ("same forecast", "conflict", "repeated", "contradicted", "contradicted", "contradicted"),
    "expired": ("same forecast", "conflict", "expired", "expired", "expired", "expired"),
    "forgotten": ("same forecast", "conflict", "contradicted", "contradicted", "contradicted", "repeated"),
}
"""The status of each of `EVENTS` by the state of its case."""

NEXT = {
    "forecast": "waiting",
    "learned": "learned",
    "held": "known",
    "corrected": "known",
    "forgotten": "forgotten",
    "expired": "expired",
}
"""The state of a case after an event of this status; after any other it stays what it is."""


class Entry(NamedTuple):
    """A case: its state, the number of its round, its forecast, and its outcome where that has come.

    `asked` tells what it was asked with, where that is compared; `ticket` is the forecast to be updated, where the
    model does not hold it.
    """

    state: str
    round: int
    forecast: tuple[float, ...]
    y: float | None = None
    asked: bytes | None = None
    ticket: Any = None


class Event(NamedTuple):
    """A case (`kind` "predict"), an outcome ("learn"; invalid where it is not allowed), or that none will come."""

    kind: Literal["predict", "learn", "forget"]
    y: float | None = None
    asked: bytes | None = None
    invalid: bool = False


def answer(
    entry: Entry | None, event: Event, *, expired: bool = False, held: bool = False, corrections: bool = False
) -> tuple[str, str]:
    """What becomes of an event, and the state of its case afterwards: `TABLE`, and nothing else.

    Parameters
    ----------
    entry : Entry or None
        The case; None for one that is not known.
    event : Event
        What comes.
    expired : bool
        Whether an outcome of the case would come too late by now.
    held : bool
        Whether its outcome must wait for a moment ahead, or for outcomes of earlier forecasts.
    corrections : bool
        Whether an outcome may be replaced by another one before it is learned.

    Returns
    -------
    tuple of str
        One of `STATUSES`, and one of `STATES`.

    Examples
    --------
    >>> case = Entry("learned", 0, (0.4,), 1.0)
    >>> [answer(case, Event("learn", y)) for y in (1.0, 0.0)]
    [('repeated', 'learned'), ('contradicted', 'learned')]
    """
    state = "unknown" if entry is None else entry.state
    if expired and state in ("waiting", "known"):
        state = "expired"
    column: str = event.kind
    if event.kind == "learn":
        if event.invalid:
            column = "learn invalid"
        elif entry is not None and entry.y != event.y:
            column = "learn other"
    elif event.kind == "predict" and entry is not None and entry.asked != event.asked:
        column = "predict other"
    status = TABLE[state][EVENTS.index(column)]
    if status == "learned" and held:
        status = "held"
    elif corrections and state == "known" and column == "learn other":
        status = "corrected"
    return status, NEXT.get(status, state)


# --------
# Which known outcomes may be learned now.


class KnownOutcome(NamedTuple):
    """An outcome that has come: of this round, to be learned at this moment; with what its update will need."""

    round: int
    y: float
    due: float
    ticket: Any


class Order:
    """Holds outcomes until they are due and, by forecast, until nobody waits for an earlier one.

    For single events what `engine.schedule.schedule` is for recorded streams.

    Parameters
    ----------
    by : {"arrival", "forecast"}
        "forecast": an outcome is learned when those of all earlier forecasts have come and are due, or have had
        `settle` rounds to come.
    settle : int, optional
        After so many further forecasts nobody waits for an outcome any more. None: always.
    first : int
        Nobody waits for the outcomes of earlier rounds than this.

    Examples
    --------
    >>> order = Order("forecast", settle=10)
    >>> order.add(1, 0.3)
    >>> order.due(issued=2)
    []
    >>> order.add(0, 0.9)
    >>> [outcome.y for outcome in order.due(issued=2)]
    [0.9, 0.3]

    Nobody waits for an outcome that will not come.

    >>> order.add(3, 0.5)
    >>> order.skip(2)
    >>> [outcome.y for outcome in order.due(issued=4)]
    [0.5]
    """

    def __init__(self, by: str = "arrival", settle: int | None = None, first: int = 0) -> None:
        self.by = inputs.one_of(by, "order", ("arrival", "forecast"))
        self.settle = None if settle is None else inputs.integer(settle, "settle", 1)
        self.front = first
        """By forecast: nobody waits for an earlier round than this."""
        self.known: dict[int, KnownOutcome] = {}
        self.gone: set[int] = set()
        """Rounds from the front on whose outcomes will not come."""
        self._ahead: list[tuple[float, int]] = []
        self._ripe: list[int] = []

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, round: int) -> bool:
        return round in self.known

    def add(self, round: int, y: float, due: float = -math.inf, ticket: Any = None) -> None:
        """One more outcome, or another one in its place; NaN for a moment that never comes."""
        if not math.isnan(due) and (round not in self.known or self.known[round].due != due):
            heappush(self._ahead, (due, round))
        self.known[round] = KnownOutcome(round, y, due, ticket)

    def skip(self, round: int) -> None:
        """The outcome of a round will not come, or too late: nobody waits for it."""
        self.known.pop(round, None)
        if self.by == "forecast" and round >= self.front:
            self.gone.add(round)

    def due(self, issued: int, now: float = math.inf) -> list[KnownOutcome]:
        """What is to be learned before round number `issued` is forecast, at this moment; it is held no more."""
        while self._ahead and self._ahead[0][0] <= now:
            heappush(self._ripe, heappop(self._ahead)[1])
        if self.by == "forecast":
            settled = self.front if self.settle is None else issued - self.settle + 1
            while self.front < settled or self.front in self.gone or self._is_due(self.front, now):
                self.gone.discard(self.front)
                self.front += 1
        outcomes = []
        while self._ripe and (self.by == "arrival" or self._ripe[0] < self.front):
            ripe = heappop(self._ripe)
            if self._is_due(ripe, now):
                outcomes.append(self.known.pop(ripe))
        return outcomes

    def _is_due(self, round: int, now: float) -> bool:
        return round in self.known and self.known[round].due <= now


# --------
# Two kinds of event, cases and outcomes, in the order in which they happened; and what came of each.


@dataclass(frozen=True, slots=True)
class Events:
    """Cases, whose forecast is wanted, and outcomes of earlier cases, told apart by `y`; in the order to be played.

    Parameters
    ----------
    ids : sequence of str or int
        Of the case, for a case and for its outcome.
    y : array
        The outcome; NaN for a case.
    X : any
        The contexts of the cases, in their order and without the outcomes between them, as `Forecaster.run` takes them.
    hints : array, optional
        The hints of the cases; NaN for none.
    features : array, optional
        Extra features of the learning hint, one row for each case.
    """

    ids: Sequence[Id]
    y: Any
    X: Any
    hints: Any = None
    features: Any = None

    def __post_init__(self) -> None:
        y = np.asarray(self.y, dtype=np.float64)
        if y.ndim != 1 or len(self.ids) != len(y):
            raise InvalidInput(f"events need one id and one y each (NaN for a case); got {len(self.ids)} and {y.shape}")
        object.__setattr__(self, "y", y)


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of each event.

    forecast: of a case, its forecast; of an outcome, the forecast that its case had had; NaN where there is none.
    codes: positions in `STATUSES`:

    - "forecast", "same forecast": of a case that is new, or that came before (the forecast is then the one it had);
    - "learned", "repeated": of an outcome that is the first of its case, or a further one, which changes nothing;
    - "unknown", "expired": of an outcome whose case never came, is forgotten, or has waited for too long;
    - "invalid": of an outcome that is not in the property's range; its case still waits.
    """

    forecast: Float64Array
    codes: npt.NDArray[np.uint8]

    @property
    def status(self) -> list[str]:
        """The words for `codes`."""
        return [STATUSES[code] for code in self.codes.tolist()]


# --------
# Which case is which round: the cases that wait, and the last ones that no longer do.


class Done(NamedTuple):
    """A case that no longer waits: the forecast that it had, and whether it was learned from or has expired."""

    forecast: float
    code: int


class MemoryBook:
    """Cases by id. Those that no longer wait are kept for a while, so that a repeated outcome does not look unknown.

    Parameters
    ----------
    remember : int
        How many cases that no longer wait are kept.
    """

    __slots__ = ("done", "open", "remember")

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.open: dict[Id, int] = {}
        self.done: dict[Id, Done] = {}

    def close(self, closed: Iterable[tuple[Id, Done]]) -> None:
        """These no longer wait; the oldest of all that do not are forgotten."""
        for name, done in closed:
            self.open.pop(name, None)
            self.done.pop(name, None)
            self.done[name] = done
        for name in list(self.done)[: max(len(self.done) - self.remember, 0)]:
            del self.done[name]

    def to_state(self) -> Saved:
        """What it is made of."""
        entries = list(self.done.values())
        arrays: dict[str, npt.NDArray[Any]] = {
            "rounds": np.array(list(self.open.values()), dtype=np.int64),
            "forecasts": np.array([entry.forecast for entry in entries], dtype=np.float64),
            "expired": np.array([entry.code == EXPIRED for entry in entries], dtype=np.uint8),
        }
        return Saved([list(self.open), list(self.done), self.remember], arrays)

    @classmethod
    def from_state(cls, packed: Packed, *_: Any) -> "MemoryBook":
        """Make it again."""
        waiting, closed, remember = packed.plain
        sound = type(remember) is int and 0 <= len(closed) <= remember < 1 << 31
        sound = sound and all(type(name) in (str, int) for name in (*waiting, *closed))
        if not sound or len({*waiting, *closed}) != len(waiting) + len(closed):
            raise StateFileError("this saved state is damaged: its cases contradict each other")
        n = len(closed)
        rounds, expired = Shape((len(waiting),), np.int64, low=0), Shape((n,), np.uint8, high=1)
        arrays = packed.arrays({"rounds": rounds, "forecasts": Shape((n,), finite=False), "expired": expired})
        book = cls(remember)
        book.open = dict(zip(waiting, arrays["rounds"].tolist(), strict=True))
        codes = [EXPIRED if each else LEARNED for each in arrays["expired"].tolist()]
        entries = zip(closed, arrays["forecasts"].tolist(), codes, strict=True)
        book.done = {name: Done(forecast, code) for name, forecast, code in entries}
        return book


# --------
# What the engine is to do for some events, in which order: found from their ids, before anything is played.


@dataclass(slots=True)
class EventPlan:
    """New cases are rows, from 0 on; `arriving` and `ends` say which outcomes are learned before which of them."""

    codes: npt.NDArray[np.uint8]
    forecast: Float64Array
    """Of events whose forecast was known before."""
    row_of: IntArray
    """The row whose forecast an event has; -1 for none."""
    rows: list[int] = field(default_factory=list)
    chosen: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The new ones among the cases."""
    arriving: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    outcomes: dict[int, float] = field(default_factory=dict)
    learned_lines: list[int] = field(default_factory=list)
    learned_labels: Float64Array = field(default_factory=lambda: np.zeros(0))
    closed: dict[Id, int] = field(default_factory=dict)
    """Cases that no longer wait, with the event that closed them."""
    low: float = 0.0

    @property
    def learned_rows(self) -> list[int]:
        """Rows whose outcome is among the events."""
        return list(self.outcomes)

    @property
    def labels(self) -> Float64Array:
        """Of all rows; those whose outcome is out wait with a label that counts for nothing."""
        labels = np.full(len(self.rows), self.low)
        labels[list(self.outcomes)] = list(self.outcomes.values())
        return labels

    def arrivals(self) -> Schedule:
        """For the engine. A row that is alone in being learned before the next one is learned at once."""
        n = len(self.rows)
        codes, ends = np.array(self.arriving, dtype=np.int64), np.array(self.ends, dtype=np.int64)
        starts, stops = ends[1:], np.append(ends[2:], len(codes))[:n]
        alone = np.zeros(n, dtype=np.bool_)
        single = np.flatnonzero(stops - starts == 1)
        alone[single] = codes[starts[single]] == single
        kept = np.ones(len(codes), dtype=np.bool_)
        kept[starts[alone]] = False
        before = np.concatenate([[0], np.cumsum(kept)])
        return Schedule(codes[kept], before[ends], (~alone).astype(np.uint8), np.full(n, np.nan))


def event_plan(ids: Sequence[Id], cases: IntArray, labels: Float64Array, book: MemoryBook, state: State) -> EventPlan:
    """The plan of some events; the book and the labels of rounds that wait are changed on the way.

    Parameters
    ----------
    ids : sequence
        Of the events.
    cases : array
        Which events are cases.
    labels : array
        Outcomes; infinite where one is not allowed.
    book : MemoryBook
        The cases so far.
    state : State
        Of the forecaster.

    Returns
    -------
    EventPlan
        For the engine.
    """
    n, first, window = len(labels), state.pending.issued, state.pending.window
    plan = EventPlan(np.full(n, UNKNOWN, dtype=np.uint8), np.full(n, np.nan), np.full(n, -1, dtype=np.int64))
    plan.low = float(state.values.low)
    waiting, born = state.waiting, state.values.born
    lines, rounds, _ = waiting.dues()
    line_of = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
    opened, done, closed, rows = book.open, book.done, plan.closed, plan.rows
    codes, forecast, row_of = plan.codes, plan.forecast, plan.row_of
    learned: list[float] = []
    chosen: list[int] = []
    number = -1
    for i, (name, y) in enumerate(zip(ids, labels.tolist(), strict=True)):
        t = opened.get(name)
        if y != y:
            number += 1
        if t is None:
            if name in closed:
                earlier = closed[name]
                row_of[i], forecast[i] = row_of[earlier], forecast[earlier]
                ended = int(codes[earlier])
            elif name in done:
                forecast[i], ended = done[name]
            elif y != y:
                codes[i], row_of[i], opened[name] = FORECAST, len(rows), first + len(rows)
                plan.ends.append(len(plan.arriving))
                rows.append(i)
                chosen.append(number)
                continue
            else:
                continue
            codes[i] = SAME if y != y else REPEATED if ended == LEARNED else EXPIRED
            continue
        line = -1 if t >= first else line_of[t]
        if line < 0:
            row_of[i] = t - first
        else:
            forecast[i] = waiting.shown(line, born)
        if y != y:
            codes[i] = SAME
        elif y == np.inf:
            codes[i] = INVALID
        else:
            late = first + len(rows) - t > window
            codes[i], closed[name] = EXPIRED if late else LEARNED, i
            del opened[name]
            plan.arriving.append(t - first if line < 0 else -1 - line)
            if line < 0:
                plan.outcomes[t - first] = y
            else:
                waiting.numbers[line, LABEL] = y
                plan.learned_lines.append(line)
            if not late:
                learned.append(y)
    plan.chosen, plan.learned_labels = np.array(chosen, dtype=np.int64), np.array(learned)
    return plan


# --------
# A forecaster and the cases that wait for it: events in, forecasts out, at the speed of `run`.

_NO_ROWS = Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


class CaseInputs(NamedTuple):
    """What the cases among some events bring, checked."""

    rows: Rows
    hints: Float64Array | None
    features: Float64Array | None


class Cases(Stateful):
    """Plays cases and outcomes, in the order given: the numbers of `predict` and `update`, each case and outcome once.

    Parameters
    ----------
    forecaster : Forecaster
        Its rules and its state, which the stream takes over: do not use it any more. Its `max_pending` says by how many
        later cases an outcome may be late.
    remember : int
        How many cases that no longer wait are remembered, by id and forecast, to tell repeated events from unknown
        ones.

    Notes
    -----
    An outcome that comes before its case is unknown: send it again. Cost: that of `run`, and about a microsecond an
    event for the ids.

    Examples
    --------
    >>> import swapcal as sc
    >>> stream = Cases(sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1))
    >>> nan = float("nan")
    >>> played = stream.play(Events(["a", "b", "a", "a", "c"], [nan, nan, 1, 1, 0], [[1.0], [1.0]], [0.3, 0.4]))
    >>> played.status
    ['forecast', 'forecast', 'learned', 'repeated', 'unknown']
    >>> Cases.from_bytes(stream.to_bytes()).play(Events(["b"], [0.0], [])).forecast
    array([0.4])
    """

    kind = "cases"

    def __init__(self, forecaster: Forecaster, *, remember: int = 256) -> None:
        self._own(forecaster.rules, forecaster.state, MemoryBook(inputs.integer(remember, "remember", 0)))

    def _own(self, rules: Rules, state: State, book: MemoryBook) -> None:
        self.rules, self.state, self.book = rules, state, book
        self._round = Round(rules, state, native=kernels.native)

    def play(self, events: Events) -> Answers:
        """What comes of each event; after an error the stream is of no further use."""
        state = self.state
        cases = np.flatnonzero(np.isnan(events.y))
        inputs = self._inputs(events, len(cases))
        plan = event_plan(events.ids, cases, self._labels(events.y), self.book, state)
        hints = inputs.hints[plan.chosen] if inputs.hints is not None else None
        hinted = hints is not None and bool((~np.isnan(hints[plan.learned_rows])).any())
        hinted = hinted or bool((~np.isnan(state.waiting.numbers[plan.learned_lines, HINT])).any())
        if self.rules.notices:
            state.atoms.add_many(plan.learned_labels)
        out = np.empty(len(plan.rows))
        self._run(inputs, plan, hints, out)
        forecast = np.where(plan.row_of >= 0, np.append(out, np.nan)[plan.row_of], plan.forecast)
        if hinted and not state.hinted:
            state.hinted = True
            self._round.engine.assemble()
        self.book.close((name, Done(float(forecast[i]), int(plan.codes[i]))) for name, i in plan.closed.items())
        self._let_go()
        return Answers(forecast, plan.codes)

    def _inputs(self, events: Events, n_cases: int) -> CaseInputs:
        rules = self.rules
        hints = None
        if events.hints is not None:
            hints = schedule.allowed_hints(rules, inputs.vector(events.hints, "hints", n_cases, missing=True))
        features = inputs.feature_rows(events.features, n_cases, rules.n_features) if n_cases else None
        return CaseInputs(rules.hypotheses.rows(events.X, n_cases) if n_cases else _NO_ROWS, hints, features)

    def _labels(self, y: Float64Array) -> Float64Array:
        """Outcomes as the property allows them; infinite where it does not."""
        rules = self.rules
        target = rules.property
        known = ~np.isnan(y)
        labels = np.clip(y, target.low, target.high) if rules.outside == "clip" else y.copy()
        if target.invalid_labels(labels[known]) is not None:
            for i in np.flatnonzero(known).tolist():
                if target.invalid_labels(labels[i : i + 1]) is not None:
                    labels[i] = np.inf
        return labels

    def _run(self, inputs: CaseInputs, plan: EventPlan, hints: Float64Array | None, out: Float64Array) -> None:
        rows, features = inputs.rows, inputs.features
        if len(plan.rows) < len(rows.indptr) - 1:
            rows = _chosen(rows, plan.chosen)
            features = None if features is None else features[plan.chosen]
        part = Chunk(rows, plan.labels, hints, features, out, plan.arrivals())
        schedule.play(self._round, part)

    def _let_go(self) -> None:
        """Cases that have waited for too long are closed, so that what waits is bounded."""
        state, book = self.state, self.book
        oldest = state.pending.issued - state.pending.window
        gone = list(takewhile(lambda each: each[1] < oldest, book.open.items()))
        if gone:
            lines, rounds, _ = state.waiting.dues()
            line_of = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
            closed = []
            for name, t in gone:
                value = state.waiting.shown(line_of[t], state.values.born)
                state.waiting.take(line_of[t])
                closed.append((name, Done(value, EXPIRED)))
            book.close(closed)

    @property
    def n_waiting(self) -> int:
        """Cases that wait for their outcome."""
        return len(self.book.open)

    def to_state(self) -> Saved:
        """What it is made of: the book, and the forecaster as a part."""
        return self.book.to_state()._replace(
            parts={"forecaster": pack("forecaster", state.saved(self.rules, self.state))}
        )

    @classmethod
    def from_state(
        cls,
        packed: Packed,
        *,
        property: Elicitable | None = None,
        hypotheses: Hypotheses | None = None,
        hint: LearningHint | None = None,
    ) -> "Cases":
        """Make it again; see `from_bytes`."""
        cases, book = cls.__new__(cls), MemoryBook.from_state(packed)
        forecaster = unpack("forecaster", packed.parts["forecaster"])
        cases._own(*state.read(forecaster, property, hypotheses, hint), book)
        _, rounds, _ = cases.state.waiting.dues()
        if list(book.open.values()) != rounds.tolist():
            raise StateFileError("this saved state is damaged: the cases that wait are not those of its rounds")
        return cases

    @classmethod
    def from_bytes(cls, data: bytes, *, remember: int = 256, **own: Any) -> "Cases":
        """What `to_bytes` wrote, or new cases of a forecaster that was saved.

        Parameters
        ----------
        data : bytes
            Of cases, or of a forecaster for which nothing waits.
        remember : int
            For new cases.
        **own
            As for `Forecaster.from_bytes`.

        Returns
        -------
        Cases
            They give the forecasts that the others would have given.
        """
        if kind_of(data) == Forecaster.kind:
            book = MemoryBook(inputs.integer(remember, "remember", 0))
            data = pack(cls.kind, book.to_state()._replace(parts={"forecaster": data}))
        return super().from_bytes(data, **own)


def _chosen(rows: Rows, chosen: IntArray) -> Rows:
    lengths = np.diff(rows.indptr)[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    inside = np.arange(ends[-1]) + np.repeat(rows.indptr[chosen] - ends[:-1], lengths)
    return Rows(ends, rows.indices[inside], rows.values[inside])


# --------
# One pure function, on which the adapters of every engine rest.


def step(state: bytes, events: Events, **parts: Any) -> tuple[bytes, Answers]:
    """The state after some events, and what came of each; the same for the same bytes and events, wherever it runs.

    Parameters
    ----------
    state : bytes
        What the last step returned; at first `Forecaster.to_bytes()`, or `Cases.to_bytes()`.
    events : Events
        Cases and outcomes, in order.
    **parts
        Parts of your own making, as for `Forecaster.from_bytes`.

    Returns
    -------
    tuple of bytes and Answers
        The next state, and what came of each event.

    Examples
    --------
    >>> import swapcal as sc
    >>> first = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1, identity="store 7").to_bytes()
    >>> state, played = step(first, Events([1, 2], [float("nan")] * 2, [[1.0], [1.0]], [0.2, 0.7]))
    >>> played.forecast
    array([0.2, 0.7])
    >>> step(state, Events([2, 1, 3], [1.0, 0.0, 1.0], []))[1].status
    ['learned', 'learned', 'unknown']
    """
    stream = Cases.from_bytes(state, **parts)
    played = stream.play(events)
    return stream.to_bytes(), played
