"""A stream in memory: a forecaster, the audits before and after, and the count of events that made them what they are.

Everything here is a pure function of the log: the same events in the same order give the same bits, whether they came
one by one, in batches, or from the store after a crash. Only the writer's thread touches it.
"""

import io
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

import swapcal as sc
from swapcal.roles import Row, Rows
from swapcal.service import group_watch
from swapcal.service.schemas import Scalar, StreamStatus
from swapcal.service.spec import StreamSpec, forecaster_of, groups_of, property_of, seconds

__all__ = ["AUDIT_BINS", "Asked", "Diverged", "ServedStream"]

SCHEMA_VERSION = 1
AUDIT_BINS = 33
"""Hints and forecasts are audited in the bins of the forecaster's grid; in so many, where that is refined on the way.

The values of its first grids are mid-points of these bins too, so that auditing does not move them.
"""
ALARMS_KEPT = 1000
SETTLE_EVERY = 1000
TOGETHER = 12
"""From so many cases on, placing them in one call is cheaper than one by one."""
RECENT = 1000
"""Losses on the live page are means over so many outcomes."""


class Diverged(sc.StateFileError):
    """A log that does not lead to the forecasts that were stored."""


class Asked(NamedTuple):
    """A case that can be forecast: its columns, the hint, and the features of a hint that learns."""

    context: dict[str, Scalar]
    hint: float | None
    features: list[float] | None


class _Totals(msgspec.Struct):
    """Counts and sums over the stream."""

    forecasts: int = 0
    outcomes: int = 0
    late: int = 0
    compared: int = 0
    loss_before: float = 0.0
    loss_after: float = 0.0


class ServedStream:
    """One stream and all that it has learned.

    Parameters
    ----------
    name, spec
        What it is.
    """

    def __init__(self, name: str, spec: StreamSpec) -> None:
        self._assemble(name, spec, forecaster_of(spec), groups_of(spec))
        self.before, self.after = self._audit(), self._audit()
        self.monitor = group_watch.monitor_of(spec, self.property, self.groups)
        self.totals = _Totals()
        self.alarms: list[dict[str, Any]] = []

    def _assemble(self, name: str, spec: StreamSpec, forecaster: sc.Forecaster, groups: sc.Groups) -> None:
        self.name, self.spec, self.forecaster, self.groups = name, spec, forecaster, groups
        self.property = property_of(spec)
        self.seq = self.snapshot_seq = self.epoch = 0
        self._room, self.delay = spec.room(), seconds(spec.delay)
        self._dense = np.zeros(groups.n)
        self._waiting: list[tuple[float, float | None, float, Row]] = []
        self.recent_before, self.recent_after = Recent(RECENT), Recent(RECENT)

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
            dense[indices] = values
            made.append(predict(dense, case.hint, features=case.features))
            dense[indices] = 0.0
        self.seq += len(made)
        self.totals.forecasts += len(made)
        return made

    def _places(self, cases: Sequence["Asked"]) -> list[Row]:
        """The groups of each case; learns values that were not seen before."""
        if len(cases) < TOGETHER:
            return [self.groups.row(case.context) for case in cases]
        rows = self.groups.rows([case.context for case in cases], len(cases))
        ends = rows.indptr.tolist()
        return [Row(rows.indices[start:end], rows.values[start:end]) for start, end in pairwise(ends)]

    def learn(self, forecast: sc.Forecast, hint: float | None, y: float, at: float) -> None:
        """The next event: an outcome. A `SwapcalError` changes nothing."""
        late = forecast.round != self.totals.forecasts - 1
        self.forecaster.update(forecast, y)
        self.seq += 1
        if self.spec.outside == "clip":
            y = min(max(y, self.spec.low), self.spec.high)
            low, high = self.property.domain
            hint = None if hint is None else min(max(hint, low), high)
        row, totals = self._row(forecast), self.totals
        self._waiting.append((y, hint, forecast.value, row))
        if len(self._waiting) >= SETTLE_EVERY:
            self.settle()
        totals.outcomes += 1
        totals.late += late
        if hint is not None:
            before, after = float(self.property.loss(hint, y)), float(self.property.loss(forecast.value, y))
            totals.compared += 1
            totals.loss_before += before
            totals.loss_after += after
            self.recent_before.add(before)
            self.recent_after.add(after)
        if self.monitor is not None:
            for alarm in self.monitor.update(y, forecast.value, row):
                text = group_watch.alarm_text(alarm)
                self.alarms.append({"seq": self.seq, "at": at, "alarm": text})
                del self.alarms[:-ALARMS_KEPT]

    def is_expired(self, forecast: sc.Forecast) -> bool:
        """Whether a forecast is too old for an outcome."""
        return forecast.round < self.totals.forecasts - self._room

    def settle(self) -> None:
        """Bring the audits up to date: many rounds at once cost a tenth, and give the same bits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.after.update_many(*_columns([(y, p, row) for y, _, p, row in waiting]))
        hinted = [(y, hint, row) for y, hint, _, row in waiting if hint is not None]
        if hinted:
            self.before.update_many(*_columns(hinted))

    def audits(self) -> tuple[sc.Audit, sc.Audit]:
        """Copies of the audits before and after, for other threads to read."""
        self.settle()
        return self._audit() + self.before, self._audit() + self.after

    def _audit(self) -> sc.Audit:
        return sc.Audit(self.property, self.groups, bins=self.spec.bins or AUDIT_BINS)

    def status(self) -> StreamStatus:
        """Where it stands."""
        totals = self.totals
        compared = totals.compared or None
        return StreamStatus(
            name=self.name,
            property=repr(self.property),
            forecasts=totals.forecasts,
            outcomes=totals.outcomes,
            pending=self.forecaster.n_pending,
            room=self._room,
            groups=len(self.groups.names),
            loss_before=compared and totals.loss_before / compared,
            loss_after=compared and totals.loss_after / compared,
            alarms=len(self.alarms),
        )

    def dump(self) -> bytes:
        """All of the state, as plain data."""
        self.settle()
        file = io.BytesIO()
        self.forecaster.save(file)
        state = {
            "schema_version": SCHEMA_VERSION,
            "swapcal": sc.__version__,
            "seq": self.seq,
            "forecaster": file.getvalue(),
            "groups": self.groups.spec(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "totals": self.totals,
            "alarms": self.alarms,
            "monitor": None if self.monitor is None else self.monitor.to_dict(),
        }
        return zlib.compress(msgspec.msgpack.encode(state), 1)

    @classmethod
    def load(cls, name: str, spec: StreamSpec, snapshot: bytes) -> "ServedStream":
        """The stream that `dump` wrote; it goes on bit for bit."""
        try:
            state = msgspec.msgpack.decode(zlib.decompress(snapshot))
            version = state["schema_version"]
        except (zlib.error, msgspec.DecodeError, TypeError, KeyError) as error:
            raise sc.StateFileError(
                f"the snapshot of stream {name!r} is damaged ({error}); restore a back-up"
            ) from error
        if version != SCHEMA_VERSION:
            raise sc.StateFileError(
                f"the snapshot of stream {name!r} has version {version!r} and this swapcal reads {SCHEMA_VERSION}; "
                f"it was written by swapcal {state.get('swapcal')}"
            )
        stream = cls.__new__(cls)
        groups = sc.Groups.from_spec(state["groups"])
        stream._assemble(name, spec, sc.Forecaster.load(io.BytesIO(state["forecaster"])), groups)
        kind = stream.property
        stream.before = sc.Audit.from_dict(state["before"], kind, groups)
        stream.after = sc.Audit.from_dict(state["after"], kind, groups)
        fresh = group_watch.monitor_of(spec, kind, groups)
        stream.monitor = None if fresh is None else group_watch.restored(state["monitor"], fresh, kind, groups)
        stream.totals = msgspec.convert(state["totals"], _Totals)
        stream.alarms = state["alarms"]
        stream.seq = stream.snapshot_seq = state["seq"]
        return stream

    def _row(self, forecast: sc.Forecast) -> Row:
        """The case's groups: its context without the level sets of the hint behind them."""
        n = len(forecast.context) // 16
        indices = np.frombuffer(forecast.context, dtype=np.int64, count=n)
        values = np.frombuffer(forecast.context, dtype=np.float64, offset=8 * n)
        k = int(indices.searchsorted(self.groups.n))
        return Row(indices[:k], values[:k])


class Recent:
    """The mean of the last so many numbers. For the eye only: it starts empty after a restart."""

    __slots__ = ("_at", "_kept", "_n")

    def __init__(self, n: int) -> None:
        self._kept, self._at, self._n = np.zeros(n), 0, 0

    def add(self, number: float) -> None:
        """One more."""
        self._kept[self._at] = number
        self._at = (self._at + 1) % len(self._kept)
        self._n = min(self._n + 1, len(self._kept))

    def mean(self) -> float | None:
        """Their mean, or None without any."""
        return float(self._kept[: self._n].mean()) if self._n else None


def _columns(rounds: list[tuple[float, float, Row]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Rows]:
    indptr = np.zeros(len(rounds) + 1, dtype=np.int64)
    np.cumsum([len(row.indices) for _, _, row in rounds], out=indptr[1:])
    rows = Rows(
        indptr,
        np.concatenate([row.indices for _, _, row in rounds]),
        np.concatenate([row.values for _, _, row in rounds]),
    )
    return np.array([y for y, _, _ in rounds]), np.array([p for _, p, _ in rounds]), rows
