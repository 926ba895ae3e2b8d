"""Adaptive conformal inference: one-sided thresholds whose level is tracked."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["AdaptiveConformal"]


class AdaptiveConformal(PublishedMethod):
    r"""A quantile of past residuals to the hint, at a level that moves against the errors of coverage.

    Guarantee: for any labels above the lower end of the domain,

    .. math:: \Big|\frac1T \sum_t 1\{y_t \le p_t\} - q\Big| \le \frac{\max(q, 1 - q) + \gamma}{\gamma T},

    over all rounds together: neither for a group nor for rounds with the same forecast, so no exponent is declared.

    Parameters
    ----------
    property : Elicitable
        A quantile, with level q.
    hypotheses : Hypotheses
        Any; not used.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    rate : float
        The source's gamma, with its default 0.005.
    window : int
        How many of the last residuals are kept.

    Notes
    -----
    With l the tracked level, started at q, and n residuals y - hint (to the middle of the domain without a hint) in the
    window, p is the hint plus the k-th smallest residual, k = ceil(l (n + 1)), cut to the domain; the upper end for
    k > n and the lower end for k < 1. Then l <- l - rate V(p, y), V = 1{y <= p} - q.
    Time per round O(window), memory O(window).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = AdaptiveConformal(Quantile(0.5), Finite(1), horizon=4)
    >>> method.run([[1]] * 4, [0.2, 0.4, 0.3, 0.9]).round(3)
    array([1. , 0.2, 0.4, 0.3])

    References
    ----------
    Gibbs and Candes (2021), Adaptive conformal inference under distribution shift, NeurIPS, Proposition 4.1.
    """

    card: ClassVar[Card] = Card(
        name="adaptive conformal",
        reference="Gibbs and Candes (2021), Adaptive conformal inference under distribution shift",
        assumes="nothing; coverage over all rounds together only",
        properties=("quantile",),
        classes=("none",),
        exponent=None,
        error="",
        cost="O(window)",
        reconstructed="the window of residuals",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        rate: float = 0.005,
        window: int = 1000,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.rate = checked.number(rate, "rate", 0.0, 1e3)
        self.window = checked.whole(window, "window", 1)
        self.level = float(property.spec()["level"])
        self.seen = 0
        self.residuals = np.zeros(self.window)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint plus a quantile of past residuals."""
        low, high = self.property.domain
        base = 0.5 * low + 0.5 * high if hint is None else hint
        n = min(self.seen, self.window)
        k = math.ceil(self.level * (n + 1))
        if k > n:
            value = high
        elif k < 1:
            value = low
        else:
            value = min(max(base + float(np.partition(self.residuals[:n], k - 1)[k - 1]), low), high)
        return Plan((value,), (1.0,), base)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Move the level against the error, and keep the residual."""
        self.level -= self.rate * checked.identified(self.property, plan.values[drawn], y)
        self.residuals[self.seen % self.window] = y - plan.notes
        self.seen += 1
