"""Figures of a result, each with the numbers behind it, and the page that holds them all.

Every figure is a small object: calling it draws on given or new axes and returns them, `frame()` gives the numbers and
`finding()` says in a sentence what is to be seen.
"""

from swapcal.report import page
from swapcal.report.bias_over_time import BiasOverTime
from swapcal.report.cell_map import CellMap
from swapcal.report.error_over_time import ErrorOverTime
from swapcal.report.forecast_histogram import ForecastHistogram
from swapcal.report.loss_change import LossChange
from swapcal.report.reliability import Reliability
from swapcal.report.worst_groups import WorstGroups

__all__ = [
    "BiasOverTime",
    "CellMap",
    "ErrorOverTime",
    "ForecastHistogram",
    "LossChange",
    "Reliability",
    "WorstGroups",
    "page",
]
