"""Alarms while a stream goes by: which group's forecasts have become biased, with a promise on false alarms."""

from swapcal.monitor.monitor import Alarm, Monitor
from swapcal.monitor.wagers import Wagers

__all__ = ["Alarm", "Monitor", "Wagers"]
