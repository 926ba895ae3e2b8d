"""Adaptive conformal inference for groups: one tracked offset for each."""

from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["GroupConformal"]


class GroupConformal(PublishedMethod):
    r"""The hint plus the sum of the active groups' offsets, each of which moves against the errors of coverage.

    Guarantee: for labels above the lower end of the domain, coverage in every group, whatever the labels do:

    .. math:: \Big|\sum_t x_{t, j} V(p_t, y_t)\Big| \le \sqrt{T \big(2 c / \eta + c^2 \kappa\big)},
              \qquad c = \max(q, 1 - q), \quad \kappa = \max_t |x_t|^2,

    as the left side is |w_j| / eta and a round lengthens |w|^2 by 2 c eta + c^2 eta^2 kappa at most. Groups have it,
    rounds with the same forecast do not: it is multiaccuracy, so no exponent is declared for multicalibration.

    Parameters
    ----------
    property : Elicitable
        A quantile, with level q.
    hypotheses : Hypotheses
        A finite class, for groups.
    horizon : int
        T; not used.
    seed : int
        Not used: nothing is drawn.
    rate : float
        eta, in widths of the domain.

    Notes
    -----
    With offsets w in widths of the domain, started at zero: p = hint + width <w, x>, cut to the domain, and
    w <- w - eta V(p, y) x, V = 1{y <= p} - q. Without a hint offsets count from the middle of the domain, and a context
    without groups gets the hint as it is. Time per round O(k) with k active entries, memory O(n).

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Quantile
    >>> method = GroupConformal(Quantile(0.5), Finite(2), horizon=3, rate=0.25)
    >>> method.run([[1, 0], [1, 1], [0, 1]], [0.9, 0.1, 0.2])
    array([0.5  , 0.625, 0.375])

    References
    ----------
    Ramalingam, Kiyani, Roth (2025), The relationship between no-regret learning and online conformal prediction, ICML,
    arXiv:2502.10947.
    """

    card: ClassVar[Card] = Card(
        name="group conformal",
        reference="Ramalingam, Kiyani, Roth (2025), The relationship between no-regret learning and online conformal "
        "prediction",
        assumes="nothing; coverage for groups, not for rounds with the same forecast",
        properties=("quantile",),
        classes=("finite",),
        exponent=None,
        error="",
        cost="O(k)",
        reconstructed="the rate; thresholds cut to the domain; the hint as base",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        rate: float = 0.02,
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        self.rate = checked.number(rate, "rate", 0.0, 1e3)
        self.offsets = np.zeros(hypotheses.n)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint plus the active groups' offsets."""
        low, high = self.property.domain
        base = 0.5 * low + 0.5 * high if hint is None else hint
        value = base + (high - low) * float(self.offsets[row.indices] @ row.values)
        return Plan((min(max(value, low), high),), (1.0,))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Move the offsets of the active groups against the error."""
        v = checked.identified(self.property, plan.values[drawn], y)
        self.offsets[row.indices] -= self.rate * v * row.values
