"""Compressed sparse rows from columns of positions."""

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
    if hasattr(hypotheses, "remembered"):
        return Rows(rows.indptr, rows.indices, values)
    return CompressedRows(rows.indptr, rows.indices, values, (n_rows, hypotheses.n))


# --------
# Some of many contexts: a run of them, or chosen ones.


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


def taken(rows: Rows, kept: IntArray) -> Rows:
    """The rows with these numbers, in this order.

    Examples
    --------
    >>> rows = Rows(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 2]), np.ones(4))
    >>> taken(rows, np.array([1, 2])).indices
    array([0, 1, 2])
    """
    lengths = np.diff(rows.indptr)[kept]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    entries = np.repeat(rows.indptr[:-1][kept] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return Rows(indptr, rows.indices[entries], rows.values[entries])


_PAIRWISE = 6
"""Up to so many columns, exchanging pairs of whole columns sorts rows faster than sorting them one by one."""


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
    kept = values != 0.0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    return Rows(indptr, indices[kept], values[kept])


def _sorted(columns: Sequence[IntArray]) -> Sequence[IntArray]:
    """The columns exchanged row by row, so that they increase from the first to the last."""
    if len(columns) > _PAIRWISE:
        return list(np.sort(np.stack(columns, axis=1), axis=1).T)
    ordered = list(columns)
    for last in range(len(ordered) - 1, 0, -1):
        for j in range(last):
            ordered[j], ordered[j + 1] = np.minimum(ordered[j], ordered[j + 1]), np.maximum(ordered[j], ordered[j + 1])
    return ordered
