"""What a regression sees: numbers of any unit, brought to a common size as the stream goes by."""

import math

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["N_OWN", "Inputs"]

N_OWN = 3
"""Dense inputs besides the features: the intercept of rounds with a base, of rounds without one, and the base."""

# Standardized inputs are cut at this many standard deviations: out of reach for a normal feature, and a limit to what
# one bad record can do to a forecast.
_CUT = 5.0


class Inputs:
    """Running sizes of the inputs, and the inputs in those sizes.

    A dense number v becomes (v - mean) / deviation over the rounds learned so far, cut to [-5, 5], and 0 as long as it
    has not varied. The context keeps its zeros, so it is not centered; it is divided by the root mean square of all its
    non-zero entries, those of this round included, so a group's indicator stays 0 or 1 however rare the group is.

    Cost: O(features + active) for each call; memory O(features).
    """

    __slots__ = ("inverse", "mean", "totals", "variation")

    def __init__(self, n_features: int) -> None:
        self.mean = np.zeros(n_features)
        self.variation = np.zeros(n_features)
        self.inverse = np.zeros(n_features)
        # Rounds; rounds with a base, its mean and its variation; non-zero context entries, the sum of their squares.
        self.totals = [0.0] * 6

    def dense(self, features: Float64Array, base: float | None) -> Float64Array:
        """The vector (1, 0, base, features), or (0, 1, 0, features) without a base; standardized."""
        inputs = np.empty(N_OWN + len(features))
        if base is None:
            inputs[0], inputs[1], inputs[2] = 0.0, 1.0, 0.0
        else:
            _, count, mean, variation, _, _ = self.totals
            scaled = (base - mean) / math.sqrt(variation / count) if variation > 0.0 else 0.0
            inputs[0], inputs[1], inputs[2] = 1.0, 0.0, min(max(scaled, -_CUT), _CUT)
        if len(features):
            part = inputs[N_OWN:]
            np.subtract(features, self.mean, out=part)
            part *= self.inverse
            np.maximum(part, -_CUT, out=part)
            np.minimum(part, _CUT, out=part)
        return inputs

    def sparse(self, values: Float64Array, squares: float) -> Float64Array:
        """The scaled entries of the context; `squares` is the sum of their squares."""
        total = self.totals[5] + squares
        return values * (math.sqrt((self.totals[4] + len(values)) / total) if total > 0.0 else 0.0)

    def learn(self, features: Float64Array, base: float | None, n_values: int, squares: float) -> None:
        """Add one round (Welford's recursion for means and variations)."""
        totals = self.totals
        totals[0] += 1.0
        if base is not None:
            totals[1] += 1.0
            change = base - totals[2]
            totals[2] += change / totals[1]
            totals[3] += change * (base - totals[2])
        totals[4] += n_values
        totals[5] += squares
        if len(features):
            changes = features - self.mean
            self.mean += changes / totals[0]
            self.variation += changes * (features - self.mean)
            self.scale()

    def scale(self) -> None:
        """One over the deviation of each feature, 0 where nothing varied yet."""
        with np.errstate(over="ignore"):
            np.divide(self.totals[0], self.variation, out=self.inverse, where=self.variation > 0.0)
        np.sqrt(self.inverse, out=self.inverse)
