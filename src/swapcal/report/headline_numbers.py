"""The headline numbers of the page."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from swapcal.audit.summary import ColumnSummary
from swapcal.jobs.result import Result
from swapcal.properties import Quantile
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import MINUS, MISSING, change, count, counted, number, percent, precise, relative, signed
from swapcal.words.property_words import property_words
from swapcal.words.quantities import QUANTITIES, capitalized

__all__ = ["HeadlineNumber", "error_numbers", "headline_numbers", "rows"]


@dataclass(frozen=True, slots=True)
class HeadlineNumber:
    """One number, or one before and one after, with a title and a line that says what to make of it."""

    title: str
    before: str
    after: str
    note: str


def headline_numbers(result: Result) -> list[HeadlineNumber]:
    """What people ask first: how many groups are off, the worst of them, everybody, the loss, coverage or AUC."""
    found = [
        _groups_off(result),
        _worst_group(result),
        _everybody(result),
        _loss(result),
        _decisions(result),
        *_scores(result),
    ]
    return [card for card in found if card is not None]


def error_numbers(result: Result) -> list[HeadlineNumber]:
    """The totals of the guarantee: errors, and what chance and the guarantee allow."""
    found = [
        _errors(result, "swap_error", _typical(result)),
        _chance(result),
        _guarantee(result),
        _errors(result, "group_error", ""),
        _errors(result, "overall_error", ""),
    ]
    return [card for card in found if card is not None]


def _texts(result: Result, text: Callable[[ColumnSummary], str]) -> list[str]:
    return ["" if side is None else text(side) for side in (result.before, result.after)]


def _groups_off(result: Result) -> HeadlineNumber | None:
    n = max((side.known_groups.n_used for side in result.columns.values()), default=0)
    if not n:
        return None
    before, after = _texts(result, lambda side: count(side.known_groups.n_off))
    return HeadlineNumber("Groups off beyond doubt", before, after, f"of {count(n)}")


def _worst_group(result: Result) -> HeadlineNumber | None:
    """The worst group of the model, or of swapcal's forecasts where there is no model, on both sides."""
    side, words = next(iter(result.columns.values())), property_words(result.property)
    worst = side.known_groups.ranked()
    if not len(worst):
        return None
    j = int(worst[0])

    def told(one: ColumnSummary) -> str:
        groups = one.known_groups
        return signed(words.scale * float(groups.mean[j]), 2) if j < len(groups.name) else MISSING

    before, after = _texts(result, told)
    groups = side.known_groups
    kind = "off beyond doubt" if groups.off[j] else "may be chance"
    unit = f"{words.unit}, " if words.unit else ""
    name = shortened(group_name(groups.name[j]), 48)
    unit = f"coverage, {unit}" if words.noun else unit
    return HeadlineNumber("Bias of the worst group", before, after, f"{unit}{name}, {counted(groups.rows[j])}; {kind}")


def _everybody(result: Result) -> HeadlineNumber:
    words = property_words(result.property)
    if isinstance(result.property, Quantile):
        level = result.property.level
        before, after = _texts(result, lambda side: f"{100 * (level + float(side.known_groups.mean[0])):.1f} %")
        return HeadlineNumber("Coverage of all rows", before, after, f"{percent(level)} was asked for")
    before, after = _texts(result, lambda side: signed(words.scale * float(side.known_groups.mean[0]), 2))
    side = list(result.columns.values())[-1]
    low, high = float(side.known_groups.low[0]), float(side.known_groups.high[0])
    return HeadlineNumber("Bias of all rows", before, after, f"interval {words.interval(low, high)}")


def _decisions(result: Result) -> HeadlineNumber | None:
    """What those who act on the forecasts lose a row, where costs were given."""
    told, losses = result.settings.get("decisions"), result.settings.get("decision_losses")
    if not told:
        return None
    before, after = map(precise, losses) if isinstance(losses, list) and len(losses) == 2 else ("", "")
    return HeadlineNumber("Cost of decisions a row", before, after, str(told))


def _scores(result: Result) -> list[HeadlineNumber]:
    sides = [None if side is None else side.scores for side in (result.before, result.after)]
    if all(one is None for one in sides):
        return []
    auc = ["" if one is None or one.auc is None else number(one.auc) for one in sides]
    logs = ["" if one is None else precise(one.log_loss) for one in sides]
    last = next(one for one in reversed(sides) if one is not None)
    parts = (
        f"Brier score = miscalibration {number(last.miscalibration, 2)} {MINUS} discrimination "
        f"{number(last.discrimination, 2)} + uncertainty {number(last.uncertainty, 2)}"
    )
    return [
        HeadlineNumber("AUC", auc[0], auc[1], "0.5 is chance, 1 is perfect order"),
        HeadlineNumber("Log loss", logs[0], logs[1], parts),
    ]


def _typical(result: Result) -> str:
    """The error as a bias that every row would have."""
    side = result.after if result.after is not None else result.before
    total = float(result.n_rounds) if side is None or side.weight is None else side.weight
    if side is None or not total > 0.0 or not side.swap_error >= 0.0:
        return ""
    typical = float(np.power(side.swap_error / total, 1.0 / result.r))
    return f"as if every row were off by {property_words(result.property).size(typical)}"


def _errors(result: Result, field: str, note: str) -> HeadlineNumber:
    values = [None if side is None else float(getattr(side, field)) for side in (result.before, result.after)]
    # What rounding leaves of zero is zero.
    texts = ["" if value is None else number(value if value > 1e-9 else 0.0 * value) for value in values]
    parts = [change(values[0], values[1])] if values[0] is not None and values[1] is not None else []
    return HeadlineNumber(
        capitalized(QUANTITIES[field]), texts[0], texts[1], "; ".join(part for part in (*parts, note) if part)
    )


def _guarantee(result: Result) -> HeadlineNumber:
    yardstick = f"T^(1/3) is {number(float(np.cbrt(max(result.n_rounds, 0))))} for this many rows"
    why = str(result.settings.get("guarantee", ""))
    if result.guarantee is None:
        return HeadlineNumber(
            "Yardstick",
            "",
            number(float(np.cbrt(max(result.n_rounds, 0)))),
            "T^(1/3), the rate of the guarantee" + (f"; {why}" if why else ""),
        )
    return HeadlineNumber(
        capitalized(QUANTITIES["guarantee"]),
        "",
        number(result.guarantee),
        f"swap error, whatever the stream does; {f'{why}; ' if why else ''}{yardstick}",
    )


def _chance(result: Result) -> HeadlineNumber | None:
    """What calibrated forecasts would show, where it is known."""
    sides = (result.before, result.after)
    texts = ["" if side is None or side.chance_mean is None else number(side.chance_mean) for side in sides]
    if not any(texts):
        return None
    highs = [side.chance_high for side in sides if side is not None and side.chance_high is not None]
    most = f", at most {number(highs[-1])} in 95 of 100 streams" if highs else ""
    return HeadlineNumber(capitalized(QUANTITIES["chance_mean"]), texts[0], texts[1], f"of calibrated forecasts{most}")


def _loss(result: Result) -> HeadlineNumber:
    title = capitalized(result.loss_name)
    if result.paired is not None:
        low, difference, high = (
            relative(value, result.paired.before)
            for value in (result.paired.low, result.paired.difference, result.paired.high)
        )
        share = f"{percent(result.paired.confidence)} interval {low} to {high}"
        note = f"{difference} ({share})"
        return HeadlineNumber(title, precise(result.paired.before), precise(result.paired.after), note)
    losses = ["" if side is None else precise(side.loss) for side in (result.before, result.after)]
    best = [side.constant_loss for side in result.columns.values()]
    constant = f"; the best constant forecast has {precise(best[-1])}" if best and best[-1] is not None else ""
    return HeadlineNumber(title, losses[0], losses[1], f"lower is better{constant}")


def rows(result: Result) -> str:
    """How much there was, in a sentence."""
    n = len(result.groups) - 1
    text = f"{counted(result.n_rounds)} with an outcome, {counted(n, 'group')}"
    if result.n_missing:
        text += f"; {counted(result.n_missing, 'more row')} without an outcome"
    if result.n_clipped:
        were = "was" if result.n_clipped == 1 else "were"
        text += f"; {counted(result.n_clipped, 'outcome')} outside the range {were} moved to its end"
    return text + "."
