"""A finite class: the context is the vector of its functions' values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from swapcal import inputs
from swapcal.engine import kernels
from swapcal.engine.theorems import certified, certified_separately, quadratic_drift, quadratic_reserve
from swapcal.engine.values import grown
from swapcal.errors import InvalidInput
from swapcal.potentials import AdaNormalHedge, PNorm, Potential
from swapcal.protocols import Row, Rows, Tally
from swapcal.sparse import expect_signed_shares, read_row, read_rows
from swapcal.typing import Float64Array, Spec


class Composable:
    """A class of functions that can stand beside another, `A | B`, or be multiplied with it, `A * B`."""

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        """The functions of both."""
        from swapcal.hypotheses.blocks import Union

        return Union([self, other])

    def __mul__(self, other: Any) -> Any:
        """The functions of the other in each group of this one."""
        from swapcal.hypotheses.blocks import Product

        return Product(self, other)

    def extended(self, extra: int) -> Any:
        """The class with the level sets of a hint behind it."""
        from swapcal.hypotheses.blocks import Union

        return Union([self]).extended(extra)

    def start(self, capacity: int) -> Any:
        """No evidence, and room for that of `capacity` values."""
        from swapcal.hypotheses.blocks import Union

        return Union([self]).start(capacity)


class OfMembers(Composable):
    """A class that is made of others, its `members`, some of which learn from what they read."""

    __slots__ = ()

    members: Sequence[Any]

    def fit(self, X: Any) -> None:
        """Let the members that can learn from a first part of the stream."""
        for one in self.members:
            if hasattr(one, "fit"):
                one.fit(X)

    def snapshot(self) -> list[Any]:
        """What the members have learned so far, for `restore`."""
        return [one.snapshot() if hasattr(one, "snapshot") else None for one in self.members]

    def restore(self, snapshot: list[Any]) -> None:
        """Go back to a snapshot."""
        for member, one in zip(self.members, snapshot, strict=True):
            if hasattr(member, "restore"):
                member.restore(one)


@dataclass(frozen=True, slots=True, repr=False)
class Finite(Composable):
    """`n` functions f_0, ..., f_{n-1} with values in [-1, 1]; f_j(x) = x_j.

    For groups, x_j is 1 where the case belongs to group j and 0 elsewhere; groups may overlap. Only entries that are
    not zero cost anything, and a sparse context may be given as {position: value}, as (positions, values) or as a row
    of a SciPy matrix.

    Parameters
    ----------
    n : int
        Number of functions.
    potential : Potential
        How evidence is weighed: `AdaNormalHedge()` (the default), `Exponential()`, `Squint()` or `PNorm()`.
    names : sequence of str, optional
        What audits call the functions.

    Examples
    --------
    >>> Finite(3).row([1.0, 0.0, -0.5])
    Row(indices=array([0, 2]), values=array([ 1. , -0.5]))
    >>> Finite(10_000).row({7: 1.0, 2: 1.0}).indices
    array([2, 7])
    """

    n: int
    potential: Potential = field(default_factory=AdaNormalHedge, kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    # The norm of the sums that is the supremum over the class.
    dual: ClassVar[str] = "max"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", inputs.integer(self.n, "the number of functions", 1))
        if self.names is not None and (len(self.names) != self.n or not all(isinstance(s, str) for s in self.names)):
            raise InvalidInput(f"Finite({self.n}) needs {self.n} names, each a string; got {self.names!r}")

    def __repr__(self) -> str:
        potential = "" if self.potential == AdaNormalHedge() else f", potential={self.potential!r}"
        return f"Finite({self.n}{potential}{'' if self.names is None else f', names={list(self.names)!r}'})"

    def row(self, x: Any) -> Row:
        """One context as its non-zero entries, each in [-1, 1]."""
        row = read_row(x, self.n)
        expect_signed_shares(row.values)
        return row

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        rows = read_rows(X, self.n, n_rows)
        expect_signed_shares(rows.values)
        return rows

    def supremum(self, sums: Float64Array) -> Float64Array:
        """max_j |sums_j|."""
        largest: Float64Array = np.max(np.abs(sums), axis=-1)
        return largest

    def complexity(self, n_rounds: float) -> float:
        """At most root(2 n ln |F|): n times the sequential Rademacher complexity (docs/guarantees.md, section 4)."""
        return math.sqrt(2.0 * n_rounds * math.log(self.n))

    def extended(self, extra: int) -> "Finite":
        """The class with `extra` further functions behind its own."""
        names = None if self.names is None else [*self.names, *(f"hint level {k}" for k in range(extra))]
        return Finite(self.n + extra, potential=self.potential, names=names)

    def start(self, capacity: int) -> "FiniteEvidence":
        """No evidence, and room for that of `capacity` values."""
        potential = self.potential.for_class(self.n) if isinstance(self.potential, PNorm) else self.potential
        return FiniteEvidence(self.n, potential, capacity)

    def spec(self) -> Spec:
        """Plain data."""
        names = None if self.names is None else list(self.names)
        return {"kind": "Finite", "n": self.n, "potential": dict(self.potential.spec()), "names": names}


class Drifts:
    """What rounds add to the drift of a potential that weighs functions by themselves, from `phi`."""

    __slots__ = ()

    def phi(self, bin: int, row: Row) -> float:
        """The evidence of a value for a context."""
        raise NotImplementedError

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """(Phi now - Phi at the draw) V."""
        return (self.phi(bin, row) - phi) * v

    def reserve(self, phi: float) -> float:
        """|Phi|."""
        return abs(phi)


class Gathered(Drifts):
    """Sums and spreads by bin, and what follows from them: the arrays of a state, and the potential's theorem.

    Classes below name in `follows` the arrays that are computed from these.
    """

    __slots__ = ("counts", "potential", "spreads", "sums")

    follows: ClassVar[tuple[str, ...]]

    def __init__(self, potential: Potential, capacity: int, n: int, n_spreads: int) -> None:
        self.potential, self.counts = potential, np.zeros(capacity)
        self.sums, self.spreads = np.zeros((capacity, n)), np.zeros((capacity, n_spreads))

    def grow(self, capacity: int) -> None:
        """Make room for the evidence of `capacity` values."""
        for name in (*_STATE, *self.follows):
            setattr(self, name, grown(getattr(self, name), capacity))

    def rescale(self, v: float) -> None:
        """Count in units in which V is `v` <= 1 times what it was; spreads so that no potential rises."""
        spreads = self.spreads * (v if isinstance(self.potential, AdaNormalHedge) else 1.0)
        self.restore({"sums": self.sums * v, "spreads": spreads, "counts": self.counts})

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """The potential's theorem; with counts, for the spread that was observed."""
        return self.potential.bound(tally, r, delta)

    def spread(self) -> Float64Array:
        """The largest spread of each bin."""
        largest: Float64Array = np.max(self.spreads, axis=1)
        return largest

    def arrays(self) -> dict[str, Float64Array]:
        """The state; all else follows from it."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over; what depends on nothing else is computed anew."""
        m = len(arrays["counts"])
        if m > len(self.counts):
            self.grow(m)
        for name in _STATE:
            own = getattr(self, name)
            own[:m], own[m:] = arrays[name], 0.0
        for name in self.follows:
            getattr(self, name)[:] = 0.0
        self._follow(m)

    def _follow(self, m: int) -> None:
        """Compute what follows from the state of the first `m` values."""
        raise NotImplementedError


_STATE = ("sums", "spreads", "counts")


class FiniteEvidence(Gathered):
    """Per (bin, function): the sum s of gains, its spread c, and the weight that the potential gives them.

    Weights are kept, not recomputed: only the entries that a round touches change. Memory is three floats per (bin,
    function).
    """

    __slots__ = ("scaled", "unit", "weights")

    follows = ("weights",)

    def __init__(self, n: int, potential: Potential, capacity: int) -> None:
        super().__init__(potential, capacity, n, n)
        self.weights = np.zeros((capacity, n))
        # Whether evidence is weighed in units of the size of V, and 1 over that; in an array, because kernels set it.
        self.scaled = isinstance(potential, AdaNormalHedge)
        self.unit = np.ones(1)

    def measure(self, size: float) -> None:
        """Weigh all evidence anew, by another size of V."""
        if self.scaled and float(self.unit[0]) * size != 1.0:
            self.unit[0] = 1.0 / size
            self._follow(len(self.counts))

    def phi(self, bin: int, row: Row) -> float:
        """sum_j w_ij x_j, added up in the order of the positions."""
        if not row.indices.size:
            return 0.0
        products = self.weights[bin].take(row.indices) * row.values
        # cumsum adds from left to right, whatever the length; a sum or a dot product may pair terms up differently
        # elsewhere.
        return float(products.cumsum()[-1])

    def record(self, bin: int, row: Row, v: float) -> None:
        """Add the gains x_j v to the sums of bin `bin` and renew the weights they touch."""
        indices, gains = row.indices, row.values * v
        s = self.sums[bin].take(indices) + gains
        c = self.spreads[bin].take(indices) + self.potential.spread(gains)
        weights = self.potential.weights(s * self.unit, c * self.unit)
        self.sums[bin, indices], self.spreads[bin, indices], self.weights[bin, indices] = s, c, weights
        self.counts[bin] += 1.0
        together = self.potential.row_weights(self.sums[bin], float(self.counts[bin]))
        if together is not None:
            self.weights[bin] = together

    def level(self, bin: int, row: Row) -> float:
        """Logarithm of the largest potential that an active function has in the bin; infinite for the p-norm."""
        s, c = self.sums[bin].take(row.indices), self.spreads[bin].take(row.indices)
        levels = self.potential.level(s * self.unit, c * self.unit)
        if levels is None:
            return math.inf
        return float(levels.max()) if levels.size else 0.0

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """(Phi now - Phi at the draw) V; for the p-norm as for every quadratic potential."""
        if not isinstance(self.potential, PNorm):
            return super().drift(bin, row, phi, v)
        return quadratic_drift(self.phi(bin, row), phi, v, self.potential.radius(self.sums.shape[1]), self._pull(bin))

    def reserve(self, phi: float) -> float:
        """|Phi|; for the p-norm as for every quadratic potential."""
        if not isinstance(self.potential, PNorm):
            return super().reserve(phi)
        return quadratic_reserve(phi, self.potential.radius(self.sums.shape[1]))

    def _pull(self, bin: int) -> float:
        """How much a visit of the bin lowers ||S||_p^2 / n by itself."""
        n = float(self.counts[bin])
        if not n or not isinstance(self.potential, PNorm):
            return 0.0
        norm = self.potential.norm(self.sums[bin])
        return norm * norm / (n * (n + 1.0))

    @property
    def theorem(self) -> str:
        """Name of the potential's theorem."""
        return "theorem B in the p-norm" if isinstance(self.potential, PNorm) else f"theorem A', {self.potential!r}"

    def certified(self, tally: Tally, r: float) -> float | None:
        """Theorem C for what has been seen; None for a potential of which it is not known how far it is from least."""
        n, potential = tally.n_values, self.potential
        sums, spreads, counts = self.sums[:n], self.spreads[:n], self.counts[:n]
        if isinstance(potential, PNorm):
            norms = np.array([potential.norm(each) for each in sums])
            return certified(float(np.sum(norms * norms / np.maximum(counts, 1.0))), tally, r)
        return certified_separately(potential, np.abs(sums), spreads, counts, tally, r, unit=float(self.unit[0]))

    def _follow(self, m: int) -> None:
        """The weights of the first `m` values, from what they depend on."""
        where = np.flatnonzero(self.sums[:m])
        sums, spreads = (each.reshape(-1)[where] * self.unit for each in (self.sums, self.spreads))
        self.weights.reshape(-1)[where] = _weights(self.potential, sums, spreads)
        for i in np.flatnonzero(self.counts).tolist():
            together = self.potential.row_weights(self.sums[i], float(self.counts[i]))
            if together is None:
                break  # a potential weighs the functions of all bins together, or of none
            self.weights[i] = together


def _weights(potential: Potential, sums: Float64Array, spreads: Float64Array) -> Float64Array:
    """The weight of each pair; by the kernel, where there is one: NumPy takes forty passes over these few numbers."""
    if kernels.native is None or type(potential) is not AdaNormalHedge:
        return potential.weights(sums, spreads)
    weights = np.empty(len(sums))
    kernels.native.weigh_adanormalhedge(sums, spreads, weights)
    return weights
