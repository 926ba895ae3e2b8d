"""The tables of the page, as texts: headline numbers, groups, sections, and the cells of the heat map."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from swapcal.audits.summary import ColumnSummary
from swapcal.properties.base import Wording
from swapcal.report.drawing import step, step_role
from swapcal.report.figures import FEW
from swapcal.tasks.result import Result, Section, group_rows, section_rows
from swapcal.text.numbers import (
    MINUS,
    MISSING,
    QUANTITIES,
    aligned,
    capitalized,
    change,
    count,
    counted,
    group_name,
    interval,
    number,
    percent,
    points,
    precise,
    shortened,
    signed,
)
from swapcal.text.verdict import class_title, coverage_text, per_round
from swapcal.typing import IntArray


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


class Column(NamedTuple):
    """A column of a table: its head, and how its cells are made of rows.

    make: the text of a row's cell; or a tuple of the text, whether it is bold, and further fields of `Cell`. label:
    what it is called on a phone; the head in small letters unless given. sort, hidden: of a table of groups.
    """

    head: str
    make: Callable[[Any], str | tuple[Any, ...]]
    css: str = "num"
    label: str | None = None
    sort: str = ""
    hidden: str = ""

    def cell(self, row: Any) -> Cell:
        """The cell of a row; of None, where there is no number."""
        label = self.head.lower() if self.label is None else self.label
        if row is None:
            return Cell(MISSING if self.css.startswith("num") else "", self.css, label)
        content = self.make(row)
        text, bold, *more = (content, False) if isinstance(content, str) else content
        return Cell(text, f"{self.css} off" if bold else self.css, label, *more)


def _table(
    first: str, names: Iterable[str], columns: Sequence[Column], rows: Iterable[Any], left_out: int = 0
) -> Table:
    heads = tuple((column.head, "num" if column.css.startswith("num") else "") for column in columns)
    lines = ((name, tuple(column.cell(row) for column in columns)) for name, row in zip(names, rows, strict=True))
    return Table(first, heads, tuple(lines), left_out)


# --------
# All groups, to be sorted, searched and downloaded: numbers, and a dot with its interval.

# Groups that the page holds; the others are in the JSON.
MOST = 800


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

    zero, low, high: of the strip, which a table of several models does not have.
    """

    heads: tuple[tuple[str, str, str], ...]
    rows: tuple[GroupRow, ...]
    zero: float | None
    low: str
    high: str
    left_out: int


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
    if result.kind != "comparison":
        marks, zero, low, high = _strip(shown, words)
    columns = {key: _group_columns(result, key, title, both=len(parts) > 1) for key, title, _ in parts}
    lines = []
    for row, sides, mark in zip(rows, shown, marks, strict=False):
        cells = tuple(column.cell(side) for key, side in sides.items() for column in columns[key])
        lines.append(GroupRow(row["group"], row["rows"], _data(sides), mark, cells))
    heads = tuple((one.head, one.sort, one.hidden) for some in columns.values() for one in some)
    return GroupTable(heads, tuple(lines), zero, low, high, len(rows) - len(shown))


def _group_columns(result: Result, key: str, title: str, *, both: bool) -> list[Column]:
    """The columns of one side, or of one model that is compared."""
    words = result.wording
    if result.kind == "comparison":
        label, sort = shortened(title, 24), f"{key}-bias"
        bias = Column(title, lambda side: (words.signed(side["bias"]), side["off"], _span(side)), "num", label, sort)
        loss = Column("Loss", _loss_cell, "num", f"{label}, loss", f"{key}-loss")
        return [bias] if key == "m0" else [bias, loss]
    name, sort = capitalized(key) if both else "", f"{key}-bias"
    head = f"{name}, coverage" if both else "Coverage"
    if result.task == "interval":

        def covered(side: dict[str, Any]) -> tuple[str, bool, str]:
            return coverage_text(side["coverage"]), side["off"], f"{words.signed(side['bias'])} points, {_span(side)}"

        width = Column("Width", lambda side: number(side["width"]), sort=f"{key}-width")
        score = Column("Score", lambda side: number(side["score"]), "num extra", sort=f"{key}-score")
        return [Column(head, covered, f"num {key}", sort=sort), width, score]

    def span(side: dict[str, Any]) -> tuple[str, bool, str, str]:
        since = f"since {side['since']}" if "since" in side else ""
        return _ends(side["low"], side["high"], words), side["off"], "", since

    def told_span(side: dict[str, Any]) -> str:
        return ", ".join(part for part in (_ends(side["low"], side["high"], words), span(side)[3]) if part)

    coverage = [Column(head, lambda side: coverage_text(side["coverage"]), sort=sort)]
    told = []
    if words.coverage is None and any("predicted" in section.means.get(key, {}) for section in result.sections):
        head = f"Predicted {key}" if both else "Predicted"
        told = [
            Column(head, lambda side: _level(side["predicted"], words), f"num {key} extra", sort=f"{key}-predicted")
        ]
        if key == next(iter(result.columns)):
            seen = Column("Observed", lambda side: _level(side["observed"], words), "num extra", sort=f"{key}-observed")
            told = [seen, *told]
    bias = Column(
        f"Bias {key}" if both else "Bias",
        lambda side: (words.signed(side["bias"]), side["off"], "", told_span(side) if both else ""),
        f"num {key}",
        sort=sort,
    )
    ends = Column("95 % CI", span, "interval", sort=f"{key}-near", hidden=key if both else "")
    return [*(coverage if words.coverage is not None else told), bias, *([] if both else [ends])]


def _level(value: float, words: Wording) -> str:
    """A prediction or what came: in percent where biases are in points."""
    return f"{100.0 * value:.1f} %" if words.scale == 100.0 else number(value)


def _ends(low: float, high: float, words: Wording) -> str:
    """An interval of a bias that is in the units of people already."""
    if words.scale == 100.0 and np.isfinite(low) and np.isfinite(high):
        return f"{points(low)} to {points(high)}"
    return interval(low, high)


def _span(side: dict[str, Any], name: str = "") -> str:
    return f"interval {interval(side[f'{name}low'], side[f'{name}high'])}"


def _loss_cell(side: dict[str, Any]) -> str | tuple[str, bool, str]:
    if "loss" not in side:
        return MISSING
    bold = side["loss_low"] > 0 or side["loss_high"] < 0
    return aligned([side["loss"], side["loss_low"], side["loss_high"]], sign=True)[0], bold, _span(side, "loss_")


def _data(sides: dict[str, dict[str, Any] | None]) -> dict[str, str]:
    """The numbers of a group as they are, by side and name."""
    data = {}
    for key, side in sides.items():
        for name in ("predicted", "observed", "bias", "low", "high", "loss", "coverage", "width", "score"):
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
    numbers = [_finite(side["bias"]) for side in sides]
    numbers += [_finite(side[end]) for side in sides if side["off"] for end in ("low", "high")]
    least = min(0.0, float(np.quantile(ends, 0.02)), *numbers)
    greatest = max(0.0, float(np.quantile(ends, 0.98)), *numbers)
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

# Groups and classes of the table of both.
N_GROUPS, N_CLASSES = 25, 12


def _worst_of(side: dict[str, Any], number_text: Callable[[float], str], width: int) -> str:
    """The worst group of a section, with its bias."""
    name = side["worst_group"]
    return "" if name is None else f"{shortened(group_name(name), width)}: {number_text(side['worst_bias'])}"


def _off_of(side: dict[str, Any]) -> str:
    return f"{side['groups_off']:,} of {side['groups']:,}"


def class_table(result: Result) -> Table:
    """One row for the likeliest class and for each class."""
    sides, both, last = list(result.columns), len(result.columns) == 2, list(result.columns)[-1]

    def came(row: dict[str, Any]) -> str:
        return MISSING if row[last]["base_rate"] is None else coverage_text(row[last]["base_rate"])

    def of_side(which: str) -> list[Column]:
        bias = Column(
            capitalized(which) if both else "Bias",
            lambda row: (_points(row[which]["bias"]), row[which]["off"]),
            f"num {which}",
        )
        ends = Column(
            "Interval", lambda row: (interval(row[which]["low"], row[which]["high"]), row[which]["off"]), "interval"
        )
        return [bias, ends, *([Column("Biased groups", lambda row: _off_of(row[which]))] if result.n_groups else [])]

    columns = [Column("Came up", came), *(column for which in sides for column in of_side(which))]
    if result.n_groups:
        head = f"Worst group{' after' if both else ''}"
        columns.append(Column(head, lambda row: _worst_of(row[last], _points, 30), "", "worst group"))
    rows = section_rows(result)
    return _table("Class", (class_title(row["title"]) for row in rows), columns, rows)


def class_matrix(result: Result) -> Table:
    """The bias of each class in each group: after, and before in brackets."""
    rows, sides, titles = group_rows(result), list(result.columns), [s.title for s in result.sections[1:]][:N_CLASSES]

    def of_class(title: str) -> Column:
        def bias(row: dict[str, Any]) -> str | tuple[str, bool, str, str]:
            both = row["sections"].get(title, {})
            now, was = both.get(sides[-1]), both.get(sides[0]) if len(sides) == 2 else None
            if now is None:
                return MISSING
            return _points(now["bias"]), now["off"], _span(now), "" if was is None else f"({_points(was['bias'])})"

        return Column(class_title(title), bias, "num", shortened(title, 24))

    columns = [Column("Rows", lambda row: count(row["rows"]), "num rows", ""), *map(of_class, titles)]
    some = rows[: N_GROUPS + 1]
    names = (group_name(row["group"]) for row in some)
    return _table("Group", names, columns, some, len(result.sections) - 1 - len(titles))


def model_table(result: Result) -> Table:
    """One row for each model: its verdict, bias, loss, and the difference of that from the first."""
    words, rows = result.wording, section_rows(result)

    def change(row: dict[str, Any]) -> str | tuple[str, bool]:
        pair = result.paired.get(row["title"])
        return MISSING if pair is None else (pair.relative[1], pair.high < 0 or pair.low > 0)

    def span(row: dict[str, Any]) -> str:
        pair = result.paired.get(row["title"])
        return "" if pair is None else f"{pair.relative[0]} to {pair.relative[2]}"

    columns = [
        Column("Verdict", lambda row: str(row["verdict"]), ""),
        Column("Biased groups", lambda row: _off_of(row["before"])),
        Column("Bias", lambda row: words.signed(row["before"]["bias"])),
        Column("Worst group", lambda row: _worst_of(row["before"], words.signed, 40), ""),
        Column(words.loss.capitalize(), lambda row: precise(row["before"]["loss"]), "num", words.loss),
        Column("Change", change),
        Column("95 % CI", span, "interval", "interval"),
    ]
    if any(row["before"]["auc"] is not None for row in rows):
        columns.append(
            Column(
                "AUC", lambda row: "" if row["before"]["auc"] is None else f"{row['before']['auc']:.3f}", "num", "AUC"
            )
        )
    return _table("Model", (row["title"] for row in rows), columns, rows)


# Groups whose corrections are listed.
N_MOVED = 12


def correction_table(result: Result) -> Table | None:
    """How far the predictions of each group were moved; None where there is nothing to compare, or none was."""
    rows = [
        row for row in group_rows(result) if all("predicted" in row.get(which, {}) for which in ("before", "after"))
    ]
    rows = [row | {"moved": row["after"]["predicted"] - row["before"]["predicted"]} for row in rows]
    if not any(row["moved"] for row in rows):
        return None
    words, (first, *others) = result.wording, rows
    rows = [first, *sorted(others, key=lambda row: -abs(row["moved"]))[:N_MOVED]]
    unit = 100.0 if words.scale == 100.0 else 1.0
    columns = (
        Column("Rows", lambda row: count(row["rows"]), "num rows", ""),
        Column("Before", lambda row: _level(row["before"]["predicted"], words), "num before"),
        Column("After", lambda row: _level(row["after"]["predicted"], words), "num after"),
        Column("Moved by", lambda row: words.signed(unit * row["moved"])),
        Column("Observed", lambda row: _level(row["after"]["observed"], words)),
    )
    return _table("Group", (group_name(row["group"]) for row in rows), columns, rows, len(others) + 1 - len(rows))


def worst_table(side: ColumnSummary, words: Wording) -> Table:
    """Rows of one group whose forecasts were near each other, the worst first."""
    columns = (
        Column("Forecast near", lambda cell: number(cell.value)),
        Column("Rows", lambda cell: count(cell.count), "num rows", ""),
        Column("Bias", lambda cell: words.bias(cell.mean), ""),
        Column("Interval", lambda cell: words.interval(cell.low, cell.high), "interval"),
        Column("Biased", lambda cell: "yes" if cell.low > 0.0 or cell.high < 0.0 else "no", "extra"),
    )
    return _table("Group", (group_name(cell.name) for cell in side.worst), columns, side.worst)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)


def _points(bias: float) -> str:
    return points(bias)


# --------
# The heat map as a table: cells that can be pointed at, tapped, or reached with the keyboard.


class HeatCell(NamedTuple):
    """One cell: the role of its color, whether its rows are few, and its numbers in words."""

    role: str
    few: bool
    words: str


class HeatMap(NamedTuple):
    """One side: names of bins (all, and those that are printed under the table), and rows of cells by group.

    end: of the bins. limit: the bias at which colors end.
    """

    which: str
    bins: tuple[str, ...]
    ticks: tuple[str, ...]
    end: str
    limit: str
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    finding: str


def heat_maps(result: Result, limit: int = 40) -> list[HeatMap]:
    """Maps of the sides there are, with the same groups, bins and colors."""
    sides, words, order = result.columns, result.wording, _cell_order(result.first, limit)
    scale = max(_cell_scale(side) for side in sides.values())
    colors, maps = f"{number(scale * words.scale, 2)} {words.unit}".strip(), []
    for which, side in sides.items():
        at = range(*_used(list(sides.values())).indices(len(side.edges) - 1))
        ends = [number(float(edge)) for edge in side.edges]
        bins = tuple(f"{ends[i]} to {ends[i + 1]}" for i in at)
        every = max(1, round(len(bins) / 4))
        # The last name would run into the end of the scale.
        ticks = tuple(ends[i] if k % every == 0 and len(at) - k > every // 2 else "" for k, i in enumerate(at))
        rows = tuple((result.first.groups[j], _heat_cells(side, j, at, bins, scale, words)) for j in order.tolist())
        end = ends[at[-1] + 1] if bins else ""
        maps.append(HeatMap(which, bins, ticks, end, colors, rows, _cell_finding(result, which)))
    return maps


def _cell_order(section: Section, limit: int) -> IntArray:
    """Positions of the groups that are drawn: "all" first, then the worst first, then linear functions."""
    groups = section.leading.groups
    linear = range(len(groups.name), len(section.groups))
    return np.array([0, *groups.ranked().tolist(), *linear], dtype=np.int64)[:limit]


def _cell_scale(side: ColumnSummary) -> float:
    """The bias at which colors end: the 0.98 quantile over cells with enough rows, as one cell must not decide."""
    size = np.abs(side.bias[np.isfinite(side.bias) & (side.counts >= FEW)])
    if not len(size):
        size = np.abs(side.bias[np.isfinite(side.bias)])
    return max(float(np.quantile(size, 0.98)), 1e-9) if len(size) else 1.0


def _cell_finding(result: Result, which: str) -> str:
    """The largest bias of a cell with enough rows, in a sentence."""
    side = result.columns[which]
    chance = _most_by_chance(side)
    enough = np.isfinite(side.bias) & (side.counts >= FEW)
    enough &= np.abs(np.nan_to_num(side.bias)) > chance * side.typical / np.sqrt(np.maximum(side.counts, 1.0))
    start = f"Bias by forecast and group, {side.label}: "
    if not enough.any():
        return f"{start}no cell with {FEW} rows or more is off by more than chance would give."
    i, j = np.unravel_index(int(np.argmax(np.where(enough, np.abs(side.bias), -1.0))), side.bias.shape)
    low, high = number(float(side.edges[i])), number(float(side.edges[i + 1]))
    where = f"{group_name(result.first.groups[j])} where {low} to {high} was forecast"
    return (
        f"{start}{counted(float(enough.sum()), 'cell')} off by more than chance would give, most for {where}: "
        f"{result.wording.bias(float(side.bias[i, j]))}."
    )


def _most_by_chance(side: ColumnSummary) -> float:
    """What the largest of all cells of calibrated forecasts shows in at most a tenth of files, in standard errors."""
    return float(np.sqrt(2.0 * np.log(20.0 * max(int(np.count_nonzero(side.counts > 0)), 1))))


def _heat_cells(
    side: ColumnSummary, j: int, at: Sequence[int], bins: Sequence[str], scale: float, words: Wording
) -> tuple[HeatCell | None, ...]:
    cells: list[HeatCell | None] = []
    chance = _most_by_chance(side)
    for i, text in zip(at, bins, strict=True):
        n, bias = float(side.counts[i, j]), float(side.bias[i, j])
        if n > 0.0 and np.isfinite(bias):
            sentence = f"{text} was forecast for {counted(n)}: {words.bias(bias)}"
            sure = abs(bias) > chance * side.typical / np.sqrt(n)
            cells.append(HeatCell(step_role(step(bias, scale) if sure else 0), n < FEW, sentence))
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
    """What people ask first: how many groups are off, the worst of them, all rows, losses, and more for each task."""
    if result.kind == "comparison":
        return []
    if result.task == "classes":
        equal = "equal to the accuracy where it is right on average"
        right = Card("Likeliest class came up", *_mean(result, "right"), "share of rows: the accuracy")
        sure = Card("Its mean probability", *_mean(result, "confidence"), equal)
        return [right, sure, *_groups_off(result), *_losses(result)]
    worst = [_worst_group(result)] if result.first.leading.groups.n_used else []
    if result.task == "interval":
        return [_everybody(result), *_groups_off(result), *worst, _width(result), *_losses(result)]
    cards = [*_groups_off(result), *worst, *_losses(result), _everybody(result)]
    if result.costs is not None:
        losses = [result.costs.before, result.costs.after]
        before, after = ("" if loss is None else precise(loss) for loss in losses)
        cards.append(Card("Cost of decisions a row", before, after, result.costs.sentence))
    return [*cards, *_scores(result)]


def _texts(result: Result, text: Callable[[str, ColumnSummary], str]) -> tuple[str, str]:
    """The texts before and after, of the side's name and summary; empty where there is nothing."""
    sides = result.columns
    before, after = (text(which, sides[which]) if which in sides else "" for which in ("before", "after"))
    return before, after


def _mean(result: Result, name: str) -> tuple[str, str]:
    """A mean over all rows in percent, before and after."""
    return _texts(result, lambda which, _: coverage_text(float(result.first.means[which][name][0])))


def _groups_off(result: Result) -> list[Card]:
    n = max(side.groups.n_used for side in result.columns.values())
    if not n:
        return []
    of, note = n * len(result.sections), ""
    if result.task == "classes":
        note = f": {counted(n, 'group')} for the likeliest and every class"
    sections = result.sections
    texts = _texts(result, lambda which, _: count(sum(one.columns[which].groups.n_biased for one in sections)))
    return [Card("Biased groups", *texts, f"of {count(of)}{note}")]


def _worst_group(result: Result) -> Card:
    """The worst group of the model, or of swapcal's forecasts where there is no model, on both sides."""
    row, words, covers = group_rows(result)[1], result.wording, result.task == "interval"

    def told(which: str, _: ColumnSummary) -> str:
        if which not in row:
            return MISSING
        return coverage_text(row[which]["coverage"]) if covers else words.signed(row[which]["bias"])

    name, texts = f"{shortened(group_name(row['group']), 48)}, {counted(row['rows'])}", _texts(result, told)
    if covers:
        return Card("Coverage of the worst group", *texts, name)
    off = [which for which in result.columns if which in row and row[which]["off"]]
    when = f" {' and '.join(off)}" if len(result.columns) > 1 else ""
    doubt = f"biased{when}" if off else "may be chance"
    about = ", ".join(part for part in (words.noun, words.unit, name) if part)
    return Card("Bias of the worst group", *texts, f"{about}; {doubt}")


def _everybody(result: Result) -> Card:
    words, level = result.wording, result.wording.coverage
    if level is not None:
        shares = _texts(result, lambda _, side: coverage_text(level + float(side.groups.mean[0])))
        return Card("Coverage of all rows", *shares, f"{percent(level)} was asked for")
    biases = _texts(result, lambda _, side: words.signed(words.scale * float(side.groups.mean[0])))
    groups = list(result.columns.values())[-1].groups
    note = f"95 % CI {words.interval(float(groups.low[0]), float(groups.high[0]))}"
    return Card("Bias of all rows", *biases, note)


def _width(result: Result) -> Card:
    widths = [float(some["width"][0]) for some in result.first.means.values()]
    before, after = ["", *map(precise, widths)][-2:]
    return Card("Mean width", before, after, (len(widths) == 2 and change(*widths)) or "in units of the outcome")


def _losses(result: Result) -> list[Card]:
    """The losses before and after with the interval of the change; without it, what they are."""
    if result.paired:
        pairs = result.paired.items()
        return [Card(capitalized(name), precise(pair.before), precise(pair.after), pair.change) for name, pair in pairs]
    if result.task == "classes":
        means = {"Brier score of all classes": "brier", "Log loss": "log_loss"}
        last = list(result.first.means.values())[-1]
        return [Card(title, "", precise(float(last[name][0])), "lower is better") for title, name in means.items()]
    best = [side.constant_loss for side in result.columns.values()][-1]
    constant = "" if best is None or result.task == "interval" else f"; the best constant has {precise(best)}"
    losses = _texts(result, lambda _, side: precise(side.loss))
    return [Card(capitalized(result.wording.loss), *losses, f"lower is better{constant}")]


def _scores(result: Result) -> list[Card]:
    """Of outcomes 0 and 1."""
    known = {which: side.scores for which, side in result.columns.items() if side.scores is not None}
    if not known:
        return []
    last = list(known.values())[-1]
    aucs = {which: "" if one.auc is None else f"{one.auc:.3f}" for which, one in known.items()}
    auc = _texts(result, lambda which, _: aucs.get(which, ""))
    logs = _texts(result, lambda which, _: precise(known[which].log_loss) if which in known else "")
    parts = (
        f"Brier score = miscalibration {number(last.miscalibration, 2)} {MINUS} discrimination "
        f"{number(last.discrimination, 2)} + uncertainty {number(last.uncertainty, 2)}"
    )
    order = Card("AUC", *auc, "0.5 is chance, 1 is perfect order")
    return [order, Card("Log loss", *logs, parts)]


def error_cards(result: Result) -> list[Card]:
    """The totals of the guarantee: errors, and what chance and the guarantee allow."""
    side, typical = list(result.columns.values())[-1], ""
    if side.weight > 0.0 and side.swap_error >= 0.0:
        size = result.wording.size(per_round(side.swap_error, side, result.r))
        typical = f"as if every row were off by {size}"
    others = (_error(result, name) for name in ("group_error", "overall_error"))
    return [_error(result, "swap_error", typical), *_chance(result), _guarantee(result), *others]


def _error(result: Result, field: str, note: str = "") -> Card:
    # What rounding leaves of zero is zero.
    sizes = {which: float(getattr(side, field)) for which, side in result.columns.items()}
    texts = _texts(result, lambda which, _: number(sizes[which] if sizes[which] > 1e-9 else 0.0 * sizes[which]))
    changed = change(*sizes.values()) if len(sizes) == 2 else ""
    return Card(capitalized(QUANTITIES[field]), *texts, "; ".join(part for part in (changed, note) if part))


def _guarantee(result: Result) -> Card:
    root, promise = number(float(np.cbrt(max(result.counts.scored, 0)))), result.guarantee
    why = "" if promise is None or not promise.reason else f"; {promise.reason}"
    if promise is None or promise.bound is None:
        return Card("Yardstick", "", root, f"T^(1/3), the rate of the guarantee{why}")
    note = f"swap error, whatever the stream does{why}; T^(1/3) is {root} for this many rows"
    return Card(capitalized(QUANTITIES["guarantee"]), "", number(promise.bound), note)


def _chance(result: Result) -> list[Card]:
    """What calibrated forecasts would show, where it is known."""
    texts = _texts(result, lambda _, side: _number(side.chance_mean))
    if not any(texts):
        return []
    highs = [side.chance_high for side in result.columns.values() if side.chance_high is not None]
    most = f", at most {number(highs[-1])} in 95 of 100 streams" if highs else ""
    return [Card(capitalized(QUANTITIES["chance_mean"]), *texts, f"of calibrated forecasts{most}")]
