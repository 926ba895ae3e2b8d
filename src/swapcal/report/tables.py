"""The tables of the page, as texts: headline numbers, groups, sections, and the cells of the heat map."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from swapcal.audits.summary import ColumnSummary
from swapcal.properties.base import Wording
from swapcal.report.drawing import step, step_role
from swapcal.report.figures import FEW, cell_finding, cell_order, cell_scale
from swapcal.tasks.result import Result, group_rows, section_rows
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
from swapcal.text.verdict import class_title, coverage_text


class Cell(NamedTuple):
    """One cell of a table: text, its classes for the style sheet, what it is called on a phone, and more to read.

    title: shown when somebody points at it. small: in small letters behind the text.
    """

    text: str
    css: str = "num"
    label: str = ""
    title: str = ""
    small: str = ""


class Table(NamedTuple):
    """Heads of the columns behind the first, with their classes, and rows: a name, and cells."""

    first: str
    heads: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    left_out: int = 0


def _off(css: str, off: Any) -> str:
    return f"{css} off" if off else css


# --------
# All groups, to be sorted, searched and downloaded: numbers, and a dot with its interval.

AT_FIRST, MOST = 15, 800
"""Groups that are shown before somebody asks for all of them, and that the page holds; the others are in the JSON."""


class Mark(NamedTuple):
    """One side of one group on the strip: places in percent of its width."""

    which: str
    left: float
    dot: float
    right: float


class GroupRow(NamedTuple):
    """One group: numbers by name for sorting and downloading, marks on the strip, and cells."""

    name: str
    rows: int
    data: dict[str, str]
    marks: tuple[Mark, ...]
    cells: tuple[Cell, ...]


class GroupTable(NamedTuple):
    """Heads (text, what it sorts by, and a text for those who cannot see the columns beside it), and rows.

    zero, low, high: of the strip, which a table of several models does not have. more: names of further numbers.
    """

    heads: tuple[tuple[str, str, str], ...]
    rows: tuple[GroupRow, ...]
    zero: float | None
    low: str
    high: str
    unit: str
    more: str
    left_out: int
    exact: bool
    clusters: bool
    at_first: int = AT_FIRST


def group_table(result: Result, limit: int = MOST) -> GroupTable | None:
    """Groups of the first section, or of all models that are compared; None where nothing is known of groups."""
    rows = group_rows(result)
    if not rows:
        return None
    several, words = len(result.sections) > 1, result.wording
    if result.kind == "comparison":
        parts = [(f"m{k}", section.title, "before") for k, section in enumerate(result.sections)]
    else:
        parts = [(which, result.first.title, which) for which in result.columns]
    shown = [
        {key: (row["sections"].get(title, {}) if several else row).get(which) for key, title, which in parts}
        for row in rows[: limit + 1]
    ]
    marks: list[tuple[Mark, ...]] = [()] * len(shown)
    zero, low, high = None, "", ""
    if result.kind == "comparison":
        heads, cells = _model_cells(result)
    else:
        heads, cells = (_interval_cells if result.task == "interval" else _bias_cells)(result, len(parts) > 1)
        marks, zero, low, high = _strip(shown, words)
    lines = [
        GroupRow(row["group"], row["rows"], _data(sides), mark, tuple(c for k, v in sides.items() for c in cells(k, v)))
        for row, sides, mark in zip(rows, shown, marks, strict=False)
    ]
    leading = result.first.leading.known_groups
    return GroupTable(
        heads=tuple(head for key, title, _ in parts for head in heads(key, title)),
        rows=tuple(lines),
        zero=zero,
        low=low,
        high=high,
        unit="points of coverage" if result.task == "interval" else words.unit or "units of the outcome",
        more="coverage,width,score" if result.task == "interval" else "",
        left_out=len(rows) - len(shown),
        exact=leading.exact,
        clusters=leading.clusters,
    )


Heads = Callable[[str, str], list[tuple[str, str, str]]]
Cells = Callable[[str, dict[str, Any] | None], list[Cell]]


def _bias_cells(result: Result, both: bool) -> tuple[Heads, Cells]:
    covers, words = result.wording.coverage is not None, result.wording

    def heads(which: str, title: str) -> list[tuple[str, str, str]]:
        name = capitalized(which) if both else ""
        coverage = [(f"{name}, coverage" if both else "Coverage", f"{which}-bias", "")] if covers else []
        return [*coverage, (name or "Bias", f"{which}-bias", ""), ("Interval", f"{which}-near", which if both else "")]

    def cells(which: str, side: dict[str, Any] | None) -> list[Cell]:
        coverage, label = f"{which}, coverage" if both else "coverage", which if both else "bias"
        share = MISSING if side is None or not covers else coverage_text(side["coverage"])
        first = [Cell(share, "num", coverage)] if covers else []
        if side is None:
            return [*first, Cell(MISSING, f"num {which}", label), Cell("", "interval", "interval")]
        since = f"since {side['since']}" if "since" in side else ""
        bias = Cell(words.signed(side["bias"]), _off(f"num {which}", side["off"]), label)
        span = Cell(interval(side["low"], side["high"]), _off("interval", side["off"]), "interval", small=since)
        return [*first, bias, span]

    return heads, cells


def _interval_cells(result: Result, both: bool) -> tuple[Heads, Cells]:
    def heads(which: str, title: str) -> list[tuple[str, str, str]]:
        coverage = f"{capitalized(which)}, coverage" if both else "Coverage"
        return [(coverage, f"{which}-bias", ""), ("Width", f"{which}-width", ""), ("Score", f"{which}-score", "")]

    def cells(which: str, side: dict[str, Any] | None) -> list[Cell]:
        label = f"{which}, coverage" if both else "coverage"
        if side is None:
            return [Cell(MISSING, "num", label), Cell(MISSING, "num", "width"), Cell(MISSING, "num extra", "score")]
        title = f"{result.wording.signed(side['bias'])} points, interval {interval(side['low'], side['high'])}"
        coverage = Cell(coverage_text(side["coverage"]), _off(f"num {which}", side["off"]), label, title)
        return [
            coverage,
            Cell(number(side["width"]), "num", "width"),
            Cell(number(side["score"]), "num extra", "score"),
        ]

    return heads, cells


def _model_cells(result: Result) -> tuple[Heads, Cells]:
    titles = {f"m{k}": shortened(section.title, 24) for k, section in enumerate(result.sections)}

    def heads(key: str, title: str) -> list[tuple[str, str, str]]:
        return [(title, f"{key}-bias", ""), *([("Loss", f"{key}-loss", "")] if key != "m0" else [])]

    def cells(key: str, side: dict[str, Any] | None) -> list[Cell]:
        further = key != "m0"
        if side is None:
            return [Cell(MISSING, "num", titles[key]), *([Cell(MISSING)] if further else [])]
        title = f"interval {interval(side['low'], side['high'])}"
        made = [Cell(result.wording.signed(side["bias"]), _off("num", side["off"]), titles[key], title)]
        if further and "loss" in side:
            low, high = side["loss_low"], side["loss_high"]
            text, sure = signed(side["loss"]), low > 0 or high < 0
            made.append(Cell(text, _off("num", sure), f"{titles[key]}, loss", f"interval {interval(low, high)}"))
        elif further:
            made.append(Cell(MISSING, "num", f"{titles[key]}, loss"))
        return made

    return heads, cells


def _data(sides: dict[str, dict[str, Any] | None]) -> dict[str, str]:
    """The numbers of a group as they are, by side and name."""
    data = {}
    for key, side in sides.items():
        for name in ("bias", "low", "high", "loss", "coverage", "width", "score"):
            if side is not None and name in side:
                data[f"{key}-{name}"] = f"{side[name]:.6g}"
        if side is not None and side["off"]:
            data[f"{key}-off"] = "1"
    return data


def _strip(rows: list[dict[str, Any]], words: Wording) -> tuple[list[tuple[Mark, ...]], float, str, str]:
    """Places of all groups on the strip, where zero is, and the texts at its ends."""
    sides = [side for row in rows for side in row.values() if side is not None]
    ends = np.array([_finite(side[end]) for side in sides for end in ("low", "high")] + [0.0])
    # Intervals of tiny groups would press all others together; they run out of the strip instead.
    kept = [_finite(side["bias"]) for side in sides]
    kept += [_finite(side[end]) for side in sides if side["off"] for end in ("low", "high")]
    least = min(0.0, float(np.quantile(ends, 0.02)), *kept)
    greatest = max(0.0, float(np.quantile(ends, 0.98)), *kept)
    room = 0.04 * max(greatest - least, 1e-12)
    low, high = (f"{signed(v, 2)} {words.unit}".strip() for v in (least, greatest))
    least, greatest = least - room, greatest + room

    def place(value: float) -> float:
        return round(min(max(100.0 * (value - least) / (greatest - least), 0.0), 100.0), 1)

    marks = [
        tuple(Mark(k, *(place(side[name]) for name in ("low", "bias", "high"))) for k, side in row.items() if side)
        for row in rows
    ]
    return marks, place(0.0), low, high


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 0.0


# --------
# Sections beside each other: classes, classes in each group, and models.

N_GROUPS, N_CLASSES = 25, 12
"""Groups and classes of the table of both."""


def class_table(result: Result) -> Table:
    """One row for the likeliest class and for each class."""
    sides, both = list(result.columns), len(result.columns) == 2
    heads = [("Came up", "num")]
    for which in sides:
        heads += [(capitalized(which) if both else "Bias", "num"), ("Interval", "")]
        heads += [("Groups off", "num")] if result.n_groups else []
    heads += [(f"Worst group{' after' if both else ''}", "")] if result.n_groups else []
    rows = []
    for row in section_rows(result):
        last = row[sides[-1]]
        came = MISSING if last["base_rate"] is None else f"{100.0 * last['base_rate']:.1f} %"
        cells = [Cell(came, "num", "came up")]
        for which in sides:
            side = row[which]
            cells.append(Cell(_points(side["bias"]), _off(f"num {which}", side["off"]), which if both else "bias"))
            cells.append(Cell(interval(side["low"], side["high"]), _off("interval", side["off"]), "interval"))
            if result.n_groups:
                cells.append(Cell(f"{side['groups_off']:,} of {side['groups']:,}", "num", "groups off"))
        if result.n_groups:
            worst = last["worst_group"]
            text = "" if worst is None else f"{shortened(group_name(worst), 30)}: {_points(last['worst_bias'])}"
            cells.append(Cell(text, "", "worst group"))
        rows.append((class_title(row["title"]), tuple(cells)))
    return Table("Class", tuple(heads), tuple(rows))


def class_matrix(result: Result) -> Table:
    """The bias of each class in each group: after, and before in brackets."""
    rows, sides, titles = group_rows(result), list(result.columns), [s.title for s in result.sections[1:]][:N_CLASSES]
    lines = []
    for row in rows[: N_GROUPS + 1]:
        cells = [Cell(count(row["rows"]), "num rows")]
        for title in titles:
            both = row["sections"].get(title, {})
            now, was = both.get(sides[-1]), both.get(sides[0]) if len(sides) == 2 else None
            cells.append(
                Cell(
                    MISSING if now is None else _points(now["bias"]),
                    _off("num", now is not None and now["off"]),
                    shortened(title, 24),
                    "" if now is None else f"interval {interval(now['low'], now['high'])}",
                    "" if was is None else f"({_points(was['bias'])})",
                )
            )
        lines.append((group_name(row["group"]), tuple(cells)))
    heads = (("Rows", "num"), *((class_title(title), "num") for title in titles))
    return Table("Group", heads, tuple(lines), len(result.sections) - 1 - len(titles))


def model_table(result: Result) -> Table:
    """One row for each model: its verdict, bias, loss, and the difference of that from the first."""
    words, rows, lines = result.wording, section_rows(result), []
    kinds = {"fine": "✓ fine", "recalibrate": "↻ recalibrate", "refit": "✕ refit"}
    ordered = any(row["before"]["auc"] is not None for row in rows)
    for row in rows:
        side, pair = row["before"], result.paired.get(row["title"])
        span, worst = (MISSING, ""), side["worst_group"]
        if pair is not None:
            low, middle, high = (relative(v, pair.before) for v in (pair.low, pair.difference, pair.high))
            span = middle, f"{low} to {high}"
        sure = pair is not None and (pair.high < 0 or pair.low > 0)
        told = "" if worst is None else f"{shortened(group_name(worst), 40)}: {words.signed(side['worst_bias'])}"
        cells = [
            Cell(kinds[row["verdict"]], "", "verdict"),
            Cell(f"{side['groups_off']:,} of {side['groups']:,}", "num", "groups off"),
            Cell(words.signed(side["bias"]), "num", "bias"),
            Cell(told, "", "worst group"),
            Cell(precise(side["loss"]), "num", words.loss),
            Cell(span[0], _off("num", sure), "change"),
            Cell(span[1], "interval", "interval"),
        ]
        if ordered:
            cells.append(Cell("" if side["auc"] is None else number(side["auc"]), "num", "AUC"))
        lines.append((row["title"], tuple(cells)))
    heads: tuple[tuple[str, str], ...] = (("Verdict", ""), ("Groups off", "num"), ("Bias", "num"), ("Worst group", ""))
    heads += ((words.loss.capitalize(), "num"), ("Change", "num"), ("95 % interval", ""))
    return Table("Model", heads + ((("AUC", "num"),) if ordered else ()), tuple(lines))


def worst_table(side: ColumnSummary, words: Wording) -> Table:
    """Rows of one group whose forecasts were near each other, the worst first."""
    heads = (("Forecast near", "num"), ("Rows", "num"), ("Bias", ""), ("Interval", ""), ("Beyond doubt", ""))
    rows = tuple(
        (
            group_name(cell.name),
            (
                Cell(number(cell.value), "num", "forecast near"),
                Cell(count(cell.count), "num rows"),
                Cell(words.bias(cell.mean), "", "bias"),
                Cell(words.interval(cell.low, cell.high), "interval", "interval"),
                Cell("yes" if cell.low > 0.0 or cell.high < 0.0 else "no", "extra", "beyond doubt"),
            ),
        )
        for cell in side.worst
    )
    return Table("Group", heads, rows)


def _points(bias: float) -> str:
    return f"{bias:+.2f}".replace("-", MINUS)


# --------
# The heat map as a table: cells that can be pointed at, tapped, or reached with the keyboard.


class HeatCell(NamedTuple):
    """One cell: the role of its color, whether its rows are few, and its numbers in words."""

    role: str
    few: bool
    words: str


class HeatMap(NamedTuple):
    """One side: names of bins (all, and those that are printed under the table), and rows of cells by group."""

    which: str
    label: str
    bins: tuple[str, ...]
    ticks: tuple[str, ...]
    end: str
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    finding: str


def heat_maps(result: Result, limit: int = 40) -> tuple[list[HeatMap], str, int]:
    """Maps of the sides there are, with the same groups, bins and colors; the end of the colors; groups left out."""
    sides, words, order = result.columns, result.wording, cell_order(result.first, limit)
    scale = max(cell_scale(side) for side in sides.values())
    maps = []
    for which, side in sides.items():
        at = range(*_used(list(sides.values())).indices(len(side.edges) - 1))
        bins = tuple(range_text(float(side.edges[i]), float(side.edges[i + 1])) for i in at)
        every = max(1, round(len(bins) / 4))
        # The last name would run into the end of the scale.
        ticks = tuple(
            text.split(" to ")[0] if k % every == 0 and len(bins) - k > every // 2 else ""
            for k, text in enumerate(bins)
        )
        rows = tuple((result.first.groups[j], _heat_cells(side, j, at, bins, scale, words)) for j in order.tolist())
        end = bins[-1].split(" to ")[1] if bins else ""
        maps.append(HeatMap(which, side.label, bins, ticks, end, rows, cell_finding(result, which)))
    end_of_colors = f"{number(scale * words.scale, 2)} {words.unit}".strip()
    return maps, end_of_colors, len(result.first.groups) - len(order)


def _heat_cells(
    side: ColumnSummary, j: int, at: Sequence[int], bins: Sequence[str], scale: float, words: Wording
) -> tuple[HeatCell | None, ...]:
    cells: list[HeatCell | None] = []
    for i, text in zip(at, bins, strict=True):
        n, bias = float(side.counts[i, j]), float(side.bias[i, j])
        if n > 0.0 and np.isfinite(bias):
            told = f"{text} was forecast for {counted(n)}: {words.bias(bias)}"
            cells.append(HeatCell(step_role(step(bias, scale)), n < FEW, told))
        else:
            cells.append(None)
    return tuple(cells)


def _used(sides: list[ColumnSummary]) -> slice:
    """The bins from the first to the last that any side used; all, if the sides have different bins."""
    if len({len(side.edges) for side in sides}) > 1:
        return slice(None)
    at = np.nonzero(np.sum([np.nan_to_num(side.histogram) for side in sides], axis=0))[0]
    return slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(None)


# --------
# Headline numbers.


class Card(NamedTuple):
    """One number, or one before and one after, with a title and a line that says what to make of it."""

    title: str
    before: str
    after: str
    note: str


def cards(result: Result) -> list[Card]:
    """What people ask first: how many groups are off, the worst of them, everybody, losses, and more for each task."""
    if result.kind == "comparison":
        return []
    if result.task == "classes":
        means = [
            Card("Likeliest class came up", *_mean(result, "right"), "share of rows: the accuracy"),
            Card(
                "Its mean probability",
                *_mean(result, "confidence"),
                "equal to the accuracy where it is right on average",
            ),
        ]
        return [*means, *_groups_off(result), *_losses(result)]
    if result.task == "interval":
        return [_everybody(result), *_groups_off(result), *_worst_coverage(result), _width(result), *_losses(result)]
    told = [*_groups_off(result), *_worst_group(result), _everybody(result), *_losses(result)]
    if result.costs is not None:
        losses = [result.costs.before, result.costs.after]
        before, after = ("" if loss is None else precise(loss) for loss in losses)
        told.append(Card("Cost of decisions a row", before, after, result.costs.sentence))
    return [*told, *_scores(result)]


def _texts(result: Result, text: Callable[[ColumnSummary], str]) -> tuple[str, str]:
    """The texts before and after; empty where there is nothing."""
    before, after = ("" if side is None else text(side) for side in (result.before, result.after))
    return before, after


def _mean(result: Result, name: str) -> tuple[str, str]:
    """A mean over all rows in percent, before and after."""
    sides = [result.first.means.get(which) for which in ("before", "after")]
    before, after = ("" if side is None else coverage_text(float(side[name][0])) for side in sides)
    return before, after


def _groups_off(result: Result) -> list[Card]:
    n = max(side.known_groups.n_used for side in result.columns.values())
    if not n:
        return []
    of, note = n * len(result.sections), ""
    if result.task == "classes":
        note = f": {counted(n, 'group')} for the likeliest and every class"
    before, after = (
        count(sum(section.columns[which].known_groups.n_significant for section in result.sections))
        if which in result.columns
        else ""
        for which in ("before", "after")
    )
    return [Card("Groups off beyond doubt", before, after, f"of {count(of)}{note}")]


def _worst_group(result: Result) -> list[Card]:
    """The worst group of the model, or of swapcal's forecasts where there is no model, on both sides."""
    groups, words = result.first.leading.known_groups, result.wording
    worst = groups.ranked()
    if not len(worst):
        return []
    j = int(worst[0])

    def told(side: ColumnSummary) -> str:
        mean = side.known_groups.mean
        return signed(words.scale * float(mean[j]), 2) if j < len(mean) else MISSING

    unit = ", ".join(part for part in (words.noun, words.unit) if part)
    name, kind = (
        shortened(group_name(groups.name[j]), 48),
        "off beyond doubt" if groups.significant[j] else "may be chance",
    )
    note = f"{f'{unit}, ' if unit else ''}{name}, {counted(groups.rows[j])}; {kind}"
    return [Card("Bias of the worst group", *_texts(result, told), note)]


def _worst_coverage(result: Result) -> list[Card]:
    rows = group_rows(result)[1:2]
    told = []
    for row in rows:
        before, after = (coverage_text(row[w]["coverage"]) if w in row else "" for w in ("before", "after"))
        note = f"{shortened(group_name(row['group']), 48)}, {counted(row['rows'])}"
        told.append(Card("Coverage of the worst group", before, after, note))
    return told


def _everybody(result: Result) -> Card:
    words, level = result.wording, result.wording.coverage
    if level is not None:
        shares = _texts(result, lambda side: coverage_text(level + float(side.known_groups.mean[0])))
        return Card("Coverage of all rows", *shares, f"{percent(level)} was asked for")
    biases = _texts(result, lambda side: signed(words.scale * float(side.known_groups.mean[0]), 2))
    groups = list(result.columns.values())[-1].known_groups
    note = f"interval {words.interval(float(groups.low[0]), float(groups.high[0]))}"
    return Card("Bias of all rows", *biases, note)


def _width(result: Result) -> Card:
    widths = [float(some["width"][0]) for some in result.first.means.values()]
    before, after = ["", *map(precise, widths)][-2:]
    return Card("Mean width", before, after, (len(widths) == 2 and change(*widths)) or "in units of the outcome")


def _losses(result: Result) -> list[Card]:
    """The losses before and after with the interval of the change; without it, what they are."""
    told = []
    for name, pair in result.paired.items():
        low, middle, high = (relative(v, pair.before) for v in (pair.low, pair.difference, pair.high))
        note = f"{middle} ({percent(pair.confidence)} interval {low} to {high})"
        told.append(Card(capitalized(name), precise(pair.before), precise(pair.after), note))
    if told:
        return told
    if result.task == "classes":
        means = {"Brier score of all classes": "brier", "Log loss": "log_loss"}
        last = list(result.first.means.values())[-1]
        return [Card(title, "", precise(float(last[name][0])), "lower is better") for title, name in means.items()]
    best = [side.constant_loss for side in result.columns.values()][-1]
    constant = "" if best is None or result.task == "interval" else f"; the best constant forecast has {precise(best)}"
    losses = _texts(result, lambda side: precise(side.loss))
    return [Card(capitalized(result.wording.loss), *losses, f"lower is better{constant}")]


def _scores(result: Result) -> list[Card]:
    known = [side.scores for side in result.columns.values() if side.scores is not None]
    if not known:
        return []
    auc = _texts(result, lambda side: "" if side.scores is None or side.scores.auc is None else number(side.scores.auc))
    logs = _texts(result, lambda side: "" if side.scores is None else precise(side.scores.log_loss))
    parts = (
        f"Brier score = miscalibration {number(known[-1].miscalibration, 2)} {MINUS} discrimination "
        f"{number(known[-1].discrimination, 2)} + uncertainty {number(known[-1].uncertainty, 2)}"
    )
    return [Card("AUC", *auc, "0.5 is chance, 1 is perfect order"), Card("Log loss", *logs, parts)]


def error_cards(result: Result) -> list[Card]:
    """The totals of the guarantee: errors, and what chance and the guarantee allow."""
    side = list(result.columns.values())[-1]
    total = float(result.counts.scored) if side.weight is None else side.weight
    typical = ""
    if total > 0.0 and side.swap_error >= 0.0:
        size = result.wording.size(float(np.power(side.swap_error / total, 1.0 / result.r)))
        typical = f"as if every row were off by {size}"
    told = [
        _error(result, "swap_error", typical),
        *_chance(result),
        _guarantee(result),
        _error(result, "group_error", ""),
        _error(result, "overall_error", ""),
    ]
    return told


def _error(result: Result, field: str, note: str) -> Card:
    values = [None if side is None else float(getattr(side, field)) for side in (result.before, result.after)]
    # What rounding leaves of zero is zero.
    before, after = ("" if value is None else number(value if value > 1e-9 else 0.0 * value) for value in values)
    parts = [change(values[0], values[1])] if values[0] is not None and values[1] is not None else []
    return Card(capitalized(QUANTITIES[field]), before, after, "; ".join(part for part in (*parts, note) if part))


def _guarantee(result: Result) -> Card:
    root, promise = number(float(np.cbrt(max(result.counts.scored, 0)))), result.guarantee
    why = "" if promise is None or not promise.reason else f"; {promise.reason}"
    if promise is None or promise.bound is None:
        return Card("Yardstick", "", root, f"T^(1/3), the rate of the guarantee{why}")
    note = f"swap error, whatever the stream does{why}; T^(1/3) is {root} for this many rows"
    return Card(capitalized(QUANTITIES["guarantee"]), "", number(promise.bound), note)


def _chance(result: Result) -> list[Card]:
    """What calibrated forecasts would show, where it is known."""
    texts = _texts(result, lambda side: "" if side.chance_mean is None else number(side.chance_mean))
    if not any(texts):
        return []
    highs = [side.chance_high for side in result.columns.values() if side.chance_high is not None]
    most = f", at most {number(highs[-1])} in 95 of 100 streams" if highs else ""
    return [Card(capitalized(QUANTITIES["chance_mean"]), *texts, f"of calibrated forecasts{most}")]


def row_sentence(result: Result) -> str:
    """How much there was, in a sentence."""
    counts, groups = result.first.counts or result.counts, counted(result.n_groups, "group")
    if result.kind == "comparison":
        return f"{count(counts.scored)} rows with an outcome."
    what = {
        "scalar": f" with an outcome, {groups}",
        "interval": f" with an outcome and an interval, {groups}",
        "classes": f" with an outcome, {counted(len(result.sections) - 1, 'class', 'classes')}, {groups}",
    }[result.task]
    text = f"{counted(counts.scored)}{what}"
    if result.task == "scalar" and counts.without_outcome:
        text += f"; {counted(counts.without_outcome, 'more row')} without an outcome"
    if result.task == "scalar" and counts.outcomes_outside:
        were = "was" if counts.outcomes_outside == 1 else "were"
        text += f"; {counted(counts.outcomes_outside, 'outcome')} outside the range {were} moved to its end"
    return f"{text}."
