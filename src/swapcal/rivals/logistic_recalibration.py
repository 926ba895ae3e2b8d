"""Online logistic recalibration of the hint, with group indicators."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["LogisticRecalibration"]

_EDGE = 1e-6
"""Hints are kept this far from 0 and 1, where log-odds are infinite."""


class LogisticRecalibration(PublishedMethod):
    r"""Platt scaling that never stops: logistic regression on the hint's log-odds and the context.

    Guarantee: none on calibration. Like any regression with these features it drives the mean of (p - y) x_j over all
    rounds to zero, but it looks at no bin of its own forecasts, and its fixed rate follows drift at the price of noise.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`; outcomes are scaled into [0, 1].
    hypotheses : Hypotheses
        A finite or a linear class, whose contexts are features.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    rate : float
        The fixed learning rate; 0.01 is the default of the package river.

    Notes
    -----
    With b the log-odds of the hint (0 without one) and u the outcome in [0, 1],

    .. math:: p = \sigma(a + s b + \langle w, x \rangle), \qquad (a, s, w) \leftarrow (a, s, w) - \mathrm{rate}\,
              (p - u)\,(1, b, x),

    started at the hint itself, a = 0, s = 1, w = 0. Time per round O(k) with k active entries, memory O(n).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Probability
    >>> method = LogisticRecalibration(Probability(), Finite(1), horizon=2000, rate=0.1)
    >>> method.run([[1]] * 2000, [1, 0, 0, 0] * 500, hints=[0.5] * 2000)[[0, -1]].round(2)
    array([0.5 , 0.24])

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Montiel et al. (2021), River: machine learning for
    streaming data in Python, JMLR 22.
    """

    card: ClassVar[Card] = Card(
        name="logistic recalibration",
        reference="practice: Platt (1999) scaling with group indicators, by stochastic gradient descent as in river",
        assumes="a hint",
        properties=("mean",),
        classes=("finite", "linear"),
        exponent=None,
        error="",
        cost="O(k)",
        reconstructed="the start at the hint itself",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        rate: float = 0.01,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.rate = checked.number(rate, "rate", 0.0, 1e3)
        self.intercept = 0.0
        self.slope = 1.0
        self.weights = np.zeros(hypotheses.n)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The recalibrated hint."""
        low, high = self.property.domain
        share = 0.5 if hint is None else min(max((hint - low) / (high - low), _EDGE), 1.0 - _EDGE)
        odds = math.log(share / (1.0 - share))
        score = self.intercept + self.slope * odds + float(self.weights[row.indices] @ row.values)
        # The branch whose exponential cannot overflow.
        grown = math.exp(-abs(score))
        chance = 1.0 / (1.0 + grown) if score >= 0.0 else grown / (1.0 + grown)
        return Plan((min(max(low + (high - low) * chance, low), high),), (1.0,), odds)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """One gradient step on the log loss."""
        step = self.rate * checked.identified(self.property, plan.values[drawn], y)
        self.intercept -= step
        self.slope -= step * plan.notes
        self.weights[row.indices] -= step * row.values
