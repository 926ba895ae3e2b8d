"""The mean, and raw moments."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
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


# --------
# Raw moments.


def power(y: FloatLike, k: int) -> FloatLike:
    """`y` to the power `k`, by repeated squaring.

    Only products, because these round alike for numbers and arrays (`pow` does not promise that), and because products
    of ordered non-negative numbers keep their order, so that V never leaves [-1, 1] by a rounding error.
    """
    result: FloatLike = 1.0
    while k:
        if k & 1:
            result = result * y
        k >>= 1
        if k:
            y = y * y
    return result


def _powers(low: float, high: float, k: int) -> tuple[float, float]:
    """The range of y^k on [low, high]."""
    ends = sorted((float(power(low, k)), float(power(high, k))))
    # An even power turns back at zero.
    return (0.0 if k % 2 == 0 and low < 0.0 < high else ends[0]), ends[1]


@dataclass(frozen=True, slots=True, repr=False)
class Moment(base.RangeProperty):
    r"""The raw moment E[y^k] of labels in [low, high]; `Moment(1)` is the mean.

    Two side by side, `Moment(2)` and `Mean()`, give the variance, which by itself is not elicitable.

    Parameters
    ----------
    k
        Order of the moment, a whole number from 1.
    low, high
        The label range. Forecasts and hints are in the units of y^k and lie in `domain`.

    Notes
    -----
    Let [a, b] be the range of y^k, which for even k and low < 0 < high starts at zero, and w = b - a. Then

    .. math:: V(p, y) = (p - y^k) / w, \qquad \ell(p, y) = (p - y^k)^2, \qquad \partial_p \ell = 2 w V.

    Cost: O(log k) products for each label.

    Examples
    --------
    >>> import numpy as np
    >>> square = Moment(2, low=-1.0, high=2.0)
    >>> square.domain, square.value(np.array([-1.0, 0.0, 2.0, 1.0]))
    ((0.0, 4.0), 1.5)

    References
    ----------
    Gneiting (2011), Making and evaluating point forecasts, JASA 106, Theorem 8; doi:10.1198/jasa.2011.r10138.
    """

    k: int
    _domain: tuple[float, float] = field(init=False, compare=False)
    _width: float = field(init=False, compare=False)

    compiled: ClassVar[str] = "Moment"
    names: ClassVar[tuple[str, ...]] = ("moment:2",)
    argument: ClassVar[str | None] = "order"

    def __post_init__(self) -> None:
        base.RangeProperty.__post_init__(self)
        k, low, high = inputs.integer(self.k, "k", 1), self.low, self.high
        domain = _powers(low, high, k)
        width = domain[1] - domain[0]
        if not (0.0 < width < math.inf):
            raise InvalidInput(f"y**{k} on [{low!r}, {high!r}] spans {width!r}, not a usable width; rescale the labels")
        self._settle(k=k, _domain=domain, _width=width)

    @property
    def domain(self) -> tuple[float, float]:
        """The range of y^k."""
        return self._domain

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = (p - y^k) / (width of the domain)."""
        return (p - power(y, self.k)) / self._width

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The squared error (p - y^k)^2."""
        error = p - power(y, self.k)
        return error * error

    def value(self, y: Float64Array) -> float:
        """The sample mean of y^k."""
        powers = np.asarray(power(base.sample(y, self.invalid_labels), self.k))
        # As in `Mean`: rounding must not carry the mean past the labels.
        return float(min(max(powers.mean(), powers.min()), powers.max()))

    @classmethod
    def from_text(cls, name: str, argument: float | None, low: float, high: float) -> Self:
        """The moment of a whole order."""
        k = argument or 0.0
        if not k.is_integer():
            raise InvalidInput(f"the order of a moment is a whole number from 1, such as moment:2; got {k:g}")
        return cls(int(k), low=low, high=high)

    @property
    def wording(self) -> base.Wording:
        """In units of y^k; on [0, 1] too, as these are no shares of cases."""
        return base.Wording(
            f"moment of order {self.k}",
            "mean of the outcomes' power",
            **base.own_unit(self.domain),
            loss="squared error of the moment",
            domain=self.domain,
        )
