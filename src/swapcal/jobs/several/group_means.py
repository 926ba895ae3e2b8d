"""Means of a few numbers over the rows of every group."""

import numpy as np

from swapcal.roles import Rows
from swapcal.typing import Float64Array

__all__ = ["GroupMeans"]


class GroupMeans:
    """Sums that can be kept: of each number over a group's rows, and how many rows those are.

    Parameters
    ----------
    n : int
        Number of groups.
    names : tuple of str
        What the numbers are called.

    Examples
    --------
    >>> means = GroupMeans(2, ("width",))
    >>> means.add(Rows(np.array([0, 1, 3]), np.array([0, 0, 1]), np.ones(3)), np.array([1.0, 3.0]))
    >>> means.of("width"), means.rows
    (array([2., 3.]), array([2., 1.]))
    """

    def __init__(self, n: int, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = np.zeros((1 + len(names), n))

    @property
    def rows(self) -> Float64Array:
        """Rows of each group."""
        rows: Float64Array = self.sums[0]
        return rows

    def add(self, rows: Rows, *numbers: Float64Array) -> None:
        """Add rows: their groups, and one array for each of the names."""
        n, lengths = self.sums.shape[1], np.diff(rows.indptr)
        for k, each in enumerate((np.ones(len(lengths)), *numbers)):
            self.sums[k] += np.bincount(rows.indices, np.repeat(each, lengths), n)

    def of(self, name: str) -> Float64Array:
        """The mean of a number in each group; NaN without rows."""
        total: Float64Array = self.sums[1 + self.names.index(name)]
        means: Float64Array = np.divide(total, self.rows, out=np.full(len(total), np.nan), where=self.rows > 0)
        return means

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {"means": self.sums}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        kept = arrays["means"]
        if kept.shape != self.sums.shape or (kept[0] < 0).any():
            raise ValueError(f"the sums of groups have shape {kept.shape}")
        self.sums = kept.copy()
