"""Sums over clusters of rows (a day, a patient, a booking), closed one after the other, for clustered intervals."""

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["ClusterSums"]


class ClusterSums:
    """Per cell: the number of clusters, the sum of their sums, and the sum of their squared sums.

    Rows come sorted by cluster; where the id changes, the cluster is closed. One that comes again later counts as a new
    one, which makes intervals too narrow: sort first.

    Parameters
    ----------
    n_cells : int
        Cells: groups, or places times groups.

    Notes
    -----
    Memory: 33 bytes a cell, whatever the number of clusters. `merge` adds the sums of another part of the stream; a
    cluster must not be cut in two between parts, so close both first.

    Examples
    --------
    >>> sums = ClusterSums(2)
    >>> sums.add(np.array([7, 7, 8]), np.array([0, 1, 2, 2]), np.array([0, 0, 0, 1]), np.array([0.5, 0.25, -1.0, -1.0]))
    >>> sums.close()
    >>> sums.terms, sums.total, sums.squares
    (array([2., 1.]), array([-0.25, -1.  ]), array([1.5625, 1.    ]))
    """

    def __init__(self, n_cells: int) -> None:
        self.terms, self.total, self.squares = np.zeros(n_cells), np.zeros(n_cells), np.zeros(n_cells)
        self._open = np.zeros(n_cells)
        self._touched = np.zeros(n_cells, dtype=np.bool_)
        self._id: int | None = None

    def add(self, clusters: IntArray, entry_rows: IntArray, cells: IntArray, values: Float64Array) -> None:
        """Add rows.

        Parameters
        ----------
        clusters : array, shape (rows,)
            The cluster of each row, whole numbers; equal ones stand together.
        entry_rows, cells : array, shape (entries,)
            Row, counted from 0 and nondecreasing, and cell of each entry.
        values : array, shape (entries,)
            What the row adds to the cell: w f V.
        """
        if len(entry_rows) != len(cells) or len(cells) != len(values):
            raise InvalidInput(f"{len(entry_rows)} rows, {len(cells)} cells and {len(values)} values must be as many")
        if not len(clusters):
            return
        starts = np.flatnonzero(np.concatenate([[self._id is None or clusters[0] != self._id], np.diff(clusters) != 0]))
        run_of_row = np.zeros(len(clusters), dtype=np.int64)
        run_of_row[starts] = 1
        # Run 0 goes on with the cluster that is open; the last run stays open.
        runs = np.cumsum(run_of_row)[entry_rows]
        n_cells, last = len(self.terms), len(starts)
        keys, where = np.unique(runs * n_cells + cells, return_inverse=True)
        sums = np.bincount(where, weights=values, minlength=len(keys))
        run, cell = np.divmod(keys, n_cells)
        first = run == 0
        self._add_open(cell[first], sums[first])
        if last:
            self.close()
            closed = (run > 0) & (run < last)
            np.add.at(self.terms, cell[closed], 1.0)
            np.add.at(self.total, cell[closed], sums[closed])
            np.add.at(self.squares, cell[closed], sums[closed] ** 2)
            self._add_open(cell[run == last], sums[run == last])
        self._id = int(clusters[-1])

    def close(self) -> None:
        """Close the cluster that is open, as at the end of the stream."""
        cells = np.flatnonzero(self._touched)
        self.terms[cells] += 1.0
        self.total[cells] += self._open[cells]
        self.squares[cells] += self._open[cells] ** 2
        self._open[cells] = 0.0
        self._touched[cells] = False
        self._id = None

    def merge(self, other: "ClusterSums") -> None:
        """Add the sums of another part; both must be closed."""
        if self._touched.any() or other._touched.any():
            raise InvalidInput("a cluster is still open: close() both parts before they are merged")
        self.terms += other.terms
        self.total += other.total
        self.squares += other.squares

    def first(self, n_cells: int) -> "ClusterSums":
        """The sums of the first `n_cells` cells, all clusters closed."""
        copy = ClusterSums(n_cells)
        for name in ("terms", "total", "squares"):
            setattr(copy, name, getattr(self, name)[:n_cells].copy())
        touched, opened = self._touched[:n_cells], self._open[:n_cells]
        copy.terms += touched
        copy.total += opened
        copy.squares += opened**2
        return copy

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return {
            "terms": self.terms,
            "total": self.total,
            "squares": self.squares,
            "open": self._open,
            "touched": self._touched.astype(np.float64),
            "id": np.array([np.nan if self._id is None else float(self._id)]),
        }

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.terms, self.total, self.squares = (arrays[name].copy() for name in ("terms", "total", "squares"))
        self._open, self._touched = arrays["open"].copy(), arrays["touched"] > 0
        self._id = None if np.isnan(arrays["id"][0]) else int(arrays["id"][0])

    def _add_open(self, cells: IntArray, sums: Float64Array) -> None:
        self._open[cells] += sums
        self._touched[cells] = True
