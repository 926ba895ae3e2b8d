"""Checks of what comes from outside: things become floats here, or an `InvalidInput` that says why not."""

import math
import numbers
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array

T = TypeVar("T")

_SHOWN = 200
# What `float` would take, or take apart with a warning, though nobody means a number by it.
_NOT_REAL = (str, bytes, bytearray, memoryview, complex, np.complexfloating, np.datetime64, np.timedelta64)


def short_repr(value: Any) -> str:
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
        raise InvalidInput(f"{name} must be one number; got {short_repr(value)}") from None
    if not math.isfinite(result):
        raise InvalidInput(f"{name} must be a finite number; got {result!r}")
    return result


def integer(value: Any, name: str, low: int) -> int:
    """A whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise InvalidInput(f"{name} must be a whole number, {low} or more; got {short_repr(value)}")
    return int(value)


def column_names(values: Any, name: str) -> tuple[Any, ...]:
    """One name or several, as a tuple."""
    if isinstance(values, str):
        return (values,)
    try:
        return tuple(values)
    except TypeError:
        raise InvalidInput(f"{name} must be a sequence of column names; got {short_repr(values)}") from None


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


def role(value: T, members: tuple[str, ...], name: str, example: str) -> T:
    """`value`, if it has all of `members`."""
    missing = [member for member in members if not hasattr(value, member)]
    if missing or isinstance(value, type):
        raise InvalidInput(f"{name} must be an object such as {example}; got {short_repr(value)}")
    return value


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} must be True or False; got {short_repr(value)}")
    return bool(value)


def number(value: Any, name: str, low: float, high: float) -> float:
    """A number in [low, high]."""
    result = real(value, name)
    if isinstance(value, bool) or not low <= result <= high:
        raise InvalidInput(f"{name} must be a number from {low:g} to {high:g}; got {short_repr(value)}")
    return result


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of the `allowed` words."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, allowed))}; got {short_repr(value)}")
    return value


def table(values: Any, name: str, n: int, columns: int, wanted: str) -> Float64Array:
    """A row of so many numbers for each of `n` rounds; they may still be infinite or NaN."""
    array = floats(values, name, wanted)
    if array.shape != (n, columns):
        raise InvalidInput(f"{name} must have {columns} numbers for each of the {n} rounds; got shape {array.shape}")
    return array


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


def mask(values: Any, name: str, length: int) -> npt.NDArray[np.bool_]:
    """True or False for each of so many rows."""
    flags = np.asarray(values)
    if flags.dtype != np.bool_ or flags.shape != (length,):
        raise InvalidInput(f"{name} must have True or False for each of the {length} rows; got {short_repr(values)}")
    return flags


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


def stored_row(positions: Any, entries: Any, n: int, largest: float = 1.0) -> Row:
    """The context inside a stored forecast, which may have been changed since it was made."""
    try:
        indices, values = np.array(positions, dtype=np.int64), np.array(entries, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UnknownForecast("the context in this forecast is not made of numbers; it has been changed") from None
    increasing = indices.ndim == 1 and bool((indices[1:] > indices[:-1]).all())
    if indices.shape != values.shape or not increasing or (len(indices) and not 0 <= indices[0] <= indices[-1] < n):
        raise UnknownForecast("the context in this forecast is not one of this forecaster's; it has been changed")
    if values.size and not np.abs(values).max() <= largest:
        raise UnknownForecast(
            f"the context in this forecast has a value outside [{-largest:g}, {largest:g}]; it has been changed"
        )
    return Row(indices, values)


def plain_number(value: object, name: str) -> float:
    """A finite number that is given as one: truth values are refused because they hide a swapped argument."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number; got {short_repr(value)}")
    return float(value)


def level(value: object, name: str = "level") -> float:
    """A level strictly between 0 and 1, as the ends identify nothing inside the label range."""
    result = plain_number(value, name)
    if not 0.0 < result < 1.0:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1; got {value!r} (for 90 % give 0.9)")
    return result


def label_range(low: object, high: object) -> tuple[float, float]:
    """The ends of the label range as floats."""
    ends = plain_number(low, "low"), plain_number(high, "high")
    if not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
        raise InvalidInput(f"the label range needs low < high and a finite width; got low={low!r}, high={high!r}")
    return ends


def labels(property: Elicitable, y: Float64Array) -> None:
    """Refuse labels that the property does not allow."""
    problem = property.invalid_labels(y)
    if problem is not None:
        raise InvalidInput(f"labels y do not fit {property!r}: {problem}")


def forecasts(property: Elicitable, p: Float64Array) -> None:
    """Refuse forecasts outside the property's domain."""
    low, high = property.domain
    if len(p) and (p.min() < low or p.max() > high):
        wrong = float(p[(p < low) | (p > high)][0])
        raise InvalidInput(
            f"forecasts p of {property!r} must be in [{low:g}, {high:g}]; got {wrong!r}: clip them, or set low and high"
        )


def other_units(p: Float64Array, low: float, high: float, where: str, y: str) -> str | None:
    """What is wrong with forecasts most of which are outside the range: they are in other units, or of something else.

    A few beyond it count as its ends, where that was asked for; most of them would all be the same end.
    """
    outside = (p < low) | (p > high)
    if 2 * np.count_nonzero(outside) <= np.count_nonzero(~np.isnan(p)):
        return None
    most = f"most forecasts {where} are outside [{low:g}, {high:g}], such as {p[outside][0]:g}"
    return f"{most}; bring them to the units of {y} (percent: divide by 100)"


def inside(property: Elicitable, y: Any, p: Any) -> tuple[Any, Any]:
    """Labels and forecasts, the end of the range for those outside."""
    return np.clip(y, property.low, property.high), np.clip(p, *property.domain)


def matrix(values: Any, name: str) -> Float64Array:
    """A finite table of numbers."""
    wanted = "a matrix (two dimensions, one row per round; reshape(-1, 1) makes one from a vector)"
    array = floats(values, name, f"{wanted} of numbers")
    if array.ndim != 2:
        raise InvalidInput(f"{name} must be {wanted}; got shape {array.shape}")
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput(f"{name} must be finite; entry {at} is {array[at]!r}: drop or fill such rounds first")
    return array
