"""Checks of what comes from outside. Each returns the value in its proper type or raises `InvalidInput`."""

from typing import Any, TypeVar

import numpy as np

from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.reals import floats, real, shown, whole
from swapcal.roles import Elicitable, Row
from swapcal.typing import Float64Array

__all__ = [
    "feature_rows",
    "features",
    "floats",
    "identified",
    "number",
    "one_of",
    "real",
    "role",
    "shown",
    "stored_row",
    "vector",
    "whole",
]

T = TypeVar("T")


def role(value: T, members: tuple[str, ...], name: str, example: str) -> T:
    """`value`, if it has all of `members`."""
    missing = [member for member in members if not hasattr(value, member)]
    if missing or isinstance(value, type):
        raise InvalidInput(f"{name} must be an object such as {example}; got {shown(value)}")
    return value


def number(value: Any, name: str, low: float, high: float) -> float:
    """A number in [low, high]."""
    result = real(value, name)
    if isinstance(value, bool) or not low <= result <= high:
        raise InvalidInput(f"{name} must be a number from {low:g} to {high:g}; got {shown(value)}")
    return result


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of the `allowed` words."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, allowed))}; got {shown(value)}")
    return value


def vector(values: Any, name: str, length: int | None = None, *, missing: bool = False) -> Float64Array:
    """A flat array of finite numbers, or of finite numbers and NaN where some may be `missing`."""
    wanted = "a flat sequence of numbers" if length is None else f"a flat sequence of {length} numbers"
    array = floats(values, name, wanted)
    if array.ndim != 1 or (length is not None and len(array) != length):
        raise InvalidInput(f"{name} must be {wanted}; got shape {array.shape}")
    allowed = np.isfinite(array)
    if missing:
        allowed |= np.isnan(array)
    if not allowed.all():
        at = int(np.argmin(allowed))
        raise InvalidInput(f"{name} holds {array[at]} at position {at}; every entry must be finite, so drop or fill it")
    return array


def features(values: Any, length: int) -> Float64Array | None:
    """The extra features of a learning hint: `length` numbers, or None where it takes none."""
    if values is None and length == 0:
        return None
    if values is None:
        raise InvalidInput(f"the hint was made with n_features={length}; pass features= a vector of that length")
    if length == 0:
        raise InvalidInput("features were given, but no hint takes them; make it with OnlineRegression(n_features=...)")
    return vector(values, "features", length)


def feature_rows(values: Any, n_rows: int, length: int) -> Float64Array | None:
    """`features` for many rounds."""
    if values is None or length == 0:
        return features(values, length)
    array = floats(values, "features", "a table of numbers, one row for each round")
    if array.shape != (n_rows, length):
        raise InvalidInput(f"features have shape {array.shape} and must have shape ({n_rows}, {length})")
    vector(array.ravel(), "features")
    return array


def identified(property: Elicitable, p: float, y: float) -> float:
    """V(p, y), checked, as a user's own property may give anything."""
    v = float(property.identification(p, y))
    if not -1.0 <= v <= 1.0:
        raise InvalidInput(
            f"the identification function of {property!r} gave {v!r} at p={p:g}, y={y:g}, outside [-1, 1]"
        )
    return v


def stored_row(positions: Any, entries: Any, n: int) -> Row:
    """The context inside a stored forecast, which may have been changed since it was made."""
    try:
        indices, values = np.array(positions, dtype=np.int64), np.array(entries, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UnknownForecast("the context in this forecast is not made of numbers; it has been changed") from None
    increasing = indices.ndim == 1 and bool((indices[1:] > indices[:-1]).all())
    if indices.shape != values.shape or not increasing or (len(indices) and not 0 <= indices[0] <= indices[-1] < n):
        raise UnknownForecast("the context in this forecast is not one of this forecaster's; it has been changed")
    if values.size and not np.abs(values).max() <= 1.0:
        raise UnknownForecast("the context in this forecast has a value outside [-1, 1]; it has been changed")
    return Row(indices, values)
