"""Quantiles, and the median among them."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.properties import base
from swapcal.text.numbers import number
from swapcal.typing import Float64Array, FloatLike


@dataclass(frozen=True, slots=True, repr=False)
class Quantile(base.RangeProperty):
    r"""The quantile at `level`: the value that labels stay at or below with probability `level`.

    Parameters
    ----------
    level
        Strictly between 0 and 1; the q of the paper.
    low, high
        The label range. Forecasts and hints are in the same units.
    density
        An upper bound, known to you, on the density of the labels given the context and the past, in units of
        1 / (high - low): 1.0 says that labels are spread uniformly over their range, so no bound is below 1. It is the
        Lipschitz constant of the paper's assumption, and theorems that need one cannot be evaluated without it.

    Notes
    -----
    The paper's identification function and the pinball loss, as scikit-learn's `mean_pinball_loss` averages it:

    .. math:: V(p, y) = 1\{y \le p\} - q, \qquad \ell(p, y) = (p - y) V(p, y), \qquad \partial_p \ell = V.

    V jumps at p = y, so only its mean over a distribution without atoms is Lipschitz in p. For the same reason the sign
    condition V(low, y) <= 0 fails for the single label y = low; labels with a density avoid it with probability one.
    Cost: a few operations for each label; `value` is a selection, O(n).

    Examples
    --------
    >>> import numpy as np
    >>> q90 = Quantile(0.9)
    >>> round(q90.identification(0.5, 0.4), 3), round(q90.loss(0.5, 0.6), 3), q90.value(np.arange(10) / 10)
    (0.1, 0.09, 0.8)

    References
    ----------
    Koenker and Bassett (1978), Regression quantiles, Econometrica 46. Hu, Luo, Senapati, Sharan (2025), Efficient swap
    multicalibration of elicitable properties, arXiv:2511.04907, Assumption 1.
    """

    level: float
    density: float | None = field(default=None, kw_only=True)

    compiled: ClassVar[str] = "Quantile"
    names: ClassVar[tuple[str, ...]] = ("median", "quantile:0.9")
    argument: ClassVar[str | None] = "level"
    # V jumps at p = y.
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        base.RangeProperty.__post_init__(self)
        density = None if self.density is None else inputs.plain_number(self.density, "density")
        if density is not None and density < 1.0:
            raise InvalidInput(
                f"density is in units of 1 / (high - low), where no bound on a density is below 1; got {density!r}"
            )
        self._settle(level=inputs.level(self.level), density=density)

    def doubled(self, y: float) -> Self:
        """The same on a range twice as wide, in whose units labels are twice as dense."""
        wider = base.RangeProperty.doubled(self, y)
        return wider if self.density is None else dataclasses.replace(wider, density=2.0 * self.density)

    @property
    def lipschitz(self) -> float | None:
        """The declared `density`: the mean of V is as steep as the labels are dense. None if not declared."""
        return self.density

    @property
    def assumption(self) -> str:
        """What the guarantee assumes of the labels."""
        bound = "some rho" if self.density is None else f"rho = {self.density:g}"
        return (
            f"Given the context and the past, labels have a density of at most {bound} / (high - low): "
            "no single value is taken with positive probability."
        )

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """V(p, y) = 1{y <= p} - level."""
        below: Any = y <= p
        v: FloatLike = below - self.level
        return v

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        """The pinball loss (p - y) (1{y <= p} - level)."""
        return (p - y) * self.identification(p, y)

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """1, for each forecast."""
        return 0.0 * p + 1.0

    def value(self, y: Float64Array) -> float:
        """The smallest label at or below which lies a share of at least `level` of the sample."""
        y = base.sample(y, self.invalid_labels)
        count = math.ceil(self.level * y.size)
        if count > 1 and (count - 1) / y.size >= self.level:
            # The product was rounded up past a whole number: one label fewer is enough.
            count -= 1
        return float(np.partition(y, count - 1)[count - 1])

    @classmethod
    def from_text(cls, name: str, argument: float | None, low: float, high: float) -> Self:
        """The quantile at a level, or the median."""
        return cls(0.5 if argument is None else argument, low=low, high=high)

    @property
    def wording(self) -> base.Wording:
        """In points of coverage."""
        level, percent = number(self.level), number(100.0 * self.level)
        meaning = (
            f"A bias of \u22123 points says that {number(100.0 * self.level - 3.0)} % of the outcomes were at or below "
            f"their forecasts instead of {percent} %: coverage is too low because forecasts are too low."
        )
        return base.Wording(
            "median" if self.level == 0.5 else f"{level} quantile",
            f"{level} quantile of the outcomes",
            "coverage",
            **(base.POINTS | {"meaning": meaning}),
            loss="pinball loss",
            domain=self.domain,
            coverage=self.level,
        )

    def binary_p(self, p: FloatLike) -> FloatLike:
        """1 - level, for each forecast: V is that less 1{y > p}."""
        return 0.0 * p + (1.0 - self.level)


def Median(*, low: float = 0.0, high: float = 1.0, density: float | None = None) -> Quantile:  # noqa: N802
    """`Quantile(0.5)` by its own name; half the absolute error is its loss.

    Parameters
    ----------
    low, high : float
        Ends of the label range.
    density : float, optional
        A bound on the density of the labels, as for `Quantile`.

    Returns
    -------
    Quantile
        With level 0.5.

    Examples
    --------
    >>> Median(), Median() == Quantile(0.5), Median().loss(0.25, 0.75)
    (Quantile(0.5), True, 0.25)
    """
    return Quantile(0.5, low=low, high=high, density=density)
