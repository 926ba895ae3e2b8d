"""The sums of an audit: everything that it keeps of a stream, per distinct forecast value."""

from dataclasses import dataclass

import numpy as np

from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Sums", "Table"]

PER_VALUE = ("count", "v", "vv")
PER_CELL = ("xv", "active", "weight", "xvxv")


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Sums per forecast value, in increasing order of the value; m values, n functions.

    value, count, v, vv: shape (m,): forecast, rounds, sum of V, sum of V^2.
    xv, active, weight, xvxv: shape (m, n): sum of x V, rounds with x != 0, sum of |x|, sum of (x V)^2. The last three
    are empty, shape (m, 0), when only errors and no intervals are wanted.
    """

    value: Float64Array
    count: Float64Array
    v: Float64Array
    vv: Float64Array
    xv: Float64Array
    active: Float64Array
    weight: Float64Array
    xvxv: Float64Array


class Sums:
    """Sums that grow with the number of distinct forecasts, never with the number of rounds.

    Adding a round costs O(entries of x that are not 0). Memory is at most 8 (n + 1) doubles for each distinct
    forecast, or 2 (n + 2) without `intervals`.
    """

    def __init__(self, n: int, *, intervals: bool = True) -> None:
        self.n = n
        self.intervals = intervals
        self._slots: dict[float, int] = {}
        kept = PER_CELL if intervals else PER_CELL[:1]
        self._arrays = {name: np.zeros(0) for name in PER_VALUE} | {name: np.zeros((0, n)) for name in kept}

    @classmethod
    def from_table(cls, table: Table) -> "Sums":
        """Rebuild the sums of a complete table with distinct values."""
        sums = cls(table.xv.shape[1])
        slots = sums._slots_of(table.value)
        for name, array in sums._arrays.items():
            array[slots] = getattr(table, name)
        return sums

    def add(self, value: float, v: float, row: Row) -> None:
        """One round."""
        slot = self._slots.get(value, -1)
        if slot < 0:
            slot = int(self._slots_of(np.array([value]))[0])
        arrays, (indices, x) = self._arrays, row
        arrays["count"][slot] += 1
        arrays["v"][slot] += v
        arrays["vv"][slot] += v * v
        arrays["xv"][slot, indices] += x * v
        if self.intervals:
            arrays["active"][slot, indices] += 1
            arrays["weight"][slot, indices] += np.abs(x)
            arrays["xvxv"][slot, indices] += (x * v) ** 2

    def add_many(self, values: Float64Array, v: Float64Array, rows: Rows) -> None:
        """Many rounds."""
        distinct, which = np.unique(values, return_inverse=True)
        slots = self._slots_of(distinct)[which]
        n_slots = len(self._slots)
        for name, weights in (("count", None), ("v", v), ("vv", v * v)):
            self._arrays[name][:n_slots] += np.bincount(slots, weights=weights, minlength=n_slots)
        lengths = np.diff(rows.indptr)
        cells = np.repeat(slots * self.n, lengths)
        cells += rows.indices
        x = rows.values
        xv = x * np.repeat(v, lengths)
        self._scatter("xv", cells, xv)
        if self.intervals:
            self._scatter("active", cells, 1.0)
            self._scatter("weight", cells, np.abs(x))
            self._scatter("xvxv", cells, xv * xv)

    def merge(self, other: "Sums") -> None:
        """Add the sums of another stream over the same functions."""
        slots = self._slots_of(np.array(list(other._slots)))
        for name, array in self._arrays.items():
            array[slots] += other._arrays[name][: len(slots)]

    def table(self) -> Table:
        """Return the sums, as copies."""
        values = np.array(list(self._slots), dtype=np.float64)
        order = np.argsort(values)
        rows = {name: array[: len(values)][order] for name, array in self._arrays.items()}
        empty = {name: np.zeros((len(values), 0)) for name in PER_CELL if name not in rows}
        return Table(value=values[order], **rows, **empty)

    def _scatter(self, name: str, cells: IntArray, terms: Float64Array | float) -> None:
        np.add.at(self._arrays[name].reshape(-1), cells, terms)

    def _slots_of(self, values: Float64Array) -> IntArray:
        """Where each of these distinct values has its sums; new ones get a place."""
        slots = self._slots
        found = [slots.setdefault(value, len(slots)) for value in values.tolist()]
        capacity = len(self._arrays["count"])
        if len(slots) > capacity:
            # Doubling keeps the cost of growth O(1) per value.
            more = max(len(slots), 2 * capacity, 16) - capacity
            for name, array in self._arrays.items():
                self._arrays[name] = np.concatenate([array, np.zeros((more, *array.shape[1:]))])
        return np.array(found, dtype=np.int64)
