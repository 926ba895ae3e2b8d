"""The sums of an audit: everything that it keeps of a stream, per forecast value. There is no other accumulator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swapcal.audits.linear import Bounds, linear_bounds
from swapcal.engine import kernels
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Finite
from swapcal.inputs import matrix, real, vector
from swapcal.protocols import Hypotheses, Row, Rows
from swapcal.typing import Float64Array, IntArray, Spec

Times = Callable[[int], str | None]


class Positions(NamedTuple):
    """Where the forecast values (slots) and the groups of a column lie in the one it was merged into."""

    slots: IntArray
    groups: IntArray | None


@dataclass(frozen=True, eq=False)
class Scored:
    """Rounds of a column of forecasts as its parts add them: what several of them need is worked out once.

    y, p, v: outcomes, forecasts and identification values. slots: where the audit counts each forecast. rows, linear:
    values of the groups, and of the coordinates of a linear class. weights, clusters, numbers: one entry a round.
    time: what is known of the time of a round, by its number among these.
    """

    y: Float64Array
    p: Float64Array
    v: Float64Array
    slots: IntArray
    rows: Rows
    linear: Rows | None = None
    weights: Float64Array | None = None
    clusters: IntArray | None = None
    time: Times | None = None
    numbers: tuple[Float64Array, ...] = ()

    @cached_property
    def once(self) -> bool:
        """Whether every round counts once and groups are 0 or 1."""
        return self.weights is None and bool((self.rows.values == 1.0).all())

    @cached_property
    def wv(self) -> Float64Array:
        """W V of each round."""
        return self.v if self.weights is None else self.weights * self.v

    @cached_property
    def lengths(self) -> IntArray:
        """Entries of each round: its groups."""
        return np.diff(self.rows.indptr)

    @cached_property
    def sizes(self) -> Float64Array | None:
        """W |f| of each entry; None where all are 1."""
        if self.once:
            return None
        return np.abs(self.rows.values) * (1.0 if self.weights is None else np.repeat(self.weights, self.lengths))

    @cached_property
    def terms(self) -> Float64Array:
        """W f V of each entry."""
        terms = np.repeat(self.wv, self.lengths)
        return terms if self.once else self.rows.values * terms

    def cells(self, places: IntArray, width: int) -> IntArray:
        """The number of each entry's cell in a table of `width` groups, of which `places` are the lines of rounds."""
        keys: IntArray = np.repeat(places * width, self.lengths)
        keys += self.rows.indices
        return keys


class Part:
    """Sums over rounds that are saved by the names of their arrays and numbers; `add` and `merge` are their own."""

    saved: ClassVar[tuple[str, ...]]

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state; `restore` goes on from it."""
        values = {name.strip("_"): np.asarray(getattr(self, name), dtype=np.float64) for name in self.saved}
        return {name: np.atleast_1d(value) for name, value in values.items()}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held; the settings must be those of the part that had it."""
        for name in self.saved:
            now, array = getattr(self, name), arrays[name.strip("_")]
            setattr(self, name, array.astype(now.dtype) if isinstance(now, np.ndarray) else type(now)(array[0]))


def counted(keys: IntArray, weights: Float64Array | None, shape: tuple[int, ...]) -> Float64Array:
    """How often each key comes, or the weight with which it does, in an array of `shape`."""
    counts = np.bincount(keys, weights=weights, minlength=int(np.prod(shape)))
    return counts.reshape(shape).astype(np.float64, copy=False)


def grown(array: Float64Array, shape: tuple[int, ...]) -> Float64Array:
    """`array` with zeros behind it up to `shape`, where that is larger."""
    wanted = tuple(max(have, want) for have, want in zip(array.shape, shape, strict=True))
    if wanted == array.shape:
        return array
    larger = np.zeros(wanted)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


def added(array: Float64Array, other: Float64Array, *positions: IntArray | None) -> Float64Array:
    """`array`, grown where need be, with `other` added at `positions` of each axis; None: where it is.

    Examples
    --------
    >>> added(np.ones(2), np.array([5.0, 7.0]), np.array([2, 0]))
    array([8., 1., 5.])
    """
    places = [np.arange(n) if at is None else at[:n] for at, n in zip(positions, other.shape, strict=True)]
    array = grown(array, tuple(int(at.max(initial=-1)) + 1 for at in places))
    array[np.ix_(*places)] += other[tuple(slice(len(at)) for at in places)]
    return array


# --------
# Bins between edges: the one place that turns forecasts and outcomes into numbers of bins.


def plain(array: Float64Array) -> Float64Array:
    """The array as kernels take it: doubles that lie one behind the other."""
    return np.require(array, np.float64, ["C", "A"])


def bins_between(inner: Float64Array, values: Float64Array, *, upper: bool = True) -> IntArray:
    """The bin of each value, with the edges `inner` between bins; an edge itself belongs to the `upper` bin or not.

    Examples
    --------
    >>> bins_between(np.array([0.2, 0.5]), np.array([0.1, 0.2, 0.9])).tolist()
    [0, 1, 2]
    """
    if kernels.native is not None:
        bins: IntArray = kernels.native.audit_bins(plain(inner), plain(values), upper)
        return bins
    return np.searchsorted(inner, values, side="right" if upper else "left")


# --------
# The class of functions that an audit takes where none is named.


class Constant(Finite):
    """The class F = {1}: plain calibration. The context must be left out."""

    def __init__(self) -> None:
        super().__init__(1)

    def row(self, x: Any) -> Row:
        """Return the one entry 1."""
        return Row(*self.rows(x, 1)[1:])

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Return a column of ones."""
        if X is not None:
            raise InvalidInput(
                "this audit began without x, so it must go on without; start a new audit to look at functions of x"
            )
        return Rows(np.arange(n_rows + 1), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows))

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "constant"}


def width(x: Any, *, many: bool) -> int:
    """How many functions these contexts hold, before any class is known."""
    shape = getattr(x, "shape", None) if hasattr(x, "tocsr") or hasattr(x, "indptr") else None
    if shape is not None:
        if not isinstance(shape, tuple) or len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:
            raise InvalidInput(f"sparse contexts must have two dimensions and a column or more; got shape {shape!r}")
        return shape[1]
    n_functions = matrix(x, "x").shape[1] if many else len(vector(x, "x"))
    if not n_functions:
        raise InvalidInput("x has no columns; leave it out to audit calibration alone")
    return int(n_functions)


PER_VALUE = ("rounds", "count", "v", "vv")
PER_CELL = ("xv", "active", "weight", "xvxv")
# Entries of dense contexts that are looked at together, where they must be copied for it.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False, slots=True)
class SumTable:
    """Sums per forecast value, in increasing order of the value; m values, n functions.

    value, slot: shape (m,): forecast (mean forecast, where values share a bin), and the number that `Sums.slots` gives.
    rounds, count, v, vv: shape (m,): rounds, their weight, sum of V, sum of V^2.
    xv, active, weight, xvxv: shape (m, n): sum of x V, rounds with x != 0, sum of |x|, sum of (x V)^2. The last three
    are empty, shape (m, 0), when only errors and no intervals are wanted.

    With weights w in [0, 1], V counts as w V and |x| as w |x|; `rounds` and `active` stay numbers of rounds.
    """

    value: Float64Array
    slot: IntArray
    rounds: Float64Array
    count: Float64Array
    v: Float64Array
    vv: Float64Array
    xv: Float64Array
    active: Float64Array
    weight: Float64Array
    xvxv: Float64Array


class Sums:
    """Sums that grow with the forecast values and functions that come up, never with the number of rounds.

    Adding a round costs O(entries of x that are not 0). Memory is at most 8 (n + 1) doubles for each value, or 2 (n +
    3) without `intervals`, where n counts the functions up to the last one that was ever not 0.

    Every sum is added to in the order of the rounds, so `add` for each round and `add_many` for all of them, in Python
    or compiled (`cpp/audit.hpp`), give the same bits. 0.0 and -0.0 are one forecast, 0.0.

    Parameters
    ----------
    n : int
        Number of functions.
    edges : array, optional
        Forecasts without an edge between them share a slot; an inner edge belongs to the bin above it. None: every
        distinct forecast has its own.
    intervals : bool
        Whether to keep what intervals need.
    """

    def __init__(self, n: int, *, edges: Float64Array | None = None, intervals: bool = True) -> None:
        self.n = n
        self.intervals = intervals
        self._inner = None if edges is None else edges[1:-1]
        self._values: dict[float, int] = {}
        per_value = PER_VALUE if edges is None else (*PER_VALUE, "forecast")
        self._arrays: dict[str, Float64Array] = {name: np.zeros(0) for name in per_value}
        self._arrays |= {name: np.zeros((0, 0)) for name in (PER_CELL if intervals else PER_CELL[:1])}
        if self._inner is not None:
            self._grow(len(self._inner) + 1, 0)

    @property
    def n_slots(self) -> int:
        """Forecast values so far; bins, where there are edges."""
        return len(self._values) if self._inner is None else len(self._inner) + 1

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return int(self._arrays["rounds"].sum())

    @property
    def n_used(self) -> int:
        """Functions up to the last one that was ever not 0."""
        used = np.flatnonzero(self._arrays["active" if self.intervals else "xv"].any(axis=0))
        return int(used[-1]) + 1 if len(used) else 0

    def add(self, value: float, v: float, row: Row, weight: float = 1.0) -> None:
        """One round; `weight` is in [0, 1]."""
        slot = self._values.get(value, -1) if self._inner is None else -1
        if slot < 0:
            slot = int(self.slots(np.array([value]))[0])
        indices, x = row
        self._grow(slot + 1, int(indices.max(initial=-1)) + 1)
        arrays, wv = self._arrays, weight * v
        arrays["rounds"][slot] += 1
        arrays["count"][slot] += weight
        arrays["v"][slot] += wv
        arrays["vv"][slot] += wv * wv
        if self._inner is not None:
            arrays["forecast"][slot] += weight * value
        arrays["xv"][slot, indices] += x * wv
        if self.intervals:
            arrays["active"][slot, indices] += 1
            arrays["weight"][slot, indices] += weight * np.abs(x)
            arrays["xvxv"][slot, indices] += (x * wv) ** 2

    def add_many(
        self, values: Float64Array, v: Float64Array, contexts: Rows | Float64Array, weights: Float64Array | None = None
    ) -> None:
        """Many rounds; contexts as sparse rows, or as an array of shape (rounds, n), of which no copy is made."""
        n_columns = int(contexts.indices.max(initial=-1)) + 1 if isinstance(contexts, Rows) else self.n
        if n_columns > self.n:
            raise IndexError("a position is outside the context")
        slots, values, v = self.slots(values), plain(values), plain(v)
        weights = None if weights is None else plain(weights)
        self._grow(0, n_columns)
        if isinstance(contexts, Rows):
            self._add_sparse(slots, v, values, weights, contexts)
            return
        whole = kernels.native is not None and contexts.flags.c_contiguous and contexts.flags.aligned
        step = len(v) if whole else max(1, _AT_ONCE // self.n)
        for start in range(0, len(v), step):
            part = slice(start, start + step)
            w = None if weights is None else weights[part]
            self._add_dense(slots[part], v[part], values[part], w, plain(contexts[part]))

    def slots(self, values: Float64Array) -> IntArray:
        """The number of each forecast: in the order in which they first came up, or of its bin between edges."""
        if self._inner is not None:
            return bins_between(self._inner, values)
        if kernels.native is not None:
            distinct, codes = kernels.native.audit_distinct(plain(values))
        else:
            ordered, first, which = np.unique(values, return_index=True, return_inverse=True)
            order = np.argsort(first)
            distinct, codes = ordered[order], np.argsort(order)[which]
        # Adding 0.0 makes 0.0 of -0.0, whichever of them comes first.
        numbers = self._values
        slots = [numbers.setdefault(value, len(numbers)) for value in (distinct + 0.0).tolist()]
        self._grow(len(numbers), 0)
        located: IntArray = np.array(slots, dtype=np.int64)[codes]
        return located

    def merge(self, other: "Sums", columns: IntArray | None = None) -> IntArray:
        """Add the sums of another stream over the same edges; where its slots are here.

        Its function j is `columns[j]` here, j by default.
        """
        theirs = other.arrays()
        slots = self.slots(theirs["value"]) if self._inner is None else np.arange(self.n_slots)
        n_used = theirs["xv"].shape[1] if columns is None else other.n_used
        where = np.arange(n_used) if columns is None else columns[:n_used]
        self._grow(0, int(where.max(initial=-1)) + 1)
        for name, array in self._arrays.items():
            if array.ndim == 1:
                array[slots] += theirs[name]
            else:
                array[slots[:, None], where] += theirs[name][:, :n_used]
        return slots

    def table(self, n: int | None = None) -> SumTable:
        """The sums of all values with any weight and of the first `n` functions (default all), as copies."""
        n = self.n if n is None else n
        used = np.flatnonzero(self._arrays["count"][: self.n_slots] > 0)
        if self._inner is None:
            values = np.array(list(self._values), dtype=np.float64)[used]
            order = np.argsort(values)
            values, used = values[order], used[order]
        else:
            values = _tidy(self._arrays["forecast"][used] / self._arrays["count"][used])
        cells = {name: np.zeros((len(used), 0)) for name in PER_CELL}
        cells |= {name: grown(self._arrays[name][used, :n], (0, n)) for name in PER_CELL if name in self._arrays}
        return SumTable(values, used, *(self._arrays[name][used] for name in PER_VALUE), **cells)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, slot by slot, as arrays that may be saved; `restore` goes on from it."""
        state = {name: array[: self.n_slots] for name, array in self._arrays.items()}
        return state if self._inner is not None else {"value": np.array(list(self._values), dtype=np.float64), **state}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take over what `arrays` held; the settings must be those of the sums that had it."""
        n_slots = len(arrays["value"]) if self._inner is None else self.n_slots
        n_columns = arrays["xv"].shape[-1]
        for name in self._arrays:
            # Kernels add to the rows of slots and the columns of functions.
            dims = (n_slots, n_columns) if name in PER_CELL else (n_slots,)
            if arrays[name].shape != dims or n_columns > self.n:
                raise StateFileError(f"these sums do not fit their functions and forecasts: {name} is {dims}")
        if self._inner is None:
            self._values = {value: slot for slot, value in enumerate(arrays["value"].tolist())}
        self._arrays = {name: np.array(arrays[name], dtype=np.float64, order="C") for name in self._arrays}

    def _add_dense(
        self, slots: IntArray, v: Float64Array, values: Float64Array, weights: Float64Array | None, X: Float64Array
    ) -> None:
        if kernels.native is not None:
            kernels.native.audit_add_dense(self._arrays, slots, v, values, weights, X)
            return
        where, indices = np.nonzero(X)
        indptr = np.searchsorted(where, np.arange(len(X) + 1))
        self._add_sparse(slots, v, values, weights, Rows(indptr, indices, X[where, indices]))

    def _add_sparse(
        self, slots: IntArray, v: Float64Array, values: Float64Array, weights: Float64Array | None, rows: Rows
    ) -> None:
        if kernels.native is not None:
            kernels.native.audit_add_sparse(self._arrays, slots, v, values, weights, *rows)
            return
        if rows.indices.size and rows.indices.min() < 0:
            raise IndexError("a position is outside the context")
        w = 1.0 if weights is None else weights
        wv = w * v
        # np.add.at adds one term after the other; np.bincount would add up the new ones first.
        for name, terms in (("rounds", 1.0), ("count", w), ("v", wv), ("vv", wv * wv)):
            np.add.at(self._arrays[name], slots, terms)
        if self._inner is not None:
            np.add.at(self._arrays["forecast"], slots, w * values)
        lengths = np.diff(rows.indptr)
        cells = np.repeat(slots * self._arrays["xv"].shape[1], lengths)
        cells += rows.indices
        x = rows.values
        xv = x * np.repeat(wv, lengths)
        sizes = np.abs(x) if weights is None else np.abs(x) * np.repeat(weights, lengths)
        by_cell: dict[str, Float64Array | float] = {"xv": xv, "active": 1.0, "weight": sizes, "xvxv": xv * xv}
        for name in by_cell.keys() & self._arrays.keys():
            np.add.at(self._arrays[name].reshape(-1), cells, by_cell[name])

    def _grow(self, n_slots: int, n_columns: int) -> None:
        """Make room for so many slots and functions. Doubling keeps the cost of growth O(1) per slot and function."""
        height, width = self._arrays["xv"].shape
        if n_slots <= height and n_columns <= width:
            return
        if n_slots > height and self._inner is None:
            height = max(n_slots, 2 * height, 16)
        height = max(height, n_slots)
        if n_columns > width:
            width = min(max(n_columns, 2 * width, 8), self.n)
        for name, array in self._arrays.items():
            self._arrays[name] = grown(array, (height, width)[: array.ndim])


def _tidy(values: Float64Array) -> Float64Array:
    """Mean forecasts without the last digits, which are the rounding of sums: the mean of many 0.4 is 0.4."""
    return np.array([float(f"{value:.12g}") for value in values.tolist()])


# --------
# The errors of the paper, from the sums of an audit: Cal, MCal and SMCal for any power r >= 1.


def check_power(r: Any) -> float:
    """Read the power r as a float, 1 or more."""
    power = real(r, "r")
    if power < 1:
        raise InvalidInput(f"the power r must be 1 or more; got {power!r}")
    return power


def calibration(table: SumTable, r: float) -> float:
    """Cal_r: sum over forecast values of n_p |mean of V|^r."""
    return float(np.sum(table.count * np.abs(table.v / table.count) ** r))


def multicalibration_bounds(table: SumTable, functions: Hypotheses, r: float) -> Bounds:
    """MCal_r: the worst single function. Equal bounds for a finite class, and for the linear one at r = 2."""
    dual = functions.dual
    if dual == "max":
        errors = table.count @ np.abs(table.xv / table.count[:, None]) ** r
        value = float(np.max(errors, initial=0.0))
        return Bounds(value, value)
    if dual == "euclidean":
        return linear_bounds(table.count, table.xv, r)
    raise InvalidInput(
        f"multicalibration is known for finite and linear classes (dual 'max' or 'euclidean'); {functions!r} has dual "
        f"{dual!r}: ask for the swap multicalibration error, which is never smaller"
    )


def swap_contributions(table: SumTable, functions: Hypotheses, r: float) -> Float64Array:
    """n_p sup over f of |mean of f V|^r for each forecast value; their sum is SMCal_r."""
    return np.asarray(table.count * (functions.supremum(table.xv) / table.count) ** r)
