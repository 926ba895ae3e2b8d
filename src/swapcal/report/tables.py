"""The headline numbers of the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.audits.summary import ColumnSummary
from swapcal.properties import Quantile
from swapcal.report.drawing import step, step_role
from swapcal.report.figures import FEW, CellMap, WorstGroups
from swapcal.tasks.result import Result, group_rows
from swapcal.text.numbers import (
    MINUS,
    MISSING,
    QUANTITIES,
    capitalized,
    change,
    count,
    counted,
    group_name,
    interval,
    number,
    percent,
    precise,
    range_text,
    relative,
    shortened,
    signed,
)
from swapcal.text.property_words import PropertyWords, property_words
from swapcal.typing import IntArray

# --------
# The heat map as a table of the page: cells that can be pointed at, tapped, or reached with the keyboard.


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell: the role of its color, whether its rows are few, and its numbers in words."""

    role: str
    few: bool
    words: str


@dataclass(frozen=True, slots=True)
class CellTable:
    """One side: names of bins (all, and those that are printed under the table), and rows of cells by group."""

    which: str
    label: str
    bins: tuple[str, ...]
    ticks: tuple[str, ...]
    end: str
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    finding: str


def cell_tables(result: Result, limit: int = 40) -> tuple[list[CellTable], str, int]:
    """Tables of the sides there are, with the same groups, bins and colors; the end of the colors; groups left out."""
    sides = result.columns
    if not sides:
        return [], "", 0
    maps = {w: CellMap(side, result.groups, result.property, limit) for w, side in sides.items()}
    order = next(iter(maps.values())).order()
    scale = max(each.scale() for each in maps.values())
    tables = [_table(w, maps[w], order, scale, _used(list(sides.values()))) for w in maps]
    return tables, _end(result, scale), len(result.groups) - len(order)


def _end(result: Result, scale: float) -> str:
    words = property_words(result.property)
    return f"{number(scale * words.scale, 2)} {words.unit}".strip()


def _used(sides: list[ColumnSummary]) -> slice:
    """The bins from the first to the last that any side used; all, if the sides have different bins."""
    if len({len(side.edges) for side in sides}) > 1:
        return slice(None)
    at = np.nonzero(np.sum([np.nan_to_num(side.histogram) for side in sides], axis=0))[0]
    return slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(None)


def _table(which: str, drawn: CellMap, order: IntArray, scale: float, used: slice) -> CellTable:
    side, words = drawn.side, property_words(drawn.property)
    at = range(*used.indices(len(side.edges) - 1))
    bins = tuple(range_text(float(side.edges[i]), float(side.edges[i + 1])) for i in at)
    every = max(1, round(len(bins) / 4))
    # The last name would run into the end of the scale.
    ticks = tuple(
        text.split(" to ")[0] if k % every == 0 and len(bins) - k > every // 2 else "" for k, text in enumerate(bins)
    )
    rows = []
    for j in order:
        cells: list[HeatCell | None] = []
        for i, text in zip(at, bins, strict=True):
            n, bias = float(side.counts[i, j]), float(side.bias[i, j])
            if not (n > 0.0 and np.isfinite(bias)):
                cells.append(None)
                continue
            said = f"{text} was forecast for {count(n)} row{'s' if n != 1.0 else ''}: {words.bias(bias)}"
            cells.append(HeatCell(step_role(step(bias, scale)), n < FEW, said))
        rows.append((drawn.groups[j], tuple(cells)))
    return CellTable(
        which, side.label, bins, ticks, bins[-1].split(" to ")[1] if bins else "", tuple(rows), drawn.finding()
    )


# --------
# All groups as a table of the page, to be sorted, searched and downloaded: numbers, and a dot with its interval.

AT_FIRST = 15
"""Groups that are shown before somebody asks for all of them."""

MOST = 800
"""Groups that the page holds; the others are in the JSON."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One side of one group: places on the strip in percent of its width, the numbers, and their texts."""

    which: str
    left: float
    dot: float
    right: float
    bias: str
    low: str
    high: str
    text: str
    interval: str
    off: bool
    coverage: str
    since: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group."""

    name: str
    rows: int
    count: str
    marks: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The rows, where zero is, the ends of the strip, and how many groups are not shown."""

    rows: tuple[GroupRow, ...]
    zero: float
    low: str
    high: str
    unit: str
    at_first: int
    left_out: int
    coverage: bool
    exact: bool
    clusters: bool
    finding: str


def group_table(result: Result, limit: int = MOST) -> GroupTable | None:
    """The table of a result, or None where no group has rows."""
    rows, words = group_rows(result), property_words(result.property)
    if not rows:
        return None
    kept = rows[: limit + 1]
    sides = list(result.columns)
    ends = np.array([_clipped(row[w][e]) for row in kept for w in sides if w in row for e in ("low", "high")] + [0.0])
    # Intervals of tiny groups would press all others together; they run out of the strip instead.
    dots = [_clipped(row[w]["bias"]) for row in kept for w in sides if w in row]
    sure = [_clipped(row[w][e]) for row in kept for w in sides if w in row and row[w]["off"] for e in ("low", "high")]
    least = min(0.0, float(np.quantile(ends, 0.02)), *dots, *sure)
    greatest = max(0.0, float(np.quantile(ends, 0.98)), *dots, *sure)
    room = 0.04 * max(greatest - least, 1e-12)
    least, greatest = least - room, greatest + room

    def place(value: float) -> float:
        return round(min(max(100.0 * (value - least) / (greatest - least), 0.0), 100.0), 1)

    table = []
    for row in kept:
        marks = {w: _mark(w, row[w], words, place) for w in sides if w in row}
        table.append(GroupRow(row["group"], row["rows"], count(row["rows"]), marks))
    low_text, high_text = (f"{signed(v, 2)} {words.unit}".strip() for v in (least + room, greatest - room))
    groups = next(iter(result.columns.values())).known_groups
    return GroupTable(
        tuple(table),
        place(0.0),
        low_text,
        high_text,
        words.unit or "units of the outcome",
        AT_FIRST,
        len(rows) - len(kept),
        bool(words.noun),
        groups.exact,
        groups.clusters,
        WorstGroups.of(result).finding(),
    )


def _clipped(value: float) -> float:
    return value if np.isfinite(value) else 0.0


def _mark(which: str, side: dict[str, Any], words: PropertyWords, place: Any) -> Mark:
    bias, low, high = (float(side[name]) for name in ("bias", "low", "high"))
    coverage = f"{100.0 * side['coverage']:.1f} %" if "coverage" in side else ""
    return Mark(
        which,
        place(low),
        place(bias),
        place(high),
        f"{bias:.5g}",
        f"{low:.5g}",
        f"{high:.5g}",
        words.signed(bias),
        interval(low, high),
        bool(side["off"]),
        coverage,
        str(side.get("since", "")),
    )


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
