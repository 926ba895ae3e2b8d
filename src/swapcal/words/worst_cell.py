"""The sentence about where forecasts are most wrong: for `Audit.witness`, the terminal and the page."""

from swapcal.properties import Mean, Probability, Quantile
from swapcal.roles import Elicitable
from swapcal.words.names import group_name
from swapcal.words.numbers import number, percent, range_text
from swapcal.words.property_words import property_words

__all__ = ["worst_cell_sentence"]


def worst_cell_sentence(
    property: Elicitable,
    value: float,
    name: str,
    bias: tuple[float, float, float],
    share: float,
    confidence: float,
    *,
    members: bool = True,
) -> str:
    """Where the forecasts are most wrong, in the property's own units where it has any.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    value : float
        The forecast.
    name : str
        The group or function.
    bias : tuple of 3 floats
        Mean identification, and both ends of its interval.
    share : float
        The part of the swap error that comes from this cell.
    confidence : float
        Of the interval.
    members : bool
        Whether the function is 0 or 1, so that the mean is one over members: then it says what their outcomes were.
    """
    (mean, low, high), near = bias, f"orecasts near {number(value)}"
    if mean == 0.0:
        return f"No f{near} are too high or too low for any group."
    chance = "" if low > 0 or high < 0 else "; that may be chance"
    sure = f"{percent(confidence)} interval"
    if isinstance(property, Mean | Probability) and members:
        bottom, top = property.domain
        outcome, least, most = (min(max(value - (top - bottom) * v, bottom), top) for v in (mean, high, low))
        what = f"the mean outcome was {number(outcome)} ({sure} {range_text(least, most)}{chance})"
    elif isinstance(property, Quantile) and members:
        below, least, most = (100 * min(max(property.level + v, 0.0), 1.0) for v in (mean, low, high))
        what = (
            f"{number(below)} % of outcomes stayed at or below them instead of {number(100 * property.level)} % "
            f"({sure} {range_text(least, most)} %{chance})"
        )
    else:
        words = property_words(property)
        what = f"by {words.size(mean)} ({sure} {words.interval(low, high)}{chance})"
    side = "too high" if mean > 0 else "too low"
    return f"F{near} are {side} for {group_name(name)}: {what}; {100 * share:.0f} % of the swap error comes from there."
