"""Rows as tables in the terminal, on the page, and as JSON."""

import json
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from swapcal_benchmarks.speed.sections import SECTIONS
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["markdown", "tables", "to_json", "verdict", "verdict_sentence"]

_STYLES = {"met": "green", "MISSED": "bold red", "": ""}


def verdict(row: TargetRow) -> str:
    """One word: met, MISSED, or nothing where there is no target or no measurement."""
    return {True: "met", False: "MISSED", None: ""}[row.met]


def verdict_sentence(rows: list[TargetRow]) -> str:
    """How many targets were met, and which were not."""
    judged = [row for row in rows if row.met is not None]
    missed = [row for row in judged if not row.met]
    skipped = [row for row in rows if row.target is not None and row.measured is None]
    text = f"{len(judged) - len(missed)} of {len(judged)} targets met."
    if missed:
        text += " Missed: " + "; ".join(f"{row.what} ({row.shown}, {row.asked})" for row in missed) + "."
    if skipped:
        text += " Not measured: " + "; ".join(f"{row.what} ({row.note})" for row in skipped) + "."
    return text


def tables(rows: list[TargetRow]) -> RenderableType:
    """A table for each section, and the verdict."""
    parts: list[RenderableType] = []
    for section in SECTIONS:
        own = [row for row in rows if row.section == section.name]
        if not own:
            continue
        table = Table(title=section.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name in ("measured", "against"):
            table.add_column(name, overflow="fold")
        for name in ("result", "target"):
            table.add_column(name, justify="right")
        table.add_column("")
        for row in own:
            word = verdict(row)
            table.add_row(row.what, row.against, row.shown, row.asked, Text(word, _STYLES[word]))
        parts += [table, *(Text(f"  {row.what}: {row.note}", style="dim") for row in own if row.note), Text()]
    return Group(*parts, Text(verdict_sentence(rows)))


def markdown(rows: list[TargetRow], section: str) -> str:
    """The table of one section for a page, with notes under it."""
    lines = ["| measured | against | result | quartiles | target | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    own = [row for row in rows if row.section == section]
    for row in own:
        cells = (row.what, row.against, row.shown, _quartiles(row), row.asked, verdict(row))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    notes = [f"- {row.what}: {row.note}" for row in own if row.note]
    return "\n".join(lines) + ("\n\n" + "\n".join(notes) if notes else "")


def to_json(rows: list[TargetRow], about: dict[str, Any]) -> str:
    """Everything as plain data."""
    data = {"about": about, "met": all(row.met is not False for row in rows), "rows": [row.to_dict() for row in rows]}
    return json.dumps(data, indent=2) + "\n"


def _quartiles(row: TargetRow) -> str:
    return "" if row.low is None or row.high is None else f"{row.low:.2f} to {row.high:.2f}"
