"""The linear class: every function <theta, x> with theta in the unit ball."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from swapcal import inputs
from swapcal.engine import kernels
from swapcal.engine.theorems import certified, quadratic, quadratic_drift, quadratic_reserve
from swapcal.engine.values import grown
from swapcal.errors import InvalidInput
from swapcal.hypotheses.blocks import Union
from swapcal.hypotheses.finite import Composable, Finite
from swapcal.potentials import AdaNormalHedge, PNorm, Potential, Quadratic
from swapcal.protocols import Evidence, Row, Rows, Tally
from swapcal.sparse import into_ball, read_row, read_rows
from swapcal.typing import Float64Array, IntArray, Spec

_NOTHING = 1e-280


@dataclass(frozen=True, slots=True, repr=False)
class Linear(Composable):
    """All functions <theta, x> with ||theta|| <= 1 of a feature vector x of length `n`.

    Features are divided by `radius`; a vector that is then still longer than 1 is shrunk to length 1, so that |<theta,
    x>| <= 1. Add a constant feature if forecasts should also be calibrated overall.

    Guarantee: theorem A' for blocks (docs/guarantees.md, section 2): the class is one block, so no logarithm of its
    size is paid, and hints are trusted. `potential=Quadratic()` is theorem B: the potential is the swap error itself,
    sum_i ||S_i||^2 / n_i. Its number ahead of a run is smaller; with a hint its forecasts are worse.

    Parameters
    ----------
    n : int
        Number of features, the d of the paper.
    radius : float
        Length of the longest feature vector to be kept apart from its direction.
    potential : Potential
        How evidence is weighed: `AdaNormalHedge()` (the default), `Exponential()`, `Squint()` or `Quadratic()`.

    Examples
    --------
    >>> Linear(2).row([3.0, 4.0]).values
    array([0.6, 0.8])
    >>> Linear(2, radius=10.0).row([3.0, 4.0]).values
    array([0.3, 0.4])
    """

    n: int
    radius: float = field(default=1.0, kw_only=True)
    potential: Potential | Quadratic = field(default_factory=AdaNormalHedge, kw_only=True)

    # The norm of the sums that is the supremum over the class.
    dual: ClassVar[str] = "euclidean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", inputs.integer(self.n, "the number of features", 1))
        if not (isinstance(self.radius, (int, float)) and math.isfinite(self.radius) and self.radius > 0.0):
            raise InvalidInput(f"radius must be a positive number; got {self.radius!r}")
        if isinstance(self.potential, PNorm):
            raise InvalidInput("a linear class is weighed by its length; for the p-norm pass a Finite class")

    def __repr__(self) -> str:
        radius = "" if self.radius == 1.0 else f", radius={self.radius:g}"
        return (
            f"Linear({self.n}{radius}{'' if self.potential == AdaNormalHedge() else f', potential={self.potential!r}'})"
        )

    @property
    def blocks(self) -> IntArray | None:
        """The block of each position: one and the same. None for the quadratic potential."""
        return None if isinstance(self.potential, Quadratic) else np.zeros(self.n, dtype=np.int64)

    def row(self, x: Any) -> Row:
        """One context, scaled into the unit ball."""
        row = read_row(x, self.n)
        return Row(row.indices, into_ball(row.values, self.radius))

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once, each scaled on its own."""
        rows = read_rows(X, self.n, n_rows)
        values = rows.values.copy()
        if kernels.native is not None:
            kernels.native.scale_rows(rows.indptr, values, self.radius)
            return Rows(rows.indptr, rows.indices, values)
        for start, end in pairwise(rows.indptr.tolist()):
            if end > start:
                values[start:end] = into_ball(rows.values[start:end], self.radius)
        return Rows(rows.indptr, rows.indices, values)

    def supremum(self, sums: Float64Array) -> Float64Array:
        """The Euclidean norm of the sums."""
        norm: Float64Array = np.sqrt(np.sum(np.square(sums), axis=-1))
        return norm

    def complexity(self, n_rounds: float) -> float:
        """At most root(n): n times the sequential Rademacher complexity (docs/guarantees.md, section 4)."""
        return math.sqrt(n_rounds)

    def extended(self, extra: int) -> Any:
        """The class with the level sets of a hint behind it; itself for the quadratic potential."""
        return self if isinstance(self.potential, Quadratic) else Union([self]).extended(extra)

    def start(self, n_bins: int) -> Evidence:
        """No evidence in any of `n_bins` bins."""
        if isinstance(self.potential, Quadratic):
            return LinearEvidence(self.n, n_bins)
        return Union([self]).start(n_bins)

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "Linear", "n": self.n, "radius": self.radius, "potential": dict(self.potential.spec())}


class LinearEvidence:
    """For `Quadratic()`: per bin the vector S of sums of x v, and the visits. Phi_i(x) = <S_i, x> / (n_i + 1)."""

    __slots__ = ("counts", "sums")

    theorem = "theorem B"

    def __init__(self, n: int, n_bins: int) -> None:
        self.sums = np.zeros((n_bins, n))
        self.counts = np.zeros(n_bins)

    def phi(self, bin: int, row: Row) -> float:
        """<S_i, x> / (n_i + 1), added up in the order of the positions."""
        if not row.indices.size:
            return 0.0
        product = float((self.sums[bin].take(row.indices) * row.values).cumsum()[-1])
        # A product this small is a rounding error; calling it zero here keeps the division from doing so by underflow.
        return product / (float(self.counts[bin]) + 1.0) if abs(product) > _NOTHING else 0.0

    def record(self, bin: int, row: Row, v: float) -> None:
        """Add x v to the bin's sum."""
        self.sums[bin, row.indices] += row.values * v
        self.counts[bin] += 1.0

    def level(self, bin: int, row: Row) -> float:
        """Infinite: the quadratic potential's argument leaves no room to trust a hint."""
        return math.inf

    def grow(self, capacity: int) -> None:
        """Make room for the evidence of `capacity` values."""
        self.sums, self.counts = grown(self.sums, capacity), grown(self.counts, capacity)

    def rescale(self, v: float) -> None:
        """Count in units in which V is `v` times what it was."""
        self.sums *= v

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """As for every quadratic potential."""
        n, norm = float(self.counts[bin]), float((self.sums[bin] * self.sums[bin]).cumsum()[-1])
        return quadratic_drift(self.phi(bin, row), phi, v, 1.0, norm / (n * (n + 1.0)) if n else 0.0)

    def reserve(self, phi: float) -> float:
        """As for every quadratic potential."""
        return quadratic_reserve(phi, 1.0)

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem B."""
        return quadratic(tally, 1.0, 1.0, r, delta)

    def certified(self, tally: Tally, r: float) -> float:
        """Theorem C for what has been seen."""
        n = self.counts[: tally.n_values]
        squares = np.sum(np.square(self.sums[: tally.n_values]), axis=1)
        return certified(float(np.sum(squares / np.maximum(n, 1.0))), tally, r)

    def spread(self) -> Float64Array:
        """The visits: nothing sharper is known of a linear function's gains."""
        return self.counts

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {"sums": self.sums, "counts": self.counts}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over."""
        self.sums, self.counts = arrays["sums"].copy(), arrays["counts"].copy()


class OverVectors(Composable):
    """A class that makes vectors of what it reads; what is asked about these it leaves to `_vectors`, their class."""

    __slots__ = ()

    _vectors: Finite | Linear

    @property
    def n(self) -> int:
        """Length of the context."""
        return self._vectors.n

    @property
    def dual(self) -> str:
        """The norm of the sums that is the supremum over the class."""
        return self._vectors.dual

    @property
    def potential(self) -> Potential | Quadratic:
        """How evidence is weighed."""
        return self._vectors.potential

    @property
    def blocks(self) -> IntArray | None:
        """The block of each position; None if each is one by itself."""
        return getattr(self._vectors, "blocks", None)

    def extended(self, extra: int) -> Any:
        """The class with `extra` functions behind it, the level sets of a hint."""
        return self._vectors.extended(extra)

    def supremum(self, sums: Float64Array) -> Float64Array:
        """The largest |sum f V| over the class; exact."""
        return self._vectors.supremum(sums)

    def complexity(self, n_rounds: float) -> float | None:
        """At most so much is n times the sequential Rademacher complexity (docs/guarantees.md, section 4)."""
        return self._vectors.complexity(n_rounds)

    def start(self, capacity: int) -> Evidence:
        """No evidence, and room for that of `capacity` values."""
        return self._vectors.start(capacity)
