"""Columns of a table, and some rows of one: as numbers, by their distinct values, and as a digest of every cell."""

import hashlib
import math
import numbers
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import DataError, InvalidInput
from swapcal.inputs import short_repr
from swapcal.tables.sources import NULLS, chosen, package
from swapcal.typing import Float64Array, IntArray

# --------
# Columns as the classes of functions read them: floats, or codes into a short tuple of values.

# Type names of the missing values of pandas, which are equal to nothing and have no truth value.
_NOT_AVAILABLE = ("NAType", "NaTType")


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


_WHOLE = re.compile(r"^(-?(?:0|[1-9]\d{0,14}))\.0$")


def as_written(cell: str) -> str:
    """The text of a cell; a whole number has one, also where pandas wrote it from a column with blanks.

    Examples
    --------
    >>> as_written(" NYC "), as_written("57.0"), as_written("57"), as_written("1.10")
    ('NYC', '57', '57', '1.10')
    """
    return _WHOLE.sub(r"\1", cell.strip())


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


def spelled(value: Any) -> float:
    """The number that a text spells, as every other reader of tables spells numbers; a number as it is.

    Python alone takes `1_0` for 10, and digits of any script. True is 1, as in a frame.
    """
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    if isinstance(value, str) and ("_" in value or not value.strip().isascii()):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def as_number(value: Any) -> float:
    """A value, or the number that its text spells; NaN if it is missing or no number."""
    try:
        return spelled(value)
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


def taken(column: Coded | Float64Array, rows: IntArray | slice) -> Coded | Float64Array:
    """Some rows of a column."""
    return Coded(column.codes[rows], column.values) if isinstance(column, Coded) else column[rows]


def cut(column: Any, start: int, end: int) -> Any:
    """Rows `start` to `end - 1` of a column as a source stores it."""
    return column.slice(start, end - start) if hasattr(column, "slice") else column[start:end]


def by_value(column: Coded | Float64Array) -> Coded:
    """A column by its distinct values, also where it holds floats."""
    if isinstance(column, Coded):
        return column
    values, codes = np.unique(column, return_inverse=True)
    return Coded(np.where(np.isnan(column), -1, codes).astype(np.int64), tuple(values.tolist()))


def entries(column: Any) -> list[Any]:
    """The entries of any column; None where a coded one has none."""
    if isinstance(column, Coded):
        values = [*column.values, None]
        return [values[code] for code in column.codes.tolist()]
    for member in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, member):
            return list(getattr(column, member)())
    return list(column)


# --------
# Some rows of a table.

# Numbers beyond are refused: sums of their squares would overflow.
LARGEST = 1e100
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
    lenient : bool
        Take a cell that is no number for a missing one, and note its row in `wrong`; else it is an error.

    Examples
    --------
    >>> batch = Batch("a list", 0, 3, {"age": [30, None, 41], "sex": ["f", "m", "f"]})
    >>> batch.numbers("age")
    array([30., nan, 41.])
    >>> batch["sex"]
    Coded(codes=array([0, 1, 0]), values=('f', 'm'))
    """

    __slots__ = ("_data", "columns", "first", "n", "name", "wrong")

    def __init__(self, name: str, first: int, n: int, data: Mapping[str, Any], lenient: bool = False) -> None:
        self.name, self.first, self.n, self._data = name, first, n, data
        self.columns = tuple(data)
        # Rows among these with a cell that was no number, as far as anybody has looked; None where that is an error.
        self.wrong: set[int] | None = set() if lenient else None

    def __len__(self) -> int:
        return self.n

    @property
    def rows(self) -> IntArray:
        """The numbers of its rows."""
        return np.arange(self.first, self.first + self.n)

    def __getitem__(self, name: str) -> Coded | Float64Array:
        return self.column(name)

    def numbers(self, name: str) -> Float64Array:
        """A column as floats, NaN where a value is missing."""
        column = self._raw(name)
        array = _arrow_numbers(column) if hasattr(column, "null_count") else _array_numbers(column)
        if array is None:
            array = np.array([self._number(name, at, value) for at, value in enumerate(entries(column))])
        infinite = np.abs(array) > LARGEST
        if infinite.any() and not self.passes(infinite):
            at = int(np.argmax(infinite))
            what = "is infinite" if np.isinf(array[at]) else f"is beyond {LARGEST:g}, and its square no number any more"
            raise self._wrong(name, at, f"the number {what}")
        return np.where(infinite, np.nan, array) if infinite.any() else array

    def passes(self, rows: Any) -> bool:
        """Whether something wrong in some of the rows is passed over, which is then noted; else it is an error."""
        if self.wrong is not None:
            self.wrong.update(np.flatnonzero(rows).tolist())
        return self.wrong is not None

    def believed(self, outcomes: Float64Array) -> Float64Array:
        """Outcomes of its rows without those of rows in which something was wrong."""
        return np.where(np.isin(np.arange(self.n), list(self.wrong)), np.nan, outcomes) if self.wrong else outcomes

    def column(self, name: str) -> Coded | Float64Array:
        """A column by its distinct values, or as floats if that is how it is stored. Text from CSV stays text."""
        column = self._raw(name)
        if not str(getattr(column, "type", "")).startswith("binary"):
            return coded(column, name)
        encoded = column.dictionary_encode()
        codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        try:
            written = encoded.dictionary.cast("string").to_pylist()
        except ValueError:
            for at in range(self.n):
                self._decoded(name, at, column[at].as_py() or b"")
            raise
        values = [as_written(value) for value in written]
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
        data = {name: cut(one, start, end) for name, one in self._data.items()}
        return Batch(self.name, self.first + start, end - start, data, self.wrong is not None)

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
            blanked = [None if gone else value for value, gone in zip(entries(column), mask, strict=True)]
        return Batch(self.name, self.first, self.n, {**self._data, name: blanked}, self.wrong is not None)

    def without(self, names: Container[str]) -> "Batch":
        """The batch without some columns."""
        kept = {name: one for name, one in self._data.items() if name not in names}
        return Batch(self.name, self.first, self.n, kept)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each row by itself, as frames of polars give them; CSV gives texts."""
        columns = [entries(self.column(name)) for name in self.columns]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def _raw(self, name: str) -> Any:
        if name not in self._data:
            chosen(self.name, self.columns, [name])
        return self._data[name]

    def _decoded(self, name: str, at: int, value: bytes) -> str:
        """The text of row `at`, behind its bytes."""
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            what = f"the bytes {short_repr(value)} are no text; save the file as UTF-8"
            raise self._wrong(name, at, what, "") from None

    def _number(self, name: str, at: int, value: Any) -> float:
        written = self._decoded(name, at, value) if isinstance(value, bytes) else value
        written = written.strip() if isinstance(written, str) else written
        if (isinstance(written, str) and written in NULLS) or text(written) is None:
            return math.nan
        try:
            if not isinstance(written, (str, numbers.Real, Decimal, np.bool_)):
                raise TypeError
            return spelled(written)
        except (TypeError, ValueError, OverflowError):
            if self.passes(np.arange(self.n) == at):
                return math.nan
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


# --------
# What a run has seen of its input: a digest of every cell that it uses, as it is stored.


class Fingerprint:
    """Digest of some columns of all rows so far, however they were cut into batches.

    Cells count as the source stores them, before anything is made of them: so a change in any used cell shows, also in
    one that makes no difference to a number.

    Parameters
    ----------
    columns : sequence of str
        The columns that count; None: all there are.
    without : str, optional
        A column that does not count, though it may be among them.

    Examples
    --------
    >>> batch = Batch("a list", 0, 3, {"age": [30, None, 41], "sex": ["f", "m", "f"]})
    >>> one, two = Fingerprint(["age", "sex"]), Fingerprint(["age", "sex"])
    >>> one.add(batch)
    >>> for start in range(3):
    ...     two.add(batch.cut(start, start + 1))
    >>> one.value() == two.value()
    True
    """

    __slots__ = ("_columns", "_hashes", "_without")

    def __init__(self, columns: Sequence[str] | None, without: str | None = None) -> None:
        self._columns, self._without = columns, without
        self._hashes: dict[str, tuple[Any, Any]] = {}

    @classmethod
    def of(
        cls, batches: Sequence[Batch], n_rows: int, columns: Sequence[str] | None, without: str | None = None
    ) -> str:
        """The digest of the first `n_rows` rows."""
        fingerprint, left = cls(columns, without), n_rows
        for batch in batches:
            fingerprint.add(batch if batch.n <= left else batch.cut(0, left))
            left -= min(batch.n, left)
        return fingerprint.value()

    def add(self, batch: Batch) -> None:
        """Add rows."""
        for name in batch.columns if self._columns is None else self._columns:
            if name == self._without:
                continue
            # Lengths and bytes apart, so that where a batch ends makes no difference to either.
            sizes, cells = self._hashes.setdefault(name, (_hash(), _hash()))
            lengths, data = _cells(batch.stored(name))
            sizes.update(lengths)
            cells.update(data)

    def value(self) -> str:
        """Of the rows so far."""
        total = _hash()
        for name, hashes in self._hashes.items():
            total.update(repr(name).encode("utf-8", "surrogatepass"))
            for each in hashes:
                total.update(each.digest())
        return str(total.hexdigest())


def _hash() -> Any:
    return hashlib.blake2b(digest_size=16)


def _cells(column: Any) -> tuple[Any, Any]:
    """The lengths of a column's cells, -1 for those that are missing, and their bytes."""
    if hasattr(column, "null_count"):
        return _arrow_cells(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biufMm" and type(column) is np.ndarray:
        return b"", column.tobytes()
    listed = column.to_list() if hasattr(column, "to_list") else list(column)
    texts = [repr(value).encode("utf-8", "surrogatepass") for value in listed]
    return np.array([len(text) for text in texts], dtype="<i8").tobytes(), b"".join(texts)


def _arrow_cells(column: Any) -> tuple[Any, Any]:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    kind = str(column.type)
    if kind in ("binary", "string"):
        _, offsets, data = column.buffers()
        if not len(column):
            return b"", b""
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        lengths = np.diff(ends)
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            lengths = np.where(missing, -1 - lengths, lengths)
        cells = b"" if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]
        return lengths.astype("<i4").tobytes(), cells
    if kind in ("double", "float", "bool") or kind.startswith(("int", "uint")):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        filled = column.fill_null(False if kind == "bool" else 0) if column.null_count else column
        return missing.tobytes(), filled.to_numpy(zero_copy_only=False).tobytes()
    return _cells(column.to_pylist())
