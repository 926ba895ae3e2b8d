"""A stream in memory: a forecaster, its scores, its watch, and the count of events that made them what they are.

Everything here is a pure function of the log: the same events in the same order give the same bits, whether they came
one by one, in batches, or from the store after a crash. Only the writer's thread touches it.
"""

import hmac
import io
import math
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

import swapcal as sc
from swapcal.forecast import Identity
from swapcal.roles import Row
from swapcal.service.group_watch import GroupWatch
from swapcal.service.outcome_order import HeldOutcome, OutcomeOrder
from swapcal.service.schemas import Scalar, StreamStatus
from swapcal.service.served_scores import StreamScores
from swapcal.service.spec import StreamSpec, seconds
from swapcal.service.stream_parts import forecaster_of, groups_of, property_of

__all__ = ["Asked", "Diverged", "ServedStream"]

SCHEMA_VERSION = 1
TOGETHER = 12
"""From so many cases on, placing them in one call is cheaper than one by one."""


class Diverged(sc.StateFileError):
    """A log that does not lead to the forecasts that were stored."""


class Asked(NamedTuple):
    """A case that can be forecast: its columns, the hint, and the features of a hint that learns."""

    context: dict[str, Scalar]
    hint: float | None
    features: list[float] | None


class ServedStream:
    """One stream and all that it has learned.

    Parameters
    ----------
    name, spec
        What it is.
    """

    def __init__(self, name: str, spec: StreamSpec) -> None:
        self._assemble(name, spec, forecaster_of(spec, name), groups_of(spec))
        watching, settle = spec.watching(), spec.settles()
        self.watch = self.model_watch = None
        if watching is not None:
            self.watch = GroupWatch(watching, self.property, self.groups)
            self.model_watch = GroupWatch(watching, self.property, self.groups)
        self.order = None if settle is None else OutcomeOrder(settle)

    def _assemble(self, name: str, spec: StreamSpec, forecaster: sc.Forecaster, groups: sc.Groups) -> None:
        self.name, self.spec, self.forecaster, self.groups = name, spec, forecaster, groups
        self.property = property_of(spec)
        self.scores = StreamScores(self.property, groups, spec.bins)
        self.seq = self.snapshot_seq = self.epoch = 0
        self.time = 0.0
        """Of the transaction that the last events belong to."""
        self._room, self.delay = spec.room(), seconds(spec.delay)
        self._dense = np.zeros(groups.n)

    @property
    def identity(self) -> Identity:
        """Of the forecaster, with the key that seals its forecasts."""
        return self.forecaster.state.identity

    def fresh_time(self, now: float) -> float:
        """A time for the next transaction: `now`, unless the last one had that."""
        return now if now != self.time else math.nextafter(now, math.inf)

    def begin(self, time: float) -> None:
        """The events that follow belong to the transaction of this time."""
        if time != self.time:
            self.end()
            self.time = time

    def end(self) -> None:
        """The end of a transaction: its outcomes are weighed together, and raise their alarms."""
        for watch in (self.watch, self.model_watch):
            if watch is not None:
                watch.close(self.seq, self.time)

    @property
    def counts_transactions(self) -> bool:
        """Whether the next event, in another transaction, would not do the same as in this one."""
        return self.order is not None or (self.watch is not None and self.watch.is_open)

    def asked(self, context: dict[str, Scalar], hint: float | None) -> "Asked":
        """A case that can be forecast; an `InvalidInput` if it cannot, before anything is learned from it."""
        low, high = self.property.domain
        if hint is not None and self.spec.outside == "error" and not low <= hint <= high:
            raise sc.InvalidInput(f"the hint {hint:g} is outside [{low:g}, {high:g}]")
        return Asked(context, hint, self.spec.inputs(context))

    def predict(self, cases: Sequence["Asked"]) -> list[sc.Forecast]:
        """The next events: a forecast for each case, in order. One call for many gives what one for each would."""
        dense, predict = self._dense, self.forecaster.predict
        made = []
        for case, (indices, values) in zip(cases, self._places(cases), strict=True):
            if self.order is not None:
                self._learn_due(self.order)
            dense[indices] = values
            made.append(predict(dense, case.hint, features=case.features))
            dense[indices] = 0.0
            self.seq += 1
        self.scores.totals.forecasts += len(made)
        return made

    def _places(self, cases: Sequence["Asked"]) -> list[Row]:
        """The groups of each case; learns values that were not seen before."""
        if len(cases) < TOGETHER:
            return [self.groups.row(case.context) for case in cases]
        rows = self.groups.rows([case.context for case in cases], len(cases))
        ends = rows.indptr.tolist()
        return [Row(rows.indices[start:end], rows.values[start:end]) for start, end in pairwise(ends)]

    def close(self, forecast: sc.Forecast, hint: float | None, y: float | None) -> None:
        """The next event: an outcome, or None for one that will not come. A `SwapcalError` changes nothing."""
        if y is None:
            self.forget(forecast)
        else:
            self.learn(forecast, hint, y)

    def forget(self, forecast: sc.Forecast) -> None:
        """The next event: no outcome will come, and no outcome that is held waits for it."""
        self.forecaster.forget(forecast)
        self.scores.totals.forgotten += 1
        self.seq += 1
        if self.order is not None:
            self.order.skip(forecast.round)
            self._learn_due(self.order)

    def learn(self, forecast: sc.Forecast, hint: float | None, y: float) -> None:
        """The next event: an outcome. A `SwapcalError` changes nothing."""
        if self.order is None:
            self._learn(forecast, hint, y)
            self.seq += 1
            return
        # All that an update could refuse is refused now, as nobody is there to be told later.
        self.forecaster.rules.label(y)
        own = forecast.forecaster is self.identity
        if not own and not hmac.compare_digest(self.identity.seal(forecast.signed), forecast.sealed or b""):
            raise sc.UnknownForecast("the stored forecast of this case is not as it was made: its seal is broken")
        self.order.take(HeldOutcome(forecast, hint, y))
        self.seq += 1
        self._learn_due(self.order)

    def _learn_due(self, order: OutcomeOrder) -> None:
        for held in order.due(self.forecaster.state.pending.issued):
            self._learn(*held)

    def _learn(self, forecast: sc.Forecast, hint: float | None, y: float) -> None:
        self.forecaster.update(forecast, y)
        if self.spec.outside == "clip":
            y = min(max(y, self.spec.low), self.spec.high)
            low, high = self.property.domain
            hint = None if hint is None else min(max(hint, low), high)
        row = self._row(forecast)
        self.scores.add(y, hint, forecast.value, row)
        if self.watch is not None:
            self.watch.add(y, forecast.value, row)
        if self.model_watch is not None and hint is not None:
            self.model_watch.add(y, hint, row)

    def is_expired(self, forecast: sc.Forecast) -> bool:
        """Whether a forecast is too old for an outcome."""
        return forecast.round < self.forecaster.state.pending.issued - self._room

    def is_held(self, forecast: sc.Forecast) -> bool:
        """Whether the outcome of a forecast has come and waits for those of earlier ones."""
        return self.order is not None and forecast.round in self.order

    def audits(self) -> tuple[sc.Audit, sc.Audit]:
        """Copies of the audits before and after, for other threads to read."""
        return self.scores.audits()

    def status(self) -> StreamStatus:
        """Where it stands."""
        totals, lateness = self.scores.totals, self.forecaster.lateness()
        watch, model = self.watch, self.model_watch
        compared = totals.compared or None
        return StreamStatus(
            name=self.name,
            property=repr(self.property),
            forecasts=totals.forecasts,
            outcomes=totals.outcomes,
            pending=lateness.n_pending,
            held=0 if self.order is None else len(self.order),
            expired=lateness.n_expired,
            forgotten=totals.forgotten,
            late=lateness.n_late,
            standing_back=lateness.standing_back,
            stood_back=lateness.n_stood_back,
            lateness=list(lateness.sentences),
            room=self._room,
            groups=len(self.groups.names),
            loss_before=compared and totals.loss_before / compared,
            loss_after=compared and totals.loss_after / compared,
            alarms=0 if watch is None else watch.raised,
            watched=watch is not None,
            groups_alarmed=0 if watch is None else watch.n_groups,
            model_alarms=0 if model is None else model.raised,
            model_groups_alarmed=0 if model is None else model.n_groups,
        )

    def dump(self) -> bytes:
        """All of the state, as plain data; between two transactions."""
        file = io.BytesIO()
        self.forecaster.save(file)
        state = {
            "schema_version": SCHEMA_VERSION,
            "swapcal": sc.__version__,
            "seq": self.seq,
            "time": self.time,
            "forecaster": file.getvalue(),
            "groups": self.groups.spec(),
            "scores": self.scores.to_dict(),
            "watch": None if self.watch is None else self.watch.to_dict(),
            "model_watch": None if self.model_watch is None else self.model_watch.to_dict(),
            "order": None if self.order is None else self.order.to_dict(self.identity),
        }
        return zlib.compress(msgspec.msgpack.encode(state), 1)

    @classmethod
    def load(cls, name: str, spec: StreamSpec, snapshot: bytes) -> "ServedStream":
        """The stream that `dump` wrote; it goes on bit for bit."""
        state = _unpacked(name, snapshot)
        try:
            return cls._restored(name, spec, state)
        except (KeyError, TypeError, ValueError) as error:
            raise sc.StateFileError(
                f"the snapshot of stream {name!r} was written by swapcal {state.get('swapcal')} and cannot be read "
                f"({type(error).__name__}: {error}); start that version, or restore a back-up"
            ) from error

    @classmethod
    def _restored(cls, name: str, spec: StreamSpec, state: dict[str, Any]) -> "ServedStream":
        stream = cls.__new__(cls)
        groups = sc.Groups.from_spec(state["groups"])
        stream._assemble(name, spec, sc.Forecaster.load(io.BytesIO(state["forecaster"])), groups)
        stream.scores.restore(state["scores"])
        stream.watch, stream.model_watch = (
            None if state[name] is None else GroupWatch.from_dict(state[name], stream.property, groups)
            for name in ("watch", "model_watch")
        )
        order, settle = state["order"], spec.settles()
        stream.order = (
            None if order is None or settle is None else OutcomeOrder.from_dict(order, settle, stream.identity)
        )
        stream.seq = stream.snapshot_seq = state["seq"]
        stream.time = state["time"]
        return stream

    def _row(self, forecast: sc.Forecast) -> Row:
        """The case's groups: its context without the level sets of the hint behind them."""
        n = len(forecast.context) // 16
        indices = np.frombuffer(forecast.context, dtype=np.int64, count=n)
        values = np.frombuffer(forecast.context, dtype=np.float64, offset=8 * n)
        k = int(indices.searchsorted(self.groups.n))
        return Row(indices[:k], values[:k])


def _unpacked(name: str, snapshot: bytes) -> dict[str, Any]:
    """The plain data of a snapshot of this version."""
    try:
        state: dict[str, Any] = msgspec.msgpack.decode(zlib.decompress(snapshot))
        version = state["schema_version"]
    except (zlib.error, msgspec.DecodeError, TypeError, KeyError) as error:
        raise sc.StateFileError(f"the snapshot of stream {name!r} is damaged ({error}); restore a back-up") from error
    if version != SCHEMA_VERSION:
        raise sc.StateFileError(
            f"the snapshot of stream {name!r} has version {version!r} and this swapcal reads {SCHEMA_VERSION}; "
            f"it was written by swapcal {state.get('swapcal')}"
        )
    return state
