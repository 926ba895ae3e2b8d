"""The heat map as a table of the page: cells that can be pointed at, tapped, or reached with the keyboard."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.summary import ColumnSummary
from swapcal.jobs.result import Result
from swapcal.report.cell_map import CellMap
from swapcal.report.palette import step, step_role
from swapcal.report.reliability import FEW
from swapcal.typing import IntArray
from swapcal.words.numbers import count, number, range_text
from swapcal.words.property_words import property_words

__all__ = ["CellTable", "HeatCell", "cell_tables"]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell: the role of its color, whether its rows are few, and its numbers in words."""

    role: str
    few: bool
    words: str


@dataclass(frozen=True, slots=True)
class CellTable:
    """One side: names of bins (all, and those that are printed under the table), and rows of cells by group."""

    which: str
    label: str
    bins: tuple[str, ...]
    ticks: tuple[str, ...]
    end: str
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    finding: str


def cell_tables(result: Result, limit: int = 40) -> tuple[list[CellTable], str, int]:
    """Tables of the sides there are, with the same groups, bins and colors; the end of the colors; groups left out."""
    sides = result.columns
    if not sides:
        return [], "", 0
    maps = {w: CellMap(side, result.groups, result.property, limit) for w, side in sides.items()}
    order = next(iter(maps.values())).order()
    scale = max(each.scale() for each in maps.values())
    tables = [_table(w, maps[w], order, scale, _used(list(sides.values()))) for w in maps]
    return tables, _end(result, scale), len(result.groups) - len(order)


def _end(result: Result, scale: float) -> str:
    words = property_words(result.property)
    return f"{number(scale * words.scale, 2)} {words.unit}".strip()


def _used(sides: list[ColumnSummary]) -> slice:
    """The bins from the first to the last that any side used; all, if the sides have different bins."""
    if len({len(side.edges) for side in sides}) > 1:
        return slice(None)
    at = np.nonzero(np.sum([np.nan_to_num(side.histogram) for side in sides], axis=0))[0]
    return slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(None)


def _table(which: str, drawn: CellMap, order: IntArray, scale: float, used: slice) -> CellTable:
    side, words = drawn.side, property_words(drawn.property)
    at = range(*used.indices(len(side.edges) - 1))
    bins = tuple(range_text(float(side.edges[i]), float(side.edges[i + 1])) for i in at)
    every = max(1, round(len(bins) / 4))
    # The last name would run into the end of the scale.
    ticks = tuple(
        text.split(" to ")[0] if k % every == 0 and len(bins) - k > every // 2 else "" for k, text in enumerate(bins)
    )
    rows = []
    for j in order:
        cells: list[HeatCell | None] = []
        for i, text in zip(at, bins, strict=True):
            n, bias = float(side.counts[i, j]), float(side.bias[i, j])
            if not (n > 0.0 and np.isfinite(bias)):
                cells.append(None)
                continue
            said = f"{text} was forecast for {count(n)} row{'s' if n != 1.0 else ''}: {words.bias(bias)}"
            cells.append(HeatCell(step_role(step(bias, scale)), n < FEW, said))
        rows.append((drawn.groups[j], tuple(cells)))
    return CellTable(
        which, side.label, bins, ticks, bins[-1].split(" to ")[1] if bins else "", tuple(rows), drawn.finding()
    )
