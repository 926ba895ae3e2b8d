"""The theorems as numbers. Their proofs are in docs/guarantees.md; names and letters are the same there.

Notation: N bins, T rounds, n_i visits of bin i, S_i the sums of f(x) V at the points where the evidence is taken, D_i
the rounding of bin i: the sum of |V(forecast, y) - V(evidence point, y)|. With b_i = sup_f |S_i,f| / n_i, Minkowski's
inequality gives

    SMCal_r <= (E^(1/r) + R^(1/r))^r,   E = sum_i n_i b_i^r,   R = sum_i n_i (D_i / n_i)^r,

and the functions below bound E (from the potential's theorem) and R (observed, or from the Lipschitz constant).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["Guarantee", "Tally", "combine", "exponential", "quadratic", "rounding", "rounding_ahead"]


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
    """What a theorem needs to know of a run; `counts` and `spread` are None for a bound ahead of the run."""

    n_bins: int
    n_functions: int
    n_rounds: int
    counts: Float64Array | None = None
    spread: Float64Array | None = None
    trust: float = 0.0


def combine(evidence: float, rounded: float, r: float) -> float:
    """Minkowski's sum of the two parts of the error."""
    return float((evidence ** (1.0 / r) + rounded ** (1.0 / r)) ** r)


def rounding(counts: Float64Array, drift: Float64Array, r: float) -> float:
    """R from the observed rounding of each bin."""
    visited = counts > 0
    return float(np.sum(counts[visited] * (drift[visited] / counts[visited]) ** r))


def rounding_ahead(stages: list[tuple[int, int]], rho: float, r: float) -> float:
    """R ahead of the run: T_k rounds on N_k bins cost at most rho / 2 N_k each; Jensen adds the stages up."""
    return float(sum(rounds * min(rho / (2.0 * n_bins), 2.0) ** r for n_bins, rounds in stages))


def exponential(
    tally: Tally, mass: float, deviation: Callable[[Float64Array, float], Float64Array], r: float, delta: float
) -> float:
    """E for an exponential potential (theorem A' with border evidence).

    All 2 N |F| signed functions together contribute at most M = 2 N |F| `mass` + J to the potential, where J is what
    trusted rounds may add: at most 0.52 |F| (e T)^trust each. By Ville's inequality the potential stays below M /
    delta at all times, and `deviation(c, log(M / delta))` then bounds every |S_i,f|.
    """
    trusted = 0.52 * tally.n_functions * tally.n_rounds * (math.e * max(tally.n_rounds, 1)) ** tally.trust
    injected = trusted if tally.trust > 0 else 0.0
    log_mass = math.log((2.0 * tally.n_bins * tally.n_functions * mass + injected) / delta)
    if tally.counts is not None and tally.spread is not None:
        visited = tally.counts > 0
        n = tally.counts[visited]
        share = np.minimum(deviation(tally.spread[visited], log_mass) / n, 1.0)
        return float(np.sum(n * share**r))
    if r < 2.0:
        return float(tally.n_rounds ** (1.0 - r / 2.0) * exponential(tally, mass, deviation, 2.0, delta) ** (r / 2.0))
    # n share(n)^r on [n_k, n_k+1] is at most n_k^(1-r) min(n_k+1, deviation(n_k+1))^r: exact up to the ratio of the
    # steps.
    steps = np.geomspace(1.0, max(tally.n_rounds, 1.0) * 1.01, 2000)
    reach = np.minimum(steps[1:], deviation(steps[1:], log_mass))
    return tally.n_bins * float(np.max(steps[:-1] ** (1.0 - r) * reach**r))


def quadratic(tally: Tally, smoothness: float, radius: float, r: float, delta: float) -> float:
    """E for a quadratic potential normalized by counts (theorem B with border evidence).

    `radius` bounds the squared norm of a context, `smoothness` is 1 for the Euclidean norm and p - 1 for the p-norm:
    E_2 <= radius (smoothness sum_i H(n_i) + 9 ln(1/delta)), with probability 1 - delta for all times at once.
    """
    if tally.counts is not None:
        visits = tally.counts[tally.counts > 0]
        harmonic = float(np.sum(np.euler_gamma + np.log(visits) + 0.5 / visits)) if len(visits) else 0.0
    else:
        harmonic = tally.n_bins * (1.0 + math.log1p(tally.n_rounds / tally.n_bins))
    total = radius * (smoothness * harmonic + 9.0 * math.log(1.0 / delta))
    total = min(total, float(tally.n_rounds))
    return total if r >= 2.0 else float(tally.n_rounds ** (1.0 - r / 2.0) * total ** (r / 2.0))
