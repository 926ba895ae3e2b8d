"""The sums of an audit: everything that it keeps of a stream, per distinct forecast value."""

from dataclasses import dataclass

import numpy as np

from swapcal.engine import kernels
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Sums", "Table"]

PER_VALUE = ("count", "v", "vv")
PER_CELL = ("xv", "active", "weight", "xvxv")
_AT_ONCE = 1 << 18
"""Entries of dense contexts that are looked at together, where they must be copied for it."""


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

    Every sum is added to in the order of the rounds, so `add` for each round and `add_many` for all of them, in Python
    or compiled (`cpp/audit.hpp`), give the same bits. 0.0 and -0.0 are one forecast, 0.0.
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

    def add_many(self, values: Float64Array, v: Float64Array, contexts: Rows | Float64Array) -> None:
        """Many rounds; contexts as sparse rows, or as an array of shape (rounds, n), of which no copy is made."""
        slots, v = self._located(values), np.require(v, np.float64, ["C", "A"])
        if isinstance(contexts, Rows):
            self._add_sparse(slots, v, contexts)
            return
        whole = kernels.native is not None and contexts.flags.c_contiguous and contexts.flags.aligned
        step = len(v) if whole else max(1, _AT_ONCE // self.n)
        for start in range(0, len(v), step):
            part = slice(start, start + step)
            self._add_dense(slots[part], v[part], np.require(contexts[part], np.float64, ["C", "A"]))

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

    def _located(self, values: Float64Array) -> IntArray:
        """Where each of these values has its sums."""
        if kernels.native is not None:
            distinct, codes = kernels.native.audit_distinct(np.require(values, np.float64, ["C", "A"]))
        else:
            distinct, codes = np.unique(values, return_inverse=True)
        # The order of the slots depends on the backend; nothing that leaves this class does.
        located: IntArray = self._slots_of(distinct)[codes]
        return located

    def _add_dense(self, slots: IntArray, v: Float64Array, X: Float64Array) -> None:
        if kernels.native is not None:
            kernels.native.audit_add_dense(self._arrays, slots, v, X)
            return
        where, indices = np.nonzero(X)
        indptr = np.searchsorted(where, np.arange(len(X) + 1))
        self._add_sparse(slots, v, Rows(indptr, indices, X[where, indices]))

    def _add_sparse(self, slots: IntArray, v: Float64Array, rows: Rows) -> None:
        if kernels.native is not None:
            kernels.native.audit_add_sparse(self._arrays, slots, v, *rows)
            return
        if rows.indices.size and not 0 <= rows.indices.min() <= rows.indices.max() < self.n:
            raise IndexError("a position is outside the context")
        # np.add.at adds one term after the other; np.bincount would add up the new ones first.
        for name, terms in (("count", 1.0), ("v", v), ("vv", v * v)):
            np.add.at(self._arrays[name], slots, terms)
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

    def _scatter(self, name: str, cells: IntArray, terms: Float64Array | float) -> None:
        np.add.at(self._arrays[name].reshape(-1), cells, terms)

    def _slots_of(self, values: Float64Array) -> IntArray:
        """Where each of these distinct values has its sums; new ones get a place."""
        slots = self._slots
        # Adding 0.0 makes 0.0 of -0.0, whichever of them comes first.
        found = [slots.setdefault(value, len(slots)) for value in (values + 0.0).tolist()]
        capacity = len(self._arrays["count"])
        if len(slots) > capacity:
            # Doubling keeps the cost of growth O(1) per value.
            more = max(len(slots), 2 * capacity, 16) - capacity
            for name, array in self._arrays.items():
                self._arrays[name] = np.concatenate([array, np.zeros((more, *array.shape[1:]))])
        return np.array(found, dtype=np.int64)
