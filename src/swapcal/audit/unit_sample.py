"""A random sample of rows from each place, or of clusters: in one pass, of bounded size, and mergeable."""

import numpy as np
import numpy.typing as npt

from swapcal.engine.randomness import GOLDEN, mix64
from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["UnitSample"]

MOST = 256
"""Units that are kept of a place."""

LEAST = 16
TOTAL = 1 << 15
"""Units that are kept in all; with many places there are fewer of each, but `LEAST` at least."""

NAMES = ("key", "stratum", "length", "place", "function", "value")


class UnitSample:
    """Units (rows, or clusters of rows), each with its entries (place, function, value).

    Parameters
    ----------
    part : int
        Number of the part of the stream, if parts are sampled apart and merged later; sets the random keys.

    Notes
    -----
    Each unit gets a random key, and those with the smallest keys of their stratum are kept: a uniform sample without
    replacement of each stratum (bottom-k sampling). The k smallest of a union are among the k smallest of the parts, so
    samples merge exactly. After the first units hardly any pass, and a unit costs little more than its key. Memory: 24
    bytes a unit and 16 an entry, for 32,768 units at most while there are 2,048 strata or fewer.
    """

    def __init__(self, part: int = 0) -> None:
        self.part = part
        self.n_units = 0
        self.n_strata = 0
        self._arrays = {name: np.zeros(0, dtype=np.float64 if name == "value" else np.int64) for name in NAMES}
        self._arrays["key"] = np.zeros(0)
        self._waiting: list[dict[str, npt.NDArray[np.generic]]] = []
        self._n_waiting = 0
        self._limits = np.zeros(0)

    def add(
        self, strata: IntArray, lengths: IntArray, places: IntArray, functions: IntArray, values: Float64Array
    ) -> None:
        """Add units.

        Parameters
        ----------
        strata, lengths : array, shape (units,)
            The stratum of each unit (for rows: their place; for clusters: 0), and its number of entries.
        places, functions, values : array, shape (entries,)
            The entries of all units, one unit after the other; values are w f V, or their sums over a cluster.
        """
        if not len(strata):
            return
        keys = self._keys(len(strata))
        self.n_units += len(strata)
        self.n_strata = max(self.n_strata, int(strata.max()) + 1)
        if len(self._limits) < self.n_strata:
            self._limits = np.concatenate([self._limits, np.ones(self.n_strata - len(self._limits))])
        kept = np.flatnonzero(keys < self._limits[strata])
        if not kept.size:
            return
        starts = np.cumsum(lengths) - lengths
        entries = _ranges(starts[kept], lengths[kept])
        new = (keys[kept], strata[kept], lengths[kept], places[entries], functions[entries], values[entries])
        self._waiting.append(dict(zip(NAMES, new, strict=True)))
        self._n_waiting += len(kept)
        if self._n_waiting > max(len(self._arrays["key"]), 4096):
            self._trim()

    def add_rows(
        self, places: IntArray, wv: Float64Array, rows: Rows, linear: Rows | None = None, width: int = 0
    ) -> None:
        """Add rows as units: their places, w V, the values of the groups, and of a linear class from `width` on.

        As `add`, but entries are made for the rows only that are kept.
        """
        if not len(places):
            return
        self.n_strata = max(self.n_strata, int(places.max()) + 1)
        if len(self._limits) < self.n_strata:
            self._limits = np.concatenate([self._limits, np.ones(self.n_strata - len(self._limits))])
        keys = self._keys(len(places))
        self.n_units += len(places)
        kept = np.flatnonzero(keys < self._limits[places])
        if not kept.size:
            return
        parts = []
        for offset, each in ((0, rows), (width, linear)):
            if each is not None:
                lengths = np.diff(each.indptr)[kept]
                at = _ranges(each.indptr[:-1][kept], lengths)
                owner = np.repeat(np.arange(len(kept)), lengths)
                parts.append((owner, each.indices[at] + offset, each.values[at] * wv[kept][owner]))
        owner, functions, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        lengths = np.bincount(owner, minlength=len(kept))
        new = (keys[kept], places[kept], lengths, places[kept][owner], functions[order], values[order])
        self._waiting.append(dict(zip(NAMES, new, strict=True)))
        self._n_waiting += len(kept)
        if self._n_waiting > max(len(self._arrays["key"]), 4096):
            self._trim()

    def merge(self, other: "UnitSample") -> None:
        """Add the sample of another part; give the parts different numbers."""
        self._waiting.append(other.arrays())
        self.n_units += other.n_units
        self.n_strata = max(self.n_strata, other.n_strata)
        self._trim()

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The sample: key, stratum and number of entries of each unit; place, function and value of each entry."""
        self._trim()
        return dict(self._arrays)

    def renumbered(self, start: int, to: int) -> "UnitSample":
        """A copy whose functions from `start` on are numbered from `to` on."""
        arrays = self.arrays()
        function: IntArray = arrays["function"].astype(np.int64)
        copy = UnitSample(self.part)
        copy.restore({**arrays, "function": np.where(function >= start, function - start + to, function)}, self.n_units)
        return copy

    def restore(self, arrays: dict[str, npt.NDArray[np.generic]], n_units: int) -> None:
        """Go on from what `arrays` held after `n_units` units."""
        self._waiting, self.n_units = [dict(arrays)], n_units
        self._arrays = {name: array[:0] for name, array in self._arrays.items()}
        self.n_strata = int(np.max(arrays["stratum"], initial=-1)) + 1
        self._trim()

    def _keys(self, n: int) -> Float64Array:
        """Uniform numbers in [0, 1), a function of (part, number of the unit): cuts into batches change nothing."""
        with np.errstate(over="ignore"):
            z = np.arange(self.n_units + 1, self.n_units + n + 1, dtype=np.uint64) * np.uint64(GOLDEN)
            z += np.uint64(mix64(self.part + GOLDEN))
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _trim(self) -> None:
        """Keep the smallest keys of each stratum."""
        if not self._waiting:
            return
        joined = {name: np.concatenate([self._arrays[name], *(w[name] for w in self._waiting)]) for name in NAMES}
        self._waiting, self._n_waiting = [], 0
        most = int(np.clip(TOTAL // max(self.n_strata, 1), LEAST, MOST))
        order = np.lexsort((joined["key"], joined["stratum"]))
        stratum = joined["stratum"][order]
        rank = np.arange(len(order)) - np.searchsorted(stratum, stratum)
        kept = order[rank < most]
        lengths = joined["length"]
        entries = _ranges((np.cumsum(lengths) - lengths)[kept], lengths[kept])
        self._arrays = {name: array[kept if name in NAMES[:3] else entries] for name, array in joined.items()}
        # A stratum that is full takes only keys below its largest.
        self._limits = np.ones(self.n_strata)
        full = order[rank == most - 1]
        self._limits[joined["stratum"][full]] = joined["key"][full]


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """start, start + 1, ..., start + length - 1 for each pair, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    positions: IntArray = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return positions
