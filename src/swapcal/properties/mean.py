"""The mean."""

from dataclasses import dataclass
from typing import ClassVar

from swapcal.properties import base
from swapcal.typing import Float64Array, FloatLike


@dataclass(frozen=True, slots=True, repr=False)
class Mean(base.RangeProperty):
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

    compiled: ClassVar[str] = "Mean"
    names: ClassVar[tuple[str, ...]] = ("mean",)
    is_conditional_mean: ClassVar[bool] = True

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = (p - y) / (high - low)."""
        return (p - y) / (self.high - self.low)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The squared error (p - y)^2."""
        return (p - y) * (p - y)

    def value(self, y: Float64Array) -> float:
        """The sample mean."""
        y = base.sample(y, self.invalid_labels)
        # Rounding may carry the mean of equal labels past them, and so past the end of the domain.
        return float(min(max(y.mean(), y.min()), y.max()))

    @property
    def wording(self) -> base.Wording:
        """In points on [0, 1], else in the outcome's own unit."""
        shares = self.domain == (0.0, 1.0)
        unit, loss = (base.POINTS, "Brier score") if shares else (base.own_unit(self.domain), "mean squared error")
        return base.Wording("mean", "mean outcome", **unit, loss=loss, domain=self.domain)

    def outcome(self, p: FloatLike, v: FloatLike) -> FloatLike:
        """The label y = p - (high - low) v."""
        return p - (self.high - self.low) * v
