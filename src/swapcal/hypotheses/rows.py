"""Contexts as they come (dense, mappings, pairs, compressed sparse rows) as checked rows of non-zero entries."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from swapcal.engine.values import Grid
from swapcal.errors import InvalidInput
from swapcal.inputs import floats
from swapcal.protocols import Hypotheses, Row, Rows
from swapcal.typing import Float64Array, IntArray

# --------
# One row of a frame as the mapping from column to value that it is.


def as_case(x: Any) -> Mapping[str, Any] | None:
    """A case as a mapping: one, a row of a pandas frame, a frame of one row, or a named tuple. None for anything else.

    Frames are known by their methods, so that none of their libraries is imported.

    Examples
    --------
    >>> from collections import namedtuple
    >>> as_case({"sex": "f"}), as_case(namedtuple("Case", "sex age")("f", 41)), as_case(3)
    ({'sex': 'f'}, {'sex': 'f', 'age': 41}, None)
    """
    if isinstance(x, Mapping):
        return x
    kind = type(x)  # frames look for what they do not have among their columns, which takes long
    if hasattr(kind, "_asdict"):  # what pandas' itertuples gives
        x = x._asdict()
    elif hasattr(kind, "to_dicts"):  # polars
        x = dict(zip(x.columns, x.row(0), strict=True)) if len(x) == 1 else None
    elif hasattr(kind, "iloc"):  # pandas: a row, or a frame of one
        if x.ndim == 2 and len(x) == 1:
            x = x.iloc[0]
        x = dict(zip(x.index.tolist(), x.tolist(), strict=True)) if x.ndim == 1 else None
    return x if isinstance(x, Mapping) else None


class CaseColumns:
    """Some columns of cases, one case after the other, without the mapping that each of them could be.

    The rows of one pandas frame share their index: where its columns stand is looked up once.
    """

    __slots__ = ("_seen", "columns")

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._seen: tuple[Any, list[int]] = (None, [])
        """The index of the last row, and where the columns stand in it: one pair, as threads may look at once."""

    def of(self, x: Any) -> list[Any] | None:
        """The values of the columns, None for one that the case does not have; None for what is no case.

        Examples
        --------
        >>> CaseColumns(("age", "sex")).of({"sex": "f"})
        [None, 'f']
        """
        kind = type(x)
        if kind is dict:
            return [x.get(name) for name in self.columns]
        if hasattr(kind, "_fields"):
            return [getattr(x, name, None) for name in self.columns]
        if hasattr(kind, "iloc") and x.ndim == 1:
            return self._from_pandas(x)
        if hasattr(kind, "to_dicts") and len(x) == 1:
            names, row = x.columns, x.row(0)
            return [row[names.index(name)] if name in names else None for name in self.columns]
        case = as_case(x)
        return None if case is None else [case.get(name) for name in self.columns]

    def _from_pandas(self, row: Any) -> list[Any]:
        index, (seen, places) = row.index, self._seen
        if not index.is_(seen):  # every row has a view of the frame's columns
            names = {name: place for place, name in enumerate(index.tolist())}
            # Behind the last value stands one None, for columns that are not there.
            places = [names.get(name, -1) for name in self.columns]
            self._seen = index, places
        values = [*row.tolist(), None]
        return [values[place] for place in places]


# --------
# Level sets of the hint: functions that say where the hint lies, so that the hint's own bias is found.


def joined(hypotheses: Hypotheses, n_levels: int) -> Hypotheses:
    """The class with `n_levels` indicators behind its own functions; one that cannot be `extended` stays as it is."""
    extended: Callable[[int], Hypotheses] | None = getattr(hypotheses, "extended", None)
    return hypotheses if extended is None or not n_levels else extended(n_levels)


def active(row: Row, hint: float | None, levels: Grid | None, n_own: int) -> Row:
    """The context with the entry of the level set in which the hint lies; unchanged without a hint or levels."""
    if hint is None or levels is None:
        return row
    return Row(np.append(row.indices, n_own + levels.bin(hint)), np.append(row.values, 1.0))


_ONE = "a vector of {n} numbers, a mapping from position to value, or a pair (positions, values)"


_MANY = "a table of numbers, one row for each round, or compressed sparse rows"


def _positions(keys: Any, n: int) -> IntArray:
    try:
        raw = np.asarray(keys)
        if raw.size and raw.dtype.kind not in "iu":
            raise TypeError
        positions = raw.astype(np.int64, casting="same_kind") if raw.size else np.zeros(0, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"positions of a sparse context must be whole numbers from 0 to {n - 1}") from None
    if positions.ndim != 1:
        raise InvalidInput("positions of a sparse context must be a flat list of whole numbers")
    if positions.size and (positions.min() < 0 or positions.max() >= n):
        bad = positions[(positions < 0) | (positions >= n)][0]
        raise InvalidInput(f"position {bad} is outside a context of length {n}; positions go from 0 to {n - 1}")
    return positions


def _finite(values: Float64Array, what: str) -> None:
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)].flat[0]
        raise InvalidInput(
            f"{what} holds {bad}; every entry must be a finite number, so fill or drop missing values first"
        )


def read_row(x: Any, n: int) -> Row:
    """One context of length `n` as its non-zero entries."""
    if isinstance(x, Mapping):
        return _sparse(list(x.keys()), list(x.values()), n)
    if isinstance(x, Row):
        return _sparse(x.indices, x.values, n)
    if isinstance(x, tuple) and len(x) == 2 and _is_flat(x[0]):
        return _sparse(x[0], x[1], n)
    if hasattr(x, "tocsr"):
        # Other sparse formats have members of the same names with other meanings.
        x = x.tocsr()
    if _is_compressed(x):
        if _shape(x) == (n,):
            return _sparse(x.indices, x.data, n)
        rows = _compressed(x, n, 1)
        return Row(rows.indices, rows.values)
    values = floats(x, "the context", _ONE.format(n=n))
    if values.shape != (n,):
        raise InvalidInput(f"the context must be {_ONE.format(n=n)}; got shape {values.shape}")
    _finite(values, "the context")
    indices = np.flatnonzero(values)
    return Row(indices, values[indices])


def _is_flat(x: Any) -> bool:
    try:
        return bool(np.ndim(x) == 1)
    except (TypeError, ValueError):
        return False


def _is_compressed(x: Any) -> bool:
    return hasattr(x, "indptr") and hasattr(x, "indices") and hasattr(x, "data")


def _shape(x: Any) -> tuple[Any, ...]:
    shape = getattr(x, "shape", ())
    return tuple(shape) if isinstance(shape, (tuple, list)) else ()


def _sparse(keys: Any, entries: Any, n: int) -> Row:
    positions = _positions(keys, n)
    values = floats(entries, "the context", _ONE.format(n=n))
    if values.shape != positions.shape:
        raise InvalidInput(
            f"a sparse context has {positions.size} positions and {values.size} values; give as many of each"
        )
    _finite(values, "the context")
    order = np.argsort(positions, kind="stable")
    positions, values = positions[order], values[order]
    if positions.size > 1 and (positions[1:] == positions[:-1]).any():
        raise InvalidInput("a sparse context names the same position twice; add the values up first")
    keep = values != 0.0
    return Row(positions[keep], values[keep])


def read_rows(X: Any, n: int, n_rows: int) -> Rows:
    """`n_rows` contexts of length `n`: a two-dimensional array, or compressed sparse rows (indptr, indices, data)."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    if _is_compressed(X):
        return _compressed(X, n, n_rows)
    values = floats(X, "the contexts", _MANY)
    if values.shape != (n_rows, n):
        raise InvalidInput(f"the contexts have shape {values.shape} and must have shape ({n_rows}, {n})")
    _finite(values, "the contexts")
    where, indices = np.nonzero(values)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=n_rows))]).astype(np.int64)
    return Rows(indptr, indices.astype(np.int64), values[where, indices])


def check_rows(rows: Rows, n: int) -> None:
    """Raise unless these are rows of a context of length `n`: positions that increase, values in [-1, 1]."""
    ends, indices, values = rows
    sound = ends.ndim == indices.ndim == 1 and indices.shape == values.shape and ends[0] == 0
    sound = sound and bool((ends[1:] >= ends[:-1]).all()) and ends[-1] == len(indices)
    if sound and len(indices):
        rises = indices[1:] > indices[:-1]
        inner = ends[(ends > 0) & (ends < len(indices))]
        rises[inner - 1] = True
        sound = bool(rises.all()) and 0 <= indices.min() <= indices.max() < n
        sound = sound and bool(np.abs(values).max() <= 1.0)
    if not sound:
        raise InvalidInput(f"these rows are not those of a class with {n} functions; read the records again with rows")


class _Part(NamedTuple):
    """Some of the rows of compressed sparse rows, under the names that others give them."""

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]


def can_be_cut(X: Any, n_rows: int) -> bool:
    """Whether `cut` can take some of the contexts out without a copy of all of them."""
    if type(X) is np.ndarray:
        return X.ndim == 2 and len(X) == n_rows
    if not _is_compressed(X) or (hasattr(X, "tocsr") and getattr(X, "format", "") != "csr"):
        return False
    shape, arrays = _shape(X), (X.indptr, X.indices, X.data)
    flat = all(type(a) is np.ndarray and a.ndim == 1 for a in arrays) and len(shape) == 2 and shape[0] == n_rows
    # Whoever has an indptr out of order is told so when all rows are read at once.
    return flat and len(X.indptr) == n_rows + 1 and X.indptr[0] == 0 and bool((X.indptr[1:] >= X.indptr[:-1]).all())


def cut(X: Any, start: int, stop: int) -> Any:
    """Contexts `start` to `stop` of those that can be cut."""
    if type(X) is np.ndarray:
        return X[start:stop]
    ends = np.asarray(X.indptr)[start : stop + 1]
    inside = slice(int(ends[0]), int(ends[-1]))
    return _Part(ends - ends[0], np.asarray(X.indices)[inside], np.asarray(X.data)[inside], (stop - start, X.shape[1]))


def _compressed(X: Any, n: int, n_rows: int) -> Rows:
    if _shape(X) != (n_rows, n):
        raise InvalidInput(f"the contexts have shape {_shape(X)} and must have shape ({n_rows}, {n})")
    ends, values = _ends(X.indptr, n_rows), floats(X.data, "the data of the contexts", "a vector of numbers")
    indices = np.asarray(X.indices)
    if values.ndim != 1 or indices.shape != values.shape or ends[-1] > len(values):
        raise InvalidInput("compressed sparse rows need as many indices as data, and an indptr that ends within them")
    _finite(values, "the contexts")
    indices, values = _positions(indices[: ends[-1]], n), values[: ends[-1]]
    # One key for each entry: rows in their order, positions in increasing order within a row.
    keys = np.repeat(np.arange(n_rows), np.diff(ends)) * n + indices
    if (np.diff(keys) <= 0).any():
        # Entries out of order, or one position several times, which means their sum.
        keys, where = np.unique(keys, return_inverse=True)
        values = np.bincount(where, weights=values).astype(np.float64)
    keys, values = keys[values != 0.0], values[values != 0.0]
    return Rows(np.searchsorted(keys, np.arange(n_rows + 1) * n), keys % n, values)


def _ends(indptr: Any, n_rows: int) -> IntArray:
    """Where each row begins, and the end of the last."""
    try:
        ends = np.asarray(indptr)
    except (TypeError, ValueError):
        ends = np.zeros(0)
    if ends.dtype.kind not in "iu" or ends.shape != (n_rows + 1,) or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise InvalidInput(f"indptr of compressed sparse rows must be {n_rows + 1} whole numbers that rise from 0")
    return ends.astype(np.int64)
