"""The headline numbers of the page."""

from dataclasses import dataclass

import numpy as np

from swapcal.jobs.result import Result
from swapcal.report.loss_change import LossChange
from swapcal.report.numbers import change, count, number, precise
from swapcal.report.reading import reading

__all__ = ["Card", "cards", "power", "rows"]


@dataclass(frozen=True, slots=True)
class Card:
    """One number, or one before and one after, with a title and a line that says what to make of it."""

    title: str
    before: str
    after: str
    note: str


def cards(result: Result) -> list[Card]:
    """The headline numbers: errors, what chance and the guarantee allow, and the loss."""
    found = [
        _errors(result, "Swap error", "swap_error", _typical(result)),
        _chance(result),
        _guarantee(result),
        _errors(result, "Worst group\u2019s error", "group_error", ""),
        _errors(result, "Everybody\u2019s error", "overall_error", ""),
        _loss(result),
    ]
    return [card for card in found if card is not None]


def power(result: Result) -> float:
    """The power r of the errors, 2 unless the settings say otherwise."""
    value = result.settings.get("r", 2.0)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 2.0


def _typical(result: Result) -> str:
    """The error as a bias that every row would have."""
    side = result.after if result.after is not None else result.before
    total = float(result.n_rounds) if side is None or side.weight is None else side.weight
    if side is None or not total > 0.0 or not side.swap_error >= 0.0:
        return ""
    typical = float(np.power(side.swap_error / total, 1.0 / power(result)))
    return f"as if every row were off by {reading(result.property).size(typical)}"


def _errors(result: Result, title: str, field: str, note: str) -> Card:
    values = [None if side is None else float(getattr(side, field)) for side in (result.before, result.after)]
    # What rounding leaves of zero is zero.
    texts = ["" if value is None else number(value if value > 1e-9 else 0.0 * value) for value in values]
    parts = [change(values[0], values[1])] if values[0] is not None and values[1] is not None else []
    return Card(title, texts[0], texts[1], "; ".join(part for part in (*parts, note) if part))


def _guarantee(result: Result) -> Card:
    yardstick = f"T^(1/3) is {number(float(np.cbrt(max(result.n_rounds, 0))))} for this many rows"
    if result.guarantee is None:
        return Card(
            "Yardstick", "", number(float(np.cbrt(max(result.n_rounds, 0)))), "T^(1/3), the rate of the guarantee"
        )
    return Card(
        "Guaranteed at most", "", number(result.guarantee), f"swap error, whatever the stream does; {yardstick}"
    )


def _chance(result: Result) -> Card | None:
    """What calibrated forecasts would show, where it is known."""
    sides = (result.before, result.after)
    texts = ["" if side is None or side.chance_mean is None else number(side.chance_mean) for side in sides]
    if not any(texts):
        return None
    highs = [side.chance_high for side in sides if side is not None and side.chance_high is not None]
    most = f", at most {number(highs[-1])} in 95 of 100 streams" if highs else ""
    return Card("Swap error by chance alone", texts[0], texts[1], f"of calibrated forecasts{most}")


def _loss(result: Result) -> Card:
    title = result.loss_name[:1].upper() + result.loss_name[1:]
    if result.paired is not None:
        drawn = LossChange.of(result)
        low, high = drawn.percent(result.paired.low), drawn.percent(result.paired.high)
        share = f"{100.0 * result.paired.confidence:g} % interval {low} to {high}"
        note = f"{drawn.percent(result.paired.difference)} ({share})"
        return Card(title, precise(result.paired.before), precise(result.paired.after), note)
    losses = ["" if side is None else precise(side.loss) for side in (result.before, result.after)]
    best = [side.constant_loss for side in (result.before, result.after) if side is not None]
    constant = f"; the best constant forecast has {precise(best[-1])}" if best and best[-1] is not None else ""
    return Card(title, losses[0], losses[1], f"lower is better{constant}")


def rows(result: Result) -> str:
    """How much there was, in a sentence."""
    groups = f"{count(len(result.groups))} group{'s' if len(result.groups) != 1 else ''}"
    text = f"{count(result.n_rounds)} rows with an outcome, {groups}"
    if result.n_missing:
        text += f"; {count(result.n_missing)} more rows without an outcome"
    if result.n_clipped:
        text += f"; {count(result.n_clipped)} outcomes outside the range were moved to its end"
    return text + "."
