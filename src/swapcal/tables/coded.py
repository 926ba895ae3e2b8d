"""Columns as the classes of functions read them: floats, or codes into a short tuple of values."""

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

_NOT_AVAILABLE = ("NAType", "NaTType")
"""Type names of the missing values of pandas, which are equal to nothing and have no truth value."""


class Coded(NamedTuple):
    """A column by its distinct values: `values[codes[t]]` is the entry of row t, and code -1 says it is missing.

    Parameters
    ----------
    codes : array of int
        One for each row.
    values : tuple
        The distinct values.

    Examples
    --------
    >>> column = Coded(np.array([0, 1, -1, 0]), ("f", "m"))
    >>> [column.values[code] if code >= 0 else None for code in column.codes]
    ['f', 'm', None, 'f']
    """

    codes: IntArray
    values: tuple[Any, ...]


def text(value: Any) -> str | None:
    """A value as the text by which groups know it; None if it is missing.

    A number has one text however it is stored (1, 1.0, np.float32(1)), so that CSV, Parquet and frames agree.

    Examples
    --------
    >>> text("NYC"), text(3.0), text(2.5), text(True), text(float("nan")), text("")
    ('NYC', '3', '2.5', 'True', None, None)
    """
    if type(value) is str:
        return value or None
    if value is None or type(value).__name__ in _NOT_AVAILABLE:
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, (numbers.Real, Decimal)):
        real = float(value)
        return None if real != real else str(int(real)) if real.is_integer() and abs(real) < 2.0**53 else repr(real)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") or None
    if isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value):
        return None
    return str(value) or None


def as_number(value: Any) -> float:
    """A value, or the number that its text spells; NaN if it is missing or no number. True and "True" are 1."""
    if isinstance(value, str) and value in ("True", "False"):
        return float(value == "True")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def coded(column: Any, name: str = "") -> Coded | Float64Array:
    """Any column (NumPy, pandas, polars, pyarrow, list) as floats, if its entries are, or by its distinct values."""
    if isinstance(column, Coded):
        return column
    if hasattr(column, "dictionary_encode"):
        return _from_arrow(column)
    if hasattr(column, "factorize"):
        return _from_pandas(column)
    if hasattr(column, "to_list"):
        column = column.to_list()
    if isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray):
        return _from_array(column, name)
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise InvalidInput(f"column {name!r} must be an array or a list of values; got {type(column).__name__}")
    return _from_list(column.tolist() if isinstance(column, np.ndarray) else list(column))


def _from_arrow(column: Any) -> Coded | Float64Array:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    kind = str(column.type)
    if kind.startswith(("float", "double", "halffloat", "decimal")):
        floats = column.cast("float64") if kind != "double" else column
        array: Float64Array = floats.to_numpy(zero_copy_only=False)
        return array
    if not kind.startswith("dictionary"):
        column = column.dictionary_encode()
    # Indices may be unsigned, where -1 is no number.
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(codes, tuple(column.dictionary.to_pylist()))


def _from_pandas(column: Any) -> Coded | Float64Array:
    if str(column.dtype).lower().startswith("float"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if str(column.dtype) == "object":
        # Distinct objects may be equal: True and 1 are one value to pandas and two to `text`.
        return _from_list(column.tolist())
    codes, values = column.factorize()
    return Coded(codes.astype(np.int64), tuple(values.tolist()))


def _from_array(array: Any, name: str) -> Coded | Float64Array:
    if array.ndim != 1:
        raise InvalidInput(f"column {name!r} must be flat; got shape {array.shape}")
    if array.dtype.kind == "f":
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind in "OSVc":
        return _from_list(array.tolist())
    values, codes = np.unique(array, return_inverse=True)
    if array.dtype.kind == "M" and array.dtype != np.dtype("datetime64[D]"):
        # Python's dates know no finer unit, and NumPy would turn nanoseconds into plain integers.
        values = values.astype("datetime64[us]")
    return Coded(codes.astype(np.int64), tuple(values.tolist()))


def _from_list(values: list[Any]) -> Coded | Float64Array:
    if values and all(type(value) is float or value is None for value in values):
        return np.array([np.nan if value is None else value for value in values])
    places: dict[str | None, int] = {None: -1}
    codes = np.empty(len(values), dtype=np.int64)
    for t, value in enumerate(values):
        codes[t] = places.setdefault(text(value), len(places) - 1)
    return Coded(codes, tuple(places)[1:])


def taken(column: Coded | Float64Array, rows: IntArray) -> Coded | Float64Array:
    """Some rows of a column."""
    return Coded(column.codes[rows], column.values) if isinstance(column, Coded) else column[rows]
