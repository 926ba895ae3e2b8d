"""All groups as a table of the page, to be sorted, searched and downloaded: numbers, and a dot with its interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.jobs.group_rows import group_rows
from swapcal.jobs.result import Result
from swapcal.report.worst_groups import WorstGroups
from swapcal.words.numbers import count, interval, signed
from swapcal.words.property_words import PropertyWords, property_words

__all__ = ["GroupRow", "GroupTable", "Mark", "group_table"]

AT_FIRST = 15
"""Groups that are shown before somebody asks for all of them."""

MOST = 800
"""Groups that the page holds; the others are in the JSON."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One side of one group: places on the strip in percent of its width, the numbers, and their texts."""

    which: str
    left: float
    dot: float
    right: float
    bias: str
    low: str
    high: str
    text: str
    interval: str
    off: bool
    coverage: str
    since: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group."""

    name: str
    rows: int
    count: str
    marks: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The rows, where zero is, the ends of the strip, and how many groups are not shown."""

    rows: tuple[GroupRow, ...]
    zero: float
    low: str
    high: str
    unit: str
    at_first: int
    left_out: int
    coverage: bool
    exact: bool
    clusters: bool
    finding: str


def group_table(result: Result, limit: int = MOST) -> GroupTable | None:
    """The table of a result, or None where no group has rows."""
    rows, words = group_rows(result), property_words(result.property)
    if not rows:
        return None
    kept = rows[: limit + 1]
    sides = list(result.columns)
    ends = np.array([_clipped(row[w][e]) for row in kept for w in sides if w in row for e in ("low", "high")] + [0.0])
    # Intervals of tiny groups would press all others together; they run out of the strip instead.
    dots = [_clipped(row[w]["bias"]) for row in kept for w in sides if w in row]
    sure = [_clipped(row[w][e]) for row in kept for w in sides if w in row and row[w]["off"] for e in ("low", "high")]
    least = min(0.0, float(np.quantile(ends, 0.02)), *dots, *sure)
    greatest = max(0.0, float(np.quantile(ends, 0.98)), *dots, *sure)
    room = 0.04 * max(greatest - least, 1e-12)
    least, greatest = least - room, greatest + room

    def place(value: float) -> float:
        return round(min(max(100.0 * (value - least) / (greatest - least), 0.0), 100.0), 1)

    table = []
    for row in kept:
        marks = {w: _mark(w, row[w], words, place) for w in sides if w in row}
        table.append(GroupRow(row["group"], row["rows"], count(row["rows"]), marks))
    low_text, high_text = (f"{signed(v, 2)} {words.unit}".strip() for v in (least + room, greatest - room))
    groups = next(iter(result.columns.values())).known_groups
    return GroupTable(
        tuple(table),
        place(0.0),
        low_text,
        high_text,
        words.unit or "units of the outcome",
        AT_FIRST,
        len(rows) - len(kept),
        bool(words.noun),
        groups.exact,
        groups.clusters,
        WorstGroups.of(result).finding(),
    )


def _clipped(value: float) -> float:
    return value if np.isfinite(value) else 0.0


def _mark(which: str, side: dict[str, Any], words: PropertyWords, place: Any) -> Mark:
    bias, low, high = (float(side[name]) for name in ("bias", "low", "high"))
    coverage = f"{100.0 * side['coverage']:.1f} %" if "coverage" in side else ""
    return Mark(
        which,
        place(low),
        place(bias),
        place(high),
        f"{bias:.5g}",
        f"{low:.5g}",
        f"{high:.5g}",
        words.signed(bias),
        interval(low, high),
        bool(side["off"]),
        coverage,
        str(side.get("since", "")),
    )
