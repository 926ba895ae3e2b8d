"""A forecaster and the cases that wait for it: events in, forecasts out, at the speed of `run`."""

import struct
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.engine import kernels, state_bytes, stream
from swapcal.engine.protocol import StreamPart
from swapcal.engine.round import Round
from swapcal.engine.rules import Rules
from swapcal.engine.state import State
from swapcal.engine.waiting import HINT
from swapcal.errors import StateFileError
from swapcal.forecaster import Forecaster
from swapcal.packing import kind_of, packed, unpacked
from swapcal.roles import Rows
from swapcal.stepping.book import Book, Done
from swapcal.stepping.case_events import EXPIRED, Events, PlayedEvents
from swapcal.stepping.event_plan import EventPlan, planned
from swapcal.typing import Float64Array, IntArray

__all__ = ["EventStream"]

_LENGTH = struct.Struct("<I")
_NO_ROWS = Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


class CaseInputs(NamedTuple):
    """What the cases among some events bring, checked."""

    rows: Rows
    hints: Float64Array | None
    features: Float64Array | None


class EventStream:
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
    >>> stream = EventStream(sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1))
    >>> nan = float("nan")
    >>> played = stream.play(Events(["a", "b", "a", "a", "c"], [nan, nan, 1, 1, 0], [[1.0], [1.0]], [0.3, 0.4]))
    >>> played.status
    ['forecast', 'forecast', 'learned', 'repeated', 'unknown']
    >>> EventStream.from_bytes(stream.to_bytes()).play(Events(["b"], [0.0], [])).forecast
    array([0.4])
    """

    def __init__(self, forecaster: Forecaster, *, remember: int = 256) -> None:
        self._own(forecaster.rules, forecaster.state, Book(checked.whole(remember, "remember", 0)))

    def _own(self, rules: Rules, state: State, book: Book) -> None:
        self.rules, self.state, self.book = rules, state, book
        self._round = Round(rules, state, native=kernels.native)

    def play(self, events: Events) -> PlayedEvents:
        """What comes of each event; after an error the stream is of no further use."""
        state = self.state
        cases = np.flatnonzero(np.isnan(events.y))
        inputs = self._inputs(events, len(cases))
        plan = planned(events.ids, cases, self._labels(events.y), self.book, state)
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
        return PlayedEvents(forecast, plan.codes)

    def _inputs(self, events: Events, n_cases: int) -> CaseInputs:
        rules = self.rules
        hints = None
        if events.hints is not None:
            hints = stream.allowed_hints(rules, checked.vector(events.hints, "hints", n_cases, missing=True))
        features = checked.feature_rows(events.features, n_cases, rules.n_features) if n_cases else None
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
        part = StreamPart(rows, plan.labels, hints, features, out, plan.arrivals())
        stream.play(self._round, part)

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

    def to_bytes(self) -> bytes:
        """The whole state; `from_bytes` goes on from it."""
        header, arrays = self.book.arrays()
        return packed(
            "stream", _LENGTH.pack(len(header)) + header + state_bytes.to_bytes(self.rules, self.state), arrays
        )

    @classmethod
    def from_bytes(cls, data: bytes, *, remember: int = 256, **parts: Any) -> "EventStream":
        """The stream that `to_bytes` wrote, or a new one from the bytes of a forecaster.

        Parameters
        ----------
        data : bytes
            Of a stream, or of a forecaster for which nothing waits.
        remember : int
            For a new stream.
        **parts
            As for `Forecaster.from_bytes`.

        Returns
        -------
        EventStream
            One that gives the forecasts that the other one would have given.
        """
        book, own = Book(checked.whole(remember, "remember", 0)), data
        if kind_of(data) != "forecaster":
            header, words = unpacked("stream", data)
            try:
                (size,) = _LENGTH.unpack_from(header)
                book, own = Book.read(header[4 : 4 + size], words), header[4 + size :]
            except (struct.error, ValueError, TypeError) as error:
                raise StateFileError(f"these bytes hold no stream ({error})") from error
        made = cls.__new__(cls)
        made._own(*state_bytes.from_bytes(own, **parts), book)
        _, rounds, _ = made.state.waiting.dues()
        if list(book.open.values()) != rounds.tolist():
            raise StateFileError("these bytes of a stream are damaged: the cases that wait are not those of its rounds")
        return made


def _chosen(rows: Rows, chosen: IntArray) -> Rows:
    lengths = np.diff(rows.indptr)[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    inside = np.arange(ends[-1]) + np.repeat(rows.indptr[chosen] - ends[:-1], lengths)
    return Rows(ends, rows.indices[inside], rows.values[inside])
