"""Numbers as sentences that a person without the paper at hand can use."""

from typing import NamedTuple

from swapcal.audit.cells import Cell
from swapcal.audit.witness import Witness
from swapcal.properties import Mean, Quantile
from swapcal.roles import Elicitable

__all__ = ["Unit", "counted", "loss_name", "number", "unit_of", "witness_sentence"]


def number(value: float) -> str:
    """Four digits, without an exponent where one can do without.

    Examples
    --------
    >>> number(1234567.8), number(57.123), number(0.012345), number(0.0)
    ('1,234,568', '57.12', '0.01235', '0')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def counted(rows: float) -> str:
    """How many rows: "1 row", "20,000 rows"."""
    return "1 row" if rows == 1 else f"{rows:,.0f} rows"


class Unit(NamedTuple):
    """What a mean identification times `scale` is: in the words of people, and short for the head of a column."""

    scale: float
    words: str
    short: str


def unit_of(property: str, low: float, high: float) -> Unit:
    """The unit of biases, from how a result names its property and range.

    Examples
    --------
    >>> unit_of("Quantile(0.9)", 0.0, 1.0).words, unit_of("Mean(high=50.0)", 0.0, 50.0).scale
    ('percentage points of coverage', 50.0)
    """
    if property.startswith("Quantile("):
        return Unit(100.0, "percentage points of coverage", "points")
    if property.startswith(("Mean(", "Probability(")):
        return Unit(high - low, "", "bias")
    return Unit(1.0, "in mean identification", "mean V")


def loss_name(property: Elicitable) -> str:
    """How people call the property's loss."""
    if isinstance(property, Mean):
        return "Brier score" if (property.low, property.high) == (0.0, 1.0) else "mean squared error"
    if isinstance(property, Quantile):
        return "pinball loss"
    return {"Expectile": "asymmetric squared error", "Moment": "squared error of the moment"}.get(
        type(property).__name__, "loss"
    )


def witness_sentence(property: Elicitable, found: Cell | Witness, share: float) -> str:
    """Where the forecasts are most wrong, in the property's own units where it has any; `share` of the swap error."""
    near, low, high = f"orecasts near {number(found.value)}", found.low, found.high
    if found.mean == 0.0:
        return f"No f{near} are too high or too low for any group."
    side = "too high" if found.mean > 0 else "too low"
    chance = "" if low > 0 or high < 0 else "; that may be chance"
    if isinstance(property, Mean) and found.function is not None:
        width = property.high - property.low
        outcome, least, most = (
            min(max(found.value - width * v, property.low), property.high) for v in (found.mean, high, low)
        )
        what = f"the mean outcome was {number(outcome)} (95 % interval {number(least)} to {number(most)}{chance})"
    elif isinstance(property, Quantile) and found.function is not None:
        below, least, most = (100 * min(max(property.level + v, 0.0), 1.0) for v in (found.mean, low, high))
        what = (
            f"{below:.1f} % of outcomes stayed at or below them instead of {100 * property.level:g} % "
            f"(95 % interval {least:.1f} to {most:.1f} %{chance})"
        )
    else:
        what = f"by {abs(found.mean):.3f} in mean identification (95 % interval {low:+.3f} to {high:+.3f}{chance})"
    group = "everybody" if found.name == "all" else found.name
    return f"F{near} are {side} for {group}: {what}; {100 * share:.0f} % of the swap error comes from there."
