"""The mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from swapcal import inputs
from swapcal.properties import base
from swapcal.typing import Float64Array, FloatLike, Spec


@dataclass(frozen=True, slots=True, repr=False)
class Mean(base.PropertyBase):
    r"""The mean E[y] of labels in [low, high], elicited by the squared error.

    Parameters
    ----------
    low, high
        The label range. Forecasts and hints are in the same units.

    Notes
    -----
    With w = high - low,

    .. math:: V(p, y) = (p - y) / w, \qquad \ell(p, y) = (p - y)^2, \qquad \partial_p \ell = 2 w V.

    V is nondecreasing and 1-Lipschitz in p / w for each label, so the guarantee asks nothing of the labels but their
    range. Cost: a few arithmetic operations for each label.

    Examples
    --------
    >>> import numpy as np
    >>> mean = Mean(low=0.0, high=10.0)
    >>> mean.identification(7.5, 5.0), mean.loss(7.5, 5.0), mean.value(np.array([1.0, 2.0, 6.0]))
    (0.25, 6.25, 3.0)

    References
    ----------
    Gneiting (2011), Making and evaluating point forecasts, JASA 106, Theorem 7; doi:10.1198/jasa.2011.r10138.
    """

    low: float = field(default=0.0, kw_only=True)
    high: float = field(default=1.0, kw_only=True)

    names: ClassVar[tuple[str, ...]] = ("mean",)
    is_conditional_mean: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 1.0
    """V has slope 1 where p is measured in widths of the domain."""
    monotone: ClassVar[bool] = True
    continuous: ClassVar[bool] = True
    """Labels may heap on a few values."""
    assumption: ClassVar[str] = "Every label lies in the label range; nothing else is assumed."
    """What the guarantee assumes of the labels."""

    def __post_init__(self) -> None:
        low, high = inputs.label_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __repr__(self) -> str:
        return base.call(self)

    @property
    def domain(self) -> tuple[float, float]:
        """The label range: a mean lies between the labels."""
        return self.low, self.high

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = (p - y) / (high - low)."""
        return (p - y) / (self.high - self.low)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The squared error (p - y)^2."""
        return (p - y) * (p - y)

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """2 (high - low), for each forecast."""
        return 0.0 * p + 2.0 * (self.high - self.low)

    def value(self, y: Float64Array) -> float:
        """The sample mean."""
        y = base.sample(y, self.invalid_labels)
        # Rounding may carry the mean of equal labels past them, and so past the end of the domain.
        return float(min(max(y.mean(), y.min()), y.max()))

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is outside [low, high], as a clause for an error message, or None."""
        return base.outside(y, self.low, self.high)

    def spec(self) -> Spec:
        """Plain data for `from_spec`."""
        return base.data(self)

    @property
    def wording(self) -> base.Wording:
        """In points on [0, 1], else in the outcome's own unit."""
        if self.domain == (0.0, 1.0):
            return base.Wording("mean", "mean outcome", **base.POINTS, loss="Brier score", domain=self.domain)
        return base.Wording(
            "mean", "mean outcome", **base.own_unit(self.domain), loss="mean squared error", domain=self.domain
        )

    @property
    def kernel(self) -> Mapping[str, float | int | str]:
        """The constants of V."""
        return base.kernel(self, Mean)

    def outcome(self, p: FloatLike, v: FloatLike) -> FloatLike:
        """The label y = p - (high - low) v."""
        return p - (self.high - self.low) * v
