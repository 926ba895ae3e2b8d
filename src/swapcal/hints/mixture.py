"""One forecast from many: a mixture that finds the best combination without a rate."""

import numpy as np

from swapcal.hints.ordered_sums import in_order
from swapcal.typing import Float64Array

__all__ = ["Mixture"]


class Mixture:
    r"""Polynomial weights on the regret against each expert (ML-Poly).

    With the mixture's forecast u and expert k's forecast u_k, round t adds r_k = V(u, y) (u - u_k), and

    .. math:: w_k \propto \frac{(\sum_t r_k)_+}{B + \sum_t r_k^2}, \qquad B = \max_{t, k} r_k^2.

    If V is nondecreasing in the forecast, r_k is at least the difference of the losses of which V is the derivative.
    The sum of w_k r_k over the experts is zero in every round, which is what bounds each total regret by the root of
    its own sum of squares, up to a factor in K and ln T. As r_k is linear in u_k, that holds for every fixed convex
    combination of experts too. Multiplying V or the forecasts by a constant changes nothing. Where no regret is
    positive the choice is free: the expert with the largest one is followed, the first among equals. O(K) a round.

    B is kept in an array of the caller's, of length 1.

    References
    ----------
    Gaillard, Stoltz, van Erven (2014), A second-order bound with excess losses, COLT, arXiv:1402.2044 (ML-Poly).
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

    def learn(self, forecasts: Float64Array, combined: float, v: float) -> None:
        """Add one round: `v` is V at the combined forecast."""
        r = v * (combined - forecasts)
        self.regrets += r
        r *= r
        self.squares += r
        bound = max(float(self.bound[0]), float(r[r.argmax()]))
        self.bound[0] = bound
        best = self.regrets.argmax()
        if self.regrets[best] > 0.0 and bound > 0.0:
            # Not np.maximum, which leaves the sign of a zero open.
            self.weights.fill(0.0)
            np.copyto(self.weights, self.regrets, where=self.regrets > 0.0)
            self.weights /= np.add(self.squares, bound, out=r)
            total = in_order(self.weights)
            if total > 0.0:
                self.weights /= total
                return
        self.weights.fill(0.0)
        self.weights[best] = 1.0
