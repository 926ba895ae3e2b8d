"""Results in the terminal: the verdict first, then sections and groups, then the numbers behind it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.audits.summary import ColumnSummary
from swapcal.errors import DataError, MissingExtra
from swapcal.properties.base import Wording
from swapcal.tasks.result import Result, above, group_rows, parse_threshold, section_rows, to_json
from swapcal.text.numbers import (
    MISSING,
    QUANTITIES,
    aligned,
    cleaned,
    count,
    counted,
    group_name,
    interval,
    number,
    percent,
    precise,
    printable,
    rate_name,
    relative,
    shortened,
    signed,
)
from swapcal.text.sentences import notes
from swapcal.text.summary import headline, summary
from swapcal.text.verdict import TONES, class_title, coverage_text, per_round

WIDTH = 80
# Rows of the tables.
N_GROUPS, N_SECTIONS, N_WORST = 12, 21, 5
# Columns that a name has at least.
LEAST = 12
ERRORS = ("swap_error", "group_error", "overall_error", "chance_mean")
BADGES = {"good": "bold white on green", "unsure": "bold black on yellow", "bad": "bold white on red"}

Columns = dict[str, list[str]]


class Shown(NamedTuple):
    """What a command prints of its result: JSON, the first line, all groups, or also what is behind it."""

    json: bool = False
    quiet: bool = False
    every: bool = False
    verbose: bool = False


def show(result: Result, shown: Shown, *, report: Path | None, fail_above: str | None, last: str | None = None) -> None:
    """The end of a command: the page, the result as JSON or as lines with a `last` one, and the exit code 1."""
    page = None if report is None else save_page(result, report)
    wrote = [printable(line) for line in (None if page is None else f"Wrote {page}", last) if line is not None]
    if shown.json:
        typer.echo(to_json(result))
    elif shown.quiet:
        typer.echo(headline(result))
    else:
        console, kind = Console(highlight=False), result.verdict.kind
        first, *rest = summary(result, every=shown.every, wrote=wrote)
        head = Text(first)
        head.stylize(BADGES[result.verdict.tone], 0, len(kind))
        console.print(head, soft_wrap=True)
        for line in rest:
            console.print(Text(line), soft_wrap=True)
        if shown.verbose:
            console.print(Text(), view(cleaned(result), console.width))
    if fail_above is None:
        return
    threshold = parse_threshold(fail_above)
    sentences = {section.title: above(result, threshold, section) for section in result.sections}
    for title, sentence in sentences.items():
        if sentence is not None:
            whose = f"{class_title(title)}: " if result.task == "classes" else ""
            typer.echo(printable(f"{whose}{sentence}"), err=True)
    if any(sentences.values()):
        raise typer.Exit(1)


def save_page(result: Result, path: Path) -> Path:
    """Write the page; its directory must be there."""
    try:
        from swapcal.report.page import write
    except ImportError as error:
        name = error.name or "more packages"
        raise MissingExtra(f"the page needs {name}: install with  pip install 'swapcal[cli]'") from None
    try:
        write(result, path)
    except OSError as error:
        raise DataError(f"the page cannot be written to {path}: {error.strerror or error}") from None
    return path


def plain(data: dict[str, Any]) -> str:
    """Plain data as JSON."""
    return json.dumps(data, ensure_ascii=False)


def view(result: Result, width: int = WIDTH) -> RenderableType:
    """What is behind a verdict, within `width` columns: sentences, sections, groups, then the rest."""
    verdict = result.verdict
    parts: list[RenderableType] = [facts(result), Text()]
    parts += [Padding(bullet(each), (0, 1)) for each in verdict.sentences]
    parts += [_classes(result, width)] if result.task == "classes" else []
    if result.kind == "comparison":
        return Group(*parts, _models(result), _groups_of_models(result, width))
    if result.task != "classes" or result.n_groups:
        table = groups_view(result, width)
        parts += [] if table is None else [table]
    if result.task != "scalar":
        return Group(*parts, *_notes(result))
    columns = list(result.columns.values())
    shown = columns[-1] if result.kind == "run" else columns[0]
    parts += _scores(result)
    parts += [_worst(shown, result.wording, width)] if shown.worst else []
    totals = _beside(result, columns[0], columns[1]) if len(columns) == 2 else _totals(result, shown)
    return Group(*parts, *_notes(result), Text(), totals)


def facts(result: Result) -> Text:
    """The file, what was forecast, and for how many."""
    what = {
        "scalar": result.wording.name,
        "interval": f"{percent(result.wording.coverage or 0.0)} intervals",
        "classes": counted(len(result.sections) - 1, "class", "classes"),
    }[result.task]
    source = result.source if len(result.source) <= WIDTH // 3 else Path(result.source).name
    rows = (result.first.counts or result.counts).scored
    groups = counted(result.n_groups, "group") if result.n_groups else "no groups"
    return Text(f" {source}: {what} of {result.y}, {counted(rows)}, {groups}", style="dim")


def bullet(sentence: str) -> Table:
    """A sentence behind a dash, its lines below each other."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid


def _notes(result: Result) -> list[RenderableType]:
    return [Text(), *(Padding(Text(note, style="dim"), (0, 1)) for note in notes(result))]


# --------
# Tables: a name at the left, which is cut, and columns of numbers, which are not.


def _table(title: str = "") -> Table:
    return Table(
        box=box.SIMPLE_HEAD, padding=(0, 1), title=title, title_justify="left", title_style="bold", show_edge=False
    )


def _filled(
    table: Table,
    head: str,
    names: Sequence[str],
    columns: Columns,
    width: int,
    *,
    optional: Sequence[str] = (),
    room: int = LEAST,
    bold: Sequence[bool] = (),
    n_rows: int = 0,
) -> Table:
    """The table with a row for each name; columns in `optional` give way, in that order, where names have no room."""
    giving = [name for name in optional if name in columns]
    while (left := width - sum(3 + max(map(len, [name, *column])) for name, column in columns.items()) - 2) < room:
        if not giving:
            break
        del columns[giving.pop(0)]
    table.add_column(head, overflow="ellipsis", no_wrap=True, max_width=max(left, LEAST))
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for k, name in enumerate(names):
        style = "bold" if bold and bold[k] else ""
        cells = (Text(column[k], style=style) for column in columns.values())
        table.add_row(Text(shortened(name, max(left, LEAST)), style=style), *cells)
    if n_rows > len(names):
        table.caption, table.caption_justify = f"{count(n_rows - len(names))} more with --report or --json", "left"
    return table


def _biases(cells: Sequence[Mapping[str, Any] | None], name: str = "bias", *, sign: bool = True) -> list[str]:
    return aligned((float("nan") if cell is None else cell[name] for cell in cells), sign=sign)


def _intervals(cells: Sequence[Mapping[str, Any] | None]) -> list[str]:
    return [MISSING if cell is None else interval(cell["low"], cell["high"]) for cell in cells]


def groups_view(result: Result, width: int) -> Table | None:
    """All rows and the worst groups, in `width` columns; None where nothing is known of groups."""
    words, sides = result.wording, list(result.columns)
    several = len(result.sections) > 1
    rows = [row | (row["sections"][result.first.title] if several else {}) for row in group_rows(result)]
    if not rows:
        return None
    shown = rows[: N_GROUPS + 1]
    table, columns = _table(), {"rows": [count(row["rows"]) for row in shown]}
    if len(rows) > 1:
        before, *after = (sum(bool((row.get(side) or {}).get("off")) for row in rows[1:]) for side in sides)
        counts_text = f"{before:,} of {len(rows) - 1:,} biased{f' before, {after[0]:,} after' if after else ''}"
        table.title = f"\nGroups, the worst first: {counts_text}{', likeliest class' if several else ''}"
    for which in sides:
        cells, start = [row.get(which) for row in shown], f"{which}, " if len(sides) > 1 else ""
        if words.coverage is not None:
            columns[f"{start}coverage"] = [MISSING if c is None else coverage_text(c["coverage"]) for c in cells]
        if result.task == "interval":
            columns[f"{start}points"] = _intervals(cells)
            columns[f"{start}width"] = _biases(cells, "width", sign=False)
            columns[f"{start}score"] = _biases(cells, "score", sign=False)
        else:
            alone = words.heading if words.coverage is not None or not start else ""
            columns[f"{start}{alone}".removesuffix(", ")] = _biases(cells)
            columns["interval" + " " * (which == "after")] = _intervals(cells)
    off = [bool((row.get(sides[-1]) or {}).get("off")) for row in shown]
    columns["off"] = ["yes" if each else "" for each in off]
    # In a narrow terminal intervals give way, those before first, and then what coverage says already.
    optional = [name for part in ("points", "score") for name in columns if name.endswith(part)]
    if result.task != "interval":
        optional = ["interval", "interval ", *(f"{w}, {words.heading}" for w in sides)] if len(sides) > 1 else []
    names = [group_name(row["group"]) for row in shown]
    return _filled(table, "group", names, columns, width, optional=optional, room=24, bold=off, n_rows=len(rows))


def _classes(result: Result, width: int) -> Table:
    """One row for the likeliest class and for each class: how often, bias before and after, groups off."""
    rows, sides = section_rows(result), list(result.columns)
    shown = rows[:N_SECTIONS]
    last = [row[sides[-1]] for row in shown]
    columns = {"came up": [MISSING if c["base_rate"] is None else f"{100.0 * c['base_rate']:.1f} %" for c in last]}
    for which in sides:
        cells, blank = [row[which] for row in shown], " " * (which == "after")
        columns[which], columns[f"interval{blank}"] = _biases(cells), _intervals(cells)
        if result.n_groups:
            columns[f"off{blank}"] = [f"{cell['groups_off']:,} of {cell['groups']:,}" for cell in cells]
    if result.n_groups:
        columns["worst group now"] = [
            ""
            if cell["worst_group"] is None
            else f"{shortened(group_name(cell['worst_group']), 22)} {signed(round(cell['worst_bias'], 2))}"
            for cell in last
        ]
    return _filled(
        _table("\nClasses: bias of all rows in points, and biased groups"),
        "class",
        [class_title(row["title"]) for row in shown],
        columns,
        width,
        # In a narrow terminal the worst groups give way, then the intervals, those before first.
        optional=("worst group now", "interval", "interval "),
        room=16,
        bold=[cell["off"] or cell["groups_off"] > 0 for cell in last],
        n_rows=len(rows),
    )


def _models(result: Result) -> Table:
    """One row for each model: its verdict, groups off, bias of all rows, loss, and the change from the first."""
    table, words, rows = _table("\nModels"), result.wording, section_rows(result)
    ordered = any(row["before"]["auc"] is not None for row in rows)
    table.add_column("model", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("verdict", no_wrap=True)
    for name in ("groups off", words.heading, words.loss, "change", *(["AUC"] if ordered else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cell, pair = row["before"], result.paired.get(row["title"])
        badge = Text(f" {row['verdict']} ", style=BADGES[TONES.get(row["verdict"], "bad")])
        cells = [
            f"{cell['groups_off']:,} of {cell['groups']:,}",
            words.signed(cell["bias"]),
            precise(cell["loss"]),
            "" if pair is None else relative(pair.difference, pair.before),
            *([MISSING if cell["auc"] is None else f"{cell['auc']:.3f}"] if ordered else []),
        ]
        table.add_row(Text(row["title"]), badge, *cells)
    return table


def _groups_of_models(result: Result, width: int) -> Table:
    rows = group_rows(result)
    shown = rows[: N_GROUPS + 1]
    heading = result.wording.heading
    columns = {"rows": [count(row["rows"]) for row in shown]}
    for section in result.sections:
        cells = [(row["sections"].get(section.title) or {}).get("before") for row in shown]
        marks = ["*" if cell is not None and cell["off"] else " " for cell in cells]
        columns[shortened(section.title, 16)] = [a + b for a, b in zip(_biases(cells), marks, strict=True)]
    table = _table(f"\nGroups, the worst first: {heading} of each model, * where biased")
    names = [group_name(row["group"]) for row in shown]
    return _filled(table, "group", names, columns, width, n_rows=len(rows))


# --------
# The numbers behind the verdict on one column of forecasts, or on two: scores, worst ranges of forecasts, totals.


def _scores(result: Result) -> list[RenderableType]:
    """The scores that people know, a line for each column of forecasts."""
    lines = []
    for side in result.columns.values():
        one = side.scores
        line = f"{side.label}: {result.wording.loss} {precise(side.loss)}"
        if one is not None:
            auc = "" if one.auc is None else f", AUC {one.auc:.3f}"
            line = (
                f"{side.label}: Brier score {precise(one.brier)}, log loss {precise(one.log_loss)}{auc}; of the Brier "
                f"score, miscalibration {number(one.miscalibration)}, discrimination {number(one.discrimination)}, "
                f"uncertainty {number(one.uncertainty)}"
            )
        lines.append(line)
    lines += [f"{name}: {result.wording.loss} {precise(pair.after)}" for name, pair in result.against.items()]
    return [Text(), *(Padding(Text(line), (0, 1)) for line in lines)]


def _totals(result: Result, side: ColumnSummary) -> Table:
    """Errors of one column of forecasts: total, in units of T^(1/(r+1)), and as a bias per row."""
    table = _errors_table(result, "total", f"x {rate_name(result.r)}")
    rows = [(QUANTITIES[each], getattr(side, each)) for each in ERRORS]
    rows.append((QUANTITIES["guarantee"], None if result.guarantee is None else result.guarantee.bound))
    scale = (side.weight or 1.0) ** (1 / (result.r + 1))
    for name, error in rows:
        if error is not None:
            table.add_row(name, number(error), number(error / scale), _per_row(error, side, result))
    return table


def _beside(result: Result, before: ColumnSummary, after: ColumnSummary) -> Table:
    """The same for two columns of forecasts, before and after beside each other, and their losses."""
    table, sides, r = _errors_table(result, before.label, after.label), (before, after), result.r
    for each in ERRORS:
        errors = [getattr(side, each) for side in sides]
        if None not in errors:
            rates = [_per_row(error, side, result) for error, side in zip(errors, sides, strict=True)]
            table.add_row(QUANTITIES[each], *map(number, errors), " to ".join(rates))
    scaled = (side.swap_error / (side.weight or 1.0) ** (1 / (r + 1)) for side in sides)
    table.add_row(f"{QUANTITIES['swap_error']}, times {rate_name(r)}", *map(number, scaled))
    if result.guarantee is not None and result.guarantee.bound is not None:
        table.add_row(QUANTITIES["guarantee"], "", number(result.guarantee.bound))
    table.add_row(result.wording.loss, precise(before.loss), precise(after.loss))
    return table


def _per_row(error: float, side: ColumnSummary, result: Result) -> str:
    return number(result.wording.scale * per_round(error, side, result.r), 2)


def _errors_table(result: Result, *columns: str) -> Table:
    table = _table("Totals over forecast values and groups (see docs/guarantees.md)")
    table.caption = "* root mean square bias" if result.r == 2.0 else f"* mean bias of power {result.r:g}"
    table.caption_justify = "left"
    table.add_column("error")
    for name in (*columns, f"{result.wording.heading} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _worst(side: ColumnSummary, words: Wording, width: int) -> Table:
    """The cells with the largest contributions; names are cut, numbers never."""
    cells = side.worst[:N_WORST]
    table = _table(f"\nWorst ranges of forecasts of {side.label}, those with a CI without 0 first")
    numbers = {
        "forecast": [number(cell.value) for cell in cells],
        "rows": [count(cell.count) for cell in cells],
        words.heading: aligned((words.scale * cell.mean for cell in cells), sign=True),
        "95 % interval": [interval(words.scale * cell.low, words.scale * cell.high) for cell in cells],
    }
    # Three columns of blanks stand between two columns; what numbers leave is for the names, which give way.
    room = width - sum(3 + max(map(len, [head, *column])) for head, column in numbers.items()) - 2
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True)
        if head == "forecast":
            table.add_column("group", overflow="ellipsis", no_wrap=True, max_width=max(room, len("group")))
    for k, cell in enumerate(cells):
        sure = cell.low > 0 or cell.high < 0
        first, *others = (
            Text(column[k], style="bold" if sure and head == words.heading else "") for head, column in numbers.items()
        )
        table.add_row(first, Text(group_name(cell.name)), *others)
    return table
