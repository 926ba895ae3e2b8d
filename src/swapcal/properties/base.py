"""Labels from outside: which of them is not allowed, and why."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, FloatLike, Spec

# --------
# Constructor arguments of dataclasses: how they are printed, and how they are saved.


def _arguments(obj: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    return [(field, getattr(obj, field.name)) for field in dataclasses.fields(obj) if field.init]


def call(obj: Any) -> str:
    """The constructor call that makes the dataclass `obj`, without arguments that have their default value."""
    given = [(field, value) for field, value in _arguments(obj) if value != field.default]
    return f"{type(obj).__name__}({', '.join(f'{f.name}={v!r}' if f.kw_only else repr(v) for f, v in given)})"


def data(obj: Any) -> Spec:
    """The arguments of the dataclass `obj` as plain data, with its class under "kind"."""
    return {"kind": type(obj).__name__} | {field.name: value for field, value in _arguments(obj)}


def _plain(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _clause(y: Float64Array, allowed: npt.NDArray[np.bool_], requirement: str) -> str | None:
    """The sentence part about the first label that is not allowed; one pass over `allowed`."""
    if allowed.all():
        return None
    at = int(np.argmin(allowed))
    value = float(y.reshape(-1)[at])
    where = f" at position {at}" if y.size > 1 else ""
    if math.isnan(value):
        return f"label nan{where} is not a number"
    return f"label {_plain(value)}{where} {requirement}"


def _array(y: FloatLike) -> Float64Array | None:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def outside(y: FloatLike, low: float, high: float) -> str | None:
    """Which label of `y` is not a number in [low, high], as a clause for an error message; None if all are.

    Examples
    --------
    >>> outside(np.array([0.2, 0.4, 0.9, 1.7]), 0.0, 1.0)
    'label 1.7 at position 3 is outside [0, 1]'
    """
    if isinstance(y, float) and low <= y <= high:
        return None
    array = _array(y)
    if array is None:
        return "the labels are not all numbers"
    return _clause(array, (array >= low) & (array <= high), f"is outside [{_plain(low)}, {_plain(high)}]")


def neither_zero_nor_one(y: FloatLike) -> str | None:
    """Which label of `y` is neither 0 nor 1, as a clause for an error message; None if all are."""
    if isinstance(y, float) and (y == 0.0 or y == 1.0):
        return None
    array = _array(y)
    if array is None:
        return "the labels are not all numbers"
    return _clause(array, (array == 0.0) | (array == 1.0), "is neither 0 nor 1")


def sample(y: Float64Array, invalid: Callable[[Float64Array], str | None]) -> Float64Array:
    """`y` as a checked, non-empty vector of labels."""
    clause = invalid(y)
    if clause is not None:
        raise InvalidInput(f"{clause}; the value of a property needs labels in its range, so set low= and high= to fit")
    array = np.asarray(y, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"the value of a property needs one label or more in a vector; got shape {array.shape}")
    return array
