"""Cases and outcomes as events: each gets one status, from one table; and the pure step."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.classes import Classes, PredictionSet
from swapcal.engine.pending import Asked, HeldForecasts, HeldRounds, OpenRounds
from swapcal.engine.schedule import NOT_YET, Schedule, to_seconds
from swapcal.errors import InvalidInput, StateFileError
from swapcal.forecaster import Forecaster
from swapcal.intervals import Interval, Quantiles
from swapcal.joint import MeanVariance, TailMean
from swapcal.lifecycle import EVENTS, STATES, STATUSES, TABLE, Order
from swapcal.protocols import Elicitable, Hypotheses, LearningHint, Rows
from swapcal.state import Packed, Saved, Shape, Stateful, kind_of
from swapcal.typing import Float64Array, IntArray

Id = str | int


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

    def set_outcomes(self, lines: IntArray, y: Float64Array, due: Float64Array) -> None:
        """The outcomes of rounds that are held."""

    def held_outputs(self, lines: IntArray) -> Float64Array:
        """Their forecasts, a row each."""

    def forget_held(self, line: int) -> None:
        """Forget one of them."""

    def to_bytes(self) -> bytes:
        """The whole state."""


MODELS: dict[Any, Any] = {
    each.kind: each for each in (Forecaster, Quantiles, Interval, Classes, PredictionSet, TailMean, MeanVariance)
}

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


# --------
# Where cases are: those that wait by round, and the last ones that are closed.

# Of a case: the position of its state in `STATES`, its outcome (NaN for none), its forecast.
Closed = tuple[int, float, Sequence[float]]


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
        # The rounds of those that wait or are known, in increasing order; all else of them is in the model.
        self.open: dict[Id, int] = {}
        self.closed: dict[Id, Closed] = {}

    def close(self, cases: Iterable[tuple[Id, Closed]]) -> None:
        """Cases that are closed now; the oldest of too many become unknown."""
        self.closed.update(cases)
        for name in list(islice(self.closed, max(len(self.closed) - self.remember, 0))):
            del self.closed[name]

    def to_state(self) -> Saved:
        """What it is made of."""
        states, outcomes, forecasts = zip(*self.closed.values(), strict=True) if self.closed else ((), (), ())
        arrays: dict[str, npt.NDArray[Any]] = {
            "rounds": np.array(list(self.open.values()), dtype=np.int64),
            "forecasts": np.array(forecasts, dtype=np.float64),
            "outcomes": np.array(outcomes, dtype=np.float64),
            "states": np.array(states, dtype=np.uint8),
        }
        return Saved([list(self.open), list(self.closed), self.remember], arrays)

    @classmethod
    def from_state(cls, packed: Packed, n_outputs: int, held: HeldRounds | HeldForecasts) -> "MemoryBook":
        """Make it again, beside the rounds that its model holds."""
        waiting, closed, remember = packed.plain[:3]
        n, names = len(closed), [*waiting, *closed]
        sound = type(remember) is int and 0 <= n <= remember < 1 << 31 and {*map(type, names)} <= {str, int}
        if not sound or len({*names}) != len(names):
            raise StateFileError("this saved state is damaged: its cases contradict each other")
        shapes = {
            "rounds": Shape((len(waiting),), np.int64, low=0),
            "forecasts": Shape((n, n_outputs) if n else (0,), finite=False),
            "outcomes": Shape((n,), finite=False),
            "states": Shape((n,), np.uint8, low=LEARNED, high=len(STATES) - 1),
        }
        arrays = packed.arrays(shapes)
        rounds = arrays["rounds"].tolist()
        if rounds != held.dues()[1].tolist():
            raise StateFileError("this saved state is damaged: the cases that wait are not those of its rounds")
        book = cls(remember)
        book.open = dict(zip(waiting, rounds, strict=True))
        columns = (arrays[name].tolist() for name in ("states", "outcomes", "forecasts"))
        book.closed = dict(zip(closed, zip(*columns, strict=True), strict=True))
        return book


class Cases(Stateful):
    """Plays cases and outcomes, in the order given: the numbers of `predict` and `update`, each case and outcome once.

    Parameters
    ----------
    model : Forecaster, Quantiles, Interval, Classes or PredictionSet
        The cases take it over: do not use it any more. Its `max_pending` says by how many later cases an outcome may be
        late.
    remember : int
        How many cases that no longer wait are remembered, to tell repeated events from unknown ones.
    order, settle
        In which order outcomes are learned, as for `Forecaster.run`.
    corrections : bool
        Whether an outcome that is not learned yet may be replaced by another one.

    Notes
    -----
    An outcome that comes before its case is unknown: send it again. What was learned cannot be taken back. Cost: that
    of `run`, and about a microsecond an event for the ids.

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
        remember: int = 256,
        order: str = "arrival",
        settle: int | None = None,
        corrections: bool = False,
    ) -> None:
        self._begin(model, MemoryBook(remember), Order(order, settle), corrections)

    def _begin(self, model: Any, book: MemoryBook, order: Order, corrections: bool) -> None:
        """Wait for the outcomes that the model's rounds wait for, and no others."""
        self.model: Model = model
        self.book, self.order, self.corrections = book, order, bool(corrections)
        lines, numbers, dues = self.model.held.dues()
        issued, rounds = self.model.rounds.issued, numbers.tolist()
        order.front = rounds[0] if rounds else issued
        if order.by == "forecast":
            order.gone = {*range(order.front, issued)} - {*rounds}
        labels = self.model.held.labels(lines)
        if not np.isnan(labels).all():
            names = {t: name for name, t in book.open.items()}
            for t, y, due in zip(rounds, labels.tolist(), dues.tolist(), strict=True):
                if y == y:
                    order.add(t, y, -math.inf if due != due else due, names.get(t))

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
        answers = _Turn(self, events).play()
        oldest = self.model.rounds.issued - self.model.rounds.window
        if oldest > 0:
            self.expire(oldest)
            self.model.held.let_go(oldest)
        return answers

    def learn(self, ids: Sequence[Id], y: Any, *, known: Any = None) -> Answers:
        """Outcomes of some cases."""
        return self.play(Events(ids, y, (), known=known))

    def forget(self, ids: Sequence[Id]) -> Answers:
        """No outcomes of these cases will come."""
        n = len(ids)
        return self.play(Events(ids, np.full(n, np.nan), (), never=np.ones(n, dtype=np.bool_)))

    def expire(self, before: int) -> list[Id]:
        """Wait no longer for outcomes of cases of earlier rounds than this; which ones."""
        gone = dict(takewhile(lambda item: item[1] < before, self.book.open.items()))
        if gone:
            lines, rounds, _ = self.model.held.dues()
            lines = lines[np.searchsorted(rounds, list(gone.values()))]
            forecasts, labels = self.model.held_outputs(lines).tolist(), self.model.held.labels(lines).tolist()
            self.book.close(zip(gone, zip([EXPIRED] * len(gone), labels, forecasts, strict=True), strict=True))
            for line, (name, t) in zip(lines.tolist(), gone.items(), strict=True):
                self.model.forget_held(line)
                self.order.skip(t)
                del self.book.open[name]
        return list(gone)

    def state(self, id: Id) -> str:
        """One of `STATES`: what a case is."""
        t = self.book.open.get(id)
        if t is None:
            return STATES[self.book.closed[id][0]] if id in self.book.closed else "unknown"
        return "known" if t in self.order else "waiting"

    @property
    def n_waiting(self) -> int:
        """Cases that wait for their outcome, or for their turn."""
        return len(self.book.open)

    def to_state(self) -> Saved:
        """What it is made of: the book, and the model as a part."""
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
        cases = cls.__new__(cls)
        book = MemoryBook.from_state(packed, model.n_outputs, model.held)
        cases._begin(model, book, Order(by, settle), corrections)
        return cases

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


WAITING, KNOWN, LEARNED, EXPIRED, FORGOTTEN = (
    STATES.index(state) for state in ("waiting", "known", "learned", "expired", "forgotten")
)
_PREDICT, _LEARN, _OTHER, _INVALID, _FORGET = (
    EVENTS.index(kind) for kind in ("predict", "learn", "learn other", "learn invalid", "forget")
)
_CODES = {status: code for code, status in enumerate(STATUSES)}
_TABLE = tuple(tuple(_CODES[status] for status in TABLE[state]) for state in STATES)
_FORECAST, _LEARNED, _HELD, _EXPIRED, _FORGOTTEN, _CONTRADICTED, _CORRECTED = (
    _CODES[status] for status in ("forecast", "learned", "held", "expired", "forgotten", "contradicted", "corrected")
)
_NOTHING = Asked(Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)))


class _Turn:
    """Some events on their way: new cases are gathered as rows, and played together where nothing comes between.

    All is in lists of numbers, without an object for an event, so that an event costs about a microsecond here.
    """

    def __init__(self, cases: Cases, events: Events) -> None:
        self.model, self.book, self.order, self.corrections = cases.model, cases.book, cases.order, cases.corrections
        self.ids, n = events.ids, len(events.y)
        is_case, labels = np.isnan(events.y), self.model.allowed(events.y)
        kinds = np.full(n, _LEARN)
        kinds[is_case] = _PREDICT
        kinds[labels == np.inf] = _INVALID
        if events.never is not None:
            never = inputs.mask(events.never, "never", n)
            if (never & ~is_case).any():
                raise InvalidInput("an event that says that no outcome will come has none; its y must be NaN")
            kinds[never], is_case = _FORGET, is_case & ~never
        self.kinds, self.labels, self.is_case = kinds.tolist(), labels.tolist(), is_case
        n_cases = int(np.count_nonzero(is_case))
        self.weightless: set[int] = set()
        shares = None
        if events.weights is not None:
            shares = inputs.vector(events.weights, "weights", n_cases)
            self.weightless.update(np.flatnonzero(is_case)[shares == 0.0].tolist())
            shares = np.where(shares == 0.0, 1.0, shares)
        self.asked = _NOTHING
        if n_cases:
            self.asked = self.model.read(events.X, n_cases, events.hints, events.features, shares)
        self.clock = None if events.times is None else to_seconds(events.times, "times", n)
        if self.clock is not None and (np.isnan(self.clock).any() or (np.diff(self.clock) < 0.0).any()):
            raise InvalidInput("times must not fall, and none of them may be missing")
        self.due = None if events.known is None else to_seconds(events.known, "known", n)
        # By arrival an outcome that is due is learned when it comes; only others go through the order.
        self.in_order = self.order.by == "forecast" or self.due is not None or len(self.order) > 0
        self.first, self.window = self.model.rounds.issued, self.model.rounds.window
        # The events that are new cases.
        self.rows: list[int] = []
        # The row whose forecast an event has. Behind the events: of cases whose turn has come.
        self.row_of = [-1] * n
        # Events whose forecast is that of a line from before, and the line.
        self.earlier: list[tuple[int, int]] = []
        # Events and their forecasts.
        self.parts: list[tuple[list[int], Any]] = []
        # Cases that were closed here: state, outcome, and an event that has their forecast.
        self.closed: dict[Id, tuple[int, float, int]] = {}
        self.played: list[Float64Array] = []
        self._gather()

    def _gather(self) -> None:
        """From here on rows are gathered; those before have lines by now. A code is a row, or -1 - a line."""
        lines, rounds, _ = self.model.held.dues()
        self.line_of: dict[int, int] = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
        self.start = len(self.rows)
        # Outcomes that have come: the code, the outcome, and when it is due.
        self.told: list[tuple[int, float, float]] = []
        # Codes of what is learned, up to `ends` before each row.
        self.arriving: list[int] = []
        self.ends = [0]

    def play(self) -> Answers:
        """Event after event."""
        first, window, in_order, weightless = self.first, self.window, self.in_order, self.weightless
        opened, known, remembered, closed = self.book.open, self.order.known, self.book.closed, self.closed
        rows, row_of, earlier, nan = self.rows, self.row_of, self.earlier, math.nan
        codes = [_CODES["unknown"]] * len(row_of)
        same: list[tuple[int, int]] = []
        for i, (name, kind, y) in enumerate(zip(self.ids, self.kinds, self.labels, strict=True)):
            t = opened.get(name)
            if t is None:
                if name in closed:
                    state, had, at = closed[name]
                    same.append((i, at))
                elif name in remembered:
                    state, had, forecast = remembered[name]
                    self.parts.append(([i], forecast))
                else:
                    if kind == _PREDICT:
                        if in_order:
                            self._learn_due(i)
                        codes[i], row_of[i], opened[name] = _FORECAST, len(rows), first + len(rows)
                        self.ends.append(len(self.arriving))
                        rows.append(i)
                        if i in weightless:
                            self._forget(name, i, opened[name])
                    continue
                codes[i] = _TABLE[state][_OTHER if kind == _LEARN and had != y else kind]
                continue
            row, state = t - first, WAITING
            if row >= 0:
                row_of[i] = row
            else:
                earlier.append((i, self.line_of[t]))
            if row + window < len(rows):
                state = EXPIRED
            elif t in known:
                state, kind = KNOWN, _OTHER if kind == _LEARN and known[t].y != y else kind
            status = _TABLE[state][kind]
            if status == _LEARNED and not in_order:
                code = row - self.start if row >= self.start else -1 - self.line_of[t]
                self.told.append((code, y, nan))
                self.arriving.append(code)
                closed[name] = LEARNED, y, i
                del opened[name]
            elif status == _LEARNED:
                self._tell(name, i, t, y)
                status = _HELD if name in opened else status
            elif status == _CONTRADICTED and kind == _OTHER and self.corrections:
                self._tell(name, i, t, y)
                status = _CORRECTED
            elif status == _FORGOTTEN:
                self._forget(name, i, t)
            elif status == _EXPIRED:
                self.order.skip(t)
                closed[name] = EXPIRED, y, i
                del opened[name]
            codes[i] = status
        self._flush()
        return self._answers(codes, same)

    def _code(self, t: int) -> int:
        row = t - self.first - self.start
        return row if row >= 0 else -1 - self.line_of[t]

    def _tell(self, name: Id, i: int, t: int, y: float) -> None:
        """An outcome that may have to wait has come."""
        due = math.nan if self.due is None else float(self.due[i])
        self.told.append((self._code(t), y, due))
        self.order.add(t, y, -math.inf if due != due else due, name)
        self._learn_due(i)

    def _learn_due(self, i: int) -> None:
        """Learn what is due when event `i` comes."""
        issued = self.first + len(self.rows)
        for outcome in self.order.due(issued, issued if self.clock is None else float(self.clock[i])):
            t, at = outcome.round, len(self.row_of)
            self.arriving.append(self._code(t))
            self.row_of.append(max(t - self.first, -1))
            if t < self.first:
                self.earlier.append((at, self.line_of[t]))
            if outcome.ticket in self.book.open:
                self.closed[outcome.ticket] = LEARNED, outcome.y, at
                del self.book.open[outcome.ticket]

    def _forget(self, name: Id, i: int, t: int) -> None:
        """No outcome of a case will come; one of no weight is dropped when it is played."""
        self.order.skip(t)
        self.closed[name] = FORGOTTEN, math.nan, i
        del self.book.open[name]
        if i in self.weightless:
            return
        self._flush()
        self._gather()
        self.model.forget_held(self.line_of.pop(t))
        if self.in_order:
            self._learn_due(i)

    def _flush(self) -> None:
        """Play what was gathered."""
        if self.earlier:
            events, held = zip(*self.earlier, strict=True)
            self.parts.append((list(events), self.model.held_outputs(np.array(held))))
            self.earlier.clear()
        start, n = self.start, len(self.rows) - self.start
        labels = np.full(n, np.nan)
        due = labels.copy()
        if self.told:
            places, y, moments = (np.array(column) for column in zip(*self.told, strict=True))
            new = places >= 0
            if new.any():
                labels[places[new]], due[places[new]] = y[new], moments[new]
            if not new.all():
                self.model.set_outcomes(-1 - places[~new], y[~new], moments[~new])
        if not n and not self.arriving:
            return
        asked = self.asked
        if n < len(asked.rows.indptr) - 1:
            asked = asked.taken(np.cumsum(self.is_case)[self.rows[start:]] - 1)
        codes, ends = np.array(self.arriving, dtype=np.int64), np.array(self.ends, dtype=np.int64)
        # A row that is alone in being learned before the next one is learned at once.
        starts, stops = ends[1:], np.append(ends[2:], len(codes))[:n]
        alone, single = np.zeros(n, dtype=np.bool_), np.flatnonzero(stops - starts == 1)
        alone[single] = codes[starts[single]] == single
        others = np.ones(len(codes), dtype=np.bool_)
        others[starts[alone]] = False
        late = np.where(np.isnan(labels), NOT_YET, ~alone).astype(np.uint8)
        if self.weightless:
            late[[row for row in range(n) if self.rows[start + row] in self.weightless]] = 0
        before = np.concatenate([[0], np.cumsum(others)])
        self.played.append(self.model.play(asked, labels, Schedule(codes[others], before[ends], late, due)))

    def _answers(self, codes: list[int], same: list[tuple[int, int]]) -> Answers:
        """What came of each event; cases that were closed go to the book."""
        n, outputs = len(codes), np.full((len(self.row_of), self.model.n_outputs), np.nan)
        rows = np.array(self.row_of, dtype=np.int64)
        new = np.flatnonzero(rows >= 0)
        if len(new):
            outputs[new] = np.concatenate(self.played)[rows[new]]
        for events, forecasts in self.parts:
            outputs[events] = forecasts
        if same:
            outputs[[i for i, _ in same]] = outputs[[at for _, at in same]]
        last = list(self.closed.items())[-self.book.remember :]
        forecasts = outputs[[at for _, (_, _, at) in last]].tolist()
        self.book.close(
            (name, (state, y, forecast)) for (name, (state, y, _)), forecast in zip(last, forecasts, strict=True)
        )
        answers = outputs[:n, 0] if self.model.n_outputs == 1 else outputs[:n]
        return Answers(answers, np.array(codes, dtype=np.uint8))


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
