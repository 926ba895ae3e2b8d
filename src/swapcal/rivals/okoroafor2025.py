"""Okoroafor, Kleinberg, Kim (2025): omniprediction, one forecast that is good for every proper loss."""

import math
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.learners import GradientDescent, Learner, MultiplicativeWeights
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival, Card
from swapcal.rivals.games import first_change, play_points
from swapcal.typing import Float64Array


class Okoroafor2025(BinnedRival):
    r"""Calibrated only as far as proper losses can see, and multiaccurate: enough to beat a class under every loss.

    Guarantee, in units of the domain, with A_v the sum of p_t - y_t over the rounds with p_t >= v/N, B_f the sum of
    f(x_t) (p_t - y_t), and Reg(T) the regret of the agnostic learner (2 sqrt(T ln 2|F|) for a finite class):

        E [max_v |A_v| + sup_f |B_f|] <= T/N + sqrt(2 T ln(2N + 2)) + Reg(T) + O(sqrt(T ln(N |F|))).

    A proper loss is l(p, y) = -G(p) - G'(p) (y - p), G convex. If |G'| <= 1, then for every comparator h with
    G'(h(x)) = a + b f(x) (for a group f: one forecast inside, another outside)

        sum_t l(p_t, y_t) - l(h(x_t), y_t) <= sum_t (p_t - y_t) (G'(p_t) - G'(h(x_t)))
                                           <= (3 + |a|) max_v |A_v| + |b| sup_f |B_f|,

    because G' is a mixture of thresholds; O~(sqrt(T ln |F|)) for N = sqrt(T). Groups are not calibrated at each value.

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class (the learner is multiplicative weights over the functions and their negatives), or a linear one
        (gradient descent in the unit ball).
    horizon : int
        T.
    bins : int, optional
        N: forecasts are 0, 1/N, ..., 1. Default ceil(sqrt(T)).
    seed : int
        Of the draws.

    Notes
    -----
    Hedge over the 2 (N + 1) signed thresholds gives Phi_j = sum_{v <= j} (w_{v,+} - w_{v,-}), the learner adds q(x),
    and the two-point rule is applied to Phi_j + q(x). Both learn from p - y. Time and memory O(N + |F|) a round.

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Okoroafor2025(Mean(), Finite(1), horizon=1000, seed=1)
    >>> for t in range(1000):
    ...     method.update(method.predict([t % 2]), float(t % 4 == 1))
    >>> bool(np.abs(method.sums).max() < 0.2 * 1000)
    True

    References
    ----------
    Okoroafor, Kleinberg, Kim (2025), Near-optimal algorithms for omniprediction, FOCS, arXiv:2501.17205. Loss outcome
    indistinguishability: Gopalan, Hu, Kim, Reingold, Wieder (2023), ITCS.
    """

    card: ClassVar[Card] = Card(
        name="Okoroafor et al. 2025",
        reference="Okoroafor, Kleinberg, Kim (2025), Near-optimal algorithms for omniprediction",
        assumes="an online agnostic learner for the class; horizon known",
        classes=("finite", "linear"),
        exponent=0.5,
        error="regret under every proper loss (omniprediction); no claim about multicalibration",
        cost="O(bins + functions)",
        reconstructed="nearly all, low confidence: from the abstract (proper calibration, an online agnostic learner, "
        "sqrt(T ln |F|)); that thresholds are the tests and that the two evidences are added is our reading",
    )

    exponent_of_bins: ClassVar[float] = 0.5

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        n = self.hypotheses.n
        self.points = np.linspace(*self.property.domain, self.bins + 1)
        self.rate = math.sqrt(2.0 * math.log(2 * (self.bins + 1)) / self.horizon)
        self.sums = np.zeros(self.bins + 1)
        self.signed = self.hypotheses.dual == "max"
        self.learner: Learner = MultiplicativeWeights(2 * n) if self.signed else GradientDescent(n)
        self.state = self.learner.start()

    def thresholds(self) -> Float64Array:
        """Phi_j: the signed weights of the thresholds at or below point j."""
        exponents = self.rate * self.sums
        largest = np.abs(exponents).max()
        plus, minus = np.exp(exponents - largest), np.exp(-exponents - largest)
        return np.asarray(np.cumsum(plus - minus) / (plus + minus).sum())

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Neighboring points of the grid where both evidences together change sign; hints are not used."""
        audit = self.learner.predict(self.state, self._symmetric(row))
        return play_points(self.points, first_change(self.thresholds() + audit))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Tell the thresholds at or below the forecast, and the learner, how far off it was."""
        v = inputs.identified(self.property, plan.values[drawn], y)
        self.sums[: plan.notes[drawn] + 1] += v
        self.learner.update(self.state, self._symmetric(row), v)

    def _symmetric(self, row: Row) -> Row:
        """The functions and their negatives, where the learner's class is not closed under negation by itself."""
        if not self.signed:
            return row
        indices = np.concatenate([row.indices, row.indices + self.hypotheses.n])
        return Row(indices, np.concatenate([row.values, -row.values]))
