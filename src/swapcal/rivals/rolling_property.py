"""The rolling empirical value of the property, by group."""

from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["RollingProperty"]


class RollingProperty(PublishedMethod):
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
        classes=("finite",),
        exponent=None,
        error="",
        cost="O(k window)",
        reconstructed="the window, and the average over overlapping groups",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        window: int = 200,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.window = checked.whole(window, "window", 1)
        # The last row is for all cases.
        self.labels = np.zeros((hypotheses.n + 1, self.window))
        self.seen = np.zeros(hypotheses.n + 1, dtype=np.int64)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The mean over active groups of the property in their windows."""
        low, high = self.property.domain
        groups = [j for j in row.indices.tolist() if self.seen[j]] or [self.hypotheses.n]
        if not self.seen[groups[0]]:
            return Plan((0.5 * low + 0.5 * high,), (1.0,))
        total = sum(self.property.value(self.labels[j, : min(int(self.seen[j]), self.window)]) for j in groups)
        return Plan((min(max(total / len(groups), low), high),), (1.0,))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Put the label into the windows of its groups and of all cases."""
        groups = np.append(row.indices, self.hypotheses.n)
        self.labels[groups, self.seen[groups] % self.window] = y
        self.seen[groups] += 1
