"""Alarms: any monitor that keeps this protocol can watch a stream; the package's own is used where it is installed."""

import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import swapcal as sc
from swapcal.service.spec import StreamSpec

__all__ = ["Watch", "alarm_text", "monitor_of", "restored"]

PACKAGE_MONITOR = "swapcal.monitor"


@runtime_checkable
class Watch(Protocol):
    """Watches forecasts as their outcomes come.

    `update` takes an outcome, the forecast and the case's groups, and returns the alarms that it raises. `to_dict` is
    all of its state as plain data; `from_dict` of the same class, with the same parts, goes on where it was.
    """

    def update(self, y: float, p: float, x: Any) -> Sequence[Any]:
        """The alarms that this outcome raises; mostly none."""

    def to_dict(self) -> dict[str, Any]:
        """The state, as plain data."""


def monitor_of(spec: StreamSpec, property: Any, groups: Any) -> Watch | None:
    """The monitor that a stream asks for, or None where it asks for none."""
    if spec.monitor is None:
        return None
    if find_spec(PACKAGE_MONITOR) is None:
        raise sc.InvalidInput("this version of swapcal has no monitor; leave `monitor` out of the stream")
    made = importlib.import_module(PACKAGE_MONITOR).Monitor(
        property, groups, tolerance=spec.monitor.tolerance, alpha=spec.monitor.alpha
    )
    if not isinstance(made, Watch):
        raise sc.InvalidInput("the monitor cannot be stored: it needs `to_dict` and `from_dict`")
    return made


def restored(state: dict[str, Any], fresh: Watch, property: Any, groups: Any) -> Watch:
    """The monitor of a snapshot."""
    again: Watch = type(fresh).from_dict(state, property, groups)  # type: ignore[attr-defined]
    return again


def alarm_text(alarm: Any) -> str:
    """An alarm as a sentence."""
    return " ".join(str(alarm).split())
