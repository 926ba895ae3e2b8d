"""How to read a property's numbers: what a forecast is called, what a bias means, and in which units it is told."""

import ast
from dataclasses import dataclass
from typing import Any

from swapcal import properties
from swapcal.report.numbers import number
from swapcal.roles import Elicitable

__all__ = ["Reading", "reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The words and units of one property.

    name: what is forecast ("0.9 quantile"). outcome: what the curve's outcome is. noun: what is too high or too low.
    scale and unit: a mean identification times `scale` is in `unit`. meaning: one sentence about a positive bias.
    """

    name: str
    outcome: str
    noun: str
    scale: float
    unit: str
    meaning: str
    property: Elicitable | None = None

    def size(self, bias: float) -> str:
        """The size of a bias with its unit, without its sign."""
        # More than hundredths of a point say nothing to anybody.
        text = number(abs(bias) * self.scale) if self.unit == "" else number(round(abs(bias) * self.scale, 2))
        return f"{text} {self.unit}" if self.unit else text

    def words(self, bias: float) -> str:
        """A bias in words.

        Examples
        --------
        >>> reading("Quantile(0.9)").words(-0.03), reading("Mean(high=20.0)").words(0.1)
        ('coverage too low by 3 points', 'too high by 2')
        """
        if bias != bias:
            return "nothing was forecast"
        if bias == 0.0 or (self.unit != "" and abs(bias) * self.scale < 0.005):
            return "no bias"
        return f"{self.noun} too {'high' if bias > 0.0 else 'low'} by {self.size(bias)}".strip()

    def axis(self) -> str:
        """The name of an axis of biases."""
        what = "bias of coverage" if self.noun else "bias"
        return f"{what}, {self.unit}" if self.unit else f"{what}, in units of the outcome"

    def extremes(self, p: float) -> tuple[float, float]:
        """The least and the greatest identification that a forecast of `p` can meet."""
        if self.property is None:
            return -1.0, 1.0
        # V falls as the label rises, for all properties that `reading` knows; a quantile jumps at the label itself.
        if isinstance(self.property, properties.Quantile):
            return -self.property.level, 1.0 - self.property.level
        if isinstance(self.property, properties.Moment):
            low, high = self.property.domain
            return (p - high) / (high - low), (p - low) / (high - low)
        ends = (float(self.property.identification(p, y)) for y in (self.property.high, self.property.low))
        least, greatest = ends
        return least, greatest


def reading(property: object) -> Reading:
    """The words and units of `property`: an object, or what its `repr` printed.

    Examples
    --------
    >>> reading("Expectile(0.8, high=3.0)").name, reading("Probability(Log())").unit
    ('0.8 expectile', 'points')
    """
    known = _parsed(property) if isinstance(property, str) else property
    if isinstance(known, properties.Quantile):
        return _quantile(known)
    if isinstance(known, properties.Probability) or (isinstance(known, properties.Mean) and known.domain == (0.0, 1.0)):
        chance = isinstance(known, properties.Probability)
        return Reading(
            "probability" if chance else "mean",
            "share of cases in which it happened" if chance else "mean outcome",
            "",
            100.0,
            "points",
            "A bias of +3 points says that forecasts were 3 percentage points higher than what came true, on average.",
            known,
        )
    if isinstance(known, properties.Mean | properties.Moment):
        low, high = known.domain
        moment = isinstance(known, properties.Moment)
        return Reading(
            f"moment of order {known.k}" if isinstance(known, properties.Moment) else "mean",
            "mean of the outcomes' power" if moment else "mean outcome",
            "",
            high - low,
            "",
            "A bias is in units of what is forecast: positive says that forecasts were too high, on average.",
            known,
        )
    if isinstance(known, properties.Expectile):
        level = number(known.level)
        return Reading(
            f"{level} expectile",
            f"{level} expectile of the outcomes",
            "",
            100.0,
            "% of the range",
            "A bias is the mean distance between forecast and outcome in percent of the outcomes' range, where "
            f"outcomes above the forecast weigh {level}, others {number(1.0 - known.level)}; positive says too high.",
            known,
        )
    return Reading(
        getattr(property, "name", None) or (property if isinstance(property, str) else repr(property)),
        "the property of the outcomes",
        "",
        1.0,
        "",
        "A bias is the mean of the property's identification function, between \u22121 and 1; positive says too high.",
    )


def _quantile(known: properties.Quantile) -> Reading:
    level, percent = number(known.level), number(100.0 * known.level)
    low = number(100.0 * known.level - 3.0)
    return Reading(
        "median" if known.level == 0.5 else f"{level} quantile",
        f"{level} quantile of the outcomes",
        "coverage",
        100.0,
        "points",
        f"A bias of \u22123 points says that {low} % of the outcomes were at or below their forecasts instead of "
        f"{percent} %: "
        "coverage is too low because forecasts are too low.",
        known,
    )


def _parsed(text: str) -> Any:
    """The property that prints as `text`, if it is one of this package's and made from plain values; else None."""
    try:
        return _built(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError):
        return None


def _built(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name) or node.func.id not in properties.__all__ or node.func.id[0].islower():
        raise ValueError(f"not a property of this package: {ast.unparse(node)}")
    options = {each.arg: _built(each.value) for each in node.keywords if each.arg is not None}
    return getattr(properties, node.func.id)(*(_built(each) for each in node.args), **options)
