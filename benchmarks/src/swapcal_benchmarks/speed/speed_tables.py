"""Rows as tables in the terminal and on the page."""

from swapcal_benchmarks.report import Table
from swapcal_benchmarks.speed.sections import SECTIONS
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["markdown", "text", "verdict_sentence"]


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


def section_table(rows: list[TargetRow], section: str, title: str = "") -> Table:
    """The table of one section, with notes under it."""
    own = [row for row in rows if row.section == section]
    words = {True: "met", False: "MISSED", None: ""}
    cells = [(row.what, row.against, row.shown, _quartiles(row), row.asked, words[row.met]) for row in own]
    notes = "\n".join(f"- {row.what}: {row.note}" for row in own if row.note)
    return Table(title, ("measured", "against", "result", "quartiles", "target", ""), tuple(cells), notes, "llrrrl")


def text(rows: list[TargetRow]) -> str:
    """A table for each section, and the verdict."""
    sections = [each for each in SECTIONS if any(row.section == each.name for row in rows)]
    shown = [section_table(rows, each.name, each.title).text() for each in sections]
    return "\n\n".join([*shown, verdict_sentence(rows)])


def markdown(rows: list[TargetRow], section: str) -> str:
    """The table of one section for a page, with notes under it."""
    table = section_table(rows, section)
    return table.markdown() + (f"\n\n{table.note}" if table.note else "")


def _quartiles(row: TargetRow) -> str:
    return "" if row.low is None or row.high is None else f"{row.low:.2f} to {row.high:.2f}"
