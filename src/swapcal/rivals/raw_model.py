"""The model as it is: no calibration at all."""

from typing import ClassVar

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.roles import Elicitable, Hypotheses, Row

__all__ = ["RawModel"]


class RawModel(PublishedMethod):
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
        exponent=None,
        error="",
        cost="O(1)",
    )

    def __init__(self, property: Elicitable, hypotheses: Hypotheses, *, horizon: int, seed: int = 0) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The hint."""
        low, high = self.property.domain
        return Plan((0.5 * low + 0.5 * high if hint is None else hint,), (1.0,))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Nothing."""
