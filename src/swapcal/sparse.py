"""Rows of non-zero entries: read from whatever holds contexts, taken, sliced, joined and weighed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.protocols import Hypotheses, Row, Rows
from swapcal.typing import Float64Array, IntArray

# --------
# Many contexts at once: how many there are, one by one, and with weights.


# Sums of squares between these have neither lost an entry's digits nor overflowed.
_SMALL, _LARGE = 1e-200, 1e200


class CompressedRows(NamedTuple):
    """Rows under the names that sparse matrices give their parts."""

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]


def how_many(X: Any) -> int:
    """The number of contexts in an array, frame, list, sparse matrix, mapping of columns, or `Rows`.

    Examples
    --------
    >>> how_many([[1, 0], [1, 1]]), how_many({"sex": ["f", "m", "f"]})
    (2, 3)
    """
    if isinstance(X, Rows):
        return len(X.indptr) - 1
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    columns = list(X.values()) if isinstance(X, Mapping) else [X]
    if not columns or not hasattr(columns[0], "__len__"):
        raise InvalidInput(f"contexts must be a table, one row for each round; got {inputs.short_repr(X)}")
    return len(columns[0])


def each(rows: Rows) -> Iterator[Row]:
    """The rows one by one."""
    for start, stop in pairwise(rows.indptr.tolist()):
        yield Row(rows.indices[start:stop], rows.values[start:stop])


def row(rows: Rows, t: int) -> Row:
    """One of them."""
    inside = slice(rows.indptr[t], rows.indptr[t + 1])
    return Row(rows.indices[inside], rows.values[inside])


def cases(hypotheses: Hypotheses, X: Any, n_rows: int) -> list[Any]:
    """The contexts as `Hypotheses.row` takes them one by one, all of them checked.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> [row.indices.tolist() for row in cases(Finite(2), [[1, 0], [1, 1]], 2)]
    [[0], [0, 1]]
    """
    if getattr(hypotheses, "dual", "") == "max":
        return list(each(hypotheses.rows(X, n_rows)))
    # Other classes scale what they read, so they must read it as it came.
    if hasattr(X, "to_dicts"):
        X = X.to_dicts()
    elif hasattr(X, "iloc"):
        X = X.to_dict("records") if hasattr(hypotheses, "columns") else X.to_numpy()
    elif isinstance(X, Mapping):
        X = [dict(zip(X, values, strict=True)) for values in zip(*X.values(), strict=True)]
    return list(X.toarray() if hasattr(X, "toarray") else X)


def weighted(hypotheses: Hypotheses, X: Any, weights: Any, n_rows: int) -> Any:
    """The contexts with every entry times the weight of its row, in a form that the class reads.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> weighted(Finite(2), [[1.0, 0.0], [1.0, 1.0]], [0.5, 1.0], 2).data
    array([0.5, 1. , 1. ])
    """
    shares = inputs.vector(weights, "weights", n_rows)
    if shares.size and not 0.0 <= shares.min() <= shares.max() <= 1.0:
        raise InvalidInput("weights must lie in [0, 1]: the share for which a row counts; divide them by the largest")
    if getattr(hypotheses, "dual", "") != "max":
        raise InvalidInput(f"weights are for finite classes and groups; {hypotheses!r} scales its contexts by itself")
    rows = hypotheses.rows(X, n_rows)
    values = rows.values * np.repeat(shares, np.diff(rows.indptr))
    if hasattr(hypotheses, "snapshot"):
        return Rows(rows.indptr, rows.indices, values)
    return CompressedRows(rows.indptr, rows.indices, values, (n_rows, hypotheses.n))


# --------
# Some of many contexts: a run of them, or chosen ones.


def gathered(rows: Sequence[Row]) -> Rows:
    """Single rows, together.

    Examples
    --------
    >>> gathered([Row(np.array([1]), np.array([0.5])), Row(np.array([0, 2]), np.array([1.0, 1.0]))]).indptr
    array([0, 1, 3])
    """
    indptr = np.cumsum([0, *(len(one.indices) for one in rows)])
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *(one.indices for one in rows)])
    return Rows(indptr, indices, np.concatenate([np.zeros(0), *(one.values for one in rows)]))


def of_rows(hypotheses: Hypotheses, X: Any, n_rows: int) -> Rows:
    """Many contexts, read one by one."""
    try:
        contexts = cases(hypotheses, X, n_rows)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the contexts must be a table or a list, one for each round: {error}") from error
    if len(contexts) != n_rows:
        raise InvalidInput(f"these are {len(contexts)} contexts and must be {n_rows}")
    return gathered([hypotheses.row(x) for x in contexts])


def parted(row: Row, hidden: tuple[int, int]) -> tuple[Row, Row]:
    """The entries of a row that are not `hidden`, which close up; and those that are, from position 0 on.

    Examples
    --------
    >>> known, own = parted(Row(np.array([0, 2, 7]), np.array([1.0, 2.0, 3.0])), (1, 5))
    >>> known.indices, own.indices
    (array([0, 3]), array([1]))
    """
    begin, end = np.searchsorted(row.indices, hidden).tolist()
    indices = np.concatenate([row.indices[:begin], row.indices[end:] - (hidden[1] - hidden[0])])
    known = Row(indices, np.concatenate([row.values[:begin], row.values[end:]]))
    return known, Row(row.indices[begin:end] - hidden[0], row.values[begin:end])


def into_ball(values: Float64Array, radius: float) -> Float64Array:
    """The entries over the radius, or over their length where that is larger.

    Examples
    --------
    >>> into_ball(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = float((values * values).cumsum()[-1]) if len(values) else 0.0
    if _SMALL < squares < _LARGE:
        return values / max(math.sqrt(squares), radius)
    # Squares that overflow or vanish: the entries are first divided by the largest.
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return values
    shares = values / largest
    length = math.sqrt(float((shares * shares).cumsum()[-1]))
    return shares / length if largest * length > radius else values / radius


def expect_signed_shares(values: Float64Array) -> None:
    """Refuse values of a function of a finite class outside [-1, 1]."""
    if values.size and (values.max() > 1.0 or values.min() < -1.0):
        worst = values[np.argmax(np.abs(values))]
        raise InvalidInput(
            f"a function of a finite class has the value {worst:g}, "
            "outside [-1, 1]; divide the column by its largest magnitude"
        )


def sliced(rows: Rows, start: int, end: int) -> Rows:
    """Rows from `start` up to `end`."""
    first, last = rows.indptr[start], rows.indptr[end]
    return Rows(rows.indptr[start : end + 1] - first, rows.indices[first:last], rows.values[first:last])


def stacked(parts: Sequence[Rows]) -> Rows:
    """Several rows after each other."""
    starts = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    ends = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=False)]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), *ends])
    return Rows(indptr, np.concatenate([p.indices for p in parts]), np.concatenate([p.values for p in parts]))


def taken(rows: Rows, numbers: IntArray) -> Rows:
    """The rows with these numbers, in this order.

    Examples
    --------
    >>> rows = Rows(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 2]), np.ones(4))
    >>> taken(rows, np.array([1, 2])).indices
    array([0, 1, 2])
    """
    lengths = np.diff(rows.indptr)[numbers]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    entries = np.repeat(rows.indptr[:-1][numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return Rows(indptr, rows.indices[entries], rows.values[entries])


# Up to so many columns, exchanging pairs of whole columns sorts rows faster than sorting them one by one.
_PAIRWISE = 6


def assembled(n_rows: int, fixed: Sequence[Float64Array], placed: Sequence[IntArray]) -> Rows:
    """Rows with position 0, then 1 + j where `fixed[j]` is not zero, then the `placed` positions, which are higher.

    Examples
    --------
    >>> assembled(2, [np.array([0.0, 0.5])], [np.array([3, 2]), np.array([2, 4])]).indices
    array([0, 2, 3, 0, 1, 2, 4])
    """
    width = 1 + len(fixed) + len(placed)
    indices = np.empty((n_rows, width), dtype=np.int64)
    indices[:, : 1 + len(fixed)] = np.arange(1 + len(fixed))
    for j, column in enumerate(_sorted(placed), 1 + len(fixed)):
        indices[:, j] = column
    values = np.ones((n_rows, width))
    if not fixed:
        return Rows(np.arange(0, n_rows * width + 1, width), indices.ravel(), values.ravel())
    for j, entries in enumerate(fixed, 1):
        values[:, j] = entries
    nonzero = values != 0.0
    indptr = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))]).astype(np.int64)
    return Rows(indptr, indices[nonzero], values[nonzero])


def _sorted(columns: Sequence[IntArray]) -> Sequence[IntArray]:
    """The columns exchanged row by row, so that they increase from the first to the last."""
    if len(columns) > _PAIRWISE:
        return list(np.sort(np.stack(columns, axis=1), axis=1).T)
    ordered = list(columns)
    for last in range(len(ordered) - 1, 0, -1):
        for j in range(last):
            ordered[j], ordered[j + 1] = np.minimum(ordered[j], ordered[j + 1]), np.maximum(ordered[j], ordered[j + 1])
    return ordered


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


# Stands for the value of a column that a case does not have.
ABSENT = object()


class CaseColumns:
    """Some columns of cases, one case after the other, without the mapping that each of them could be.

    The rows of one pandas frame share their index: where its columns stand is looked up once.
    """

    __slots__ = ("_seen", "columns")

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        # The index of the last row, and where the columns stand in it: one pair, as threads may look at once.
        self._seen: tuple[Any, list[int]] = (None, [])

    def of(self, x: Any) -> list[Any] | None:
        """The values of the columns, `ABSENT` for one that the case does not have; None for what is no case.

        Examples
        --------
        >>> CaseColumns(("age", "sex")).of({"sex": "f", "age": None})
        [None, 'f']
        """
        kind = type(x)
        if kind is dict:
            return [x.get(name, ABSENT) for name in self.columns]
        if hasattr(kind, "_fields"):
            return [getattr(x, name, ABSENT) for name in self.columns]
        if hasattr(kind, "iloc") and x.ndim == 1:
            return self._from_pandas(x)
        if hasattr(kind, "to_dicts") and len(x) == 1:
            names, row = x.columns, x.row(0)
            return [row[names.index(name)] if name in names else ABSENT for name in self.columns]
        case = as_case(x)
        return None if case is None else [case.get(name, ABSENT) for name in self.columns]

    def _from_pandas(self, row: Any) -> list[Any]:
        index, (seen, places) = row.index, self._seen
        if not index.is_(seen):  # every row has a view of the frame's columns
            names = {name: place for place, name in enumerate(index.tolist())}
            # Behind the last value stands `ABSENT`, for columns that are not there.
            places = [names.get(name, -1) for name in self.columns]
            self._seen = index, places
        values = [*row.tolist(), ABSENT]
        return [values[place] for place in places]


# --------
# Contexts of any form as checked rows: dense, mappings, pairs, compressed sparse rows.

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
    values = inputs.floats(x, "the context", _ONE.format(n=n))
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
    values = inputs.floats(entries, "the context", _ONE.format(n=n))
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
    values = inputs.floats(X, "the contexts", _MANY)
    if values.shape != (n_rows, n):
        raise InvalidInput(f"the contexts have shape {values.shape} and must have shape ({n_rows}, {n})")
    _finite(values, "the contexts")
    where, indices = np.nonzero(values)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=n_rows))]).astype(np.int64)
    return Rows(indptr, indices.astype(np.int64), values[where, indices])


def checked_rows(rows: Rows, n: int, n_rows: int, largest: float = 1.0) -> Rows:
    """`n_rows` rows of a context of length `n` that were read before: positions that increase, values no larger."""
    ends, indices, values = rows
    if len(ends) != n_rows + 1:
        raise InvalidInput(f"these are {len(ends) - 1} rows and must be {n_rows}")
    sound = ends.ndim == indices.ndim == 1 and indices.shape == values.shape and ends[0] == 0
    sound = sound and bool((ends[1:] >= ends[:-1]).all()) and ends[-1] == len(indices)
    if sound and len(indices):
        rises = indices[1:] > indices[:-1]
        inner = ends[(ends > 0) & (ends < len(indices))]
        rises[inner - 1] = True
        sound = bool(rises.all()) and 0 <= indices.min() <= indices.max() < n
        sound = sound and bool(np.abs(values).max() <= largest)
    if not sound:
        raise InvalidInput(f"these rows are not those of a class with {n} functions; read the records again with rows")
    return rows


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
    indices, entries = np.asarray(X.indices)[inside], np.asarray(X.data)[inside]
    return CompressedRows(ends - ends[0], indices, entries, (stop - start, X.shape[1]))


def _compressed(X: Any, n: int, n_rows: int) -> Rows:
    if _shape(X) != (n_rows, n):
        raise InvalidInput(f"the contexts have shape {_shape(X)} and must have shape ({n_rows}, {n})")
    ends, values = _ends(X.indptr, n_rows), inputs.floats(X.data, "the data of the contexts", "a vector of numbers")
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
