"""A mixture of exponential potentials over a geometric grid of rates."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from swapcal.engine.bounds import Tally, exponential
from swapcal.engine.safe_exp import safe_exp
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, Spec

__all__ = ["Exponential"]

_BLOCK = 128
"""Functions that are weighed at a time: enough to make calls cheap, few enough to stay in the cache of a core."""


@cache
def _rates(n_rates: int) -> tuple[tuple[float, float], ...]:
    """Computed once: every weight of every round runs through them."""
    return tuple((2.0**-k, -math.log1p(-(2.0**-k)) - 2.0**-k) for k in range(1, n_rates + 1))


@cache
def _columns(n_rates: int) -> tuple[Float64Array, Float64Array]:
    """The same pairs, as a column of eta and one of psi."""
    eta, psi = np.array(_rates(n_rates)).T[:, :, None]
    return eta, psi


@dataclass(frozen=True, slots=True)
class Exponential:
    r"""Psi(s, c) = sum_k pi_k exp(eta_k s - psi(eta_k) c), eta_k = 2^-k, with c the sum of g^2.

    psi(eta) = -ln(1 - eta) - eta, about eta^2 / 2. As exp(eta g - psi(eta) g^2) <= 1 + eta g for g >= -1, one round
    adds at most the weighted gain, with weight sum_k pi_k eta_k exp(...): the derivative of Psi. The two signs of a
    function merge into a hyperbolic sine.

    Guarantee: Psi <= M gives |s| <= min_k (psi(eta_k) c + ln(M / pi_k)) / eta_k, about 1.5 sqrt(c ln M) plus a
    logarithm.

    Parameters
    ----------
    n_rates : int
        Number of rates; 1 + log2 of the square root of the number of rounds suffices, and the default serves 10^9
        rounds.

    References
    ----------
    Koolen, van Erven (2015), Second-order quantile methods for experts and combinatorial games, COLT; equation (5)
    with raw gains. Fan, Grama, Liu (2015), Exponential inequalities for martingales with applications; the function
    psi.

    Examples
    --------
    >>> potential = Exponential(n_rates=2)
    >>> potential.rates[0]
    (0.5, 0.1931471805599453)
    >>> round(potential.weight(2.0, 4.0), 4), potential.weight(-2.0, 4.0) == -potential.weight(2.0, 4.0)
    (0.7668, True)
    """

    n_rates: int = 16

    def __post_init__(self) -> None:
        if isinstance(self.n_rates, bool) or not isinstance(self.n_rates, int) or not 1 <= self.n_rates <= 60:
            raise InvalidInput(f"n_rates must be a whole number from 1 to 60; got {self.n_rates!r}")

    @property
    def reference(self) -> str:
        """Where the potential comes from."""
        return "Koolen and van Erven 2015, equation (5), with raw gains and the exponent of Fan, Grama and Liu 2015"

    @property
    def rates(self) -> tuple[tuple[float, float], ...]:
        """The pairs (eta_k, psi(eta_k))."""
        return _rates(self.n_rates)

    def spread(self, g: Float64Array) -> Float64Array:
        """g^2."""
        return g * g

    def weight(self, s: float, c: float) -> float:
        """sum_k pi_k eta_k exp(-psi(eta_k) c) 2 sinh(eta_k s), with the constant pi_k left out."""
        return float(self.weights(np.array([s]), np.array([c]))[0])

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """`weight` for each pair; rates are added up in their order."""
        if len(s) > _BLOCK:
            parts = (slice(k, k + _BLOCK) for k in range(0, len(s), _BLOCK))
            return np.concatenate([self.weights(s[part], c[part]) for part in parts])
        eta, psi = _columns(self.n_rates)
        drift, spent, total = eta * np.abs(s), psi * c, np.zeros(len(s))
        # One exponential for all rates: with few functions, calls cost more than numbers.
        ahead, behind = safe_exp(np.array([drift - spent, -drift - spent]))
        for part in eta * (ahead - behind):
            total += part
        return np.copysign(total, s)

    def row_weights(self, sums: Float64Array, n: float) -> None:
        """None: every function is weighed by itself."""
        return

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """s^2 / 2c, the largest exponent over all rates, as psi(eta) >= eta^2 / 2."""
        return s * s / (2.0 * np.maximum(c, np.finfo(np.float64).tiny))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem A' with mass 1 and |s| <= min_k (psi(eta_k) c + ln(n_rates M)) / eta_k."""

        def deviation(c: Float64Array, log_mass: float) -> Float64Array:
            log_term = log_mass + math.log(self.n_rates)
            least: Float64Array = np.min([(psi * c + log_term) / eta for eta, psi in self.rates], axis=0)
            return least

        return exponential(tally, 1.0, deviation, r, delta, squares=True)

    def excess(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """By how much the potential of a function, both signs together, exceeds the least it can be with spread c."""
        total = np.zeros(np.broadcast(s, c).shape)
        with np.errstate(over="ignore", invalid="ignore"):
            for eta, psi in self.rates:
                # 2 cosh - 2 = 4 sinh^2 of the half, without cancellation.
                total += 4.0 * np.square(np.sinh(0.5 * eta * s)) * np.exp(-psi * c)
        return np.nan_to_num(total, nan=np.inf, posinf=np.inf) / self.n_rates

    def reach(self, e: Float64Array, c: Float64Array) -> Float64Array:
        """An |s| whose `excess` with spread c is at least e: that of the best rate alone."""
        with np.errstate(over="ignore"):
            alone = [
                2.0 / eta * np.arcsinh(0.5 * np.sqrt(self.n_rates * e * np.exp(psi * c))) for eta, psi in self.rates
            ]
        least: Float64Array = np.min(alone, axis=0)
        return least

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "Exponential", "n_rates": self.n_rates}
