"""Several models in the terminal: which is best, each with its verdict, and the groups with the bias of every model."""

from pathlib import Path

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.cli.output import MARKS, STYLES, bullet, facts, failed, printed
from swapcal.cli.plain_text import printable
from swapcal.jobs.comparing import Comparison
from swapcal.jobs.comparison_rows import comparison_json, group_lines, headline, model_lines, sentences
from swapcal.jobs.threshold import above, parse_threshold
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import MISSING, aligned, count, number, precise, relative
from swapcal.words.property_words import property_words

__all__ = ["tell_comparison"]

N_GROUPS = 12


def tell_comparison(comparison: Comparison, *, report: Path | None, json: bool, fail_above: str | None) -> None:
    """The end of `swapcal audit` with several models: the page, tables or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.comparison_page import write_comparison

        write_comparison(comparison, report)
    if json:
        typer.echo(comparison_json(comparison))
    else:
        printed(lambda width: _view(comparison, width), report)
    if fail_above is not None:
        failed(above(result, parse_threshold(fail_above)) for result in comparison.results.values())


def _view(comparison: Comparison, width: int) -> RenderableType:
    said = [Padding(bullet(printable(each)), (0, 1)) for each in sentences(comparison)]
    head = Text(printable(headline(comparison)), style="bold")
    return Group(head, facts(comparison.first), Text(), *said, _models(comparison), _groups(comparison, width))


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


def _groups(comparison: Comparison, width: int) -> RenderableType:
    lines = group_lines(comparison)
    shown = lines[: N_GROUPS + 1]
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
