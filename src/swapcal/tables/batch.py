"""Some rows of a table, column by column: as numbers, or by their distinct values."""

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from swapcal.errors import DataError
from swapcal.inputs import short_repr
from swapcal.tables.coded import Coded, coded, text
from swapcal.tables.sources import chosen, package
from swapcal.tables.text import NULLS
from swapcal.typing import Float64Array

_ADVICE = "; correct it, leave the cell empty if it is missing, or name another column"


class Batch:
    """Rows `first` to `first + n - 1` of a source, counted from 0; messages count from 1.

    Parameters
    ----------
    name : str
        What messages call the source.
    first : int
        Number of the first row.
    n : int
        Number of rows.
    data : mapping
        Columns by name: pyarrow arrays, NumPy arrays or lists.

    Examples
    --------
    >>> batch = Batch("a list", 0, 3, {"age": [30, None, 41], "sex": ["f", "m", "f"]})
    >>> batch.numbers("age")
    array([30., nan, 41.])
    >>> batch["sex"]
    Coded(codes=array([0, 1, 0]), values=('f', 'm'))
    """

    __slots__ = ("_data", "columns", "first", "n", "name")

    def __init__(self, name: str, first: int, n: int, data: Mapping[str, Any]) -> None:
        self.name, self.first, self.n, self._data = name, first, n, data
        self.columns = tuple(data)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Coded | Float64Array:
        return self.column(name)

    def numbers(self, name: str) -> Float64Array:
        """A column as floats, NaN where a value is missing."""
        column = self._raw(name)
        array = _arrow_numbers(column) if hasattr(column, "null_count") else _array_numbers(column)
        if array is None:
            array = np.array([self._number(name, at, value) for at, value in enumerate(_listed(column))])
        if np.isinf(array).any():
            raise self._wrong(name, int(np.argmax(np.isinf(array))), "the number is infinite")
        return array

    def column(self, name: str) -> Coded | Float64Array:
        """A column by its distinct values, or as floats if that is how it is stored. Text from CSV stays text."""
        column = self._raw(name)
        if not str(getattr(column, "type", "")).startswith("binary"):
            return coded(column, name)
        found = column.dictionary_encode()
        codes = found.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        try:
            written = found.dictionary.cast("string").to_pylist()
        except ValueError:
            for at in range(self.n):
                self._decoded(name, at, column[at].as_py() or b"")
            raise
        values = [value.strip() for value in written]
        # Spaces around a value make two of it, or hide that it is missing. "NA" without them was in quotes, and is not.
        missing = [not value or (value != one and value in NULLS) for value, one in zip(values, written, strict=True)]
        if len(set(values)) == len(values) and not any(missing):
            return Coded(codes, tuple(values))
        places: dict[str, int] = {}
        table = [
            -1 if gone else places.setdefault(value, len(places)) for value, gone in zip(values, missing, strict=True)
        ]
        return Coded(np.array([*table, -1])[codes], tuple(places))

    def stored(self, name: str) -> Any:
        """A column as the source stores it: a pyarrow array, a NumPy array or a list."""
        return self._raw(name)

    def cut(self, start: int, end: int) -> "Batch":
        """Rows `start` to `end - 1` of this batch, as a batch."""
        data = {
            name: one.slice(start, end - start) if hasattr(one, "slice") else one[start:end]
            for name, one in self._data.items()
        }
        return Batch(self.name, self.first + start, end - start, data)

    def blanked(self, name: str, mask: Any) -> "Batch":
        """The batch with blanks in a column, where `mask` is True."""
        column = self._raw(name)
        if hasattr(column, "null_count"):
            if hasattr(column, "combine_chunks"):
                column = column.combine_chunks()
            if str(column.type).startswith("dictionary"):
                column = column.cast(column.type.value_type)
            compute = package("pyarrow.compute", "reading files")
            blanked = compute.if_else(package("pyarrow", "reading files").array(mask), None, column)
        else:
            blanked = [None if gone else value for value, gone in zip(_listed(column), mask, strict=True)]
        return Batch(self.name, self.first, self.n, {**self._data, name: blanked})

    def _raw(self, name: str) -> Any:
        if name not in self._data:
            chosen(self.name, self.columns, [name])
        return self._data[name]

    def _decoded(self, name: str, at: int, value: bytes) -> str:
        """The text of row `at`, behind its bytes."""
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise self._wrong(
                name, at, f"the bytes {short_repr(value)} are no text; save the file as UTF-8", ""
            ) from None

    def _number(self, name: str, at: int, value: Any) -> float:
        written = self._decoded(name, at, value) if isinstance(value, bytes) else value
        written = written.strip() if isinstance(written, str) else written
        if (isinstance(written, str) and written in NULLS) or text(written) is None:
            return math.nan
        try:
            if not isinstance(written, (str, Real, Decimal, np.bool_)):
                raise TypeError
            return float(written)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(name, at, f"{short_repr(written)} is not a number") from None

    def _wrong(self, name: str, at: int, what: str, advice: str = _ADVICE) -> DataError:
        return DataError(f"{self.name}, row {self.first + at + 1}, column {name!r}: {what}{advice}")


def _arrow_numbers(column: Any) -> Float64Array | None:
    """The floats in a pyarrow array; None if something in it is no number, or a number only to Python."""
    kind = str(column.type)
    if kind.startswith(("date", "time", "duration")):
        return None
    try:
        if kind.startswith("dictionary"):
            column = column.cast(column.type.value_type)
        if kind.startswith("binary"):
            column = _without_nulls(column.cast("string"))
        if kind == "bool":
            column = column.cast("int8")
        if str(column.type) != "double":
            column = column.cast("float64", safe=False)
        array: Float64Array = column.to_numpy(zero_copy_only=False)
        return array
    except (ValueError, NotImplementedError):
        return None


def _without_nulls(column: Any) -> Any:
    """Texts in quotes that say that a number is missing are that."""
    compute = package("pyarrow.compute", "reading CSV")
    says = compute.is_in(column, value_set=package("pyarrow", "reading CSV").array(NULLS))
    return compute.if_else(says, None, column) if compute.any(says).as_py() else column


def _array_numbers(column: Any) -> Float64Array | None:
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and not isinstance(column, np.ma.MaskedArray):
        return column.astype(np.float64)
    return None


def _listed(column: Any) -> list[Any]:
    for member in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, member):
            values: list[Any] = getattr(column, member)()
            return values
    return list(column)
