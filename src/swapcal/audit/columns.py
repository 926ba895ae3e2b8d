"""The classes an audit uses when none is named: the columns of x, and the constant function."""

import math
from typing import Any

import numpy as np

from swapcal.audit.reading import matrix, vector
from swapcal.errors import InvalidInput
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray, Spec

__all__ = ["Columns", "Constant"]


class Columns:
    """The finite class f_j(x) = x_j, j < n, with |x_j| <= 1. Dense arrays and compressed sparse rows are read alike.

    Examples
    --------
    >>> Columns(3).row([0, 1, -0.5])
    Row(indices=array([1, 2]), values=array([ 1. , -0.5]))
    """

    dual = "max"

    def __init__(self, n: int) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidInput(f"n, the number of columns of x, must be a whole number, 1 or more; got {n!r}")
        self.n = n

    def row(self, x: Any) -> Row:
        """One context: a vector of length n, or a sparse matrix with one row."""
        if _is_sparse(x):
            rows = self.rows(x, 1)
            return Row(rows.indices, rows.values)
        values = vector("x", x)
        if values.shape != (self.n,):
            raise InvalidInput(f"x must have {self.n} entries; got {values.size}")
        _check_range(values)
        indices = np.flatnonzero(values)
        return Row(indices, values[indices])

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts: a dense matrix, or any object that has or can be turned into compressed sparse rows."""
        if _is_sparse(X):
            return self._sparse_rows(X, n_rows)
        dense = matrix("x", X)
        if dense.shape != (n_rows, self.n):
            raise InvalidInput(f"x must have {n_rows} rows, one per label, and {self.n} columns; got {dense.shape}")
        _check_range(dense)
        occupied = dense != 0
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(occupied, axis=1))])
        columns = np.broadcast_to(np.arange(self.n), dense.shape)
        return Rows(indptr, columns[occupied], dense[occupied])

    def supremum(self, sums: Float64Array) -> Float64Array:
        """Largest entry in absolute value."""
        return np.asarray(np.max(np.abs(sums), axis=-1))

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "columns", "n": self.n}

    def _sparse_rows(self, X: Any, n_rows: int) -> Rows:
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        if tuple(X.shape) != (n_rows, self.n):
            raise InvalidInput(f"x must have {n_rows} rows, one per label, and {self.n} columns; got {tuple(X.shape)}")
        indptr, indices = _whole("x.indptr", X.indptr), _whole("x.indices", X.indices)
        values = vector("x.data", X.data)
        if len(indptr) != n_rows + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] > len(values):
            raise InvalidInput("x.indptr must start at 0, not decrease, and end at the number of entries of x")
        indices, values = indices[: indptr[-1]], values[: indptr[-1]]
        if len(indices) != len(values) or (len(indices) and (indices.min() < 0 or indices.max() >= self.n)):
            raise InvalidInput(f"x.indices must give each entry of x a column from 0 to {self.n - 1}")
        keys = np.repeat(np.arange(n_rows), np.diff(indptr)) * self.n + indices
        if np.any(np.diff(keys) <= 0):
            # Entries out of order, or one position several times, which means their sum.
            keys, where = np.unique(keys, return_inverse=True)
            values = np.bincount(where, weights=values).astype(np.float64)
        _check_range(values)
        keys, values = keys[values != 0], values[values != 0]
        indptr = np.searchsorted(keys, np.arange(n_rows + 1) * self.n)
        return Rows(indptr, keys % self.n, values)


class Constant:
    """The class F = {1}: plain calibration. The context must be left out."""

    dual = "max"
    n = 1

    def row(self, x: Any) -> Row:
        """Return the one entry 1."""
        self._refuse(x)
        return Row(np.zeros(1, dtype=np.int64), np.ones(1))

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Return a column of ones."""
        self._refuse(X)
        return Rows(np.arange(n_rows + 1), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows))

    def supremum(self, sums: Float64Array) -> Float64Array:
        """Absolute value of the one entry."""
        return np.asarray(np.abs(sums[..., 0]))

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "constant"}

    def _refuse(self, x: Any) -> None:
        if x is not None:
            raise InvalidInput(
                "this audit began without x, so it must go on without; start a new audit to look at functions of x"
            )


def width(x: Any, *, many: bool) -> int:
    """How many functions these contexts hold, before any class is known."""
    if _is_sparse(x):
        return int(x.shape[1])
    return int(matrix("x", x).shape[1]) if many else len(vector("x", x))


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "tocsr") or all(hasattr(x, name) for name in ("indptr", "indices", "data", "shape"))


def _whole(name: str, values: Any) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must be a vector of whole numbers; got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def _check_range(values: Float64Array) -> None:
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest > 1 or not math.isfinite(largest):
        raise InvalidInput(f"every function must stay in [-1, 1]; got |x| = {largest:.6g}, so rescale that column of x")
