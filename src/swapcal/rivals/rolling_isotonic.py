"""Isotonic regression of the label on the hint, refitted in a rolling window."""

from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["RollingIsotonic", "isotonic"]


def isotonic(y: Float64Array, weights: Float64Array) -> Float64Array:
    """The nondecreasing sequence nearest to `y` in weighted squares, by pooling adjacent violators; O(n).

    Written here because scikit-learn, which has it, is no dependency of this package.

    Examples
    --------
    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    array([1. , 2.5, 2.5, 4. ])
    """
    means: list[float] = []
    masses: list[float] = []
    lengths: list[int] = []
    for value, weight in zip(y.tolist(), weights.tolist(), strict=True):
        mean, mass, length = value, weight, 1
        while means and means[-1] >= mean:
            total = masses[-1] + mass
            mean = (means.pop() * masses[-1] + mean * mass) / total
            mass = total
            masses.pop()
            length += lengths.pop()
        means.append(mean)
        masses.append(mass)
        lengths.append(length)
    return np.repeat(np.array(means), lengths)


class RollingIsotonic(PublishedMethod):
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
        properties=("mean",),
        classes=("none",),
        exponent=None,
        error="",
        cost="O(window log window / every)",
        reconstructed="window and time between fits",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        window: int = 1000,
        every: int = 50,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.window = checked.whole(window, "window", 1)
        self.every = checked.whole(every, "every", 1)
        self.seen = 0
        self.hints = np.zeros(self.window)
        self.outcomes = np.zeros(self.window)
        self.knots = np.zeros(0)
        self.heights = np.zeros(0)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The curve at the hint."""
        low, high = self.property.domain
        base = 0.5 * low + 0.5 * high if hint is None else hint
        value = float(np.interp(base, self.knots, self.heights)) if len(self.knots) else base
        return Plan((min(max(value, low), high),), (1.0,), base)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Put the outcome into the window; refit when it is time."""
        low, high = self.property.domain
        position = self.seen % self.window
        self.hints[position] = plan.notes
        # V(p, y) is the forecast minus the outcome, in widths of the domain; this holds for moments too.
        self.outcomes[position] = low - (high - low) * checked.identified(self.property, low, y)
        self.seen += 1
        if self.seen % self.every == 0:
            self._fit()

    def _fit(self) -> None:
        n = min(self.seen, self.window)
        self.knots, places, counts = np.unique(self.hints[:n], return_inverse=True, return_counts=True)
        weights = counts.astype(np.float64)
        self.heights = isotonic(np.bincount(places, weights=self.outcomes[:n]) / weights, weights)
