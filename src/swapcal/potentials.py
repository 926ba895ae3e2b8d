"""How a finite class weighs its evidence: potentials whose expected change is never positive."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from swapcal.engine.kernels import safe_exp, short_sinh
from swapcal.engine.theorems import exponential, quadratic
from swapcal.errors import InvalidInput
from swapcal.protocols import Tally
from swapcal.state import Described, rebuilt
from swapcal.typing import Float64Array, Spec


class _Separate(Described):
    """A potential that weighs every function by itself."""

    __slots__ = ()

    def weight(self: "Potential", s: float, c: float) -> float:
        """The weight of one function."""
        return float(self.weights(np.array([s]), np.array([c]))[0])

    def row_weights(self, sums: Float64Array, n: float) -> None:
        """None: every function is weighed by itself."""
        return


# --------
# AdaNormalHedge's potential without normalization: no rate, no grid, no additive logarithm.


@dataclass(frozen=True, slots=True)
class AdaNormalHedge(_Separate):
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

    def spread(self, g: Float64Array) -> Float64Array:
        """|g|."""
        return np.abs(g)

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """w(s, c) - w(-s, c) for each pair: exp((s^2 + 1) / 3(c + 1)) sinh(2s / 3(c + 1)), odd to the last bit.

        The two signs together are (exp((|s| + 1)^2 / 3(c + 1)) - exp((|s| - 1)^2 / 3(c + 1))) / 2 on both sides of
        |s| = 1, which is that product; and |s| <= c keeps the argument of sinh below 2/3.
        """
        inverse = 1.0 / (3.0 * (c + 1.0))
        return safe_exp((s * s + 1.0) * inverse) * short_sinh(2.0 * s * inverse)

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """s^2 / 3c."""
        return s * s / (3.0 * np.maximum(c, np.finfo(np.float64).tiny))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem A', scale-free: mass 5/2 + 3/2 (ln(1 + 2^J T) + J) with J doublings, and |s| <= sqrt(3 b c ln M)."""
        grown = math.log1p(2.0**tally.doublings * tally.n_rounds / tally.n_values)
        mass = 2.5 + 1.5 * (grown + tally.doublings)
        return exponential(tally, mass, lambda c, log_mass: np.sqrt(3.0 * tally.scale * c * log_mass), r, delta)

    def excess(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """By how much the potential of a function, both signs together, exceeds the least it can be with spread c."""
        with np.errstate(over="ignore"):
            above: Float64Array = np.expm1(self.level(s, c))
        return above

    def reach(self, e: Float64Array, c: Float64Array) -> Float64Array:
        """The largest |s| whose `excess` with spread c is at most e."""
        largest: Float64Array = np.sqrt(3.0 * c * np.log1p(e))
        return largest

    def most(self, c: Float64Array, n: Float64Array) -> Float64Array:
        """What |s| cannot exceed in n rounds: the sum of |g|."""
        return c


# --------
# A mixture of exponential potentials over a geometric grid of rates.

# Functions that are weighed at a time: enough to make calls cheap, few enough to stay in the cache of a core.
_BLOCK = 128


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
class Exponential(_Separate):
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
    def rates(self) -> tuple[tuple[float, float], ...]:
        """The pairs (eta_k, psi(eta_k))."""
        return _rates(self.n_rates)

    def spread(self, g: Float64Array) -> Float64Array:
        """g^2."""
        return g * g

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """sum_k pi_k eta_k exp(-psi(eta_k) c) 2 sinh(eta_k s) for each pair, with the constant pi_k left out.

        Rates are added up in their order.
        """
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

    def most(self, c: Float64Array, n: Float64Array) -> Float64Array:
        """What |s| cannot exceed in n rounds: the root of n times the sum of squares."""
        return np.sqrt(n * c)


# --------
# The p-norm potential: theorem B for a finite class, polynomial instead of exponential.


@dataclass(frozen=True, slots=True)
class PNorm(Described):
    r"""Psi = sum over bins of ||S_i||_p^2 / n_i, p = max(2, 2 ln n) for n functions.

    Phi_i(x) = <gradient of 1/2 ||S_i||_p^2, x> / (n_i + 1). The norm couples the functions of a bin, so that an update
    costs O(n), not only O(active); the other potentials are cheaper on sparse contexts.

    Guarantee (`bounds.quadratic`): with probability 1 - delta, Psi <= e ((p - 1) sum_i H(n_i) + 4 ln(1/delta)), H the
    harmonic numbers.

    Parameters
    ----------
    p : float
        The exponent; where it is None, max(2, 2 ln n) for the n functions of the class.

    References
    ----------
    Grove, Littlestone, Schuurmans (2001), General convergence results for linear discriminant updates; the p-norm's
    smoothness.

    Examples
    --------
    >>> PNorm().for_class(100)
    PNorm(p=9.210340371976184)
    >>> PNorm(p=3.0).for_class(100)
    PNorm(p=3.0)
    """

    p: float | None = None

    def __post_init__(self) -> None:
        if self.p is not None and not (isinstance(self.p, (int, float)) and 2.0 <= self.p <= 60.0):
            raise InvalidInput(f"p must be between 2 and 60, or None; got {self.p!r}")

    def for_class(self, n: int) -> "PNorm":
        """The potential with its exponent filled in for `n` functions."""
        return self if self.p is not None else PNorm(max(2.0, 2.0 * math.log(n)))

    @property
    def exponent(self) -> float:
        """p, 2 where it was not given."""
        return 2.0 if self.p is None else self.p

    def spread(self, g: Float64Array) -> Float64Array:
        """0: no second statistic."""
        return np.zeros_like(g)

    def weight(self, s: float, c: float) -> float:
        """The weight of a function that is alone in its bin, but for the bin's count: s itself."""
        return s

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """The sums themselves."""
        return s

    def row_weights(self, sums: Float64Array, n: float) -> Float64Array:
        """The gradient of 1/2 ||S||_p^2, over n + 1; scaled by the largest entry, so that no power overflows."""
        largest = float(np.max(np.abs(sums)))
        if largest == 0.0:
            return np.zeros_like(sums)
        p = self.exponent
        shares = (np.abs(sums) / largest).tolist()
        total = 0.0
        for share in shares:
            total += math.pow(share, p)
        factor = largest * math.pow(total, (2.0 - p) / p) / (n + 1.0)
        return np.copysign([factor * math.pow(share, p - 1.0) for share in shares], sums)

    def radius(self, n: int) -> float:
        """The largest squared p-norm of a context of `n` values in [-1, 1]."""
        return math.pow(n, 2.0 / self.exponent)

    def norm(self, sums: Float64Array) -> float:
        """||S||_p, scaled as in `row_weights`."""
        largest = float(np.max(np.abs(sums)))
        if largest == 0.0:
            return 0.0
        total = 0.0
        for share in (np.abs(sums) / largest).tolist():
            total += math.pow(share, self.exponent)
        return largest * math.pow(total, 1.0 / self.exponent)

    def level(self, s: Float64Array, c: Float64Array) -> None:
        """None: not an exponential potential, so a trusted hint would not keep its guarantee."""
        return

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem B in the p-norm: a context's squared p-norm is at most n^(2/p), the smoothness is p - 1."""
        return quadratic(tally, self.exponent - 1.0, self.radius(tally.n_functions), r, delta)


@dataclass(frozen=True, slots=True)
class Quadratic(Described):
    """||S||^2 / n in each bin, for `Linear` alone: theorem B, whose number ahead of a run is the sharper one.

    No hint is trusted, as a quadratic potential leaves no room for that. It weighs no function by itself.

    Examples
    --------
    >>> from swapcal import Linear
    >>> Linear(3, potential=Quadratic()).n
    3
    """


# --------
# The role of a potential, and how one is rebuilt from plain data.


class Potential(Protocol):
    """Turns the evidence of one (bin, function) into a signed weight.

    Notation: g_1, g_2, ... are the function's gains f(x_t) V_t in the rounds that played the bin, s their sum, and c
    the sum of `spread(g)`. The weight is the derivative of a potential Psi that the forecaster's rounds do not
    increase in expectation, but for terms that the theorem accounts for; so Psi stays small, and with it every |s|.
    """

    def spread(self, g: Float64Array) -> Float64Array:
        """What each gain adds to c."""

    def weight(self, s: float, c: float) -> float:
        """Signed weight of the function; odd and increasing in s."""

    def weights(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """`weight` for each pair, to the last bit."""

    def row_weights(self, sums: Float64Array, n: float) -> Float64Array | None:
        """The weights of a bin with sums `sums` and `n` visits, where functions are weighed together; else None."""

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array | None:
        """Upper bound on the logarithm of the potential, or None where the potential is not exponential."""

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """What the theorem promises: sum_i n_i sup_f |s / n_i|^r stays below it with probability 1 - delta."""

    def spec(self) -> Spec:
        """Plain data from which `from_spec` rebuilds the potential."""


def from_spec(spec: Spec) -> Potential:
    """Rebuild a potential from its `spec()`.

    Parameters
    ----------
    spec : dict
        What `potential.spec()` gave.

    Returns
    -------
    Potential
        Equal to the one that was described.

    Examples
    --------
    >>> from swapcal.potentials import Exponential
    >>> from_spec(Exponential(n_rates=4).spec())
    Exponential(n_rates=4)
    """
    kinds = {kind.__name__: kind for kind in (AdaNormalHedge, Exponential, PNorm, Quadratic, Squint)}
    potential: Potential = rebuilt(spec, kinds, "potential", "hypotheses=")
    return potential


# --------
# Squint's weights in closed form: all rates at once, no grid.

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
class Squint(_Separate):
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

    def level(self, s: Float64Array, c: Float64Array) -> Float64Array:
        """s^2 / 4c, the largest exponent over all rates."""
        return s * s / (4.0 * np.maximum(c, np.finfo(np.float64).tiny))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem A' with mass 1/2 + ln(1 + T) and |s| <= sqrt(2c) (1 + sqrt(2 ln M)) + 5 ln(1 + 2M)."""

        def deviation(c: Float64Array, log_mass: float) -> Float64Array:
            tail = 5.0 * float(np.logaddexp(0.0, math.log(2.0) + log_mass))
            return np.sqrt(2.0 * c) * (1.0 + math.sqrt(2.0 * log_mass)) + tail

        return exponential(tally, 0.5 + math.log1p(tally.n_rounds / tally.n_values), deviation, r, delta, squares=True)
