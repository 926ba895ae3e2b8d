"""Figures of a result, each with the numbers behind it, and the page that holds them all.

Every figure is a function of a result. What it gives draws on axes when it is called; its `frame()` holds the numbers,
and its `finding` says in a sentence what is to be seen.
"""

from swapcal.report import page
from swapcal.report.figures import (
    Figure,
    bias_by_group,
    bias_over_time,
    error_over_time,
    forecast_histogram,
    loss_change,
    loss_over_time,
    regrets,
    reliability,
    reliability_of_groups,
)

__all__ = [
    "Figure",
    "bias_by_group",
    "bias_over_time",
    "error_over_time",
    "forecast_histogram",
    "loss_change",
    "loss_over_time",
    "page",
    "regrets",
    "reliability",
    "reliability_of_groups",
]
