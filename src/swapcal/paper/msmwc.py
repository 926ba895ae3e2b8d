"""MsMwC with individual rates: the expert algorithm of the paper."""

import math
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.paper.projection import Step, project
from swapcal.typing import Float64Array, FloatLike

# --------
# What the paper asks of an expert algorithm, and the checks that its implementations share.

# Expected gains are sums of products: they may leave [-1, 1] by a few units in the last place, and are cut back.
_ROUNDING = 1e-12
_LARGEST = 10**15


@runtime_checkable
class Experts(Protocol):
    """The subroutine ALG of Algorithms 1 and 2: weights out, gains in, and a promise about their difference."""

    @property
    def weights(self) -> Float64Array:
        """A probability vector over the experts, for the coming round."""

    def update(self, gains: Float64Array) -> None:
        """End a round; `gains` lie in [-1, 1], and larger is better."""

    def regret_bound(self, squares: FloatLike) -> Float64Array:
        """For each expert i, a bound on sum_t (gain_i - <weights, gains>) if sum_t gain_i^2 is at most `squares`."""


def checked_whole(value: Any, name: str) -> int:
    """A whole number from 1 to 10^15."""
    if inputs.integer(value, name, 1) > _LARGEST:
        raise InvalidInput(f"{name} must be a whole number from 1 to 10^15; got {inputs.short_repr(value)}")
    return int(value)


def checked_squares(squares: Any, n_experts: int) -> Float64Array:
    """Sums of squares: one number for all experts, or one for each."""
    sums = inputs.floats(squares, "squares", "a flat sequence of numbers")
    array = inputs.vector(np.broadcast_to(sums, n_experts) if sums.ndim == 0 else sums, "squares", n_experts)
    if not (array >= 0.0).all():
        raise InvalidInput(f"squares are sums of squared gains and cannot be negative; got {array.min()}")
    return array


def checked_gains(gains: Any, n_experts: int) -> Float64Array:
    """All gains of a round, in a new array."""
    result = inputs.vector(gains, "gains", n_experts).copy()
    size = np.abs(result)
    at = int(size.argmax())
    if size[at] <= 1.0:
        return result
    if size[at] > 1.0 + _ROUNDING:
        raise InvalidInput(
            f"gains must lie in [-1, 1]; expert {at} has {result[at]}: divide by the largest gain possible"
        )
    clipped: Float64Array = np.clip(result, -1.0, 1.0)
    return clipped


# --------
# MsMwC-Master: a mixture of MsMwC with many fixed rates, which needs no rates of its experts' own.

_CORRECTION = 32.0


class MsMwCMaster:
    r"""MsMwC over bases that are MsMwC themselves, one for each rate of a geometric grid.

    Guarantee: for every expert i at once, with V_i = sum_t gain_{t,i}^2,

        sum_t (gain_{t,i} - <w_t, gain_t>) <= O(G + sqrt(V_i G)),    G = ln d + ln V_i,

    so ln V_i stands where theorem 2 (`MsMwC`) has ln T. `regret_bound` is explicit, and holds for any number of rounds;
    the horizon only says how fine the grid is.

    Parameters
    ----------
    n_experts : int
        d.
    horizon : int
        T; there are K = ceil(log2 T) bases, at least one.

    Notes
    -----
    Rates eta_k = 1 / (32 2^k), k = 1..K. Base k is MsMwC on the whole simplex with the constant rate 2 eta_k; equal
    rates make its step a softmax, of 2 eta_k S_i - 128 eta_k^2 V_i with S_i and V_i the sums of gains and of
    their squares. The master mixes the bases with p_k, which starts in proportion to eta_k^2 and makes the step of
    `projection` with rates eta_k, the bases' losses g_k = -<w^k, gain> and corrections 32 eta_k g_k^2. Hints are zero.
    Time and memory O(d log T) a round.

    Examples
    --------
    >>> experts = MsMwCMaster(3, horizon=1000)
    >>> for _ in range(200):
    ...     experts.update([1.0, 0.0, 0.0])
    >>> bool(experts.weights[0] > 0.4)
    True

    References
    ----------
    Chen, Luo, Wei (2021), Impossible tuning made possible: a new expert algorithm and its applications, COLT;
    algorithm 2 with the set of equation (3), theorems 4 and 5.
    """

    def __init__(self, n_experts: int, *, horizon: int) -> None:
        self.n_experts = checked_whole(n_experts, "n_experts")
        self.horizon = checked_whole(horizon, "horizon")
        n_bases = max(1, (self.horizon - 1).bit_length())
        self.rates: Float64Array = np.array([1.0 / (32.0 * 2.0**k) for k in range(1, n_bases + 1)])
        self._start = self.rates**2 / (self.rates**2).sum()
        self._step = Step(self._start, np.log(self._start), 0.0, 0)
        self._sums = np.zeros(self.n_experts)
        self._squares = np.zeros(self.n_experts)
        self._bases = self._softmax(self._sums, self._squares)

    @property
    def weights(self) -> Float64Array:
        """The weights of the coming round: shape (n_experts,), not tied to the state."""
        weights: Float64Array = np.einsum("k,ki->i", self._step.weights, self._bases)
        return weights

    def update(self, gains: Any) -> None:
        """End a round with these gains in [-1, 1]."""
        x = checked_gains(gains, self.n_experts)
        if not x.any():
            return
        losses = -np.einsum("ki,i->k", self._bases, x)
        gradient = losses + _CORRECTION * self.rates * losses**2
        self._step = project(self._step.weights, self._step.log_weights, gradient, self.rates, 0.0)
        self._sums = self._sums + x
        self._squares = self._squares + x * x
        self._bases = self._softmax(self._sums, self._squares)

    def regret_bound(self, squares: FloatLike) -> Float64Array:
        r"""Bound on sum_t (gain_{t,i} - <w_t, gain_t>), for each i, if sum_t gain_{t,i}^2 is at most squares[i].

        Proof, with l = -gain and any k. Step 1 of the proof in `MsMwC.regret_bound` with u = e_i and the constant rate
        2 eta_k <= 1/32 bounds the regret of base k by

            ln d / (2 eta_k) + 64 eta_k V - 56 eta_k sum_t <w^k_t, l_t^2>.

        The same step for the master and u = e_k bounds its regret to base k by

            (ln(1/p_{1,k}) - 1) / eta_k + sum_j p_{1,j} / eta_j + 32 eta_k sum_t <w^k_t, l_t>^2,

        where the last sum is at most sum_t <w^k_t, l_t^2>, which the base pays. With p_{1,k} = eta_k^2 / sum_j eta_j^2,

            min_k { ln d / (2 eta_k) + (ln(1/p_{1,k}) - 1) / eta_k + 64 eta_k V } + (sum_j eta_j) / (sum_j eta_j^2)

        is the bound. It grows with V, so an upper bound on the squares may be given.

        Parameters
        ----------
        squares : float or array of shape (n_experts,)
            V_i, one for all or one for each expert.
        """
        v = checked_squares(squares, self.n_experts)
        surprise = -math.log(1.0 / self.n_experts)
        best = np.full(self.n_experts, math.inf)
        for rate, start in zip(self.rates.tolist(), self._start.tolist(), strict=True):
            fixed = surprise / (2.0 * rate) + (-math.log(start) - 1.0) / rate
            best = np.minimum(best, fixed + 2.0 * _CORRECTION * rate * v)
        return best + float(self.rates.sum() / (self.rates**2).sum())

    def _softmax(self, sums: Float64Array, squares: Float64Array) -> Float64Array:
        """The weights of all bases, shape (K, n_experts)."""
        rates = 2.0 * self.rates[:, np.newaxis]
        exponents = math.log(1.0 / self.n_experts) + rates * sums - _CORRECTION * rates**2 * squares
        exponents -= exponents.max(axis=1, keepdims=True)
        np.exp(exponents, out=exponents)
        exponents /= exponents.sum(axis=1, keepdims=True)
        result: Float64Array = exponents
        return result


class MsMwC:
    r"""Multi-scale multiplicative weights with correction: small regret against every expert that is rarely active.

    Guarantee: with V_i = sum_t gain_{t,i}^2 and L = ln(d T), for every expert i at once and for any gains in [-1, 1],

        sum_t (gain_{t,i} - <w_t, gain_t>) <= 65 sqrt(V_i L) + 64 L + 3    if at most T rounds are played;

    `regret_bound` has the sharper form and its proof. This is the lemma that the paper calls "regret guarantee of the
    McMwC algorithm": it means this algorithm, MsMwC, in the instance of theorem 2 of its authors, with hint 0.

    Parameters
    ----------
    n_experts : int
        d.
    horizon : int
        T, which sets the floor 1/(dT) and L. More rounds may be played; the bound then grows slowly with them.

    Notes
    -----
    With losses -gain, sums V over the rounds before t, and rates eta_{t,i} = min(sqrt(L / V_{t,i}), 1/64),

        w_{t+1} = argmin <w, b_t> + sum_i (w_i ln(w_i / w_{t,i}) - w_i + w_{t,i}) / eta_{t,i},
        b_{t,i} = -gain_{t,i} + 32 eta_{t,i} gain_{t,i}^2,

    over the probability vectors with all w_i >= 1/(dT). Weights are kept as logarithms. For d = T = 1 alone L is ln 2.
    Time O(d) a round, with sparse gains too: the multiplier of the sum moves every expert. Memory O(d).

    Examples
    --------
    >>> experts = MsMwC(3, horizon=1000)
    >>> regret = 0.0
    >>> for _ in range(200):
    ...     regret += 1.0 - experts.weights[0]
    ...     experts.update([1.0, 0.0, 0.0])
    >>> experts.weights.round(3)
    array([0.705, 0.148, 0.148])
    >>> round(float(regret)), round(float(experts.regret_bound(200.0)[0]))
    (96, 172)

    References
    ----------
    Chen, Luo, Wei (2021), Impossible tuning made possible: a new expert algorithm and its applications, COLT;
    algorithm 1, lemma 1 and theorem 2.
    """

    # The largest rate h, at most 1/c, and the constant c of the correction, at least 8; with these limits the proof of
    # the bound holds.
    rate_cap: ClassVar[float] = 1.0 / 64.0
    correction: ClassVar[float] = 32.0

    def __init__(self, n_experts: int, *, horizon: int) -> None:
        self.n_experts = checked_whole(n_experts, "n_experts")
        self.horizon = checked_whole(horizon, "horizon")
        self._floor = 1.0 / (float(self.n_experts) * self.horizon)
        self._log_term = max(math.log(self.n_experts) + math.log(self.horizon), math.log(2.0))
        start = np.full(self.n_experts, self._floor + (1.0 - 1.0 / self.horizon) * (1.0 / self.n_experts))
        self._surprise = -np.log(start)
        self._step = Step(start, np.log(start), 0.0, 0)
        self._squares = np.zeros(self.n_experts)
        self.n_rounds = 0

    @property
    def weights(self) -> Float64Array:
        """The weights of the coming round: shape (n_experts,), read-only, and not changed by later updates."""
        view = self._step.weights.view()
        view.flags.writeable = False
        return view

    @property
    def rates(self) -> Float64Array:
        """eta_{t,i} of the coming round, from the squared gains so far."""
        capped = self._log_term / self.rate_cap**2
        rates: Float64Array = np.sqrt(self._log_term / np.maximum(self._squares, capped))
        return rates

    def update(self, gains: Any) -> None:
        """End a round with these gains in [-1, 1]."""
        x = checked_gains(gains, self.n_experts)
        self.n_rounds += 1
        if not x.any():
            return
        rates = self.rates
        gradient = x * (self.correction * rates * x - 1.0)
        self._step = project(self._step.weights, self._step.log_weights, gradient, rates, self._floor)
        self._squares = self._squares + x * x

    def regret_bound(self, squares: FloatLike) -> Float64Array:
        r"""Bound on sum_t (gain_{t,i} - <w_t, gain_t>), for each i, if sum_t gain_{t,i}^2 is at most squares[i].

        Proof. Write l = -gain, e = 1/(dT), c and h for `correction` and `rate_cap`, f(a, b) = a ln(a/b) - a + b, and
        n for the number of rounds. Compare with u, which has u_j = e for j other than i, so u_i = 1 - (d-1) e.

        1. A step: as w_{t+1} is a minimizer,
             <w_t - u, b> <= sum_j (f(u_j, w_{t,j}) - f(u_j, w_{t+1,j})) / eta_j + R,
             R = sup_{v >= 0} <w_t - v, b> - sum_j f(v_j, w_{t,j}) / eta_j
               = sum_j w_{t,j} (exp(-x_j) - 1 + x_j) / eta_j,
           with x = eta b. As |x| <= eta |l| (1 + c h) <= 1/4, R <= sum_j w_{t,j} x_j^2 / eta_j <= (1 + c h)^2 times
           sum_j eta_j w_{t,j} l_j^2, and (1 + c h)^2 <= 4. With b = l + c eta l^2, summed over t, Reg(u) is at most
             sum_j f(u_j, w_{1,j}) / h + sum_{t>=2} sum_j (1/eta_{t,j} - 1/eta_{t-1,j}) f(u_j, w_{t,j})
             + c sum_{t,j} eta_{t,j} u_j l_{t,j}^2 - (c - 4) sum_{t,j} eta_{t,j} w_{t,j} l_{t,j}^2.
        2. The first sum is KL(u, w_1) / h <= ln(1/w_{1,i}) / h, because w_1 >= e and u_i <= 1.
        3. In the second, j = i has f <= ln(1/e) = L and gives at most L (1/eta_n - 1/h) <= max(0, sqrt(V L) - L/h).
           Another j has f(e, w) <= w, and 1/eta_t - 1/eta_{t-1} <= eta_{t-1} l_{t-1}^2 / L. As lam lies within
           [-max b, -min b] and b within [-1, 2], w_t <= exp(3 h) w_{t-1} <= 1.5 w_{t-1}. So these terms are at most
           1.5/L <= 2.2 times sum eta w l^2: less than c - 4, hence paid for by the last sum.
        4. In the third, j = i is c times a left Riemann sum of the falling function s(v) = min(h, sqrt(L/v)) with steps
           of at most 1, so at most c (integral of s from 0 to V, plus h - s(V)); the others add c h (d-1) e n at most.
        5. Going from u to the expert costs <u - e_i, l> <= 2 (d-1) e a round.

        The sum of all that is, with s and its integral S (S(V) = h V up to V = L/h^2, then 2 sqrt(L V) - L/h),

            ln(1/w_{1,i}) / h + max(0, sqrt(V L) - L/h) + c (S(V) + h - s(V)) + (2 + c h) (d-1) n / (d T),

        with n = T if fewer rounds were played. For c = 32, h = 1/64, a uniform start and n <= T it is at most
        64 ln d + V/2 + 5/2 while V <= 4096 L, and 65 sqrt(V L) - 2112 L + 64 ln d + 3 beyond; in both cases at most
        65 sqrt(V L) + 64 ln d + 3. It grows with V, so an upper bound on the squares may be given.

        Parameters
        ----------
        squares : float or array of shape (n_experts,)
            V_i, one for all or one for each expert.
        """
        v = checked_squares(squares, self.n_experts)
        h, log_term = self.rate_cap, self._log_term
        knee = log_term / h**2
        beyond = np.sqrt(log_term * np.maximum(v, knee)) - log_term / h
        integral = h * np.minimum(v, knee) + 2.0 * beyond
        offset = h - np.sqrt(log_term / np.maximum(v, knee))
        share = (self.n_experts - 1) / self.n_experts * max(1.0, self.n_rounds / self.horizon)
        bound: Float64Array = (
            self._surprise / h + beyond + self.correction * (integral + offset) + (2.0 + self.correction * h) * share
        )
        return bound
