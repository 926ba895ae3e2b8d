"""The worst groups as a table of the page: numbers in words and, beside them, a dot with its interval."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.group_bias import CONFIDENCE
from swapcal.jobs.result import Result
from swapcal.report.worst_groups import WorstGroups
from swapcal.words.numbers import count, number, signed
from swapcal.words.property_words import property_words

__all__ = ["GroupRow", "GroupTable", "Mark", "group_table"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One side of one group: places on the strip in percent of its width, and the numbers."""

    which: str
    left: float
    dot: float
    right: float
    words: str
    interval: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group."""

    name: str
    count: str
    marks: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The rows, where zero is, the ends of the strip, and how many groups are not shown."""

    rows: tuple[GroupRow, ...]
    zero: float
    low: str
    high: str
    axis: str
    confidence: str
    left_out: int
    finding: str


def group_table(result: Result, limit: int = 15) -> GroupTable | None:
    """The table of a result, or None where no group has rows."""
    figure, words = WorstGroups.of(result, limit), property_words(result.property)
    order, sides = figure.order(), figure.sides()
    if not len(order):
        return None
    shown = np.concatenate([np.concatenate([v.low[order], v.high[order], [0.0]]) for v in sides.values()])
    least, greatest = float(np.nanmin(shown)), float(np.nanmax(shown))
    room = 0.04 * max(greatest - least, 1e-12)
    least, greatest = least - room, greatest + room

    def place(value: float) -> float:
        return round(100.0 * (value - least) / (greatest - least), 2)

    rows = []
    for j in order:
        marks = {}
        for which, v in sides.items():
            if not v.count[j] > 0.0:
                continue
            low, mean, high = float(v.low[j]), float(v.mean[j]), float(v.high[j])
            said = words.interval(low, high)
            marks[which] = Mark(which, place(low), place(mean), place(high), words.bias(mean), said)
        rows.append(GroupRow(result.groups[j], count(max(float(v.count[j]) for v in sides.values())), marks))
    ends = (f"{signed(v * words.scale, 2)} {words.unit}".strip() for v in (least + room, greatest - room))
    low_text, high_text = ends
    left_out = int(max(np.sum(v.count > 0) for v in sides.values())) - len(order)
    return GroupTable(
        tuple(rows),
        place(0.0),
        low_text,
        high_text,
        words.axis(),
        number(100.0 * CONFIDENCE),
        left_out,
        figure.finding(),
    )
