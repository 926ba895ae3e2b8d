"""The life of a case: ids, what becomes of each event, in which order outcomes are learned; and the pure step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import takewhile
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.classes import Classes, PredictionSet
from swapcal.engine.pending import Asked, HeldForecasts, HeldRounds, OpenRounds
from swapcal.engine.schedule import NOT_YET, Schedule, to_seconds
from swapcal.errors import InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.intervals import Interval, Quantiles
from swapcal.protocols import Elicitable, Hypotheses, LearningHint, Rows
from swapcal.state import Packed, Saved, Shape, Stateful, kind_of
from swapcal.typing import Float64Array

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
# Where cases are: by number, or by id in memory. The service has its store (`service/store.py`).


class Model(Protocol):
    """What `Cases` plays: a `Forecaster`, `Quantiles` and what rests on it, `Classes`, `PredictionSet`."""

    kind: ClassVar[str]

    @property
    def rounds(self) -> OpenRounds:
        """Which rounds wait."""

    @property
    def held(self) -> HeldRounds | HeldForecasts:
        """Those of them that wait here."""

    @property
    def n_outputs(self) -> int:
        """Numbers that a forecast consists of."""

    def read(self, X: Any, n: int, hints: Any = None, features: Any = None, weights: Any = None) -> Asked:
        """What `n` cases bring, checked."""

    def allowed(self, y: Float64Array) -> Float64Array:
        """Outcomes that are allowed, infinite for others."""

    def play(self, asked: Asked, y: Float64Array, plan: Schedule) -> Float64Array:
        """Forecast cases and learn outcomes as the plan says."""

    def set_outcome(self, line: int, y: float, due: float) -> None:
        """The outcome of a round that is held."""

    def held_outputs(self, line: int) -> Sequence[float]:
        """Its forecast."""

    def forget_held(self, line: int) -> None:
        """Forget it."""

    def to_bytes(self) -> bytes:
        """The whole state."""


class Book(Protocol):
    """Where cases are kept by id."""

    def find(self, ids: Sequence[Any]) -> dict[Any, Entry]:
        """Those of the cases that are known."""

    def put(self, entries: Mapping[Any, Entry]) -> None:
        """Cases that are new, or have changed."""

    def before(self, round: int) -> dict[Any, Entry]:
        """Cases of earlier rounds than this that are not closed."""


class RowBook:
    """Cases whose ids are the numbers of their rounds: all is in the model, and nothing is stored.

    So of a closed case nobody knows its outcome, nor whether there was one.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def find(self, ids: Sequence[int]) -> dict[int, Entry]:
        """Those of the cases that were forecast."""
        rounds, held = self.model.rounds, self.model.held
        lines, numbers, _ = held.dues()
        labels = dict(zip(numbers.tolist(), held.labels(lines).tolist(), strict=True))
        entries = {}
        for t in ids:
            if 0 <= t < rounds.issued:
                y = labels.get(t, math.nan)
                state = "waiting" if y != y else "known"
                if t < rounds.issued - rounds.window:
                    state = "expired"
                elif not rounds.is_open(t):
                    state = "learned"
                entries[t] = Entry(state, t, (), None if y != y else y)
        return entries

    def put(self, entries: Mapping[int, Entry]) -> None:
        """Nothing to do."""

    def before(self, round: int) -> dict[int, Entry]:
        """None: the model lets go of them by itself."""
        return {}


class MemoryBook:
    """Cases by id. The last that are closed are remembered, so that a repeated outcome does not look unknown.

    Parameters
    ----------
    remember : int
        How many of them.
    """

    __slots__ = ("closed", "open", "remember")

    def __init__(self, remember: int = 256) -> None:
        self.remember = inputs.integer(remember, "remember", 0)
        self.open: dict[Id, Entry] = {}
        """Waiting or known, in the order of their rounds; the model holds their forecasts."""
        self.closed: dict[Id, Entry] = {}

    def find(self, ids: Sequence[Id]) -> dict[Id, Entry]:
        """Those of the cases that are known."""
        return {name: book[name] for name in ids for book in (self.open, self.closed) if name in book}

    def put(self, entries: Mapping[Id, Entry]) -> None:
        """Cases that are new, or have changed; the oldest of too many that are closed become unknown."""
        for name, entry in entries.items():
            if entry.state in ("waiting", "known"):
                self.open[name] = entry
            else:
                self.open.pop(name, None)
                self.closed.pop(name, None)
                self.closed[name] = entry
        for name in list(self.closed)[: max(len(self.closed) - self.remember, 0)]:
            del self.closed[name]

    def before(self, round: int) -> dict[Id, Entry]:
        """Cases of earlier rounds than this that are not closed."""
        return dict(takewhile(lambda item: item[1].round < round, self.open.items()))

    def to_state(self) -> Saved:
        """What it is made of; outcomes and forecasts of open cases are in the model."""
        entries = list(self.closed.values())
        arrays: dict[str, npt.NDArray[Any]] = {
            "rounds": np.array([entry.round for entry in self.open.values()], dtype=np.int64),
            "forecasts": np.array([entry.forecast for entry in entries], dtype=np.float64),
            "outcomes": np.array([math.nan if entry.y is None else entry.y for entry in entries], dtype=np.float64),
            "states": np.array([STATES.index(entry.state) for entry in entries], dtype=np.uint8),
        }
        return Saved([list(self.open), list(self.closed), self.remember], arrays)

    @classmethod
    def from_state(cls, packed: Packed, n_outputs: int, held: HeldRounds | HeldForecasts) -> "MemoryBook":
        """Make it again, beside the rounds that its model holds."""
        waiting, closed, remember = packed.plain[:3]
        sound = type(remember) is int and 0 <= len(closed) <= remember < 1 << 31
        sound = sound and all(type(name) in (str, int) for name in (*waiting, *closed))
        if not sound or len({*waiting, *closed}) != len(waiting) + len(closed):
            raise StateFileError("this saved state is damaged: its cases contradict each other")
        n = len(closed)
        shapes = {
            "rounds": Shape((len(waiting),), np.int64, low=0),
            "forecasts": Shape((n, n_outputs) if n else (0,), finite=False),
            "outcomes": Shape((n,), finite=False),
            "states": Shape((n,), np.uint8, low=STATES.index("learned"), high=len(STATES) - 1),
        }
        arrays = packed.arrays(shapes)
        lines, rounds, _ = held.dues()
        if arrays["rounds"].tolist() != rounds.tolist():
            raise StateFileError("this saved state is damaged: the cases that wait are not those of its rounds")
        book = cls(remember)
        for name, t, y in zip(waiting, rounds.tolist(), held.labels(lines).tolist(), strict=True):
            book.open[name] = Entry("waiting", t, ()) if y != y else Entry("known", t, (), y)
        table = zip(closed, *(arrays[name].tolist() for name in ("forecasts", "outcomes", "states")), strict=True)
        for name, forecast, y, code in table:
            book.closed[name] = Entry(STATES[code], -1, tuple(forecast), None if y != y else y)
        return book


# --------
# Events in the order in which they happened, and what came of each.


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
        Extra features of the learning hint, one row for each case; of intervals, the units.
    weights : array, optional
        The share in [0, 1] for which each case counts; a case of weight 0 is forecast, and forgotten at once.
    times : array, optional
        When each event happens, not falling: numbers or datetimes. None: time is counted in rounds.
    known : array, optional
        For each event, when its outcome may be learned: a time, or the number of the round that must be next; NaN for
        now, and for cases.
    never : array of bool, optional
        Which events say that no outcome will come; their `y` is NaN.
    """

    ids: Sequence[Id]
    y: Any
    X: Any
    hints: Any = None
    features: Any = None
    weights: Any = None
    times: Any = None
    known: Any = None
    never: Any = None

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
    - "learned", "held": of an outcome that is learned now, or when it is due and its turn;
    - "repeated", "contradicted": of a further outcome of its case, the same or another one; it changes nothing;
    - "corrected": of another outcome before the first was learned, where corrections are taken;
    - "unknown", "expired": of an outcome whose case never came, is no longer remembered, or has waited for too long;
    - "forgotten": of the word that no outcome will come;
    - "invalid": of an outcome that is not in the property's range; its case still waits.
    """

    forecast: Float64Array
    codes: npt.NDArray[np.uint8]

    @property
    def status(self) -> list[str]:
        """The words for `codes`."""
        return [STATUSES[code] for code in self.codes.tolist()]


class Cases(Stateful):
    """Plays cases and outcomes, in the order given: the numbers of `predict` and `update`, each case and outcome once.

    Parameters
    ----------
    model : Forecaster, Quantiles, Interval, Classes or PredictionSet
        The cases take it over: do not use it any more. Its `max_pending` says by how many later cases an outcome may be
        late.
    book : RowBook or MemoryBook, optional
        Where cases are by id. None: a `MemoryBook` that remembers so many closed cases.
    remember : int
        For that one: how many cases that no longer wait are remembered, to tell repeated events from unknown ones.
    order, settle
        In which order outcomes are learned, as for `Forecaster.run`.
    corrections : bool
        Whether an outcome that is not learned yet may be replaced by another one.

    Notes
    -----
    An outcome that comes before its case is unknown: send it again. What was learned cannot be taken back. Cost: that
    of `run`, and about two microseconds an event for the ids.

    Examples
    --------
    >>> import swapcal as sc
    >>> cases = Cases(sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1))
    >>> nan = float("nan")
    >>> played = cases.play(Events(["a", "b", "a", "a", "c"], [nan, nan, 1, 1, 0], [[1.0], [1.0]], [0.3, 0.4]))
    >>> played.status
    ['forecast', 'forecast', 'learned', 'repeated', 'unknown']
    >>> Cases.from_bytes(cases.to_bytes()).play(Events(["b"], [0.0], [])).forecast
    array([0.4])
    """

    kind = "cases"

    def __init__(
        self,
        model: Any,
        *,
        book: Book | None = None,
        remember: int = 256,
        order: str = "arrival",
        settle: int | None = None,
        corrections: bool = False,
    ) -> None:
        self.model: Model = getattr(model, "played_by", model)
        self.book: Book = MemoryBook(remember) if book is None else book
        self.order, self.corrections = Order(order, settle), bool(corrections)
        self._resume()

    def _resume(self) -> None:
        """Wait for the outcomes that the model's rounds wait for, and no others."""
        rounds, held = self.model.rounds, self.model.held
        lines, numbers, dues = held.dues()
        self.order.front = rounds.issued if not len(numbers) else int(numbers[0])
        for t in range(self.order.front, rounds.issued) if self.order.by == "forecast" else ():
            self.order.skip(t)
        self.order.gone -= {*numbers.tolist()}
        for t, y, due in zip(numbers.tolist(), held.labels(lines).tolist(), dues.tolist(), strict=True):
            if y == y:
                self.order.add(t, y, -math.inf if due != due else due)

    def play(self, events: Events) -> Answers:
        """What comes of each event; after an error the cases are of no further use.

        Parameters
        ----------
        events : Events
            Cases, outcomes, and words that none will come, in any mixture.

        Returns
        -------
        Answers
            One for each.
        """
        turn = _Turn(self, events)
        turn.play()
        self.book.put(turn.changed())
        oldest = self.model.rounds.issued - self.model.rounds.window
        self._let_go(oldest)
        self.model.held.let_go(oldest)
        outputs = turn.outputs
        codes = np.array(turn.codes, dtype=np.uint8)
        return Answers(outputs[:, 0] if self.model.n_outputs == 1 else outputs, codes)

    def learn(self, ids: Sequence[Id], y: Any, *, known: Any = None) -> Answers:
        """Outcomes of some cases."""
        return self.play(Events(ids, y, (), known=known))

    def forget(self, ids: Sequence[Id]) -> Answers:
        """No outcomes of these cases will come."""
        n = len(ids)
        return self.play(Events(ids, np.full(n, np.nan), (), never=np.ones(n, dtype=np.bool_)))

    def expire(self, before: int) -> list[Id]:
        """Wait no longer for outcomes of cases of earlier rounds than this; which ones."""
        return self._let_go(before)

    def _let_go(self, before: int) -> list[Id]:
        model, gone = self.model, self.book.before(before)
        if gone:
            lines, rounds, _ = model.held.dues()
            line_of = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
            closed = {}
            for name, entry in gone.items():
                line = line_of[entry.round]
                closed[name] = entry._replace(state="expired", forecast=tuple(model.held_outputs(line)))
                model.forget_held(line)
                self.order.skip(entry.round)
            self.book.put(closed)
        return list(gone)

    @property
    def n_waiting(self) -> int:
        """Cases that wait for their outcome, or for their turn."""
        return len(self.model.held.dues()[0])

    def to_state(self) -> Saved:
        """What it is made of: the book, and the model as a part."""
        assert isinstance(self.book, MemoryBook)  # a RowBook is made anew around its model
        saved = self.book.to_state()
        rules = [self.order.by, self.order.settle, self.corrections]
        return saved._replace(plain=[*saved.plain, self.model.kind, *rules], parts={"model": self.model.to_bytes()})

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
        kind, by, settle, corrections = packed.plain[3:]
        parts = {"property": property, "hypotheses": hypotheses, "hint": hint}
        own = {name: part for name, part in parts.items() if part is not None}
        model = MODELS[kind].from_bytes(packed.parts["model"], **own)
        book = MemoryBook.from_state(packed, model.n_outputs, model.held)
        return cls(model, book=book, order=by, settle=settle, corrections=corrections)

    @classmethod
    def from_bytes(cls, data: bytes, *, remember: int = 256, **own: Any) -> "Cases":
        """What `to_bytes` wrote, or new cases of a model that was saved.

        Parameters
        ----------
        data : bytes
            Of cases, or of a model for which nothing waits.
        remember : int
            For new cases.
        **own
            As for `Forecaster.from_bytes`.

        Returns
        -------
        Cases
            They give the forecasts that the others would have given.
        """
        kind = kind_of(data)
        if kind in MODELS:
            return cls(MODELS[kind].from_bytes(data, **own), remember=remember)
        return super().from_bytes(data, **own)


MODELS: dict[Any, Any] = {each.kind: each for each in (Forecaster, Quantiles, Interval, Classes, PredictionSet)}


class _Turn:
    """Some events on their way: new cases are gathered as rows, and played together where nothing comes between."""

    def __init__(self, cases: Cases, events: Events) -> None:
        self.model, self.book = cases.model, cases.book
        self.order, self.corrections = cases.order, cases.corrections
        n = len(events.y)
        never = np.zeros(n, dtype=np.bool_) if events.never is None else inputs.mask(events.never, "never", n)
        if (never & ~np.isnan(events.y)).any():
            raise InvalidInput("an event that says that no outcome will come has none; its y must be NaN")
        is_case = np.isnan(events.y) & ~never
        n_cases = int(np.count_nonzero(is_case))
        self.weights, shares = None, None
        if events.weights is not None:
            self.weights = inputs.vector(events.weights, "weights", n_cases)
            shares = np.where(self.weights == 0.0, 1.0, self.weights)
        self.asked = _NOTHING
        if n_cases:
            self.asked = self.model.read(events.X, n_cases, events.hints, events.features, shares)
        clock = None if events.times is None else to_seconds(events.times, "times", n)
        if clock is not None and (np.isnan(clock).any() or (np.diff(clock) < 0.0).any()):
            raise InvalidInput("times must not fall, and none of them may be missing")
        due = np.full(n, np.nan) if events.known is None else to_seconds(events.known, "known", n)
        self.events = zip(
            events.ids,
            is_case.tolist(),
            never.tolist(),
            self.model.allowed(events.y).tolist(),
            [None] * n if clock is None else clock.tolist(),
            np.where(np.isnan(due), -np.inf, due).tolist(),
            strict=True,
        )
        self.entries = self.book.find(events.ids)
        self.closed: dict[Id, None] = {}
        """Cases that were closed, or are known, in this order."""
        self.opened: list[Id] = []
        self.learned: set[int] = set()
        """Rounds whose turn has come."""
        self.forecasts: dict[int, Sequence[float]] = {}
        """By round, of what was played or seen on the way."""
        self.codes = [_CODES["unknown"]] * n
        self.outputs = np.full((n, self.model.n_outputs), np.nan)
        # By arrival an outcome that is due is learned when it comes; only others go through the order.
        self.in_order = self.order.by == "forecast" or events.known is not None or len(self.order) > 0
        self._gather()

    def _gather(self) -> None:
        """From here on rows are gathered."""
        self.first, self.window = self.model.rounds.issued, self.model.rounds.window
        lines, rounds, _ = self.model.held.dues()
        self.line_of: dict[int, int] = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
        self.rows: list[int] = []
        """Numbers of cases."""
        self.shown: list[tuple[int, int]] = []
        """Events whose forecast is that of a row."""
        self.told: dict[int, tuple[float, float]] = {}
        """Rows whose outcome has come: the outcome, and when it is due."""
        self.gone: list[int] = []
        """Rows of no weight."""
        self.arriving: list[int] = []
        self.ends = [0]

    @property
    def issued(self) -> int:
        """The number of the next round."""
        return self.first + len(self.rows)

    def play(self) -> None:
        """Event after event."""
        number = -1
        for i, (name, is_case, is_never, y, clock, due) in enumerate(self.events):
            entry = self.entries.get(name)
            if is_case:
                number += 1
                if entry is None:
                    self._open(i, name, number, clock)
                    continue
                event = _AGAIN
            elif is_never:
                event = _NEVER
            else:
                event = Event("learn", y, invalid=y == math.inf)
            expired = entry is not None and self.issued - entry.round > self.window
            status, state = answer(entry, event, expired=expired, corrections=self.corrections)
            if entry is not None:
                self._show(i, entry)
                if status in ("learned", "corrected", "forgotten") or (status == "expired" and entry.state in _OPEN):
                    if status == "forgotten":
                        self._forget(entry, clock)
                    elif not self._tell(entry, y, due, clock, expired):
                        status, state = answer(entry, event, held=True, corrections=self.corrections)
                    elif status == "corrected":
                        state = "learned"
                    self._close(name, Entry(state, entry.round, entry.forecast, None if is_never else y))
            self.codes[i] = _CODES[status]
        self._flush()

    def changed(self) -> dict[Id, Entry]:
        """Cases that are new or have changed: open ones by round, and then closed ones, with their forecasts."""
        if self.learned:
            for name, entry in {**self.book.before(self.issued), **self.entries}.items():
                if entry.round in self.learned and entry.state == "known":  # its turn has come
                    self.entries[name] = entry._replace(state="learned")
                    self.closed[name] = None
        names = dict.fromkeys([*self.opened, *self.closed])
        changed = {name: self.entries[name] for name in names if self.entries[name].state in _OPEN}
        for name in self.closed:
            entry = self.entries[name]
            if entry.state not in _OPEN:
                changed[name] = Entry(entry.state, entry.round, tuple(self.forecasts[entry.round]), entry.y)
        return changed

    def _open(self, i: int, name: Id, number: int, clock: float | None) -> None:
        """A new case."""
        if self.in_order:
            self._learn_due(self.issued if clock is None else clock)
        row, t = len(self.rows), self.issued
        self.ends.append(len(self.arriving))
        self.rows.append(number)
        self.shown.append((i, row))
        self.codes[i] = _CODES["forecast"]
        self.opened.append(name)
        self.entries[name] = Entry("waiting", t, ())
        if self.weights is not None and not self.weights[number]:
            self.gone.append(row)
            self.order.skip(t)
            self._close(name, Entry("forgotten", t, ()))

    def _show(self, i: int, entry: Entry) -> None:
        """The forecast of event `i` is that of a case."""
        if entry.round >= self.first:
            self.shown.append((i, entry.round - self.first))
        elif entry.forecast:
            self.outputs[i] = entry.forecast
        else:
            self._note(entry.round)
            self.outputs[i] = self.forecasts.get(entry.round, np.nan)

    def _note(self, t: int) -> None:
        """Keep the forecast of a round that is held now, and may soon be no more."""
        if t in self.line_of and t not in self.forecasts:
            self.forecasts[t] = self.model.held_outputs(self.line_of[t])

    def _close(self, name: Id, entry: Entry) -> None:
        self.entries[name] = entry
        self.closed[name] = None

    def _code(self, t: int) -> int:
        return t - self.first if t >= self.first else -1 - self.line_of[t]

    def _tell(self, entry: Entry, y: float, due: float, clock: float | None, expired: bool) -> bool:
        """An outcome has come; whether it is learned, or let go, before the next row."""
        t = entry.round
        later = math.nan if due == -math.inf else due
        if t >= self.first:
            self.told[t - self.first] = y, later
        else:
            self.model.set_outcome(self.line_of[t], y, later)
        if expired:
            self.order.skip(t)
        elif self.in_order:
            self.order.add(t, y, due)
            return t in self._learn_due(self.issued if clock is None else clock)
        self.arriving.append(self._code(t))
        return True

    def _learn_due(self, now: float) -> set[int]:
        outcomes = self.order.due(self.issued, now)
        learned = {outcome.round for outcome in outcomes}
        self.arriving += [self._code(outcome.round) for outcome in outcomes]
        for t in learned:
            self._note(t)
        self.learned |= learned
        return learned

    def _forget(self, entry: Entry, clock: float | None) -> None:
        self._flush()
        self.model.forget_held(self.line_of[entry.round])
        self.order.skip(entry.round)
        del self.line_of[entry.round]
        if self.in_order:
            self._learn_due(self.issued if clock is None else clock)

    def _flush(self) -> None:
        """Play what was gathered."""
        if not self.rows and not self.arriving:
            return
        n, rows = len(self.rows), np.array(self.rows, dtype=np.int64)
        asked = self.asked if n == len(self.asked.rows.indptr) - 1 else self.asked.taken(rows)
        labels, due = np.full(n, np.nan), np.full(n, np.nan)
        for row, outcome in self.told.items():
            labels[row], due[row] = outcome
        codes, ends = np.array(self.arriving, dtype=np.int64), np.array(self.ends, dtype=np.int64)
        # A row that is alone in being learned before the next one is learned at once.
        starts, stops = ends[1:], np.append(ends[2:], len(codes))[:n]
        alone, single = np.zeros(n, dtype=np.bool_), np.flatnonzero(stops - starts == 1)
        alone[single] = codes[starts[single]] == single
        others = np.ones(len(codes), dtype=np.bool_)
        others[starts[alone]] = False
        late = np.where(np.isnan(labels), NOT_YET, ~alone).astype(np.uint8)
        late[self.gone] = 0
        before = np.concatenate([[0], np.cumsum(others)])
        played = self.model.play(asked, labels, Schedule(codes[others], before[ends], late, due))
        if self.shown:
            events, shown = np.array(self.shown).T
            self.outputs[events] = played[shown]
        self.forecasts.update(enumerate(played.tolist(), self.first))
        self._gather()


_NOTHING = Asked(Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)))
_AGAIN, _NEVER = Event("predict"), Event("forget")
_OPEN = ("waiting", "known")
_CODES = {status: code for code, status in enumerate(STATUSES)}


def step(state: bytes, events: Events, **parts: Any) -> tuple[bytes, Answers]:
    """The state after some events, and what came of each; the same for the same bytes and events, wherever it runs.

    Parameters
    ----------
    state : bytes
        What the last step returned; at first `Forecaster.to_bytes()`, that of another model, or `Cases.to_bytes()`.
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
    cases = Cases.from_bytes(state, **parts)
    played = cases.play(events)
    return cases.to_bytes(), played
