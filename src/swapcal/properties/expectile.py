"""Expectiles."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from swapcal import inputs
from swapcal.properties import base
from swapcal.text.numbers import number
from swapcal.typing import Float64Array, FloatLike


@dataclass(frozen=True, slots=True, repr=False)
class Expectile(base.RangeProperty):
    r"""The expectile at `level`: the mean of labels when those above it weigh `level` and the others 1 - `level`.

    It looks at the tail as a quantile does, yet asks for no density: the guarantee holds for any labels in their range.

    Parameters
    ----------
    level
        Strictly between 0 and 1; the tau of the paper. At 0.5 the expectile is the mean.
    low, high
        The label range. Forecasts and hints are in the same units.

    Notes
    -----
    With w = high - low and the paper's scaling, under which level 0.5 has half the V of `Mean`,

    .. math:: V(p, y) = |1\{y \le p\} - \tau| (p - y) / w, \qquad \ell(p, y) = |1\{y \le p\} - \tau| (p - y)^2,

    so the derivative of the loss is 2 w V. V is nondecreasing in p and Lipschitz with max(tau, 1 - tau). Cost: a few
    operations for each label; `value` sorts, O(n log n), and is exact but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> Expectile(0.5).value(np.array([0.0, 0.25, 0.5])), Expectile(0.9).value(np.array([0.0, 1.0]))
    (0.25, 0.9)

    References
    ----------
    Newey and Powell (1987), Asymmetric least squares estimation and testing, Econometrica 55. Gneiting (2011), Making
    and evaluating point forecasts, JASA 106, Theorem 10; doi:10.1198/jasa.2011.r10138.
    """

    level: float

    compiled: ClassVar[str] = "Expectile"
    names: ClassVar[tuple[str, ...]] = ("expectile:0.8",)
    argument: ClassVar[str | None] = "level"

    def __post_init__(self) -> None:
        base.RangeProperty.__post_init__(self)
        self._settle(level=inputs.level(self.level))

    @property
    def lipschitz(self) -> float:
        """The steeper of the two slopes of V."""
        return max(self.level, 1.0 - self.level)

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = |1{y <= p} - level| (p - y) / (high - low)."""
        below: Any = y <= p
        v: FloatLike = abs(below - self.level) * (p - y) / (self.high - self.low)
        return v

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The asymmetric squared error |1{y <= p} - level| (p - y)^2."""
        below: Any = y <= p
        loss: FloatLike = abs(below - self.level) * (p - y) * (p - y)
        return loss

    def value(self, y: Float64Array) -> float:
        """The root of the sample's mean identification.

        Between two neighboring labels the mean identification is linear. Its sign at the sorted labels tells the pair
        with the root between them, and so which labels weigh 1 - level; the root is then a weighted mean.
        """
        y = np.sort(base.sample(y, self.invalid_labels))
        below = np.arange(1, y.size + 1)
        # Sums of distances to each label from both sides; centered first, so that little cancels.
        centered = y - y.mean()
        sums = np.cumsum(centered)
        under = below * centered - sums
        over = (sums[-1] - sums) - (y.size - below) * centered
        # How many labels are not above the root: at least the smallest, as nothing lies under it.
        k = max(1, int(np.count_nonzero((1.0 - self.level) * under <= self.level * over)))
        numerator = (1.0 - self.level) * y[:k].sum() + self.level * y[k:].sum()
        root = numerator / ((1.0 - self.level) * k + self.level * (y.size - k))
        return float(min(max(root, y[k - 1]), y[min(k, y.size - 1)]))

    @property
    def wording(self) -> base.Wording:
        """In the outcome's own unit."""
        level = number(self.level)
        meaning = (
            "A bias is the mean distance between forecast and outcome, in the outcome's own unit, where outcomes above "
            f"the forecast weigh {level} and others {number(1.0 - self.level)}; positive is too high."
        )
        return base.Wording(
            f"{level} expectile",
            f"{level} expectile of the outcomes",
            **(base.own_unit(self.domain) | {"meaning": meaning}),
            loss="asymmetric squared error",
            domain=self.domain,
        )
