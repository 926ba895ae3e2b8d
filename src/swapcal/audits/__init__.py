"""How far forecasts are from calibrated: totals for any power, cells with honest intervals, and a witness."""

from swapcal.audits.audit import Audit
from swapcal.audits.cells import Cell, Cells, Witness
from swapcal.audits.linear import Bounds
from swapcal.audits.measures import (
    calibration_error,
    multicalibration_bounds,
    multicalibration_error,
    swap_multicalibration_error,
)

__all__ = [
    "Audit",
    "Bounds",
    "Cell",
    "Cells",
    "Witness",
    "calibration_error",
    "multicalibration_bounds",
    "multicalibration_error",
    "swap_multicalibration_error",
]
