"""The limit: a forecaster that knows the truth and only rounds it."""

import math
from typing import ClassVar

from swapcal import checked
from swapcal.engine.grid import Grid
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.errors import InvalidInput
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["Clairvoyant"]


class Clairvoyant(PublishedMethod):
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
        exponent=None,
        error="",
        cost="O(1)",
    )

    def __init__(
        self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0, bins: int | None = None
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        default = math.ceil(self.horizon ** (1.0 / 3.0) - 1e-9)
        self.bins = default if bins is None else checked.whole(bins, "bins", 1)
        self.grid = Grid(*property.domain, self.bins)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The mid-point of the truth's bin."""
        if hint is None:
            raise InvalidInput("the clairvoyant needs the true conditional property as the hint of every round")
        return Plan((self.grid.midpoint(self.grid.bin(hint)),), (1.0,))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Nothing: all is known."""
