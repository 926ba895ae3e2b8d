"""What a regression sees: numbers of any unit, brought to a common size as the stream goes by."""

import math

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["N_OWN", "N_TOTALS", "Inputs"]

N_OWN = 3
"""Inputs before the features: the intercept of rounds with a base, of rounds without one, and the base."""

N_TOTALS = 6
"""Rounds; rounds with a base, its mean and its variation; non-zero context entries, the sum of their squares."""

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
