"""Figures of a result, each with the numbers behind it, and the page that holds them all.

Every figure is a small object: calling it draws on given or new axes and returns them, `frame()` gives the numbers and
`finding()` says in a sentence what is to be seen.
"""

from swapcal.report import page
from swapcal.report.figures import (
    BiasOverTime,
    CellMap,
    ErrorOverTime,
    ForecastHistogram,
    LossChange,
    Reliability,
    WorstGroups,
)

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
