"""What practitioners use, and the two ends of the scale: the model as it is, and the truth."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.audits.scores import isotonic
from swapcal.engine.values import Grid
from swapcal.errors import InvalidInput
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival, Card, Rival


class Clairvoyant(BinnedRival):
    """Knows the true conditional property, passed as the hint, and rounds it to the grid.

    What it suffers is the labels' noise, of the order of log |F| in each bin, and rounding, at most rho^2 T / (4 N^2):
    SMCal_2 of the order T^(1/3) at N = T^(1/3). That is a yardstick and no method's claim, so no exponent is declared.

    Parameters
    ----------
    property : Elicitable
        Any.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T; sets the grid.
    seed : int
        Not used: nothing is drawn.
    bins : int, optional
        N, instead of ceil(T^(1/3)).

    Notes
    -----
    Time and memory O(1). A round without a hint is refused: then nothing is known.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> Clairvoyant(Mean(), Finite(1), horizon=64).run([[1], [1]], [0, 1], hints=[0.26, 0.8])
    array([0.375, 0.875])
    """

    card: ClassVar[Card] = Card(
        name="clairvoyant",
        reference="the limit: the true conditional property, rounded to the grid",
        assumes="the truth, given as the hint",
        properties=("elicitable",),
        classes=("none",),
        cost="O(1)",
    )

    exponent_of_bins: ClassVar[float] = 1.0 / 3.0

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.grid = Grid(*self.property.domain, self.bins)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The mid-point of the truth's bin."""
        if hint is None:
            raise InvalidInput("the clairvoyant needs the true conditional property as the hint of every round")
        return self.sure(self.grid.midpoint(self.grid.bin(hint)))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Nothing: all is known."""


# Hints are kept this far from 0 and 1, where log-odds are infinite.
_EDGE = 1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRecalibration(Rival):
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
        classes=("finite", "linear"),
        cost="O(k)",
        reconstructed="the start at the hint itself",
    )

    rate: float = 0.01

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.rate = inputs.number(self.rate, "rate", 0.0, 1e3)
        self.intercept, self.slope = 0.0, 1.0
        self.weights = np.zeros(self.hypotheses.n)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The recalibrated hint."""
        low, high = self.property.domain
        share = 0.5 if hint is None else min(max((hint - low) / (high - low), _EDGE), 1.0 - _EDGE)
        odds = math.log(share / (1.0 - share))
        score = self.intercept + self.slope * odds + float(self.weights[row.indices] @ row.values)
        # The branch whose exponential cannot overflow.
        grown = math.exp(-abs(score))
        chance = 1.0 / (1.0 + grown) if score >= 0.0 else grown / (1.0 + grown)
        return self.sure(self.scaled(chance), odds)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """One gradient step on the log loss."""
        step = self.rate * inputs.identified(self.property, plan.values[drawn], y)
        self.intercept -= step
        self.slope -= step * plan.notes
        self.weights[row.indices] -= step * row.values


class RawModel(Rival):
    """Plays the hint, or the middle of the domain where there is none.

    Guarantee: none. What every other method has to improve on.

    Parameters
    ----------
    property : Elicitable
        Any.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.

    Notes
    -----
    Time and memory O(1). The hint is played as it is, not rounded: an error that adds up over equal forecasts sees many
    forecasts that were made once.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> RawModel(Mean(high=10.0), Finite(1), horizon=2).run([[1], [1]], [3.0, 4.0], hints=[2.5, 7.0])
    array([2.5, 7. ])
    """

    card: ClassVar[Card] = Card(
        name="raw model",
        reference="practice: the model's own forecasts",
        assumes="a hint",
        properties=("elicitable",),
        classes=("none",),
        cost="O(1)",
    )

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint."""
        return self.sure(self.middle_or(hint))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Nothing."""


@dataclass(eq=False, repr=False, kw_only=True)
class RollingIsotonic(Rival):
    """The hint, sent through a monotone curve that is refitted to the last outcomes.

    Guarantee: none online. It presumes that the hint ranks cases rightly, and knows no groups.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    window : int
        How many of the last outcomes are fitted.
    every : int
        After how many outcomes the curve is refitted.

    Notes
    -----
    Outcomes with equal hints are averaged, the averages are made monotone by `isotonic`, and forecasts between two
    hints of the window are interpolated linearly, as scikit-learn does. Before the first fit the hint is played; rounds
    without a hint count as hinted with the middle of the domain.
    Time O(window log window) for a refit, O(log window) otherwise; memory O(window).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Probability
    >>> method = RollingIsotonic(Probability(), Finite(1), horizon=200, every=4)
    >>> method.run([[1]] * 5, [0, 1, 0, 1, 1], hints=[0.4, 0.4, 0.4, 0.6, 0.5]).round(3)
    array([0.4  , 0.4  , 0.4  , 0.6  , 0.667])

    References
    ----------
    Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass probability estimates. Barlow,
    Bartholomew, Bremner, Brunk (1972), Statistical inference under order restrictions.
    """

    card: ClassVar[Card] = Card(
        name="rolling isotonic",
        reference="practice: Zadrozny and Elkan (2002), isotonic calibration, refitted in a window",
        assumes="a hint that ranks cases rightly",
        classes=("none",),
        cost="O(window log window / every)",
        reconstructed="window and time between fits",
    )

    window: int = 1000
    every: int = 50

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.window = inputs.integer(self.window, "window", 1)
        self.every = inputs.integer(self.every, "every", 1)
        self.seen = 0
        self.hints, self.outcomes = np.zeros(self.window), np.zeros(self.window)
        self.knots, self.heights = np.zeros(0), np.zeros(0)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The curve at the hint."""
        base = self.middle_or(hint)
        return self.sure(float(np.interp(base, self.knots, self.heights)) if len(self.knots) else base, base)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Put the outcome into the window; refit when it is time."""
        position = self.seen % self.window
        self.hints[position] = plan.notes
        self.outcomes[position] = self.scaled(self.target(y))
        self.seen += 1
        if self.seen % self.every == 0:
            self._fit()

    def _fit(self) -> None:
        n = min(self.seen, self.window)
        self.knots, places, counts = np.unique(self.hints[:n], return_inverse=True, return_counts=True)
        weights = counts.astype(np.float64)
        self.heights = isotonic(np.bincount(places, weights=self.outcomes[:n]) / weights, weights)


@dataclass(eq=False, repr=False, kw_only=True)
class RollingProperty(Rival):
    """What the property was among the last labels of each group, averaged over the groups of the case.

    Guarantee: none, unless groups are disjoint and labels stationary.

    Parameters
    ----------
    property : Elicitable
        Any: the value of a sample is the property's own.
    hypotheses : Hypotheses
        A finite class; a case belongs to the groups whose entry is not zero.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    window : int
        How many of the last labels each group keeps.

    Notes
    -----
    p is the mean of `property.value` over the windows of the active groups that have seen a label; where there is none,
    the value of the last labels of all cases, and before the first label the middle of the domain. A hint is not used.
    Time per round O(k window) with k active groups, memory O(n window).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Median
    >>> method = RollingProperty(Median(), Finite(2), horizon=4)
    >>> method.run([[1, 0], [1, 0], [0, 1], [1, 1]], [0.1, 0.3, 0.8, 0.5])
    array([0.5 , 0.1 , 0.1 , 0.45])
    """

    card: ClassVar[Card] = Card(
        name="rolling property",
        reference="practice: rolling empirical quantile, expectile or mean by group",
        assumes="labels that change slowly",
        properties=("elicitable",),
        cost="O(k window)",
        reconstructed="the window, and the average over overlapping groups",
    )

    window: int = 200

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        self.window = inputs.integer(self.window, "window", 1)
        # The last row is for all cases.
        self.labels = np.zeros((self.hypotheses.n + 1, self.window))
        self.seen = np.zeros(self.hypotheses.n + 1, dtype=np.int64)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The mean over active groups of the property in their windows."""
        groups = [j for j in row.indices.tolist() if self.seen[j]] or [self.hypotheses.n]
        if not self.seen[groups[0]]:
            return self.sure(self.middle_or(None))
        total = sum(self.property.value(self.labels[j, : min(int(self.seen[j]), self.window)]) for j in groups)
        return self.sure(total / len(groups))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Put the label into the windows of its groups and of all cases."""
        groups = np.append(row.indices, self.hypotheses.n)
        self.labels[groups, self.seen[groups] % self.window] = y
        self.seen[groups] += 1
