"""How far forecasts are from calibrated: totals for any power, cells with honest intervals, and a witness."""

from swapcal.audit.audit import Audit
from swapcal.audit.cells import Cell, Cells
from swapcal.audit.linear_bounds import Bounds
from swapcal.audit.measures import (
    calibration_error,
    multicalibration_bounds,
    multicalibration_error,
    swap_multicalibration_error,
)
from swapcal.audit.witness import Witness

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
