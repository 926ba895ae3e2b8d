"""One forecast from many: a mixture that finds the best combination without a rate, also when outcomes come late."""

import numpy as np

from swapcal.hints.ordered_sums import in_order
from swapcal.typing import Float64Array

__all__ = ["CAUTION", "Mixture", "packed", "unpacked"]

CAUTION = 2.0
"""Standard deviations of what the rounds that are out will add to a regret, which an expert must be ahead by."""


class Mixture:
    r"""Polynomial weights on the regret against each expert (ML-Poly), scored by what was said.

    With the mixture's forecast u and expert k's forecast u_k *at the time of the forecast*, an outcome adds r_k = V(u,
    y) (u - u_k), and

    .. math:: w_k \propto \frac{(\sum_t r_k - m_k)_+}{B + \sum_t r_k^2}, \qquad B = \max_{t, k} r_k^2.

    If V is nondecreasing in the forecast, r_k is at least the difference of the losses of which V is the derivative.
    Where every outcome is known before the next forecast, m_k = 0, and the sum of w_k r_k over the experts is zero in
    every round, which is what bounds each total regret by the root of its own sum of squares, up to a factor in K and
    ln T. As r_k is linear in u_k, that holds for every fixed convex combination of experts too. Multiplying V or the
    forecasts by a constant changes nothing. Where no regret is positive the choice is free: the expert with the largest
    one is followed, the first among equals. O(K) a round.

    Where outcomes come late, the margin m_k is two standard deviations of what the rounds that are out will add: the
    mean lag, so their mean number, times the mean square of r_k, under the root. Without it weights go to whoever won
    the first few scores and stay there blindly for a whole delay. A constant shift of a regret raises its bound by as
    much. The first expert has no margin, and is followed where nobody is ahead by more than theirs.

    B is kept in an array of the caller's, of length 1.

    References
    ----------
    Gaillard, Stoltz, van Erven (2014), A second-order bound with excess losses, COLT, arXiv:1402.2044 (ML-Poly).
    Joulani, Gyorgy, Szepesvari (2016), Delay-tolerant online convex optimization, AAAI.
    """

    __slots__ = ("bound", "regrets", "squares", "weights")

    def __init__(self, n_experts: int, bound: Float64Array) -> None:
        self.regrets = np.zeros(n_experts)
        self.squares = np.zeros(n_experts)
        self.bound = bound
        self.weights = np.zeros(n_experts)
        self.weights[0] = 1.0

    def combine(self, forecasts: Float64Array) -> float:
        """The weighted mean of the experts' forecasts."""
        return in_order(self.weights * forecasts)

    def learn(self, apart: Float64Array, v: float, rounds: float, lags: float) -> None:
        """Add one round: how far the mixture was above each expert, V at the mixture, rounds and lags so far."""
        r = v * apart
        self.regrets += r
        r *= r
        self.squares += r
        bound = max(float(self.bound[0]), float(r[r.argmax()]))
        self.bound[0] = bound
        ahead = self.regrets
        if lags > 0.0:
            share = CAUTION * CAUTION * (lags / rounds) / rounds
            ahead = self.regrets - np.sqrt(share * self.squares)
            ahead[0] = self.regrets[0]
        best = ahead.argmax()
        if ahead[best] > 0.0 and bound > 0.0:
            # Not np.maximum, which leaves the sign of a zero open.
            self.weights.fill(0.0)
            np.copyto(self.weights, ahead, where=ahead > 0.0)
            self.weights /= np.add(self.squares, bound, out=r)
            total = in_order(self.weights)
            if total > 0.0:
                self.weights /= total
                return
        self.weights.fill(0.0)
        self.weights[0 if lags > 0.0 else best] = 1.0


def packed(apart: Float64Array) -> bytes:
    """Differences between forecasts in two bytes each: the upper halves of 32-bit floats, rounded to even.

    Examples
    --------
    >>> unpacked(packed(np.array([0.0, 1.0, -0.25, 0.1])))
    array([ 0.        ,  1.        , -0.25      ,  0.10009766])
    """
    bits = apart.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype("<u2").tobytes()


def unpacked(scores: bytes) -> Float64Array:
    """What `packed` packed."""
    bits = np.frombuffer(scores, dtype="<u2").astype(np.uint32) << np.uint32(16)
    return bits.view(np.float32).astype(np.float64)
