"""AdaNormalHedge's potential without normalization: no rate, no grid, no additive logarithm."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.engine.bounds import Tally, exponential
from swapcal.engine.safe_exp import safe_exp, short_sinh
from swapcal.typing import Float64Array, Spec

__all__ = ["AdaNormalHedge"]


@dataclass(frozen=True, slots=True)
class AdaNormalHedge:
    r"""Psi(s, c) = exp([s]_+^2 / 3c) with c the sum of |g|.

    Weight of the signed function: w(s, c) = (Psi(s + 1, c + 1) - Psi(s - 1, c + 1)) / 2; the two signs of a function
    merge into w(s, c) - w(-s, c), so one pair (s, c) is kept.

    Guarantee: Psi(s + g, c + |g|) <= Psi(s, c) + w(s, c) g + 3 |g| / (2 (c + 1)) for |g| <= 1 (lemma 5 of the
    reference). Summed over t rounds, a function's additive terms are at most 3/2 (1 + ln(1 + t)), which is why `mass`
    is 5/2 + 3/2 ln(1 + t), and Psi <= M gives |s| <= sqrt(3 c ln M).

    Examples
    --------
    >>> potential = AdaNormalHedge()
    >>> potential.weight(0.0, 4.0), potential.weight(2.0, 4.0) == -potential.weight(-2.0, 4.0) > 0
    (0.0, True)

    References
    ----------
    Luo, Schapire (2015), Achieving all with no parameters: AdaNormalHedge, COLT; lemma 5.
    """

    @property
    def reference(self) -> str:
        """Where the potential comes from."""
        return "Luo and Schapire 2015, AdaNormalHedge, lemma 5, with raw gains"

    def spread(self, g: Float64Array) -> Float64Array:
        """|g|."""
        return np.abs(g)

    def weight(self, s: float, c: float) -> float:
        """w(s, c) - w(-s, c)."""
        return float(self.weights(np.array([s]), np.array([c]))[0])

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """`weight` for each pair: exp((s^2 + 1) / 3(c + 1)) sinh(2s / 3(c + 1)), odd to the last bit.

        The two signs together are (exp((|s| + 1)^2 / 3(c + 1)) - exp((|s| - 1)^2 / 3(c + 1))) / 2 on both sides of
        |s| = 1, which is that product; and |s| <= c keeps the argument of sinh below 2/3.
        """
        inverse = 1.0 / (3.0 * (c + 1.0))
        return safe_exp((s * s + 1.0) * inverse) * short_sinh(2.0 * s * inverse)

    def row_weights(self, sums: Float64Array, n: float) -> None:
        """None: every function is weighed by itself."""
        return

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """s^2 / 3c."""
        return s * s / (3.0 * np.maximum(c, np.finfo(np.float64).tiny))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem A' with mass 5/2 + 3/2 ln(1 + T) and |s| <= sqrt(3 c ln M)."""
        mass = 2.5 + 1.5 * math.log1p(tally.n_rounds)
        return exponential(tally, mass, lambda c, log_mass: np.sqrt(3.0 * c * log_mass), r, delta)

    def excess(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """By how much the potential of a function, both signs together, exceeds the least it can be with spread c."""
        with np.errstate(over="ignore"):
            above: Float64Array = np.expm1(self.level(s, c))
        return above

    def reach(self, e: Float64Array, c: Float64Array) -> Float64Array:
        """The largest |s| whose `excess` with spread c is at most e."""
        largest: Float64Array = np.sqrt(3.0 * c * np.log1p(e))
        return largest

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "AdaNormalHedge"}
