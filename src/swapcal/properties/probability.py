"""The probability of a binary label."""

from dataclasses import dataclass
from typing import ClassVar

from swapcal.errors import InvalidInput
from swapcal.properties import labels
from swapcal.properties.proper import ProperLoss, Squared
from swapcal.typing import Float64Array, FloatLike, Spec

__all__ = ["Probability"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Probability:
    """The probability P(y = 1) of labels in {0, 1}, elicited by any proper loss.

    Parameters
    ----------
    loss
        The proper loss to report: `Squared()`, `Log()`, `Spherical()`, `Tsallis(alpha)`, `Concave(...)`, or any object
        with their methods. Kept as `proper_loss`, since `loss` is the loss itself.

    Notes
    -----
    The identification function is V(p, y) = p - y whatever the loss. By Osband's principle the derivative of every
    proper loss is h(p) V(p, y), with h minus the second derivative of the loss's entropy, so all of them have the same
    root; that derivative is not itself used as V, because h may vanish at an end of [0, 1] (Tsallis above 2), where
    forecasts could then hide any error, or be infinite there (log), which no scaling brings into [-1, 1]. A forecaster
    calibrated for this V is therefore calibrated for all proper losses at once, and the loss matters for reports only.

    Examples
    --------
    >>> from swapcal.properties import Log, Probability
    >>> rain = Probability(Log())
    >>> rain, rain.identification(0.75, 1.0), round(rain.loss(0.75, 1.0), 4), rain.invalid_labels(0.5)
    (Probability(Log()), -0.25, 0.2877, 'label 0.5 is neither 0 nor 1')

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102, Theorem 1;
    doi:10.1198/016214506000001437. Gneiting (2011), Making and evaluating point forecasts, JASA 106, Theorem 7.
    """

    proper_loss: ProperLoss

    lipschitz: ClassVar[float] = 1.0
    """V has slope 1 where p is measured in widths of the domain."""
    monotone: ClassVar[bool] = True
    continuous: ClassVar[bool] = True
    """Labels may heap on a few values."""
    assumption: ClassVar[str] = "Every label is 0 or 1; nothing else is assumed."
    """What the guarantee assumes of the labels."""

    def __init__(self, loss: ProperLoss | None = None) -> None:
        loss = Squared() if loss is None else loss
        if isinstance(loss, type) or not isinstance(loss, ProperLoss):
            raise InvalidInput(f"loss must be a proper loss object such as Squared() or Log(); got {loss!r}")
        object.__setattr__(self, "proper_loss", loss)

    def __repr__(self) -> str:
        return f"Probability({'' if self.proper_loss == Squared() else repr(self.proper_loss)})"

    @property
    def low(self) -> float:
        """0, the smaller label."""
        return 0.0

    @property
    def high(self) -> float:
        """1, the larger label."""
        return 1.0

    @property
    def domain(self) -> tuple[float, float]:
        """(0, 1)."""
        return 0.0, 1.0

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = p - y."""
        return p - y

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The proper loss of forecast `p` when the label is `y`."""
        return self.proper_loss.loss(p, y)

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """The h(p) of the proper loss."""
        return self.proper_loss.weight(p)

    def value(self, y: Float64Array) -> float:
        """The share of ones."""
        return float(labels.sample(y, self.invalid_labels).mean())

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is neither 0 nor 1, as a clause for an error message, or None."""
        return labels.neither_zero_nor_one(y)

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return {"kind": "Probability", "loss": dict(self.proper_loss.spec())}
