"""Many contexts at once: how many there are, one by one, and with weights."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from swapcal import checked
from swapcal.errors import InvalidInput
from swapcal.roles import Hypotheses, Row, Rows

__all__ = ["CompressedRows", "cases", "each", "how_many", "weighted"]


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
        raise InvalidInput(f"contexts must be a table, one row for each round; got {checked.shown(X)}")
    return len(columns[0])


def each(rows: Rows) -> Iterator[Row]:
    """The rows one by one."""
    for start, stop in pairwise(rows.indptr.tolist()):
        yield Row(rows.indices[start:stop], rows.values[start:stop])


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
    shares = checked.vector(weights, "weights", n_rows)
    if shares.size and not 0.0 <= shares.min() <= shares.max() <= 1.0:
        raise InvalidInput("weights must lie in [0, 1]: the share for which a row counts; divide them by the largest")
    if getattr(hypotheses, "dual", "") != "max":
        raise InvalidInput(f"weights are for finite classes and groups; {hypotheses!r} scales its contexts by itself")
    rows = hypotheses.rows(X, n_rows)
    values = rows.values * np.repeat(shares, np.diff(rows.indptr))
    if hasattr(hypotheses, "remembered"):
        return Rows(rows.indptr, rows.indices, values)
    return CompressedRows(rows.indptr, rows.indices, values, (n_rows, hypotheses.n))
