"""Sums per (place, function) that grow as places and functions come up; added in batches by counting keys."""

import numpy as np

from swapcal.audit.sums import Table
from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["CellSums", "columns"]

PER_PLACE = ("count", "forecast", "v", "vv")
PER_CELL = ("xv", "active", "weight", "xvxv")


class CellSums:
    """What an audit keeps: per place the weight, forecast, V and V^2; per cell x V, rounds, |x| and (x V)^2.

    With weights w in [0, 1], V counts as w V, a round as w, and |x| as w |x|; `active` stays a count of rows. Memory:
    32 bytes for each place and function that has come up (capacity is doubled, so at most four times that).
    """

    def __init__(self) -> None:
        self.width = 0
        self.arrays = {name: np.zeros(0) for name in PER_PLACE} | {name: np.zeros((0, 0)) for name in PER_CELL}

    def add(
        self,
        places: IntArray,
        n_places: int,
        p: Float64Array,
        v: Float64Array,
        rows: Rows,
        entry_places: IntArray,
        weights: Float64Array | None,
    ) -> None:
        """Add rounds; `entry_places` is `places` repeated for each entry of `rows`."""
        self._grow(n_places, int(rows.indices.max(initial=-1)) + 1)
        wv = v if weights is None else weights * v
        per_place = {
            "count": weights,
            "forecast": p if weights is None else weights * p,
            "v": wv,
            "vv": wv * wv,
        }
        for name, terms in per_place.items():
            array = self.arrays[name]
            array += np.bincount(places, weights=terms, minlength=len(array))
        lengths = np.diff(rows.indptr)
        keys = entry_places * self.width
        keys += rows.indices
        xv = np.repeat(wv, lengths)
        ones = bool((rows.values == 1.0).all())
        if not ones:
            xv *= rows.values
        active = self._scatter("active", keys, None)
        self._scatter("xv", keys, xv)
        self._scatter("xvxv", keys, xv * xv)
        if ones and weights is None:
            self.arrays["weight"] += active
        else:
            size = np.abs(rows.values)
            self._scatter("weight", keys, size if weights is None else size * np.repeat(weights, lengths))

    def table(self, n_places: int, n_functions: int) -> tuple[IntArray, Table]:
        """Places with any weight, in increasing order of their mean forecast, and the sums of the first functions."""
        self._grow(n_places, n_functions)
        arrays = self.arrays
        used = np.flatnonzero(arrays["count"][:n_places] > 0)
        value = arrays["forecast"][used] / arrays["count"][used]
        order = np.argsort(value, kind="stable")
        used = used[order]
        cells = {name: arrays[name][used, :n_functions] for name in PER_CELL}
        return used, Table(value[order], *(arrays[name][used] for name in ("count", "v", "vv")), **cells)

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.arrays = {name: np.array(arrays[name], dtype=np.float64) for name in (*PER_PLACE, *PER_CELL)}
        self.width = np.atleast_2d(self.arrays["xv"]).shape[-1]

    def _scatter(self, name: str, keys: IntArray, terms: Float64Array | None) -> Float64Array:
        array = self.arrays[name]
        sums = (
            np.bincount(keys, weights=terms, minlength=array.size).reshape(array.shape).astype(np.float64, copy=False)
        )
        array += sums
        return sums

    def _grow(self, n_places: int, n_functions: int) -> None:
        height = len(self.arrays["count"])
        if n_places <= height and n_functions <= self.width:
            return
        tall = height if n_places <= height else max(n_places, 2 * height if height else n_places)
        wide = self.width if n_functions <= self.width else max(n_functions, 2 * self.width, 8)
        for name, array in self.arrays.items():
            larger = np.zeros((tall, wide) if array.ndim == 2 else tall)
            larger[tuple(slice(size) for size in array.shape)] = array
            self.arrays[name] = larger
        self.width = wide


def columns(table: Table, chosen: slice | IntArray) -> Table:
    """The table of some of its functions."""
    cells = (each[:, chosen] for each in (table.xv, table.active, table.weight, table.xvxv))
    return Table(table.value, table.count, table.v, table.vv, *cells)
