"""Results in the terminal: the verdict first, then the groups, then the numbers behind it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.audits.summary import ColumnSummary
from swapcal.errors import DataError, MissingExtra
from swapcal.tasks.audit import Comparison, comparison_json, group_lines, headline, model_lines, sentences
from swapcal.tasks.result import (
    ClassResult,
    IntervalResult,
    Result,
    above,
    class_json,
    class_lines,
    group_rows,
    interval_json,
    interval_rows,
    parse_threshold,
    to_json,
)
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
from swapcal.text.property_words import PropertyWords, property_words
from swapcal.text.verdict import (
    class_notes,
    class_title,
    coverage_text,
    headline_below_badge,
    interval_notes,
    per_round,
)

# --------
# The table of groups in the terminal: everybody, then the worst first, before and after beside each other.

N_GROUPS = 12
LEAST, ROOM = 12, 24
"""Columns that the name of a group has at least, and that it should have."""


def groups_view(result: Result, width: int) -> Table | None:
    """Everybody and the worst groups, in `width` columns; None where nothing is known of groups.

    Names are cut, numbers never.
    """
    rows = group_rows(result)
    if not rows:
        return None
    shown = rows[: N_GROUPS + 1]
    words, sides = property_words(result.property), list(result.columns)
    table = titled(rows, sides)
    columns: dict[str, list[str]] = {"rows": [count(row["rows"]) for row in shown]}
    covers = "coverage" in (shown[0].get(sides[0]) or {})
    for which in sides:
        cells = [row.get(which) for row in shown]
        alone = len(sides) == 1
        if covers:
            name = "coverage" if alone else f"{which}, coverage"
            columns[name] = [MISSING if cell is None else f"{100 * cell['coverage']:.1f} %" for cell in cells]
        name = words.heading if alone else which if not covers else f"{which}, {words.heading}"
        columns[name] = aligned((float("nan") if cell is None else cell["bias"] for cell in cells), sign=True)
        columns["interval" + " " * (which == "after")] = [
            MISSING if cell is None else interval(cell["low"], cell["high"]) for cell in cells
        ]
    last = sides[-1]
    columns["off"] = ["yes" if (row.get(last) or {}).get("off") else "" for row in shown]
    # In a narrow terminal intervals give way, those before first, and then what coverage says already.
    optional = [each for each in ("interval", "interval ", *(f"{w}, {words.heading}" for w in sides)) if len(sides) > 1]
    return filled(table, columns, shown, len(rows), optional, width)


def titled(rows: Sequence[Mapping[str, Any]], sides: Sequence[str]) -> Table:
    """An empty table that says how many groups are off beyond doubt, before and after where there are both."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title_justify="left", title_style="bold", show_edge=False)
    if len(rows) > 1:
        before, *after = (sum(bool((row.get(side) or {}).get("off")) for row in rows[1:]) for side in sides)
        told = f"{before:,} of {len(rows) - 1:,} off beyond doubt"
        table.title = f"\nGroups, the worst first: {told}{f' before, {after[0]:,} after' if after else ''}"
    return table


def filled(
    table: Table,
    columns: dict[str, list[str]],
    shown: Sequence[Mapping[str, Any]],
    n_rows: int,
    optional: Sequence[str],
    width: int,
) -> Table:
    """The table with a row for each group that is shown; columns in `optional` give way, in that order, if it must."""
    giving = [name for name in optional if name in columns]
    while (room := width - sum(3 + max(map(len, [head, *column])) for head, column in columns.items()) - 2) < ROOM:
        if not giving:
            break
        del columns[giving.pop(0)]
    table.add_column("group", overflow="ellipsis", no_wrap=True, max_width=max(room, LEAST))
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    for k, row in enumerate(shown):
        style = "bold" if columns["off"][k] else ""
        name = shortened(group_name(row["group"]), max(room, LEAST))
        table.add_row(Text(name, style=style), *(Text(column[k], style=style) for column in columns.values()))
    if n_rows > len(shown):
        table.caption, table.caption_justify = f"{n_rows - len(shown):,} more with --report or --json", "left"
    return table


WIDTH = 80
N_WORST = 5
MARKS = {"fine": "FINE", "recalibrate": "RECALIBRATE", "refit": "REFIT"}
ERRORS = ("swap_error", "group_error", "overall_error", "chance_mean")
STYLES = {"fine": "bold white on green", "recalibrate": "bold black on yellow", "refit": "bold white on red"}


def tell(result: Result, *, report: Path | None, json: bool, fail_above: str | None, last: str | None = None) -> None:
    """The end of a command: the page, the result as JSON or as tables with a `last` line, and the exit code 1."""
    page = None if report is None else save_page(result, report)
    if json:
        typer.echo(to_json(result))
    else:
        printed(lambda width: view(cleaned(result), width), page, last)
    if fail_above is not None:
        failed([above(result, parse_threshold(fail_above))])


def printed(view: Callable[[int], RenderableType], page: Path | None, last: str | None = None) -> None:
    """Print what is viewed, as wide as the terminal is, where the page is, and a `last` line."""
    console = Console(highlight=False)
    console.print(view(console.width))
    for line in (None if page is None else f"The page is {page}", last):
        if line is not None:
            console.print(Text(printable(line)), soft_wrap=True)


def failed(sentences: Iterable[str | None]) -> None:
    """Say what is above a threshold, and end with exit code 1 if anything is."""
    said = [sentence for sentence in sentences if sentence is not None]
    for sentence in said:
        typer.echo(sentence, err=True)
    if said:
        raise typer.Exit(1)


def view(result: Result, width: int = WIDTH) -> RenderableType:
    """The result as something that rich prints, within `width` columns: verdict, groups, scores, then the rest."""
    said, words = result.verdict, property_words(result.property)
    columns = list(result.columns.values())
    shown = columns[-1] if result.kind == "run" else columns[0]
    head = Text.assemble((f" {MARKS[said.kind]} ", STYLES[said.kind]), " ", (headline_below_badge(said), "bold"))
    sentences = [Padding(bullet(each), (0, 1)) for each in said.sentences]
    parts: list[RenderableType] = [head, facts(result), Text(), *sentences]
    table = groups_view(result, width)
    if table is not None:
        parts += [table]
    parts += _scores(result)
    if shown.worst:
        parts.append(_worst(shown, words, width))
    parts += _notes(result)
    totals = _beside(result, columns[0], columns[1], words) if len(columns) == 2 else _totals(result, shown, words)
    parts += [Text(), totals]
    return Group(*parts)


def _scores(result: Result) -> list[RenderableType]:
    """The scores that people know, a line for each column of forecasts."""
    lines = []
    for side in result.columns.values():
        if side.scores is not None:
            one = side.scores
            auc = "" if one.auc is None else f", AUC {number(one.auc)}"
            lines.append(
                f"{side.label}: Brier score {precise(one.brier)}, log loss {precise(one.log_loss)}{auc}; of the Brier "
                f"score, miscalibration {number(one.miscalibration)}, discrimination {number(one.discrimination)}, "
                f"uncertainty {number(one.uncertainty)}"
            )
        else:
            lines.append(f"{side.label}: {result.loss_name} {precise(side.loss)}")
    return [Text(), *(Padding(Text(line), (0, 1)) for line in lines)]


def bullet(sentence: str) -> Table:
    """A sentence behind a dash, its lines below each other."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(sentence))
    return grid


def facts(result: Result) -> Text:
    """The file, what was forecast, and for how many."""
    what = f"{property_words(result.property).name} of {result.settings.get('y', 'the outcome')}"
    source = result.source if len(result.source) <= WIDTH // 3 else Path(result.source).name
    return Text(f" {source}: {what}, {counted(result.n_rounds)}, {n_groups(result)}", style="dim")


def n_groups(result: Result) -> str:
    """How many groups there are, besides everybody."""
    n = len(result.groups) - 1
    return counted(n, "group") if n else "no groups"


def _totals(result: Result, side: ColumnSummary, words: PropertyWords) -> Table:
    """Errors of one column of forecasts: total, in units of T^(1/(r+1)), and as a bias per row."""
    r = result.r
    table = _errors_table(r)
    for name in ("total", f"x {rate_name(r)}", f"{words.heading} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(QUANTITIES[each], getattr(side, each)) for each in ERRORS]
    rows.append((QUANTITIES["guarantee"], result.guarantee))
    scale = (side.weight or 1.0) ** (1 / (r + 1))
    for name, error in rows:
        if error is not None:
            table.add_row(name, number(error), number(error / scale), _per_row(error, side, r, words))
    return table


def _beside(result: Result, before: ColumnSummary, after: ColumnSummary, words: PropertyWords) -> Table:
    """The same for two columns of forecasts, before and after beside each other, and their losses."""
    r = result.r
    table = _errors_table(r)
    for name in (before.label, after.label, f"{words.heading} per row*"):
        table.add_column(name, justify="right", no_wrap=True)
    sides = (before, after)
    for each in ERRORS:
        errors = [getattr(side, each) for side in sides]
        if None not in errors:
            rates = [_per_row(error, side, r, words) for error, side in zip(errors, sides, strict=True)]
            table.add_row(QUANTITIES[each], *map(number, errors), " to ".join(rates))
    scaled = (side.swap_error / (side.weight or 1.0) ** (1 / (r + 1)) for side in sides)
    table.add_row(f"{QUANTITIES['swap_error']}, times {rate_name(r)}", *map(number, scaled))
    if result.guarantee is not None:
        table.add_row(QUANTITIES["guarantee"], "", number(result.guarantee))
    table.add_row(result.loss_name, precise(before.loss), precise(after.loss))
    return table


def _per_row(error: float, side: ColumnSummary, r: float, words: PropertyWords) -> str:
    return number(words.scale * per_round(error, side, r), 2)


def _errors_table(r: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, caption_justify="left", title_justify="left")
    table.title, table.title_style = "Totals over forecast values and groups (see docs/guarantees.md)", "bold"
    table.caption = "* root mean square bias" if r == 2.0 else f"* mean bias of power {r:g}"
    table.add_column("error")
    return table


def _worst(side: ColumnSummary, words: PropertyWords, width: int) -> Table:
    """The cells with the largest contributions; names are cut, numbers never."""
    cells = side.worst[:N_WORST]
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        title=f"\nWorst ranges of forecasts of {side.label}, those beyond doubt first",
        title_justify="left",
        title_style="bold",
    )
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
    table.show_edge = False
    return table


def _notes(result: Result) -> list[RenderableType]:
    """What was assumed and what was left out."""
    settings = result.settings
    notes = (
        [f"outcomes in [{number(result.low)}, {number(result.high)}]: {settings['range']}"]
        if "range" in settings
        else []
    )
    notes += [str(settings[name]) for name in ("binning", "clusters", "decisions") if settings.get(name)]
    bands = settings.get("bands") or {}
    if bands:
        listed = ",".join(bands)
        notes.append(f"numbers of many values are in bands; for a group of every value: --categories {listed}")
    if settings.get("jitter"):
        notes.append(f"outcomes heap up and were spread over {number(float(settings['jitter']))}, as --jitter does")
    for n_rows, what in (
        (result.n_missing, "rows without an outcome, not scored"),
        (settings.get("rows_without_forecast", 0), "rows without a forecast, not scored"),
        (result.n_clipped, "outcomes outside the range, moved to its end"),
        (settings.get("forecasts_outside", 0), "forecasts outside the range, moved to its end"),
        (settings.get("weights_outside", 0), "weights above the largest at the start, cut"),
    ):
        if n_rows:
            notes.append(f"{count(n_rows)} {what}")
    if settings.get("guarantee"):
        notes.append(f"guarantee: {settings['guarantee']}")
    notes.append("bias above 0: forecasts too high; intervals hold for all groups, and for all ranges, together (95 %)")
    return [Text(), *(Padding(Text(note, style="dim"), (0, 1)) for note in notes)]


def plain(data: dict[str, Any]) -> str:
    """Plain data as JSON."""
    return json.dumps(data, ensure_ascii=False)


def save_page(result: Result, path: Path) -> Path:
    """Write the page; its directory must be there."""
    try:
        from swapcal.report.page import write
    except ImportError as error:
        raise MissingExtra(
            f"the page needs {error.name or 'more packages'}: install with  pip install 'swapcal[cli]'"
        ) from None
    try:
        write(result, path)
    except OSError as error:
        raise DataError(f"the page cannot be written to {path}: {error.strerror or error}") from None
    return path


# --------
# Classes in the terminal: the verdict, every class before and after, the groups of the likeliest class, the notes.

N_CLASSES = 20


def tell_classes(
    result: ClassResult, *, report: Path | None, json: bool, fail_above: str | None, last: str | None
) -> None:
    """The end of a run of classes: the page, tables with a `last` line or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.page import write_classes

        write_classes(result, report)
    if json:
        typer.echo(class_json(result))
    else:
        printed(lambda width: _class_view(result, width), report, last)
    if fail_above is None:
        return
    threshold = parse_threshold(fail_above)
    said = {name: above(one, threshold) for name, one in {"top": result.top, **result.classes}.items()}
    failed(None if each is None else printable(f"{class_title(name)}: {each}") for name, each in said.items())


def _class_view(result: ClassResult, width: int) -> RenderableType:
    said, top = cleaned(result.verdict), cleaned(result.top)
    head = Text.assemble((f" {MARKS[said.kind]} ", STYLES[said.kind]), " ", (said.headline, "bold"))
    what = f"{counted(len(result.classes), 'class', 'classes')} of {top.settings['y']}"
    facts = Text(f" {Path(top.source).name}: {what}, {counted(top.n_rounds)}, {n_groups(top)}", style="dim")
    sentences = [Padding(bullet(each), (0, 1)) for each in said.sentences]
    parts: list[RenderableType] = [head, facts, Text(), *sentences, _classes(result, width)]
    table = groups_view(top, width) if len(top.groups) > 1 else None
    if table is not None:
        table.title = f"{table.title}, likeliest class"
        parts.append(table)
    notes = class_notes(top.settings, top.n_missing, top.guarantee)
    return Group(*parts, Text(), *(Padding(Text(note, style="dim"), (0, 1)) for note in notes))


def _classes(result: ClassResult, width: int) -> Table:
    """One row for the likeliest class and for each class: how often, bias before and after, groups off."""
    lines: list[dict[str, Any]] = cleaned(class_lines(result))
    shown, sides = lines[: N_CLASSES + 1], list(result.top.columns)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title_justify="left", title_style="bold", show_edge=False)
    table.title = "\nClasses: bias of all rows in points, and groups off beyond doubt"
    last = [line[sides[-1]] for line in shown]
    columns: dict[str, list[str]] = {
        "came up": [MISSING if cell["came"] is None else f"{100.0 * cell['came']:.1f} %" for cell in last]
    }
    for which in sides:
        cells = [line[which] for line in shown]
        columns[which] = aligned((cell["bias"] for cell in cells), sign=True)
        columns[f"interval{' ' * (which == 'after')}"] = [interval(cell["low"], cell["high"]) for cell in cells]
        if len(result.top.groups) > 1:
            columns[f"off{' ' * (which == 'after')}"] = [
                f"{cell['groups_off']:,} of {cell['groups']:,}" for cell in cells
            ]
    if len(result.top.groups) > 1:
        columns["worst group now"] = [
            ""
            if cell["worst_group"] is None
            else f"{shortened(group_name(cell['worst_group']), 22)} {signed(round(cell['worst_bias'], 2))}"
            for cell in last
        ]
    # In a narrow terminal the worst groups give way, then the intervals, those before first.
    optional = [name for name in ("worst group now", "interval", "interval ") if name in columns]
    while (room := width - sum(3 + max(map(len, [head, *column])) for head, column in columns.items()) - 2) < 16:
        if not optional:
            break
        del columns[optional.pop(0)]
    table.add_column("class", overflow="ellipsis", no_wrap=True, max_width=max(room, 12))
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for k, line in enumerate(shown):
        style = "bold" if line[sides[-1]]["off"] or line[sides[-1]]["groups_off"] else ""
        table.add_row(
            Text(class_title(line["class"]), style=style),
            *(Text(column[k], style=style) for column in columns.values()),
        )
    if len(lines) > len(shown):
        table.caption, table.caption_justify = f"{count(len(lines) - len(shown))} more with --report or --json", "left"
    return table


# --------
# Several models in the terminal: which is best, each with its verdict, and the groups with the bias of every model.

N_COMPARED_GROUPS = 12


def tell_comparison(comparison: Comparison, *, report: Path | None, json: bool, fail_above: str | None) -> None:
    """The end of `swapcal audit` with several models: the page, tables or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.page import write_comparison

        write_comparison(comparison, report)
    if json:
        typer.echo(comparison_json(comparison))
    else:
        printed(lambda width: _comparison_view(comparison, width), report)
    if fail_above is not None:
        failed(above(result, parse_threshold(fail_above)) for result in comparison.results.values())


def _comparison_view(comparison: Comparison, width: int) -> RenderableType:
    said = [Padding(bullet(printable(each)), (0, 1)) for each in sentences(comparison)]
    head = Text(printable(headline(comparison)), style="bold")
    return Group(
        head, facts(comparison.first), Text(), *said, _models(comparison), _comparison_groups(comparison, width)
    )


def _models(comparison: Comparison) -> Table:
    table = _table("\nModels")
    words, loss = property_words(comparison.first.property), comparison.first.loss_name
    lines = model_lines(comparison)
    ordered = any(line["auc"] is not None for line in lines)
    table.add_column("model", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("verdict", no_wrap=True)
    for name in ("groups off", words.heading, loss, "change", *(["AUC"] if ordered else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        pair = line["difference"]
        change = "" if pair is None else relative(pair["mean"], pair["first"])
        auc = MISSING if line["auc"] is None else number(line["auc"])
        cells = [
            f"{line['groups_off']:,} of {line['groups']:,}",
            words.signed(line["bias"]),
            precise(line["loss"]),
            change,
        ]
        mark = Text(f" {MARKS[line['kind']]} ", style=STYLES[line["kind"]])
        table.add_row(Text(printable(line["model"])), mark, *cells, *([auc] if ordered else []))
    return table


def _comparison_groups(comparison: Comparison, width: int) -> RenderableType:
    lines = group_lines(comparison)
    shown = lines[: N_COMPARED_GROUPS + 1]
    words = property_words(comparison.first.property)
    table = _table(f"\nGroups, the worst first: {words.heading} of each model, * where off beyond doubt")
    columns: dict[str, list[str]] = {"rows": [count(line["rows"]) for line in shown]}
    for model in comparison.models:
        cells = [line.get(model) for line in shown]
        texts = aligned((float("nan") if cell is None else cell["bias"] for cell in cells), sign=True)
        marks = ["*" if cell is not None and cell["off"] else " " for cell in cells]
        columns[shortened(printable(model), 16)] = [text + mark for text, mark in zip(texts, marks, strict=True)]
    room = width - sum(3 + max(map(len, [head, *column])) for head, column in columns.items()) - 2
    table.add_column("group", overflow="ellipsis", no_wrap=True, max_width=max(room, 12))
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    for k, line in enumerate(shown):
        name = shortened(printable(group_name(line["group"])), max(room, 12))
        table.add_row(Text(name), *(column[k] for column in columns.values()))
    if len(lines) > len(shown):
        table.caption, table.caption_justify = f"{len(lines) - len(shown):,} more with --report or --json", "left"
    return table


def _table(title: str) -> Table:
    return Table(
        box=box.SIMPLE_HEAD, padding=(0, 1), title=title, title_justify="left", title_style="bold", show_edge=False
    )


# --------
# Intervals in the terminal: the verdict, every group with its coverage and width before and after, the notes.


def tell_intervals(
    result: IntervalResult, *, report: Path | None, json: bool, fail_above: str | None, last: str | None
) -> None:
    """The end of a run of intervals: the page, tables with a `last` line or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.page import write_intervals

        write_intervals(result, report)
    if json:
        typer.echo(interval_json(result))
    else:
        printed(lambda width: _interval_view(result, width), report, last)
    if fail_above is not None:
        failed([above(result.covered, parse_threshold(fail_above))])


def _interval_view(result: IntervalResult, width: int) -> RenderableType:
    covered = cleaned(result.covered)
    said = covered.verdict
    head = Text.assemble((f" {MARKS[said.kind]} ", STYLES[said.kind]), " ", (said.headline, "bold"))
    what = f"{percent(result.coverage)} intervals of {covered.settings['y']}"
    facts = Text(f" {Path(covered.source).name}: {what}, {counted(covered.n_rounds)}, {n_groups(covered)}", style="dim")
    sentences = [Padding(bullet(each), (0, 1)) for each in said.sentences]
    notes = [
        Padding(Text(note, style="dim"), (0, 1))
        for note in interval_notes(covered.settings, covered.n_missing, covered.n_clipped)
    ]
    return Group(head, facts, Text(), *sentences, _interval_groups(result, width), Text(), *notes)


def _interval_groups(result: IntervalResult, width: int) -> Table:
    rows: list[dict[str, Any]] = cleaned(interval_rows(result))
    shown, sides = rows[: N_GROUPS + 1], list(result.covered.columns)
    columns: dict[str, list[str]] = {"rows": [count(row["rows"]) for row in shown]}
    for which in sides:
        cells = [row.get(which) for row in shown]
        start = f"{which}, " if len(sides) > 1 else ""
        columns[f"{start}coverage"] = [MISSING if cell is None else coverage_text(cell["coverage"]) for cell in cells]
        columns[f"{start}points"] = [MISSING if cell is None else interval(cell["low"], cell["high"]) for cell in cells]
        columns[f"{start}width"] = aligned(float("nan") if cell is None else cell["width"] for cell in cells)
        columns[f"{start}score"] = aligned(float("nan") if cell is None else cell["score"] for cell in cells)
    columns["off"] = ["yes" if (row.get(sides[-1]) or {}).get("off") else "" for row in shown]
    # In a narrow terminal the intervals of coverage give way, then the scores, those before first.
    optional = [name for part in ("points", "score") for name in columns if name.endswith(part)]
    return filled(titled(rows, sides), columns, shown, len(rows), optional, width)
