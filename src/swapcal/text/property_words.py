"""How to speak of a property: what a forecast is called, what a bias means, and in which units it is told."""

from dataclasses import dataclass

from swapcal.properties import Expectile, Mean, Moment, Probability, Quantile
from swapcal.protocols import Elicitable
from swapcal.text.numbers import interval, number, signed


@dataclass(frozen=True, slots=True, repr=False)
class NamedProperty:
    """What a stored result keeps of a property that was made from a user's own functions: its name, and how it printed.

    It can be spoken of and drawn, and nothing else.
    """

    name: str
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PropertyWords:
    """The words and units of one property.

    name: what is forecast ("0.9 quantile"). outcome: what the curve's outcome is. noun: what is too high or too low.
    scale and unit: a mean identification times `scale` is in `unit`, which is the outcome's own where it is empty.
    heading: the unit, short, for the head of a column. meaning: one sentence about a positive bias. domain: the
    forecasts that are possible, where that is known.
    """

    name: str
    outcome: str
    noun: str
    scale: float
    unit: str
    heading: str
    meaning: str
    domain: tuple[float, float] | None = None

    def size(self, bias: float) -> str:
        """The size of a bias with its unit, without its sign."""
        # More than hundredths of a point say nothing to anybody.
        text = number(abs(bias) * self.scale) if self.scale != 100.0 else number(round(abs(bias) * self.scale, 2))
        return f"{text} {self.unit}".strip()

    def signed(self, told: float) -> str:
        """A bias that is in `unit` already, with its sign and without it.

        Examples
        --------
        >>> property_words(Probability()).signed(-1.3125), property_words(Mean(high=20.0)).signed(0.0123)
        ('\u22121.31', '+0.0123')
        """
        return signed(round(told, 2) if self.scale == 100.0 else told)

    def bias(self, bias: float) -> str:
        """A bias in words.

        Examples
        --------
        >>> property_words(Quantile(0.9)).bias(-0.03), property_words(Mean(high=20.0)).bias(0.1)
        ('coverage too low by 3 points', 'too high by 2')
        """
        if bias != bias:
            return "nothing was forecast"
        if bias == 0.0 or (self.scale == 100.0 and abs(bias) * self.scale < 0.005):
            return "no bias"
        return f"{self.noun} too {'high' if bias > 0.0 else 'low'} by {self.size(bias)}".strip()

    def interval(self, low: float, high: float) -> str:
        """An interval of a bias, with its unit."""
        return interval(low * self.scale, high * self.scale, self.unit)

    def axis(self) -> str:
        """The name of an axis of biases."""
        what = "bias of coverage" if self.noun else "bias"
        return f"{what}, {self.unit or 'in units of the outcome'}"


def property_words(property: Elicitable | NamedProperty) -> PropertyWords:
    """The words and units of a property.

    Examples
    --------
    >>> property_words(Expectile(0.8, high=3.0)).name, property_words(Probability()).unit
    ('0.8 expectile', 'points')
    """
    if isinstance(property, Quantile):
        return _quantile(property)
    if isinstance(property, Probability) or (isinstance(property, Mean) and property.domain == (0.0, 1.0)):
        chance = isinstance(property, Probability)
        return PropertyWords(
            "probability" if chance else "mean",
            "share of cases in which it happened" if chance else "mean outcome",
            "",
            100.0,
            "points",
            "points",
            "A bias of +3 points says that forecasts were 3 percentage points higher than what came true, on average.",
            property.domain,
        )
    if isinstance(property, Mean | Moment):
        low, high = property.domain
        moment = isinstance(property, Moment)
        return PropertyWords(
            f"moment of order {property.k}" if isinstance(property, Moment) else "mean",
            "mean of the outcomes' power" if moment else "mean outcome",
            "",
            high - low,
            "",
            "bias",
            "A bias is in units of what is forecast: positive says that forecasts were too high, on average.",
            property.domain,
        )
    if isinstance(property, Expectile):
        level = number(property.level)
        return PropertyWords(
            f"{level} expectile",
            f"{level} expectile of the outcomes",
            "",
            property.high - property.low,
            "",
            "bias",
            "A bias is the mean distance between forecast and outcome, in the outcome's own unit, where outcomes above "
            f"the forecast weigh {level} and others {number(1.0 - property.level)}; positive is too high.",
            property.domain,
        )
    return PropertyWords(
        str(getattr(property, "name", None) or repr(property)),
        "the property of the outcomes",
        "",
        1.0,
        "in mean identification",
        "mean V",
        "A bias is the mean of the property's identification function, between \u22121 and 1; positive says too high.",
    )


def loss_name(property: Elicitable) -> str:
    """How people call the property's loss."""
    if isinstance(property, Mean):
        return "Brier score" if property.domain == (0.0, 1.0) else "mean squared error"
    if isinstance(property, Quantile):
        return "pinball loss"
    return {Expectile: "asymmetric squared error", Moment: "squared error of the moment"}.get(type(property), "loss")


def _quantile(property: Quantile) -> PropertyWords:
    level, percent = number(property.level), number(100.0 * property.level)
    low = number(100.0 * property.level - 3.0)
    return PropertyWords(
        "median" if property.level == 0.5 else f"{level} quantile",
        f"{level} quantile of the outcomes",
        "coverage",
        100.0,
        "points",
        "points",
        f"A bias of \u22123 points says that {low} % of the outcomes were at or below their forecasts instead of "
        f"{percent} %: coverage is too low because forecasts are too low.",
        property.domain,
    )
