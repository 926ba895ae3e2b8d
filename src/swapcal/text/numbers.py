"""Numbers for people: three significant digits, thousands separators, a real minus sign."""

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from unicodedata import category

# --------
# Text from files and names, made safe for a terminal: what would steer it is written out instead.

T = TypeVar("T")

# Characters that change the direction of the text behind them, so that it reads as something else.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    r"""`text` with control characters, lone halves of surrogate pairs and changes of direction written out.

    Examples
    --------
    >>> print(printable("caf\u00e9\x1b[2J"))
    café\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        one.encode("unicode_escape").decode() if one in _TURNING or category(one) in ("Cc", "Cs") else one
        for one in text
    )


def cleaned(value: T) -> T:
    """Plain data and dataclasses with every text in them `printable`."""
    text: Any = value
    if isinstance(value, str):
        text = printable(value)
    elif isinstance(value, dict):
        text = {cleaned(key): cleaned(each) for key, each in value.items()}
    elif type(value) is list:
        text = [cleaned(each) for each in text]
    elif type(value) is tuple:
        text = tuple(cleaned(each) for each in text)
    elif is_dataclass(value) and not isinstance(value, type):
        texts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        changed = {name: cleaned(each) for name, each in texts.items() if isinstance(each, (str, dict, list, tuple))}
        inner = {name: cleaned(each) for name, each in texts.items() if is_dataclass(each) and _ours(each)}
        text = replace(text, **changed, **inner) if changed or inner else value
    result: T = text
    return result


def _ours(value: Any) -> bool:
    """Whether it is a part of a result."""
    return type(value).__module__.startswith(("swapcal.audits", "swapcal.tasks", "swapcal.text", "swapcal.properties"))


# --------
# Names of groups as a page shows them: whatever they hold, they stay one piece of plain text.


def readable(name: str) -> str:
    r"""`name` without what no document may hold: control characters and halves of surrogate pairs.

    Examples
    --------
    >>> readable("tab\tnull\x00"), readable("  ")
    ('tab null', '(no name)')
    """
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in name)
    return " ".join(text.split()) or "(no name)"


def group_name(name: str) -> str:
    """`readable`, and the group that holds every row by the name that people use.

    Examples
    --------
    >>> group_name("all"), group_name("sex=Female")
    ('all rows', 'sex=Female')
    """
    return "all rows" if name == "all" else readable(name)


def shortened(name: str, width: int = 60) -> str:
    """`readable`, with the middle left out where it is longer than `width`: beginnings and ends tell groups apart.

    Examples
    --------
    >>> shortened("origin=JFK & carrier=American Airlines & hour=7", 24)
    'origin=JFK & ca…s & hour=7'
    """
    text = readable(name)
    end = width // 3 + 2
    return text if len(text) <= width else f"{text[: width - end + 1]}…{text[-end:]}"


# A minus sign, as wide as a plus sign.
MINUS = "\u2212"

# What stands where there is no number.
MISSING = "\u2013"

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits.

    Examples
    --------
    >>> number(7493.3), number(0.04211), number(123456.0), number(0.1 + 0.2), number(0.0)
    ('7,490', '0.0421', '123,000', '0.3', '0')
    >>> number(-2.0) == f"{MINUS}2", number(float("nan")) == MISSING
    (True, True)
    """
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    if value == 0.0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -5 < power < 12:
        places = max(0, digits - 1 - power)
        text = f"{round(value, digits - 1 - power):,.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{float(mantissa):g} \u00d7 10{str(power).translate(_SUPERSCRIPTS)}"
    return text.replace("-", MINUS)


def signed(value: float, digits: int = 3) -> str:
    """As `number`, with a plus sign before positive values.

    Examples
    --------
    >>> signed(0.0312), signed(0.0)
    ('+0.0312', '0')
    """
    return ("+" if value > 0.0 else "") + number(value, digits)


def points(value: float) -> str:
    """A number of points with its sign and one decimal; nothing has no sign.

    Examples
    --------
    >>> points(-0.04), points(13.46)
    ('0.0', '+13.5')
    """
    if not math.isfinite(value):
        return number(value)
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0.0 else text.replace("-", MINUS)


def precise(value: float) -> str:
    """Four significant digits, and all digits before the point: for losses, whose changes are small.

    Examples
    --------
    >>> precise(0.220187), precise(20845.4)
    ('0.2202', '20,845')
    """
    return number(value, max(4, len(str(int(abs(value))))) if math.isfinite(value) else 4)


def count(value: float) -> str:
    """A whole number with thousands separators.

    Examples
    --------
    >>> count(336776.0)
    '336,776'
    """
    return MISSING if not math.isfinite(value) else f"{round(value):,}".replace("-", MINUS)


def counted(n: float, noun: str = "row", plural: str = "") -> str:
    """How many of what; `plural` where that is not the noun with an s.

    Examples
    --------
    >>> counted(1), counted(20_000.0), counted(1, "outcome"), counted(0, "class", "classes")
    ('1 row', '20,000 rows', '1 outcome', '0 classes')
    """
    return f"1 {noun}" if n == 1 else f"{count(n)} {plural or noun + 's'}"


def percent(share: float) -> str:
    """A probability, such as that of an interval, in percent.

    Examples
    --------
    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100.0 * share:g} %"


def aligned(values: Iterable[float], *, sign: bool = False) -> list[str]:
    """The numbers of a column, all with as many places as show three digits of the largest, six at most.

    Examples
    --------
    >>> aligned([12.345, 0.5]), aligned([0.012, -0.5], sign=True) == ["+0.012", f"{MINUS}0.500"]
    (['12.3', '0.5'], True)
    """
    entries = list(values)
    largest = max((abs(value) for value in entries if math.isfinite(value)), default=0.0)
    places = 2 if largest == 0.0 else min(max(2 - math.floor(math.log10(largest)), 0), 6)
    form = f"{'+' if sign else ''},.{places}f"
    return [f"{value:{form}}".replace("-", MINUS) if math.isfinite(value) else number(value) for value in entries]


def interval(low: float, high: float, unit: str = "") -> str:
    """The ends of an interval with signs, both to the place that is the third digit of the larger one.

    Examples
    --------
    >>> interval(0.0147, 9.7, "points"), interval(0.00211, 0.0312), interval(0.002, 12.68)
    ('+0.01 to +9.7 points', '+0.0021 to +0.0312', '+0.002 to +12.7')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return MISSING
    largest = max(abs(low), abs(high))
    places = 2 - math.floor(math.log10(largest)) if largest > 0.0 else 0
    # An end beside zero keeps its first digit, because its sign matters.
    ends = (signed(round(value, places), 12) if round(value, places) else signed(value, 1) for value in (low, high))
    return f"{' to '.join(ends)} {unit}".strip()


def range_text(low: float, high: float, digits: int = 3) -> str:
    """The ends of an interval.

    Examples
    --------
    >>> range_text(0.3, 0.35)
    '0.3 to 0.35'
    """
    return f"{number(low, digits)} to {number(high, digits)}"


def change(before: float, after: float) -> str:
    """How `after` compares with `before`, both of them totals that are best at 0.

    Examples
    --------
    >>> change(200.0, 25.0), change(10.0, 9.5), change(10.0, 12.0), change(10.0, 10.02), change(0.0, 3.0)
    ('8 times smaller', '5 % smaller', '20 % larger', 'unchanged', '')
    """
    if not (math.isfinite(before) and math.isfinite(after) and before > 0.0 and after >= 0.0):
        return ""
    ratio = after / before
    if abs(ratio - 1.0) < 0.005:
        return "unchanged"
    if ratio == 0.0:
        return "gone"
    if ratio <= 0.5:
        return f"{number(1.0 / ratio, 2)} times smaller"
    if ratio < 2.0:
        return f"{number(abs(ratio - 1.0) * 100.0, 2)} % {'smaller' if ratio < 1.0 else 'larger'}"
    return f"{number(ratio, 2)} times larger"


def relative(difference: float, before: float) -> str:
    """A difference of losses in percent of the loss before, or in units of the loss where that is not positive.

    Examples
    --------
    >>> relative(0.003, 0.2), relative(0.2e-5, 0.2), relative(0.25, 0.0)
    ('+1.5 %', '0 %', '+0.25')
    """
    return f"{signed(round(100.0 * difference / before, 2))} %" if before > 0.0 else signed(difference)


# --------
# What the numbers of a result are called: one name for each, wherever it is shown.

# Names by the fields of `ColumnSummary` and `Result`.
QUANTITIES = {
    "swap_error": "swap multicalibration error",
    "group_error": "worst group's error",
    "overall_error": "error of all rows",
    "chance_mean": "expected if calibrated",
    "guarantee": "at most, against anybody",
}


def guarantee_sentence(delta: float) -> str:
    """What the guarantee of a run rests on, for somebody who can check it.

    Examples
    --------
    >>> guarantee_sentence(0.05)[:61]
    'holds with probability 95 % if nobody who influences outcomes'
    """
    return (
        f"holds with probability {100.0 * (1.0 - delta):g} % if nobody who influences outcomes knew the seed or saw a "
        "forecast before its outcome was settled, and if no outcome is missing because of the forecast"
    )


def capitalized(name: str) -> str:
    """`name` as the title of a card or the first word of a sentence."""
    return name[:1].upper() + name[1:]
