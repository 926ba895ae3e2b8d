"""The table of groups in the terminal: everybody, then the worst first, before and after beside each other."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from swapcal.jobs.group_rows import group_rows
from swapcal.jobs.result import Result
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import MISSING, aligned, count, interval
from swapcal.words.property_words import property_words

__all__ = ["N_GROUPS", "filled", "groups_view", "titled"]

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
