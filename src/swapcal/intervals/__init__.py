"""Intervals and several quantiles at once, calibrated for every group, that never cross."""

from swapcal.intervals.ahead import MultiHorizon
from swapcal.intervals.forecasts import IntervalForecast, PredictiveDistribution, QuantilesForecast
from swapcal.intervals.interval import Interval, group_coverage, interval_score
from swapcal.intervals.quantiles import Quantiles

__all__ = [
    "Interval",
    "IntervalForecast",
    "MultiHorizon",
    "PredictiveDistribution",
    "Quantiles",
    "QuantilesForecast",
    "group_coverage",
    "interval_score",
]
