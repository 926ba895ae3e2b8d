"""What every property has besides its mathematics: words, names for the command, a kernel; and checks of labels."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.state import Described
from swapcal.text.numbers import interval, number, points, signed
from swapcal.typing import Float64Array, FloatLike


@dataclasses.dataclass(frozen=True, slots=True)
class Wording:
    """How to speak of a property, and in which units its bias is told.

    name: what is forecast ("0.9 quantile"). outcome: what the curve's outcome is. noun: what is too high or too low.
    scale and unit: a mean identification times `scale` is in `unit`, which is the outcome's own where it is empty.
    heading: the unit, short, for the head of a column. meaning: one sentence about a positive bias. loss: how people
    call the loss. domain: the forecasts that are possible, where that is known. coverage: the share of outcomes that
    should be at or below their forecasts, for quantiles.
    """

    name: str
    outcome: str = "the property of the outcomes"
    noun: str = ""
    scale: float = 1.0
    unit: str = "in mean identification"
    heading: str = "mean V"
    meaning: str = (
        "A bias is the mean of the property's identification function, between \u22121 and 1; positive says too high."
    )
    loss: str = "loss"
    domain: tuple[float, float] | None = None
    coverage: float | None = None

    def size(self, bias: float) -> str:
        """The size of a bias with its unit, without its sign."""
        text = number(abs(bias) * self.scale) if self.scale != 100.0 else f"{abs(bias) * self.scale:.1f}"
        return f"{text} {self.unit}".strip()

    def signed(self, bias: float) -> str:
        """A bias that is in `unit` already, with its sign and without it.

        Examples
        --------
        >>> from swapcal.properties import Mean, Probability
        >>> Probability().wording.signed(-1.3125), Mean(high=20.0).wording.signed(0.0123)
        ('\u22121.3', '+0.0123')
        """
        return points(bias) if self.scale == 100.0 else signed(bias)

    def bias(self, bias: float) -> str:
        """A bias in words.

        Examples
        --------
        >>> from swapcal.properties import Mean, Quantile
        >>> Quantile(0.9).wording.bias(-0.03), Mean(high=20.0).wording.bias(0.1)
        ('coverage too low by 3.0 points', 'too high by 2')
        """
        if bias != bias:
            return "nothing was forecast"
        if bias == 0.0 or (self.scale == 100.0 and abs(bias) * self.scale < 0.05):
            return "no bias"
        return f"{self.noun} too {'high' if bias > 0.0 else 'low'} by {self.size(bias)}".strip()

    def interval(self, low: float, high: float) -> str:
        """An interval of a bias, with its unit."""
        if self.scale == 100.0 and math.isfinite(low) and math.isfinite(high):
            return f"{points(low * self.scale)} to {points(high * self.scale)} {self.unit}"
        return interval(low * self.scale, high * self.scale, self.unit)

    def axis(self) -> str:
        """The name of an axis of biases."""
        what = "bias of coverage" if self.noun else "bias"
        return f"{what}, {self.unit or 'in units of the outcome'}"


# Units of what lies between 0 and 1.
POINTS: dict[str, Any] = {
    "scale": 100.0,
    "unit": "points",
    "heading": "points",
    "meaning": "A bias of +3 points says that forecasts were 3 percentage points higher than what came true, on "
    "average.",
}


def own_unit(domain: tuple[float, float]) -> dict[str, Any]:
    """Units of what is told in its own."""
    meaning = "A bias is in units of what is forecast: positive says that forecasts were too high, on average."
    return {"scale": domain[1] - domain[0], "unit": "", "heading": "bias", "meaning": meaning}


class PropertyBase:
    """What holds of a property that says nothing else: no name for the command, no kernel, V tells no outcome.

    names: how the command and the service call it; one that takes a number has an example behind a colon.
    argument: how the service calls that number. compiled: the name of the class whose V is compiled, which a class
    that inherits from it is not. is_conditional_mean: whether it is the mean under the squared error,
    which a regressor forecasts by itself.
    """

    __slots__ = ()

    names: ClassVar[tuple[str, ...]] = ()
    argument: ClassVar[str | None] = None
    compiled: ClassVar[str] = ""
    is_conditional_mean: ClassVar[bool] = False

    @classmethod
    def from_text(cls, name: str, argument: float | None, low: float, high: float) -> Self:
        """The property that the command calls `name`, or `name:argument`, for outcomes in [low, high]."""
        options: dict[str, Any] = {"low": low, "high": high}
        return cls(**options) if argument is None else cls(argument, **options)  # type: ignore[call-arg]

    @property
    def wording(self) -> Wording:
        """How to speak of it: by its name, or as it prints."""
        return Wording(str(getattr(self, "name", None) or repr(self)))

    @property
    def kernel(self) -> Mapping[str, float | int | str]:
        """What compiled code needs to know; its `property` is empty where V has no compiled twin."""
        target: Any = self
        low, high = target.domain
        return {
            "property": self.compiled if type(self).__name__ == self.compiled else "",
            "label_low": target.low,
            "label_high": target.high,
            "width": high - low,
            "level": getattr(self, "level", 0.0),
            "power": getattr(self, "k", 1),
            "monotone": target.monotone,
            "domain_low": low,
            "domain_high": high,
        }

    def binary_p(self, p: FloatLike) -> FloatLike | None:
        """The p' of V = p' - y', where V has two values for every label; None where it has more."""
        return None

    def outcome(self, p: FloatLike, v: FloatLike) -> FloatLike | None:
        """The label y for which V(p, y) is `v`, where that is linear in v; else None."""
        return None


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class RangeProperty(Described, PropertyBase):
    """A property of labels in [low, high] that says nothing else: its values lie there, and V has slope 1."""

    low: float = dataclasses.field(default=0.0, kw_only=True)
    high: float = dataclasses.field(default=1.0, kw_only=True)

    monotone: ClassVar[bool] = True
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._settle(**dict(zip(("low", "high"), inputs.label_range(self.low, self.high), strict=True)))

    def _settle(self, **arguments: Any) -> None:
        """Arguments as they were checked."""
        for name, value in arguments.items():
            object.__setattr__(self, name, value)

    def doubled(self, y: float) -> Self:
        """The same on a range twice as wide, towards the label `y` beyond it."""
        width = self.high - self.low
        ends = {"low": self.low - width} if y < self.low else {"high": self.high + width}
        return dataclasses.replace(self, **ends)

    def covering(self, y: float) -> Self:
        """Doubled until the label `y` lies in the range."""
        return self if self.low <= y <= self.high else self.doubled(y).covering(y)

    @property
    def domain(self) -> tuple[float, float]:
        """The label range."""
        return self.low, self.high

    @property
    def lipschitz(self) -> float | None:
        """V has slope 1 where p is measured in widths of the domain."""
        return 1.0

    @property
    def assumption(self) -> str:
        """What the guarantee assumes of the labels."""
        return "Every label lies in the label range; nothing else is assumed."

    def loss_weight(self, p: FloatLike) -> FloatLike:
        """Twice the width of the domain, for each forecast: the loss is a squared error."""
        low, high = self.domain
        return 0.0 * p + 2.0 * (high - low)

    def invalid_labels(self, y: FloatLike) -> str | None:
        """Which label is outside [low, high], as a clause for an error message, or None."""
        return outside(y, self.low, self.high)


# --------
# Labels from outside: which of them is not allowed, and why.


def _plain(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _clause(y: FloatLike, allowed: Callable[[Float64Array], npt.NDArray[np.bool_]], requirement: str) -> str | None:
    """The sentence part about the first label that is not allowed."""
    try:
        array = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return "the labels are not all numbers"
    good = allowed(array)
    if good.all():
        return None
    at = int(np.argmin(good))
    value = float(array.reshape(-1)[at])
    where = f" at position {at}" if array.size > 1 else ""
    if math.isnan(value):
        return f"label nan{where} is not a number"
    return f"label {_plain(value)}{where} {requirement}"


def outside(y: FloatLike, low: float, high: float) -> str | None:
    """Which label of `y` is not a number in [low, high], as a clause for an error message; None if all are.

    Examples
    --------
    >>> outside(np.array([0.2, 0.4, 0.9, 1.7]), 0.0, 1.0)
    'label 1.7 at position 3 is outside [0, 1]'
    """
    if isinstance(y, float) and low <= y <= high:
        return None
    return _clause(y, lambda a: (a >= low) & (a <= high), f"is outside [{_plain(low)}, {_plain(high)}]")


def sample(y: Float64Array, invalid: Callable[[Float64Array], str | None]) -> Float64Array:
    """`y` as a checked, non-empty vector of labels."""
    clause = invalid(y)
    if clause is not None:
        raise InvalidInput(f"{clause}; the value of a property needs labels in its range, so set low= and high= to fit")
    array = np.asarray(y, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"the value of a property needs one label or more in a vector; got shape {array.shape}")
    return array
