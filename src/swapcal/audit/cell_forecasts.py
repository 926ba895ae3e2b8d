"""Sums of the forecasts themselves in every cell: with the sum of V they tell how many outcomes were 1."""

import numpy as np

from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["CellForecasts"]


class CellForecasts:
    """P = sum of p over the rows of each cell, for groups of 0 and 1 and rows that count once.

    Memory: 8 bytes a cell; a batch costs one count over its entries.

    Examples
    --------
    >>> sums = CellForecasts()
    >>> sums.add(np.array([0, 1]), np.array([0.1, 0.6]), Rows(np.array([0, 1, 3]), np.array([0, 0, 2]), np.ones(3)))
    >>> sums.table(np.array([1]), 3)
    array([[0.6, 0. , 0.6]])
    """

    def __init__(self) -> None:
        self._sums = np.zeros((0, 0))

    def add(self, slots: IntArray, p: Float64Array, rows: Rows) -> None:
        """Add rows: the number of each one's place, its forecast, and its groups."""
        wanted = (int(slots.max(initial=-1)) + 1, int(rows.indices.max(initial=-1)) + 1)
        height, width = (max(have, want) for have, want in zip(self._sums.shape, wanted, strict=True))
        if (height, width) != self._sums.shape:
            grown = np.zeros((height, width))
            grown[: self._sums.shape[0], : self._sums.shape[1]] = self._sums
            self._sums = grown
        lengths = np.diff(rows.indptr)
        keys = np.repeat(slots * width, lengths)
        keys += rows.indices
        self._sums += np.bincount(keys, np.repeat(p, lengths), height * width).reshape(height, width)

    def table(self, slots: IntArray, n: int) -> Float64Array:
        """The sums at some places, for the first `n` groups."""
        found = np.zeros((len(slots), n))
        kept = self._sums[slots, :n]
        found[:, : kept.shape[1]] = kept
        return found

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as an array that may be saved; `restore` goes on from it."""
        return {"sums": self._sums}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self._sums = arrays["sums"].copy()
