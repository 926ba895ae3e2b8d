"""Classes in the terminal: the verdict, every class before and after, the groups of the likeliest class, the notes."""

from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.cli.groups_view import groups_view
from swapcal.cli.output import MARKS, STYLES, bullet, failed, n_groups, printed
from swapcal.cli.plain_text import cleaned, printable
from swapcal.jobs.several.class_result import ClassResult, class_json, class_lines
from swapcal.jobs.threshold import above, parse_threshold
from swapcal.words.class_words import class_notes, class_title
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import MISSING, aligned, count, counted, interval, signed

__all__ = ["tell_classes"]

N_CLASSES = 20


def tell_classes(
    result: ClassResult, *, report: Path | None, json: bool, fail_above: str | None, last: str | None
) -> None:
    """The end of a run of classes: the page, tables with a `last` line or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.class_page import write_classes

        write_classes(result, report)
    if json:
        typer.echo(class_json(result))
    else:
        printed(lambda width: _view(result, width), report, last)
    if fail_above is None:
        return
    threshold = parse_threshold(fail_above)
    said = {name: above(one, threshold) for name, one in {"top": result.top, **result.classes}.items()}
    failed(None if each is None else printable(f"{class_title(name)}: {each}") for name, each in said.items())


def _view(result: ClassResult, width: int) -> RenderableType:
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
