"""Every group of a stream watched: outcomes are handed to the package's monitor together, transaction by transaction.

Which outcomes share a transaction is in the log, as they share its time; so a stream that is built anew from the log
gives the monitor the same batches, and comes to the same evidence and the same alarms, bit for bit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.monitor import Alarm, Monitor
from swapcal.roles import Row, Rows
from swapcal.service.schemas import RaisedAlarm
from swapcal.service.spec import MonitorSpec
from swapcal.words.numbers import counted

__all__ = ["GroupWatch", "columns"]

ALARMS_KEPT = 1000
TOLERANCE = 0.02
"""Of the range of outcomes, or of the share of outcomes below a quantile, where a stream does not say."""


class GroupWatch:
    """A monitor and the alarms that it has raised.

    Parameters
    ----------
    spec
        Tolerance, and how often an alarm may be false.
    property, groups
        Of the stream.
    """

    def __init__(self, spec: MonitorSpec, property: Any, groups: sc.Groups) -> None:
        self._assemble(Monitor(property, groups, **settings(spec, property)), 0, [])

    def _assemble(self, monitor: Monitor, raised: int, alarms: list[RaisedAlarm]) -> None:
        self.monitor, self.raised, self.alarms = monitor, raised, alarms
        self._waiting: list[tuple[float, float, Row]] = []

    @property
    def is_open(self) -> bool:
        """Whether outcomes wait for the end of their batch."""
        return bool(self._waiting)

    @property
    def n_groups(self) -> int:
        """Groups in the alarms that are kept."""
        return len({one.group for one in self.alarms})

    def add(self, y: float, p: float, row: Row) -> None:
        """One more outcome of the batch: what came, what was forecast, and the case's groups."""
        self._waiting.append((y, p, row))

    def close(self, seq: int, at: float) -> None:
        """The end of a batch: weigh it, and keep the alarms that it raises, as of event number `seq`."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        for alarm in self.monitor.update_many(*columns(waiting)):
            self.raised += 1
            self.alarms.append(self._told(alarm, seq, at))
        del self.alarms[:-ALARMS_KEPT]

    def _told(self, alarm: Alarm, seq: int, at: float) -> RaisedAlarm:
        shares = "" if self.monitor.property.continuous else " of outcomes"
        sentence = (
            f"{alarm.group}: forecasts are {alarm.side} by more than {self.monitor.tolerance:g}{shares}, "
            f"seen after {counted(alarm.group_rows, 'outcome')} of the group"
        )
        return RaisedAlarm(seq, at, alarm.group, alarm.side, alarm.rows, alarm.group_rows, alarm.log_e, sentence)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain data; between two batches."""
        return {"monitor": self.monitor.to_dict(), "raised": self.raised, "alarms": self.alarms}

    @classmethod
    def from_dict(cls, state: dict[str, Any], property: Any, groups: sc.Groups) -> "GroupWatch":
        """What `to_dict` wrote."""
        watch = cls.__new__(cls)
        alarms = [RaisedAlarm(**one) for one in state["alarms"]]
        watch._assemble(Monitor.from_dict(state["monitor"], property, groups), state["raised"], alarms)
        return watch


def settings(spec: MonitorSpec, property: Any) -> dict[str, Any]:
    """Of the monitor: false alarms ever (`alpha`) unless it is told to start over (`every`)."""
    width = property.high - property.low if property.continuous else 1.0
    tolerance = TOLERANCE * width if spec.tolerance is None else spec.tolerance
    if spec.every is not None:
        if spec.alpha is not None:
            raise sc.InvalidInput("a monitor takes alpha or every, not both")
        return {"tolerance": tolerance, "every": spec.every}
    return {"tolerance": tolerance, "alpha": 0.05 if spec.alpha is None else spec.alpha}


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
