"""The probability of an event; labels may be soft, such as 0.4."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.properties import base
from swapcal.state import Described
from swapcal.typing import Float64Array, FloatLike, Spec

# --------
# Proper losses for the probability of an event. A label y in (0, 1) is soft: the loss is that of 1 with probability y,
# up to a term without p.


@runtime_checkable
class ProperLoss(Protocol):
    """A loss for forecasts p in [0, 1] of a label y in [0, 1] that the mean of the labels minimizes on average."""

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The loss of forecast `p` when the label is `y`."""

    def weight(self, p: FloatLike) -> FloatLike:
        """The h(p) >= 0 in the derivative h(p) (p - y) of the loss: minus the second derivative of its entropy."""

    def spec(self) -> Spec:
        """Plain data from which the object can be rebuilt."""


@dataclass(frozen=True, slots=True, repr=False)
class Squared(Described):
    """The squared or Brier loss (p - y)^2, with h(p) = 2.

    Examples
    --------
    >>> Squared().loss(0.75, 1.0), Squared().weight(0.75)
    (0.0625, 2.0)
    """

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """(p - y)^2."""
        return (p - y) * (p - y)

    def weight(self, p: FloatLike) -> FloatLike:
        """2, for each forecast."""
        return 0.0 * p + 2.0


def _weighted_log(weight: FloatLike, p: FloatLike) -> FloatLike:
    """-weight log(p); 0 where the weight is, infinite logarithm or not."""
    if isinstance(weight, np.ndarray) or isinstance(p, np.ndarray):
        weight, p = np.broadcast_arrays(weight, p)
        with np.errstate(divide="ignore"):
            return 0.0 - weight * np.log(p, out=np.zeros(p.shape), where=weight != 0.0)
    return 0.0 if weight == 0.0 else 0.0 - weight * math.log(p) if p > 0.0 else math.inf


@dataclass(frozen=True, slots=True, repr=False)
class Log(Described):
    """The log loss, minus the logarithm of the probability given to what happened, with h(p) = 1 / (p (1 - p)).

    A certain forecast that is wrong, or of a soft label, costs infinity; h is infinite at both ends.

    Examples
    --------
    >>> Log().loss(1.0, 1.0), Log().loss(0.0, 1.0), Log().weight(0.5)
    (0.0, inf, 4.0)
    >>> round(Log().loss(0.4, 0.4), 4), round(Log().loss(0.5, 0.4), 4)
    (0.673, 0.6931)
    """

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """-log(p) for y = 1, -log(1 - p) for y = 0, and between them for a soft label."""
        return _weighted_log(y, p) + _weighted_log(1.0 - y, 1.0 - p)

    def weight(self, p: FloatLike) -> FloatLike:
        """1 / (p (1 - p))."""
        variance = p * (1.0 - p)
        if isinstance(variance, np.ndarray):
            with np.errstate(divide="ignore"):
                return 1.0 / variance
        return 1.0 / variance if variance > 0.0 else math.inf


@dataclass(frozen=True, slots=True, repr=False)
class Spherical(Described):
    """The spherical loss: minus the probability of what happened over r(p) = sqrt(p^2 + (1 - p)^2); h(p) = 1 / r(p)^3.

    Examples
    --------
    >>> Spherical().loss(1.0, 1.0), Spherical().weight(1.0)
    (-1.0, 1.0)
    """

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """-(p y + (1 - p) (1 - y)) / r(p)."""
        return -(p * y + (1.0 - p) * (1.0 - y)) * (p * p + (1.0 - p) * (1.0 - p)) ** -0.5

    def weight(self, p: FloatLike) -> FloatLike:
        """1 / r(p)^3, between 1 at the ends and 2 sqrt(2) at one half."""
        result: FloatLike = (p * p + (1.0 - p) * (1.0 - p)) ** -1.5
        return result


@dataclass(frozen=True, slots=True, repr=False)
class Tsallis(Described):
    """The loss of Tsallis's entropy, (a - 1) p^a - a p^(a - 1) y, with h(p) = a (a - 1) p^(a - 2).

    At a = 2 it is the squared loss less y^2. Above 2 the weight vanishes at p = 0, below 2 it is infinite there.

    Parameters
    ----------
    alpha
        The order a, above 1.

    Examples
    --------
    >>> Tsallis(2.0).loss(0.5, 1.0), Tsallis(3.0).weight(0.0), Tsallis(1.5).weight(0.0)
    (-0.75, 0.0, inf)
    """

    alpha: float

    def __post_init__(self) -> None:
        alpha = inputs.plain_number(self.alpha, "alpha")
        if not alpha > 1.0:
            raise InvalidInput(f"the loss of Tsallis's entropy needs alpha above 1; got {alpha!r} (use Log() for 1)")
        object.__setattr__(self, "alpha", alpha)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """(alpha - 1) p^alpha - alpha p^(alpha - 1) y."""
        # One power, of a positive order: p = 0 is safe.
        result: FloatLike = p ** (self.alpha - 1.0) * ((self.alpha - 1.0) * p - self.alpha * y)
        return result

    def weight(self, p: FloatLike) -> FloatLike:
        """Alpha (alpha - 1) p^(alpha - 2)."""
        if not isinstance(p, np.ndarray) and p == 0.0 and self.alpha < 2.0:
            return math.inf
        with np.errstate(divide="ignore"):
            result: FloatLike = self.alpha * (self.alpha - 1.0) * p ** (self.alpha - 2.0)
        return result


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Probability(base.PropertyBase):
    """The probability P(y = 1) of labels in {0, 1}, or the mean of soft ones in [0, 1], elicited by any proper loss.

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
    >>> rain, rain.identification(0.75, 1.0), round(rain.loss(0.75, 1.0), 4), rain.invalid_labels(2.0)
    (Probability(Log()), -0.25, 0.2877, 'label 2 is outside [0, 1]')

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102, Theorem 1;
    doi:10.1198/016214506000001437. Gneiting (2011), Making and evaluating point forecasts, JASA 106, Theorem 7.
    """

    proper_loss: ProperLoss

    compiled: ClassVar[str] = "Probability"
    names: ClassVar[tuple[str, ...]] = ("probability",)
    # V has slope 1 where p is measured in widths of the domain.
    lipschitz: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True
    # Labels may heap on a few values.
    continuous: ClassVar[bool] = True
    # What the guarantee assumes of the labels.
    assumption: ClassVar[str] = "Every label lies in [0, 1]; nothing else is assumed."

    def __init__(self, loss: ProperLoss | None = None) -> None:
        loss = Squared() if loss is None else loss
        if isinstance(loss, type) or not isinstance(loss, ProperLoss):
            raise InvalidInput(f"loss must be a proper loss object such as Squared() or Log(); got {loss!r}")
        object.__setattr__(self, "proper_loss", loss)

    def __repr__(self) -> str:
        return f"Probability({'' if self.proper_loss == Squared() else repr(self.proper_loss)})"

    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    domain: ClassVar[tuple[float, float]] = (0.0, 1.0)

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
        """The mean, which of labels 0 and 1 is the share of ones."""
        return float(base.sample(y, self.invalid_labels).mean())

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is outside [0, 1], as a clause for an error message, or None."""
        return base.outside(y, 0.0, 1.0)

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return {"kind": "Probability", "loss": dict(self.proper_loss.spec())}

    @classmethod
    def from_text(cls, name: str, argument: float | None, low: float, high: float) -> Self:
        """The probability, where outcomes lie in [0, 1]."""
        if (low, high) != (0.0, 1.0):
            raise InvalidInput("a probability is of outcomes from 0 to 1; leave out low and high, or take the mean")
        return cls()

    @property
    def is_conditional_mean(self) -> bool:  # type: ignore[override]  # it depends on the loss
        """Whether the loss is the squared one."""
        return self.proper_loss == Squared()

    @property
    def wording(self) -> base.Wording:
        """In points of probability."""
        loss = "Brier score" if self.proper_loss == Squared() else "loss"
        return base.Wording(
            "probability", "share of cases in which it happened", **base.POINTS, loss=loss, domain=self.domain
        )

    def binary_p(self, p: FloatLike) -> FloatLike:
        """The forecast: V is p - y."""
        return p

    def outcome(self, p: FloatLike, v: FloatLike) -> FloatLike:
        """The label y = p - v."""
        return p - v
