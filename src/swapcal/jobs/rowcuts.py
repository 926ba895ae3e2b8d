"""Some of many contexts: a run of them, or chosen ones."""

import numpy as np

from swapcal.roles import Rows
from swapcal.typing import IntArray

__all__ = ["sliced", "taken"]


def sliced(rows: Rows, start: int, end: int) -> Rows:
    """Rows from `start` up to `end`."""
    first, last = rows.indptr[start], rows.indptr[end]
    return Rows(rows.indptr[start : end + 1] - first, rows.indices[first:last], rows.values[first:last])


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
