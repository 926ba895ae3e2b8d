"""Exponents of power laws, with intervals that come from repetitions and not from the fit."""

import math
from typing import NamedTuple

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["ConfidenceInterval", "exponent", "exponents", "student_interval"]

# Student's t at 97.5 % for 1 to 30 degrees of freedom.
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_Z975 = 1.959964


class ConfidenceInterval(NamedTuple):
    """A mean over seeds and its 95 % confidence interval."""

    value: float
    low: float
    high: float


def student_interval(values: Float64Array) -> ConfidenceInterval:
    """Student's t interval for the mean of `values`, one number per seed; a single seed gives no width.

    Examples
    --------
    >>> [round(v, 3) for v in student_interval(np.array([0.30, 0.34, 0.32]))]
    [0.32, 0.27, 0.37]
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InvalidInput(f"an interval needs a flat array of finite numbers, one per seed; got {values!r}")
    center, freedom = float(values.mean()), values.size - 1
    if freedom == 0:
        return ConfidenceInterval(center, center, center)
    # Beyond the table, the first terms of the expansion in 1 / degrees of freedom.
    t = _T975[freedom - 1] if freedom <= len(_T975) else _Z975 + (_Z975**3 + _Z975) / (4.0 * freedom)
    half = t * float(values.std(ddof=1)) / math.sqrt(values.size)
    return ConfidenceInterval(center, center - half, center + half)


def exponents(sizes: Float64Array, values: Float64Array) -> Float64Array:
    """The least-squares slope of log value against log size for every row of `values`, shape (seeds, sizes).

    Examples
    --------
    >>> exponents(np.array([1.0, 10.0, 100.0]), np.array([[2.0, 20.0, 200.0], [1.0, 1.0, 1.0]])).round(9) + 0.0
    array([1., 0.])
    """
    sizes, values = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or sizes.shape != values.shape[1:] or len(np.unique(sizes)) < 2:
        raise InvalidInput(f"a slope needs two sizes or more and a value for each; got {sizes.shape}, {values.shape}")
    if not (np.isfinite(values).all() and (values > 0.0).all() and (sizes > 0.0).all()):
        raise InvalidInput("a power law can be fitted to positive, finite numbers only")
    x = np.log(sizes) - np.log(sizes).mean()
    return np.asarray(np.log(values) @ x / (x @ x))


def exponent(sizes: Float64Array, values: Float64Array) -> ConfidenceInterval:
    """The exponent b of value ~ size^b: the mean of the seeds' own slopes, and its interval over the seeds."""
    return student_interval(exponents(sizes, values))
