"""Intervals in the terminal: the verdict, every group with its coverage and width before and after, the notes."""

from pathlib import Path
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swapcal.cli.groups_view import N_GROUPS, filled, titled
from swapcal.cli.output import MARKS, STYLES, bullet, failed, n_groups, printed
from swapcal.cli.plain_text import cleaned
from swapcal.jobs.several.interval_result import IntervalResult, interval_json, interval_rows
from swapcal.jobs.threshold import above, parse_threshold
from swapcal.words.interval_words import coverage_text, interval_notes
from swapcal.words.numbers import MISSING, aligned, count, counted, interval, percent

__all__ = ["tell_intervals"]


def tell_intervals(
    result: IntervalResult, *, report: Path | None, json: bool, fail_above: str | None, last: str | None
) -> None:
    """The end of a run of intervals: the page, tables with a `last` line or JSON, and the exit code 1."""
    if report is not None:
        from swapcal.report.interval_page import write_intervals

        write_intervals(result, report)
    if json:
        typer.echo(interval_json(result))
    else:
        printed(lambda width: _view(result, width), report, last)
    if fail_above is not None:
        failed([above(result.covered, parse_threshold(fail_above))])


def _view(result: IntervalResult, width: int) -> RenderableType:
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
    return Group(head, facts, Text(), *sentences, _groups(result, width), Text(), *notes)


def _groups(result: IntervalResult, width: int) -> Table:
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
