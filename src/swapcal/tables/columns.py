"""Columns of a table by name, whatever holds them, and the codes of their values and of combinations of them."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.tables.bands import band_labels, band_of
from swapcal.tables.coded import Coded, as_number, coded, text
from swapcal.tables.vocabulary import KeyedColumn, Token
from swapcal.typing import Float64Array, IntArray

__all__ = ["RowView", "combined", "fetch", "floats_of", "texts_of"]

_DENSE = 1 << 20
"""Up to so many possible combinations, the ones that occur are marked in a table; beyond, they are sorted."""


def fetch(X: Any, names: Sequence[str], n_rows: int | None = None) -> tuple[dict[str, Coded | Float64Array], int]:
    """The named columns of `X` (a mapping, a frame, a batch of records, or a list of mappings), and their length."""
    if isinstance(X, (list, tuple)) and all(isinstance(one, Mapping) for one in X):
        columns = {name: coded([one.get(name) for one in X], name) for name in names}
        return columns, _length(columns, len(X), n_rows)
    columns = {}
    for name in names:
        try:
            columns[name] = coded(X[name], name)
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidInput(_no_column(X, name)) from error
    return columns, _length(columns, n_rows, n_rows)


def _length(columns: Mapping[str, Coded | Float64Array], known: int | None, wanted: int | None) -> int:
    lengths = {name: len(one.codes) if isinstance(one, Coded) else len(one) for name, one in columns.items()}
    expected = known if wanted is None else wanted
    if expected is None:
        expected = next(iter(lengths.values()), 0)
    for name, length in [*lengths.items(), *([("the records", known)] if known is not None else [])]:
        if length != expected:
            raise InvalidInput(f"column {name!r} has {length} rows and must have {expected}, as many as the others")
    return expected


def _no_column(X: Any, name: str) -> str:
    for member in ("column_names", "columns", "keys"):
        there = getattr(X, member, None)
        there = there() if member == "keys" and callable(there) else there
        if there is not None and not callable(there):
            listed = [str(one) for one in there]
            near = difflib.get_close_matches(name, listed, 1)
            return f"there is no column {name!r}; " + (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, listed[:20]))}"
            )
    return f"groups are made from a table with a column {name!r}; got {type(X).__name__}"


def texts_of(column: Coded | Float64Array, edges: tuple[float, ...] | None) -> tuple[IntArray, list[str]]:
    """Codes and the distinct texts behind them; with edges these are bands, and what is no number is missing."""
    if edges is not None:
        return band_of(floats_of(column), edges), list(band_labels(edges))
    if not isinstance(column, Coded):
        values, codes = np.unique(column, return_inverse=True)
        column = Coded(codes.astype(np.int64), tuple(values.tolist()))
    texts = [text(value) for value in column.values]
    places: dict[str | None, int] = {None: -1}
    table = [places.setdefault(one, len(places) - 1) for one in texts]
    if len(places) == len(table) + 1:
        return column.codes, texts  # type: ignore[return-value]
    return np.array([*table, -1])[column.codes], [one for one in places if one is not None]


def floats_of(column: Coded | Float64Array) -> Float64Array:
    """The numbers that a column holds or spells; NaN where there is none."""
    if not isinstance(column, Coded):
        return column
    try:
        values = [float(value) for value in column.values]
    except (TypeError, ValueError, OverflowError):
        values = [as_number(value) for value in column.values]
    return np.array([*values, np.nan])[column.codes]


def combined(parts: Sequence[tuple[IntArray, list[str]]]) -> KeyedColumn:
    """The combinations of several columns' texts; a missing part is None, and a single column's code stays -1."""
    if len(parts) == 1:
        return KeyedColumn(parts[0][0], [(one,) for one in parts[0][1]])
    mixed, tokens = parts[0][0] + 1, [None, *parts[0][1]]
    combinations: list[Token] = [(token,) for token in tokens]
    for codes, texts in parts[1:]:
        options = [None, *texts]
        mixed = mixed * len(options) + (codes + 1)
        size = len(combinations) * len(options)
        if size <= _DENSE:
            occurs = np.zeros(size, dtype=np.bool_)
            occurs[mixed] = True
            kept = np.flatnonzero(occurs)
            mixed = (np.cumsum(occurs) - 1)[mixed]
        else:
            kept, mixed = np.unique(mixed, return_inverse=True)
        combinations = [(*combinations[at // len(options)], options[at % len(options)]) for at in kept.tolist()]
    return KeyedColumn(mixed, combinations)


class RowView(Mapping[str, Any]):
    """One row of a table as a mapping from column to plain value, for functions of a user's own; CSV gives texts."""

    __slots__ = ("_lists", "_row", "_table")

    def __init__(self, table: Any, row: int, lists: dict[str, list[Any]]) -> None:
        self._table, self._row, self._lists = table, row, lists

    def __getitem__(self, name: str) -> Any:
        if name not in self._lists:
            try:
                self._lists[name] = _listed(self._table[name])
            except (IndexError, TypeError) as error:
                raise KeyError(name) from error
        return self._lists[name][self._row]

    def __iter__(self) -> Iterator[str]:
        names = getattr(self._table, "column_names", None) or getattr(self._table, "columns", None)
        return iter(self._table.keys() if names is None or callable(names) else list(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _listed(column: Any) -> list[Any]:
    if isinstance(column, Coded):
        values = [*column.values, None]
        return [values[code] for code in column.codes.tolist()]
    for member in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, member):
            return list(getattr(column, member)())
    return list(column)
