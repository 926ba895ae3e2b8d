"""Compressed sparse rows from columns of positions."""

from collections.abc import Sequence

import numpy as np

from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["assembled"]

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
