"""One forecast from many: a mixture that finds the best combination without a rate, also when outcomes come late."""

import math

import numpy as np

from swapcal.engine.kernels import in_order
from swapcal.typing import Float64Array

# --------
# What a regression sees: numbers of any unit, brought to a common size as the stream goes by.

# Inputs before the features: the intercept of rounds with a base, of rounds without one, and the base.
N_OWN = 3

# Rounds; rounds with a base, its mean and its variation; non-zero context entries, the sum of their squares.
N_TOTALS = 6

# Standardized inputs are cut at this many standard deviations: out of reach for a normal feature, and a limit to what
# one bad record can do to a forecast.
_CUT = 5.0


class Inputs:
    """Running sizes of the inputs, and the inputs in those sizes.

    The base and the features v become (v - mean) / deviation over the rounds learned so far, cut to [-5, 5], and 0 as
    long as they have not varied. The context keeps its zeros, so it is not centered; it is divided by the root mean
    square of all its non-zero entries, those of this round included, so a group's indicator stays 0 or 1 however rare
    the group is.

    The totals are kept in an array of the caller's, of length `N_TOTALS`.

    Cost: O(features + active) for each call; memory O(features).
    """

    __slots__ = ("inverse", "mean", "totals", "variation")

    def __init__(self, n_features: int, totals: Float64Array) -> None:
        self.mean = np.zeros(n_features)
        self.variation = np.zeros(n_features)
        self.inverse = np.zeros(n_features)
        self.totals = totals

    def scaled(self, features: Float64Array, base: float | None, values: Float64Array, squares: float) -> Float64Array:
        """The vector (1, 0, base, features, context), or (0, 1, 0, features, context) without a base; in common sizes.

        `values` are the entries of the context, and `squares` is the sum of their squares.
        """
        _, count, mean, variation, n_entries, total = self.totals.tolist()
        end = N_OWN + len(features)
        inputs = np.empty(end + len(values))
        if base is None:
            inputs[0], inputs[1], inputs[2] = 0.0, 1.0, 0.0
        else:
            spread = variation / count if count > 0.0 else 0.0
            scaled = (base - mean) / math.sqrt(spread) if spread > 0.0 else 0.0
            inputs[0], inputs[1], inputs[2] = 1.0, 0.0, min(max(scaled, -_CUT), _CUT)
        if len(features):
            part = inputs[N_OWN:end]
            np.subtract(features, self.mean, out=part)
            part *= self.inverse
            np.maximum(part, -_CUT, out=part)
            np.minimum(part, _CUT, out=part)
        total += squares
        np.multiply(values, _root_ratio(n_entries + len(values), total), out=inputs[end:])
        return inputs

    def learn(self, features: Float64Array, base: float | None, n_values: int, squares: float) -> None:
        """Add one round (Welford's recursion for means and variations)."""
        totals = self.totals
        rounds, count, mean, variation, n_entries, total = totals.tolist()
        rounds += 1.0
        if base is not None:
            count += 1.0
            change = base - mean
            mean += change / count
            variation += change * (base - mean)
            totals[1], totals[2], totals[3] = count, mean, variation
        totals[0], totals[4], totals[5] = rounds, n_entries + n_values, total + squares
        if len(features):
            changes = features - self.mean
            self.mean += changes / rounds
            self.variation += changes * (features - self.mean)
            self.scale()

    def scale(self) -> None:
        """One over the deviation of each feature, 0 where nothing varied yet.

        The root comes before the division: it is at least 1e-162, so that its inverse is finite.
        """
        rounds = float(self.totals[0])
        spread = self.variation / rounds if rounds > 0.0 else self.variation
        np.sqrt(spread, out=spread)
        self.inverse.fill(0.0)
        np.divide(1.0, spread, out=self.inverse, where=spread > 0.0)


def _root_ratio(n: float, total: float) -> float:
    """The root of n / total, 0 for no total; finite also where entries are so tiny that the ratio overflows."""
    if total <= 0.0:
        return 0.0
    return math.sqrt(n / total) if n / total < math.inf else math.sqrt(n) / math.sqrt(total)


# Standard deviations of what the rounds that are out will add to a regret, which an expert must be ahead by.
CAUTION = 2.0


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
