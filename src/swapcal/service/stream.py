"""A stream in memory: a forecaster, its scores, its watch, and the count of events that made them what they are.

Everything here is a pure function of the log: the same events in the same order give the same bits, whether they came
one by one, in batches, or from the store after a crash. Only the writer's thread touches it.
"""

import hmac
import math
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

import swapcal as sc
from swapcal.audits.column import Column
from swapcal.forecast import Identity
from swapcal.inputs import inside
from swapcal.lifecycle import Order
from swapcal.monitor import Alarm, Monitor
from swapcal.protocols import Row, Rows
from swapcal.service.schemas import AuditView, GroupView, RaisedAlarm, Scalar, SideBias, SideErrors, StreamStatus
from swapcal.service.spec import MonitorSpec, StreamSpec
from swapcal.service.store import pack, unpack
from swapcal.state import Packed, Saved, Stateful
from swapcal.tasks.config import parse_delay
from swapcal.text.numbers import counted
from swapcal.typing import Float64Array

# --------
# Every group of a stream watched: outcomes are handed to the package's monitor together, transaction by
# transaction; it judges them in the order of their forecasts, since those that come early may be unlike the others.
#
# Which outcomes share a transaction is in the log, as they share its time; so a stream that is built anew from the log
# gives the monitor the same batches, and comes to the same evidence and the same alarms, bit for bit.

ALARMS_KEPT = 1000
# Of the range of outcomes, or of the share of outcomes below a quantile, where a stream does not say.
TOLERANCE, ALPHA = 0.02, 0.05
# Of the forecasts, and of the model's own numbers; as a snapshot names them.
MONITORS = ("watch", "model_watch")


class GroupMonitor(Stateful):
    """A monitor and the alarms that it has raised.

    Parameters
    ----------
    monitor
        Over the groups of the stream.
    raised, alarms
        How many alarms it has raised, and the latest of them.
    """

    kind = "group monitor"

    def __init__(self, monitor: Monitor, raised: int = 0, alarms: Sequence[RaisedAlarm] = ()) -> None:
        self.monitor, self.raised, self.alarms = monitor, raised, list(alarms)
        # Outcomes that wait for the end of their batch, and the numbers of their forecasts.
        self.waiting: list[tuple[float, float, Row]] = []
        self.rounds: list[int] = []

    def add(self, y: float, p: float, row: Row, round: int) -> None:
        """One more outcome of the batch: what came, what was forecast, the case's groups, and its number."""
        self.waiting.append((y, p, row))
        self.rounds.append(round)

    def skip(self, round: int) -> None:
        """Nobody waits for the outcome of this forecast."""
        self.monitor._order.skip(round)

    def close(self, seq: int, at: float) -> None:
        """The end of a batch: weigh it, and keep the alarms that it raises, as of event number `seq`."""
        waiting, rounds, self.waiting, self.rounds = self.waiting, self.rounds, [], []
        if not waiting:
            return
        y, p, rows = columns(waiting)
        for alarm in self.monitor.update_many(*inside(self.monitor.property, y, p), rows, rounds=rounds):
            self.raised += 1
            self.alarms.append(self._raised(alarm, seq, at))
        del self.alarms[:-ALARMS_KEPT]

    def _raised(self, alarm: Alarm, seq: int, at: float) -> RaisedAlarm:
        shares = "" if self.monitor.property.continuous else " of outcomes"
        sentence = (
            f"{alarm.group}: forecasts are {alarm.side} by more than {self.monitor.tolerance:g}{shares}, "
            f"seen after {counted(alarm.group_rows, 'outcome')} of the group"
        )
        return RaisedAlarm(seq, at, alarm.group, alarm.side, alarm.rows, alarm.group_rows, alarm.log_e, sentence)

    def to_state(self) -> Saved:
        """What it is made of, between two batches."""
        plain = {"raised": self.raised, "alarms": msgspec.to_builtins(self.alarms)}
        return Saved(plain, {}, {"monitor": self.monitor.to_bytes()})

    @classmethod
    def from_state(cls, packed: Packed, *, property: Any = None, groups: sc.Groups | None = None) -> "GroupMonitor":
        """Make it again, over the groups of the stream."""
        monitor = Monitor.from_bytes(packed.parts["monitor"], property=property, groups=groups)
        return cls(monitor, packed.plain["raised"], msgspec.convert(packed.plain["alarms"], list[RaisedAlarm]))


def monitor_of(
    spec: MonitorSpec, property: Any, groups: sc.Groups, settle: int | None = None, first: int = 0
) -> Monitor:
    """The monitor that a stream asks for: false alarms ever (`alpha`), unless it is to start over (`every`)."""
    width = property.high - property.low if property.continuous else 1.0
    tolerance = TOLERANCE * width if spec.tolerance is None else spec.tolerance
    if spec.every is not None and spec.alpha is not None:
        raise sc.InvalidInput("a monitor takes alpha or every, not both")
    alpha = ALPHA if spec.every is None and spec.alpha is None else spec.alpha
    limits: dict[str, Any] = {"settle": settle, "first": first}
    return Monitor(property, groups, tolerance=tolerance, alpha=alpha, every=spec.every, **limits)


def columns(
    rounds: Sequence[tuple[float, float, Row]],
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Rows]:
    """Outcomes, forecasts and groups of many rounds, as an audit or a monitor takes them."""
    indptr = np.zeros(len(rounds) + 1, dtype=np.int64)
    np.cumsum([len(row.indices) for _, _, row in rounds], out=indptr[1:])
    rows = Rows(
        indptr,
        np.concatenate([row.indices for _, _, row in rounds]),
        np.concatenate([row.values for _, _, row in rounds]),
    )
    return np.array([y for y, _, _ in rounds]), np.array([p for _, p, _ in rounds]), rows


def unweighted(rows: Rows) -> tuple[Rows, Float64Array | None]:
    """The groups without the weights of their cases; and those, which the group of all rows holds, if not all are 1."""
    weights = rows.values[rows.indptr[:-1]]
    if (weights == 1.0).all():
        return rows, None
    return Rows(rows.indptr, rows.indices, rows.values / np.repeat(weights, np.diff(rows.indptr))), weights


# --------
# What the audits say, in numbers for JSON.

GROUPS_SHOWN = 1000
EVERYBODY = "all"


def audit_view(stream: str, before: Column, after: Column) -> AuditView:
    """Both columns as numbers; the groups for which there is most evidence against the model come first."""
    sides = [_groups(before), _groups(after)]
    ranked = {name: -evidence for name, (_, _, evidence) in reversed([*sides[1].items(), *sides[0].items()])}
    groups = []
    for name in sorted(ranked, key=lambda name: ranked[name])[:GROUPS_SHOWN]:
        model, ours = (side.get(name) for side in sides)
        rounds = max(one[0] for one in (model, ours) if one is not None)
        groups.append(GroupView(name, rounds, model and model[1], ours and ours[1]))
    return AuditView(stream, repr(after.property), _errors(before, sides[0]), _errors(after, sides[1]), groups)


_Sides = dict[str, tuple[int, SideBias, float]]


def _groups(column: Column) -> _Sides:
    """Rounds, bias and evidence of each group that has rounds, that of all rows included."""
    if not column.n_rounds:
        return {}
    bias = column.groups()
    return {
        bias.name[k]: (
            int(bias.rows[k]),
            SideBias(float(bias.mean[k]), float(bias.low[k]), float(bias.high[k]), bool(bias.biased[k])),
            float(bias.evidence[k]),
        )
        for k in np.flatnonzero(bias.rows > 0).tolist()
    }


def _errors(column: Column, groups: _Sides) -> SideErrors:
    some = column.n_rounds > 0
    return SideErrors(
        rounds=column.n_rounds,
        calibration=column.overall_error() if some else 0.0,
        multicalibration=column.group_error() if some else 0.0,
        swap_multicalibration=column.swap_error() if some else 0.0,
        groups_off=sum(bias.off for name, (_, bias, _) in groups.items() if name != EVERYBODY),
        witness=str(column.audit.witness()) if some else None,
    )


# --------
# How a stream does: the audits of hints and forecasts, losses, and counts; brought up to date many rounds at once.

# Hints and forecasts are audited in the bins of the forecaster's grid; in so many, where that is refined on the way.
# The values of its first grids are mid-points of these bins too, so that auditing does not move them.
AUDIT_BINS = 33
SETTLE_EVERY = 1000


class Totals(msgspec.Struct):
    """Counts and sums over the stream; those of losses are weighted, and `compared` is their weight."""

    forecasts: int = 0
    outcomes: int = 0
    forgotten: int = 0
    compared: float = 0.0
    loss_before: float = 0.0
    loss_after: float = 0.0


class StreamEvaluation(Stateful):
    """Audits before and after, and totals.

    Parameters
    ----------
    property, groups, bins
        Of the audits; `bins` of a forecaster that keeps to them, or None.
    """

    kind = "stream scores"

    def __init__(self, property: Any, groups: sc.Groups, bins: int | None) -> None:
        self.property, self.groups, self.bins = property, groups, bins or AUDIT_BINS
        self.before, self.after, self.totals = self._column(), self._column(), Totals()
        self._waiting: list[tuple[float, float | None, float, Row]] = []

    def add(self, y: float, hint: float | None, forecast: float, row: Row) -> None:
        """An outcome, the model's hint, the forecast, and the case's groups, times its weight."""
        self._waiting.append((y, hint, forecast, row))
        if len(self._waiting) >= SETTLE_EVERY:
            self.bring_up_to_date()
        totals = self.totals
        totals.outcomes += 1
        if hint is not None:
            weight = float(row.values[0])
            totals.compared += weight
            totals.loss_before += weight * float(self.property.loss(hint, y))
            totals.loss_after += weight * float(self.property.loss(forecast, y))

    def bring_up_to_date(self) -> None:
        """Add what waits to the audits: many rounds at once cost a tenth, and give the same bits."""
        waiting, self._waiting = self._waiting, []
        hinted = [(y, hint, row) for y, hint, _, row in waiting if hint is not None]
        for column, rounds in ((self.after, [(y, p, row) for y, _, p, row in waiting]), (self.before, hinted)):
            if rounds:
                y, p, rows = columns(rounds)
                rows, weights = unweighted(rows)
                column.add(y, p, rows, weights=weights)

    def audits(self) -> tuple[Column, Column]:
        """Copies of the columns before and after, for other threads to read."""
        self.bring_up_to_date()
        before, after = self.before.emptied(), self.after.emptied()
        before.merge(self.before)
        after.merge(self.after)
        return before, after

    def _column(self) -> Column:
        return Column(sc.Audit(self.property, self.groups, bins=self.bins), label="", parts=(), anytime=True)

    def to_state(self) -> Saved:
        """What it is made of."""
        self.bring_up_to_date()
        plain = {"bins": self.bins, "totals": msgspec.to_builtins(self.totals)}
        return Saved(plain, {}, {"before": self.before.to_bytes(), "after": self.after.to_bytes()})

    @classmethod
    def from_state(cls, packed: Packed, *, property: Any = None, groups: sc.Groups | None = None) -> "StreamEvaluation":
        """Make it again, over the groups of the stream."""
        scores = cls(property, cast(sc.Groups, groups), packed.plain["bins"])
        scores.before, scores.after = (
            Column.from_bytes(packed.parts[name], property=property, hypotheses=groups) for name in ("before", "after")
        )
        scores.totals = msgspec.convert(packed.plain["totals"], Totals)
        return scores


# --------
# The parts that a stream's spec describes: property, groups, forecaster; and whether it makes sense as a whole.

MOST_CELLS = 2_000_000
FIRST_BINS = 100


def forecaster_of(spec: StreamSpec, name: str) -> sc.Forecaster:
    """A forecaster that has seen nothing, over the positions of the groups.

    It takes vectors and not records: the stream places records itself, many at once, and vectors go to the kernels.
    Its identity, and the key of the seals on its forecasts, follow from the stream's name and seed: whoever builds it
    anew from the log gets a forecaster that knows the forecasts there as its own.
    """
    key = sha256(f"swapcal stream {name} {spec.seed}".encode())
    forecaster = spec.config().forecaster(
        spec.forecast_property(),
        sc.Finite(1 + spec.group_limit),
        len(spec.features),
        seed=0 if spec.seed is None else spec.seed,
        outside=spec.beyond(),
        identity=sha256(key.digest()).hexdigest()[:16],
    )
    forecaster.rotate_key(key.digest())
    forecaster.forget_keys()
    return forecaster


def check(spec: StreamSpec) -> None:
    """An `InvalidInput` where the spec makes no sense, or would take more memory than a stream may."""
    bins = spec.bins or (FIRST_BINS if spec.horizon is None else 3.0 * spec.horizon ** (1.0 / 3.0))
    if bins * spec.group_limit > MOST_CELLS:
        raise sc.InvalidInput(
            f"{spec.group_limit} groups with about {bins:.0f} bins are more than {MOST_CELLS} cells; lower "
            "group_limit, bins or horizon"
        )
    Stream("", spec)


# From so many cases on, placing them in one call is cheaper than one by one.
TOGETHER = 12


class ReplayMismatch(sc.StateFileError):
    """A log that does not lead to the forecasts that were stored."""


class ValidCase(NamedTuple):
    """A case that can be forecast: its columns, the hint, the features of a hint that learns, and its weight."""

    context: dict[str, Scalar]
    hint: float | None
    features: list[float] | None
    weight: float = 1.0


class Stream(Stateful):
    """One stream and all that it has learned.

    Parameters
    ----------
    name, spec
        What it is.
    """

    kind = "stream"
    # By `MONITORS`; none where nobody wants them.
    monitors: dict[str, GroupMonitor]

    def __init__(self, name: str, spec: StreamSpec) -> None:
        groups = spec.config().grouping(spec.rare, absent=spec.absent)
        self._assemble(name, spec, forecaster_of(spec, name), groups)
        watching, settle = spec.watching(), spec.settles()
        if watching is not None:
            made = (monitor_of(watching, self.property, groups, self.max_pending) for _ in MONITORS)
            self.monitors = {each: GroupMonitor(one) for each, one in zip(MONITORS, made, strict=True)}
        self.order = None if settle is None else Order("forecast", settle)

    def _assemble(self, name: str, spec: StreamSpec, forecaster: sc.Forecaster, groups: sc.Groups) -> None:
        self.name, self.spec, self.forecaster, self.groups = name, spec, forecaster, groups
        self.property = forecaster.property
        self.scores = StreamEvaluation(self.property, groups, spec.bins)
        self.monitors = {}
        self.seq = self.snapshot_seq = self.epoch = 0
        # Of the transaction that the last events belong to; and of the last event.
        self.time = self.last = 0.0
        # Events before the first outcome was learned; None as long as none was.
        self.taught: int | None = None
        self.max_pending, self.delay = spec.max_pending(), parse_delay(spec.delay)[0]
        self._dense = np.zeros(groups.n)

    @property
    def identity(self) -> Identity:
        """Of the forecaster, with the key that seals its forecasts."""
        return self.forecaster.state.identity

    def fresh_time(self, now: float) -> float:
        """A time for the next transaction: `now`, unless the last one of which something is in the log had that."""
        return now if now != self.last else math.nextafter(now, math.inf)

    def begin(self, time: float) -> None:
        """The events that follow belong to the transaction of this time."""
        if time != self.time:
            self.end()
            self.time = time

    def end(self) -> None:
        """The end of a transaction: its outcomes are weighed together, and raise their alarms."""
        for monitor in self.monitors.values():
            monitor.close(self.seq, self.time)

    @property
    def counts_transactions(self) -> bool:
        """Whether the next event, in another transaction, would not do the same as in this one."""
        return self.order is not None or any(monitor.waiting for monitor in self.monitors.values())

    def validate(self, context: dict[str, Scalar], hint: float | None, weight: float = 1.0) -> ValidCase:
        """A case that can be forecast; an `InvalidInput` if it cannot, before anything is learned from it."""
        low, high = self.property.domain
        if hint is not None and not self.forecaster.rules.clips and not low <= hint <= high:
            raise sc.InvalidInput(f"the hint {hint:g} is outside [{low:g}, {high:g}]")
        self.groups.checked(context)
        return ValidCase(context, hint, self.spec.inputs(context), weight)

    def predict(self, cases: Sequence[ValidCase]) -> list[sc.Forecast]:
        """The next events: a forecast for each case, in order. One call for many gives what one for each would."""
        dense, predict = self._dense, self.forecaster.predict
        forecasts = []
        for case, (indices, values) in zip(cases, self._places(cases), strict=True):
            if self.order is not None:
                self._learn_due(self.order)
            # One of no weight is forgotten at once, and forecast as if it counted.
            dense[indices] = values if case.weight in (0.0, 1.0) else case.weight * values
            forecasts.append(predict(dense, case.hint, features=case.features))
            dense[indices] = 0.0
            self._count()
        self.scores.totals.forecasts += len(forecasts)
        return forecasts

    def _places(self, cases: Sequence[ValidCase]) -> list[Row]:
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
        self._count()
        for monitor in self.monitors.values():
            monitor.skip(forecast.round)
        if self.order is not None:
            self.order.skip(forecast.round)
            self._learn_due(self.order)

    def learn(self, forecast: sc.Forecast, hint: float | None, y: float) -> None:
        """The next event: an outcome. A `SwapcalError` changes nothing."""
        if self.order is None:
            self._learn(forecast, hint, y)
            self._count()
            return
        # All that an update could refuse is refused now, as nobody is there to be told later.
        self.forecaster.rules.label(y)
        own = forecast.forecaster is self.identity
        if not own and not hmac.compare_digest(self.identity.seal(forecast.signed), forecast.sealed or b""):
            raise sc.UnknownForecast("the stored forecast of this case is not as it was made: its seal is broken")
        self.order.add(forecast.round, y, ticket=(forecast, hint))
        self._count()
        self._learn_due(self.order)

    def _count(self) -> None:
        self.seq, self.last = self.seq + 1, self.time

    def is_calibrated(self, seq: int) -> bool:
        """Whether something had been learned before event number `seq`."""
        return self.taught is not None and seq > self.taught

    def _learn_due(self, order: Order) -> None:
        for outcome in order.due(self.forecaster.rounds.issued):
            forecast, hint = outcome.ticket
            self._learn(forecast, hint, outcome.y)

    def _learn(self, forecast: sc.Forecast, hint: float | None, y: float) -> None:
        self.forecaster.update(forecast, y)
        self.taught = self.seq if self.taught is None else self.taught
        row = groups_row(forecast, self.groups.n)
        if self.property is not self.forecaster.property:
            self._follow()
        self.scores.add(y, hint, forecast.value, row)
        for monitor, p in zip(self.monitors.values(), (forecast.value, hint), strict=False):
            if p is None:
                monitor.skip(forecast.round)
            else:
                monitor.add(y, p, row, forecast.round)

    def _follow(self) -> None:
        """The range has grown: what is judged in its units is judged anew, from here on."""
        self.property, watching = self.forecaster.property, self.spec.watching()
        scores, self.scores = self.scores, StreamEvaluation(self.property, self.groups, self.spec.bins)
        self.scores.totals = scores.totals
        for each in self.monitors.values():
            first = self.forecaster.rounds.issued
            each.monitor = monitor_of(watching or MonitorSpec(), self.property, self.groups, self.max_pending, first)

    def is_expired(self, forecast: sc.Forecast) -> bool:
        """Whether a forecast is too old for an outcome."""
        return forecast.round < self.forecaster.state.pending.issued - self.max_pending

    def is_held(self, forecast: sc.Forecast) -> bool:
        """Whether the outcome of a forecast has come and waits for those of earlier ones."""
        return self.order is not None and forecast.round in self.order

    def status(self) -> StreamStatus:
        """Where it stands."""
        totals, lateness = self.scores.totals, self.forecaster.lateness()
        (raised, groups), (model_raised, model_groups) = [
            (monitor.raised, len({one.group for one in monitor.alarms})) for monitor in self.monitors.values()
        ] or [(0, 0), (0, 0)]
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
            share=lateness.share,
            mean_share=lateness.mean_share,
            lateness=list(lateness.sentences),
            room=self.max_pending,
            groups=len(self.groups.names),
            loss_before=compared and totals.loss_before / compared,
            loss_after=compared and totals.loss_after / compared,
            alarms=raised,
            watched=bool(self.monitors),
            groups_alarmed=groups,
            model_alarms=model_raised,
            model_groups_alarmed=model_groups,
        )

    def to_state(self) -> Saved:
        """What it is made of, between two transactions."""
        parts = {"forecaster": self.forecaster, "scores": self.scores, **self.monitors}
        saved = {name: part.to_bytes() for name, part in parts.items()}
        plain: dict[str, Any] = {
            "seq": self.seq,
            "time": self.last,
            "taught": self.taught,
            "groups": self.groups.spec(),
        }
        if self.order is not None:
            held = [outcome for _, outcome in sorted(self.order.known.items())]
            packed = [pack(outcome.ticket[0], self.identity) for outcome in held]
            lines = [[len(data), one.ticket[1], one.y] for data, one in zip(packed, held, strict=True)]
            plain["order"] = [self.order.front, lines, sorted(self.order.gone)]
            saved["held"] = b"".join(packed)
        return Saved(plain, {}, saved)

    @classmethod
    def from_state(cls, packed: Packed, *, name: str = "", spec: StreamSpec | None = None) -> "Stream":
        """Make it again, as the stream of this name and spec."""
        stream, parts, groups = cls.__new__(cls), packed.parts, sc.Groups.from_spec(packed.plain["groups"])
        stream._assemble(name, cast(StreamSpec, spec), sc.Forecaster.from_bytes(parts["forecaster"]), groups)
        own = {"property": stream.property, "groups": groups}
        stream.scores = StreamEvaluation.from_bytes(parts["scores"], **own)
        stream.monitors = {each: GroupMonitor.from_bytes(parts[each], **own) for each in MONITORS if each in parts}
        stream.order = stream._saved_order(packed.plain["order"], parts["held"]) if "order" in packed.plain else None
        stream.seq = stream.snapshot_seq = packed.plain["seq"]
        stream.time = stream.last = packed.plain["time"]
        stream.taught = packed.plain["taught"]
        return stream

    def _saved_order(self, plain: Any, packed: bytes) -> Order:
        front, lines, gone = plain
        order, at = Order("forecast", self.spec.settles(), front), 0
        for length, hint, y in lines:
            forecast = unpack(packed[at : at + length], self.identity)
            order.add(forecast.round, y, ticket=(forecast, hint))
            at += length
        for t in gone:
            order.skip(t)
        return order

    @classmethod
    def from_bytes(cls, data: bytes, **own: Any) -> "Stream":
        """What `to_bytes` wrote; `own` are the `name` and the `spec` of the stream."""
        try:
            return super().from_bytes(data, **own)
        except sc.StateFileError as error:
            raise sc.StateFileError(
                f"the snapshot of stream {own['name']!r} cannot be read: {error}; restore a back-up, or start the "
                "version that wrote it"
            ) from error


def groups_row(forecast: sc.Forecast, n_groups: int) -> Row:
    """The case's groups, times its weight: its context without the level sets of the hint behind them."""
    n = len(forecast.context) // 16
    indices = np.frombuffer(forecast.context, dtype=np.int64, count=n)
    values = np.frombuffer(forecast.context, dtype=np.float64, offset=8 * n)
    k = int(indices.searchsorted(n_groups))
    return Row(indices[:k], values[:k])
