"""The errors of the paper, from the sums of an audit: Cal, MCal and SMCal for any power r >= 1."""

from typing import Any

import numpy as np

from swapcal.audit.functions import Functions
from swapcal.audit.linear_bounds import Bounds, linear_bounds
from swapcal.audit.sums import SumTable
from swapcal.checked import real
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["calibration", "check_power", "multicalibration_bounds", "swap_contributions"]


def check_power(r: Any) -> float:
    """Read the power r as a float, 1 or more."""
    power = real(r, "r")
    if power < 1:
        raise InvalidInput(f"the power r must be 1 or more; got {power!r}")
    return power


def calibration(table: SumTable, r: float) -> float:
    """Cal_r: sum over forecast values of n_p |mean of V|^r."""
    return float(np.sum(table.count * np.abs(table.v / table.count) ** r))


def multicalibration_bounds(table: SumTable, functions: Functions, r: float) -> Bounds:
    """MCal_r: the worst single function. Equal bounds for a finite class, and for the linear one at r = 2."""
    dual = functions.dual
    if dual == "max":
        errors = table.count @ np.abs(table.xv / table.count[:, None]) ** r
        value = float(np.max(errors, initial=0.0))
        return Bounds(value, value)
    if dual == "euclidean":
        return linear_bounds(table.count, table.xv, r)
    raise InvalidInput(
        f"multicalibration is known for finite and linear classes (dual 'max' or 'euclidean'); {functions!r} has dual "
        f"{dual!r}: ask for the swap multicalibration error, which is never smaller"
    )


def swap_contributions(table: SumTable, functions: Functions, r: float) -> Float64Array:
    """n_p sup over f of |mean of f V|^r for each forecast value; their sum is SMCal_r."""
    return np.asarray(table.count * (functions.supremum(table.xv) / table.count) ** r)
