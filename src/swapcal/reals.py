"""One real number, or many, from whatever stands for them: the only place where things become floats."""

import math
import numbers
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["floats", "real", "shown", "whole"]

_SHOWN = 200
_NOT_REAL = (str, bytes, bytearray, memoryview, complex, np.complexfloating, np.datetime64, np.timedelta64)
"""What `float` would take, or take apart with a warning, though nobody means a number by it."""


def shown(value: Any) -> str:
    """`value` for a message: cut where it is long, and by its type where it cannot be printed."""
    try:
        text = repr(value)
    except Exception:
        # Whole numbers of thousands of digits, and objects whose own repr fails; the message must not.
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def real(value: Any, name: str) -> float:
    """One finite number; arrays without dimensions pass, text, dates and masked values do not."""
    if type(value) is float and math.isfinite(value):
        return value
    try:
        if isinstance(value, _NOT_REAL):
            raise TypeError
        if isinstance(value, np.ndarray):
            if value.ndim or value.dtype.kind not in "biufO" or np.ma.is_masked(value):
                raise TypeError
            if value.dtype.kind == "O":
                return real(value.item(), name)
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be one number; got {shown(value)}") from None
    if not math.isfinite(result):
        raise InvalidInput(f"{name} must be a finite number; got {result!r}")
    return result


def whole(value: Any, name: str, low: int) -> int:
    """A whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise InvalidInput(f"{name} must be a whole number, {low} or more; got {shown(value)}")
    return int(value)


def floats(values: Any, name: str, wanted: str) -> Float64Array:
    """Real numbers of any type and shape as float64; they may still be infinite or NaN.

    NumPy would read text as the number it spells, dates as counts of days and complex numbers without their imaginary
    part, and would look behind the mask of a masked array. A message is better than each of these.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        if isinstance(values, (str, bytes, bytearray)) or _masked(values):
            raise TypeError
        raw = np.asarray(values)
        if raw.dtype.kind == "O":
            raw = np.array([real(v, name) for v in raw.ravel().tolist()], dtype=np.float64).reshape(raw.shape)
        if raw.dtype.kind not in "biuf":
            raise TypeError
        if raw.dtype.itemsize <= 8:
            return raw.astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            # What does not fit becomes an infinity, which no caller lets pass.
            return raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be {wanted}; got {type(values).__name__} that is not") from None


def _masked(values: Any) -> bool:
    """Whether an entry is masked, at any depth of lists; NumPy would warn and make it NaN, or take what is behind."""
    if isinstance(values, (list, tuple)):
        return any(_masked(v) for v in values if type(v) is not float)
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))
