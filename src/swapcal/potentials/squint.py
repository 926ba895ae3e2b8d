"""Squint's weights in closed form: all rates at once, no grid."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.engine.bounds import Tally, exponential
from swapcal.engine.safe_exp import safe_exp
from swapcal.typing import Float64Array, Spec

__all__ = ["Squint"]

SQRT_PI = math.sqrt(math.pi)
# Gauss and Legendre's rule on [0, 1/2]: exact to the last digits for exponents that vary by less than 10.
NODES = [
    ((1.0 + t) / 4.0, w / 4.0) for t, w in zip(*(a.tolist() for a in np.polynomial.legendre.leggauss(16)), strict=True)
]


def _exp(a: float) -> float:
    return float(safe_exp(np.array([a]))[0])


def _erfcx(z: float) -> float:
    """exp(z^2) erfc(z) for z >= 0; the standard library has erfc but not its scaled form."""
    if z < 10.0:
        return math.exp(z * z) * math.erfc(z)
    q = 1.0 / (z * z)  # asymptotic series; its first left-out term is below 4e-9 relative
    return (1.0 - q * (0.5 - q * (0.75 - q * (1.875 - q * 6.5625)))) / (SQRT_PI * z)


def _integral(s: float, c: float) -> float:
    """The integral of exp(eta s - eta^2 c) over eta from 0 to 1/2."""
    root = math.sqrt(c)
    if root < 0.5 and abs(s) < 20.0:  # differences of error functions would lose digits; the integrand is smooth
        total = 0.0
        for eta, w in NODES:  # not `sum`, which compensates rounding from Python 3.12 on
            total += w * math.exp(eta * s - eta * eta * c)
        return total
    if root < 1e-3:
        return 0.5 * (_exp(0.5 * s) - 1.0) / (0.5 * s)
    a = s / (2.0 * root)
    b = a - 0.5 * root
    end = 0.5 * s - 0.25 * c  # the exponent at eta = 1/2, which is a^2 - b^2
    if b >= 0.0:
        value = _exp(end) * _erfcx(b) - _erfcx(a)
    elif a >= 0.0:
        value = _exp(a * a) * (math.erf(a) - math.erf(b))
    else:
        value = _erfcx(-a) - _exp(end) * _erfcx(-b)
    return SQRT_PI / (2.0 * root) * value


@dataclass(frozen=True, slots=True)
class Squint:
    r"""Psi(s, c) = the integral of (exp(eta s - eta^2 c) - 1) / eta over eta in [0, 1/2], with c the sum of g^2.

    Weight of the signed function: the integral of exp(eta s - eta^2 c), in closed form with error functions.

    Guarantee: with M the total mass, |s| <= sqrt(2c) (1 + sqrt(2 ln M)) + 5 ln(1 + 2M); a function's mass is 1/2 +
    ln(1 + t), the amount by which its potential can be negative.

    References
    ----------
    Koolen, van Erven (2015), Second-order quantile methods for experts and combinatorial games, COLT; equation (15),
    theorem 4.

    Examples
    --------
    >>> round(Squint().weight(2.0, 4.0), 4), Squint().weight(0.0, 4.0)
    (0.3388, 0.0)
    """

    @property
    def reference(self) -> str:
        """Where the potential comes from."""
        return "Koolen and van Erven 2015, equation (15) and theorem 4, with raw gains"

    def spread(self, g: Float64Array) -> Float64Array:
        """g^2."""
        return g * g

    def weight(self, s: float, c: float) -> float:
        """The integral of exp(-eta^2 c) 2 sinh(eta s)."""
        if s == 0.0:
            return 0.0
        r = abs(s)
        return math.copysign(_integral(r, c) - _integral(-r, c), s)

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """`weight` for each pair."""
        return np.array([self.weight(*pair) for pair in zip(s.tolist(), c.tolist(), strict=True)])

    def row_weights(self, sums: Float64Array, n: float) -> None:
        """None: every function is weighed by itself."""
        return

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """s^2 / 4c, the largest exponent over all rates."""
        return s * s / (4.0 * np.maximum(c, np.finfo(np.float64).tiny))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem A' with mass 1/2 + ln(1 + T) and |s| <= sqrt(2c) (1 + sqrt(2 ln M)) + 5 ln(1 + 2M)."""

        def deviation(c: Float64Array, log_mass: float) -> Float64Array:
            tail = 5.0 * float(np.logaddexp(0.0, math.log(2.0) + log_mass))
            return np.sqrt(2.0 * c) * (1.0 + math.sqrt(2.0 * log_mass)) + tail

        return exponential(tally, 0.5 + math.log1p(tally.n_rounds), deviation, r, delta, squares=True)

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "Squint"}
