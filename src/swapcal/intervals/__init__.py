"""Intervals and several quantiles at once, calibrated for everybody, that never cross."""

from swapcal.intervals.ahead import Ahead
from swapcal.intervals.forecasts import IntervalForecast, QuantilesForecast
from swapcal.intervals.interval import Interval
from swapcal.intervals.interval_scores import group_coverage, interval_score
from swapcal.intervals.predictive import Predictive
from swapcal.intervals.quantiles import Quantiles

__all__ = [
    "Ahead",
    "Interval",
    "IntervalForecast",
    "Predictive",
    "Quantiles",
    "QuantilesForecast",
    "group_coverage",
    "interval_score",
]
