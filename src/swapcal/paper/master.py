"""MsMwC-Master: a mixture of MsMwC with many fixed rates, which needs no rates of its experts' own."""

import math
from typing import Any

import numpy as np

from swapcal.paper.experts import checked_gains, checked_prior, checked_squares, checked_whole
from swapcal.paper.projection import Step, kkt_residual, project
from swapcal.typing import Float64Array, FloatLike

__all__ = ["MsMwCMaster"]

_CORRECTION = 32.0


class MsMwCMaster:
    r"""MsMwC over bases that are MsMwC themselves, one for each rate of a geometric grid.

    Guarantee: for every expert i at once, with V_i = sum_t gain_{t,i}^2 and prior q,

        sum_t (gain_{t,i} - <w_t, gain_t>) <= O(G + sqrt(V_i G)),    G = ln(1/q_i) + ln V_i,

    so ln V_i stands where theorem 2 (`MsMwC`) has ln T. `regret_bound` is explicit, and holds for any number of rounds;
    the horizon only says how fine the grid is.

    Parameters
    ----------
    n_experts : int
        d.
    horizon : int
        T; there are K = ceil(log2 T) bases, at least one.
    prior : array of shape (n_experts,), optional
        Positive probabilities q from which every base starts; uniform by default.

    Notes
    -----
    Rates eta_k = 1 / (32 2^k), k = 1..K. Base k is MsMwC on the whole simplex with the constant rate 2 eta_k; equal
    rates make its step a softmax, of ln q_i + 2 eta_k S_i - 128 eta_k^2 V_i with S_i and V_i the sums of gains and of
    their squares. The master mixes the bases with p_k, which starts in proportion to eta_k^2 and makes the step of
    `projection` with rates eta_k, the bases' losses g_k = -<w^k, gain> and corrections 32 eta_k g_k^2. Hints are zero.
    Time and memory O(d log T) a round.

    Examples
    --------
    >>> experts = MsMwCMaster(3, horizon=1000)
    >>> for _ in range(200):
    ...     experts.update([1.0], indices=[0])
    >>> bool(experts.weights[0] > 0.4)
    True

    References
    ----------
    Chen, Luo, Wei (2021), Impossible tuning made possible: a new expert algorithm and its applications, COLT;
    algorithm 2 with the set of equation (3), theorems 4 and 5.
    """

    def __init__(self, n_experts: int, *, horizon: int, prior: Any = None) -> None:
        self.n_experts = checked_whole(n_experts, "n_experts")
        self.horizon = checked_whole(horizon, "horizon")
        self.prior = checked_prior(prior, self.n_experts)
        n_bases = max(1, (self.horizon - 1).bit_length())
        self.rates: Float64Array = np.array([1.0 / (32.0 * 2.0**k) for k in range(1, n_bases + 1)])
        self._start = self.rates**2 / (self.rates**2).sum()
        self._step = Step(self._start, np.log(self._start), 0.0, 0)
        self._residual_of: tuple[Float64Array, Float64Array] | None = None
        self._sums = np.zeros(self.n_experts)
        self._squares = np.zeros(self.n_experts)
        self._bases = self._softmax(self._sums, self._squares)

    @property
    def weights(self) -> Float64Array:
        """The weights of the coming round: shape (n_experts,), not tied to the state."""
        weights: Float64Array = np.einsum("k,ki->i", self._step.weights, self._bases)
        return weights

    def update(self, gains: Any, *, indices: Any = None) -> None:
        """End a round with these gains in [-1, 1]; with `indices`, those of these experts, and 0 for all others."""
        x = checked_gains(gains, indices, self.n_experts)
        if not x.any():
            return
        losses = -np.einsum("ki,i->k", self._bases, x)
        gradient = losses + _CORRECTION * self.rates * losses**2
        weights, log_weights = self._step.weights, self._step.log_weights
        self._step = project(weights, log_weights, gradient, self.rates, 0.0)
        self._residual_of = (log_weights, gradient)
        self._sums = self._sums + x
        self._squares = self._squares + x * x
        self._bases = self._softmax(self._sums, self._squares)

    def kkt_residual(self) -> float:
        """How far the master's last step is from an exact minimizer, as a relative error of its weights."""
        if self._residual_of is None:
            return abs(float(self._step.weights.sum()) - 1.0)
        log_weights, gradient = self._residual_of
        return kkt_residual(log_weights, gradient, self.rates, 0.0, self._step)

    def regret_bound(self, squares: FloatLike) -> Float64Array:
        r"""Bound on sum_t (gain_{t,i} - <w_t, gain_t>), for each i, if sum_t gain_{t,i}^2 is at most squares[i].

        Proof, with l = -gain and any k. Step 1 of the proof in `MsMwC.regret_bound` with u = e_i and the constant rate
        2 eta_k <= 1/32 bounds the regret of base k by

            ln(1/q_i) / (2 eta_k) + 64 eta_k V - 56 eta_k sum_t <w^k_t, l_t^2>.

        The same step for the master and u = e_k bounds its regret to base k by

            (ln(1/p_{1,k}) - 1) / eta_k + sum_j p_{1,j} / eta_j + 32 eta_k sum_t <w^k_t, l_t>^2,

        where the last sum is at most sum_t <w^k_t, l_t^2>, which the base pays. With p_{1,k} = eta_k^2 / sum_j eta_j^2,

            min_k { ln(1/q_i) / (2 eta_k) + (ln(1/p_{1,k}) - 1) / eta_k + 64 eta_k V } + (sum_j eta_j) / (sum_j eta_j^2)

        is the bound. It grows with V, so an upper bound on the squares may be given.

        Parameters
        ----------
        squares : float or array of shape (n_experts,)
            V_i, one for all or one for each expert.
        """
        v = checked_squares(squares, self.n_experts)
        surprise = -np.log(self.prior)
        best = np.full(self.n_experts, math.inf)
        for rate, start in zip(self.rates.tolist(), self._start.tolist(), strict=True):
            fixed = surprise / (2.0 * rate) + (-math.log(start) - 1.0) / rate
            best = np.minimum(best, fixed + 2.0 * _CORRECTION * rate * v)
        return best + float(self.rates.sum() / (self.rates**2).sum())

    def _softmax(self, sums: Float64Array, squares: Float64Array) -> Float64Array:
        """The weights of all bases, shape (K, n_experts)."""
        rates = 2.0 * self.rates[:, np.newaxis]
        exponents = np.log(self.prior) + rates * sums - _CORRECTION * rates**2 * squares
        exponents -= exponents.max(axis=1, keepdims=True)
        np.exp(exponents, out=exponents)
        exponents /= exponents.sum(axis=1, keepdims=True)
        result: Float64Array = exponents
        return result
