"""The theorems as numbers. Their proofs are in docs/guarantees.md; names and letters are the same there.

Notation: N values, T rounds, n_i visits of value i, S_i the sums of f(x) V at the points where the evidence is taken,
D_i the signed rounding of value i: sup_f of |sum f(x) (V(forecast, y) - V(evidence point, y))|. A potential's theorem
bounds every |S_i,f| by a deviation, and the error is at most sum_i n_i min(1, (deviation_i + D_i) / n_i)^r; or it
bounds sum_i sup_f |S_i,f|^2 / n_i as a whole, and Minkowski's inequality adds the rounding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from swapcal.typing import Float64Array

__all__ = [
    "Guarantee",
    "Tally",
    "certified",
    "combine",
    "exponential",
    "log_potential",
    "quadratic",
    "quadratic_drift",
    "quadratic_reserve",
]


class Guarantee(float):
    """A number that the swap multicalibration error stays below with probability 1 - delta, and why.

    It is a float, so it can be compared and printed; the attributes say which theorem holds under which assumptions,
    and `broken` lists those that this run has not met.

    Parameters
    ----------
    value : float
        The bound itself.
    theorem : str
        Where it comes from.
    delta : float
        The probability with which it may fail.
    r : float
        Exponent of the error.
    n_rounds : int
        Rounds with an outcome so far.
    assumptions : tuple of str
        What the theorem asks for.
    broken : tuple of str
        Those of them that this run has not met.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=100, seed=1)
    >>> guarantee = forecaster.guarantee(0.05)
    >>> guarantee.delta, guarantee.r, guarantee.n_rounds, guarantee.broken
    (0.05, 2.0, 100, ())
    """

    theorem: str
    delta: float
    r: float
    n_rounds: int
    assumptions: tuple[str, ...]
    broken: tuple[str, ...]

    def __new__(
        cls,
        value: float,
        *,
        theorem: str,
        delta: float,
        r: float,
        n_rounds: int,
        assumptions: tuple[str, ...],
        broken: tuple[str, ...] = (),
    ) -> "Guarantee":
        """Make the number and attach its reasons."""
        self = super().__new__(cls, value)
        self.theorem, self.delta, self.r, self.n_rounds = theorem, delta, r, n_rounds
        self.assumptions, self.broken = assumptions, broken
        return self

    @property
    def value(self) -> float:
        """The number as a plain float."""
        return float(self)

    def __str__(self) -> str:
        head = f"SMCal_{self.r:g} at most {self.value:.4g} "
        head += f"after {self.n_rounds} rounds with probability {1 - self.delta:g}"
        lines = [head, f"  by {self.theorem}", *(f"  assuming {a}" for a in self.assumptions)]
        return "\n".join([*lines, *(f"  NOT MET: {b}" for b in self.broken)])

    def __repr__(self) -> str:
        return f"Guarantee({self.value:.6g}, theorem={self.theorem!r}, delta={self.delta:g})"


@dataclass(frozen=True, slots=True)
class Tally:
    """What a theorem needs to know of a run; `counts` and what follows are None for a bound ahead of it.

    `rounding` is sup_f of the signed rounding of each value. `drift` is by how much the potential may have risen beyond
    the draws, with what is reserved for outcomes that are out; `peak` the largest that it was before a draw. `luck` is
    how much more the draws could have added to the potential than they have, and `reserved` the part of the drift that
    is. Where a forecaster stood back, `shown` are the visits of what was shown, and `rounding` leads from the evidence
    to it.
    """

    n_values: int
    n_functions: int
    n_rounds: int
    counts: Float64Array | None = None
    spread: Float64Array | None = None
    rounding: Float64Array | None = None
    drift: float = 0.0
    peak: float = 0.0
    shown: Float64Array | None = None
    luck: float | None = None
    reserved: float = 0.0


_TANGENT = 250.0
"""A potential below exp of this has never had weights on the tangent of `safe_exp`, which begins at exp(300)."""


def combine(evidence: float, rounded: float, r: float) -> float:
    """Minkowski's sum of the two parts of the error."""
    return float((evidence ** (1.0 / r) + rounded ** (1.0 / r)) ** r)


def log_potential(tally: Tally, mass: float, delta: float) -> float:
    """The logarithm of what the potential stays below, at all times at once, with probability 1 - delta.

    M = 2 N |F| `mass` is what the signed functions bring with them and may add by themselves; G = M + drift is all that
    can have come but for the draws, and C = M + peak bounds it before every draw. With c_j = 2^j, j >= 1, the first at
    least C, and u_j = 1 / (j (j + 1)), the potential is at most c_j / (u_j delta) + max(0, G - c_j).
    """
    total = 2.0 * tally.n_values * tally.n_functions * mass
    level = max(1, math.ceil(math.log2(max(total + max(tally.peak, 0.0), 2.0))))
    budget = math.ldexp(1.0, min(level, 1000))
    excess = max(total + tally.drift - budget, 0.0)
    return math.log(budget * level * (level + 1) / delta + excess)


def exponential(
    tally: Tally,
    mass: float,
    deviation: Callable[[Float64Array, float], Float64Array],
    r: float,
    delta: float,
    *,
    squares: bool = False,
) -> float:
    """The bound on the error for an exponential potential (theorem A').

    `deviation(c, log B)` bounds every |S_i,f| of spread c while the potential is at most B. Whatever the potential, it
    is at most c where c is the sum of |g|; where it is that of `squares`, at most the root of n c.
    Beyond exp(300) weights are continued along a tangent, and no potential is known of which they are the derivative;
    but the drift has been there before them, so where it has come near only that is promised.
    """
    log_mass = log_potential(tally, mass, delta)
    if tally.counts is not None and tally.spread is not None and tally.rounding is not None:
        shown = tally.counts if tally.shown is None else tally.shown
        visited = shown > 0
        n, spread = shown[visited], tally.spread[visited]
        known = np.sqrt(tally.counts[visited] * spread) if squares else spread
        if log_mass <= _TANGENT:
            known = np.minimum(deviation(spread, log_mass), known)
        reach = known + tally.rounding[visited]
        return float(np.sum(n * np.minimum(reach / n, 1.0) ** r))
    if r < 2.0:
        return float(
            tally.n_rounds ** (1.0 - r / 2.0)
            * exponential(tally, mass, deviation, 2.0, delta, squares=squares) ** (r / 2.0)
        )
    # n share(n)^r on [n_k, n_k+1] is at most n_k^(1-r) min(n_k+1, deviation(n_k+1))^r: exact up to the ratio of the
    # steps.
    steps = np.geomspace(1.0, max(tally.n_rounds, 1.0) * 1.01, 2000)
    reach = np.minimum(steps[1:], deviation(steps[1:], log_mass))
    return tally.n_values * float(np.max(steps[:-1] ** (1.0 - r) * reach**r))


def quadratic(tally: Tally, smoothness: float, radius: float, r: float, delta: float) -> float:
    """The bound on the error for a quadratic potential normalized by counts (theorem B).

    `radius` bounds the squared norm of a context, `smoothness` is 1 for the Euclidean norm and p - 1 for the p-norm:
    sum_i ||S_i||^2 / n_i <= radius (smoothness sum_i H(n_i) + 4 ln(1/delta)) + max(0, drift), with probability 1 -
    delta for all times at once. A value at which the forecaster stood back counts by itself, with ||S_i||^2 <= n_i
    times that sum.
    """
    visits = np.zeros(0)
    if tally.counts is not None:
        visits = tally.counts[tally.counts > 0]
        harmonic = float(np.sum(np.euler_gamma + np.log(visits) + 0.5 / visits)) if len(visits) else 0.0
    else:
        harmonic = tally.n_values * (1.0 + math.log1p(tally.n_rounds / tally.n_values))
    total = radius * (smoothness * harmonic + 4.0 * math.log(1.0 / delta)) + max(tally.drift, 0.0)
    total = min(total, float(tally.n_rounds))
    evidence = total if r >= 2.0 else float(tally.n_rounds ** (1.0 - r / 2.0) * total ** (r / 2.0))
    if tally.counts is None or tally.rounding is None:
        return evidence
    if tally.shown is None:
        rounded = tally.rounding[tally.counts > 0]
        return combine(evidence, float(np.sum(visits * (rounded / visits) ** r)), r)
    kept = (tally.shown == tally.counts) & (tally.counts > 0)
    n, rounded = tally.counts[kept], tally.rounding[kept]
    whole = combine(evidence, float(np.sum(n * (rounded / n) ** r)), r)
    moved = (tally.shown != tally.counts) & (tally.shown > 0)
    n, reach = tally.shown[moved], np.sqrt(total * tally.counts[moved]) + tally.rounding[moved]
    return whole + float(np.sum(n * np.minimum(reach / n, 1.0) ** r))


def certified(q: float, tally: Tally, r: float) -> float:
    """Theorem C for a quadratic potential that is `q` now: to which the draws, which count twice, could have added."""
    assert tally.counts is not None
    assert tally.rounding is not None
    assert tally.luck is not None
    total = min(max(q + 2.0 * tally.luck + tally.reserved, 0.0), float(tally.n_rounds))
    evidence = total if r >= 2.0 else float(tally.n_rounds ** (1.0 - r / 2.0) * total ** (r / 2.0))
    visited = tally.counts > 0
    visits, rounded = tally.counts[visited], tally.rounding[visited]
    return combine(evidence, float(np.sum(visits * (rounded / visits) ** r)), r)


def quadratic_drift(now: float, phi: float, v: float, radius: float, pull: float) -> float:
    """What a round adds to the drift of a quadratic potential.

    It raises Q by at most 1 / (n + 1) - pull + 2 V Phi now. Of that, xi - xi^2 / 4 radius with xi = 2 V Phi at the draw
    is what Ville's inequality bounds, and the first term is the harmonic sum's; the rest drifts.
    """
    xi = 2.0 * v * phi
    return 2.0 * v * now - xi + xi * xi / (4.0 * radius) - pull


def quadratic_reserve(phi: float, radius: float) -> float:
    """The most that xi^2 / 4 radius - xi can be for any outcome."""
    return 2.0 * abs(phi) + phi * phi / radius
