"""What is at stake when another number is played than the model's own: losses, in the units of the forecast times V."""

from typing import NamedTuple

from swapcal import checked
from swapcal.properties import kernel
from swapcal.roles import Elicitable

__all__ = ["RoundCost", "Stakes"]


class RoundCost(NamedTuple):
    """What an outcome says of a round.

    `difference` is the loss of what was said over that of the model, `model` the loss of the model, `v` is V at the
    model's number, and `distance` how far the outcome was from it.
    """

    difference: float
    model: float
    v: float
    distance: float


class Stakes:
    """The loss of which V is the derivative in the forecast, the one that every built-in property's loss is in scale.

    With z the property of the outcome alone (y, or y^k), that loss is c (p - z) V(p, z): c is 1 for a quantile, where V
    is constant on either side of z, and 1/2 where it is linear there. V falls in z, so the loss of p over that of h is
    largest at the lowest z where p > h, and at the highest where p < h.

    For a property of a user's own nothing is integrated: where V rises in p, the loss of p over that of h is at most
    V(p, y) (p - h), which stands for it, and its largest value is looked for at both ends of the label range.

    Parameters
    ----------
    property : Elicitable
        What is forecast.

    Examples
    --------
    >>> import swapcal as sc
    >>> stakes = Stakes(sc.Mean())
    >>> stakes.worst(0.75, 0.5), stakes.outcome(0.75, 0.5, 1.0).difference
    (0.15625, -0.09375)
    """

    __slots__ = ("_kind", "_level", "_power", "_width", "high", "low", "property", "share")

    def __init__(self, property: Elicitable) -> None:
        numbers = kernel.constants(property)
        self.property, self._kind = property, numbers["property"]
        self.low, self.high = numbers["domain_low"], numbers["domain_high"]
        self._level, self._power, self._width = numbers["level"], numbers["power"], numbers["width"]
        self.share = 1.0 if self._kind == "Quantile" else 0.5

    def worst(self, said: float, model: float) -> float:
        """The most that `said` can lose over the model, whatever the outcome is."""
        if not self._kind:
            ends = (self.property.low, self.property.high)
            return max(checked.identified(self.property, said, end) * (said - model) for end in ends)
        end = self.low if said > model else self.high
        return self._loss(said, end) - self._loss(model, end)

    def outcome(self, said: float, model: float, y: float) -> RoundCost:
        """What the outcome `y` says of a round in which the engine said `said` and the model `model`."""
        if not self._kind:
            v, z = checked.identified(self.property, model, y), min(max(y, self.low), self.high)
            distance = abs(z - model)
            difference = checked.identified(self.property, said, y) * (said - model)
            return RoundCost(difference, 0.5 * (distance * abs(v)), v, distance)
        z = float(kernel.power(y, self._power))
        loss = self._loss(model, z)
        return RoundCost(self._loss(said, z) - loss, loss, self._v(model, z), abs(z - model))

    def _loss(self, p: float, z: float) -> float:
        return self.share * ((p - z) * self._v(p, z))

    def _v(self, p: float, z: float) -> float:
        if self._kind == "Quantile":
            return float((1.0 if z <= p else 0.0) - self._level)
        if self._kind == "Expectile":
            return float(abs((1.0 if z <= p else 0.0) - self._level) * (p - z) / self._width)
        return float((p - z) / self._width)
