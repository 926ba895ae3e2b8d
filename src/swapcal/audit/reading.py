"""Numbers in: whatever the caller has becomes a checked float array, or an error that says what to do."""

from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.reals import floats, real
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["check_forecasts", "check_labels", "matrix", "number", "vector"]


def vector(name: str, values: Any) -> Float64Array:
    """Read a finite vector."""
    return _finite(name, values, 1, "a vector (one dimension)")


def matrix(name: str, values: Any) -> Float64Array:
    """Read a finite matrix."""
    return _finite(
        name, values, 2, "a matrix (two dimensions, one row per round; reshape(-1, 1) makes one from a vector)"
    )


def number(name: str, value: Any) -> float:
    """Read a finite number."""
    return real(value, name)


def check_labels(property: Elicitable, y: Float64Array) -> None:
    """Refuse labels that the property does not allow."""
    problem = property.invalid_labels(y)
    if problem is not None:
        raise InvalidInput(f"labels y do not fit {property!r}: {problem}")


def check_forecasts(property: Elicitable, p: Float64Array) -> None:
    """Refuse forecasts outside the property's domain."""
    low, high = property.domain
    if len(p) and (p.min() < low or p.max() > high):
        wrong = float(p[(p < low) | (p > high)][0])
        raise InvalidInput(
            f"forecasts p of {property!r} must be in [{low:g}, {high:g}]; got {wrong!r}: clip them, or set low and high"
        )


def _finite(name: str, values: Any, n_dimensions: int, wanted: str) -> Float64Array:
    array = floats(values, name, f"{wanted} of numbers")
    if array.ndim != n_dimensions:
        raise InvalidInput(f"{name} must be {wanted}; got shape {array.shape}")
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput(f"{name} must be finite; entry {at} is {array[at]!r}: drop or fill such rounds first")
    return array
