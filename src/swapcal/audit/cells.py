"""Cells: one row per forecast value and function, with an interval that is honest for all of them together."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, overload

import numpy as np

from swapcal.audit.radii import adaptive_radius, independent_radius
from swapcal.audit.sums import SumTable
from swapcal.checked import real
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray
from swapcal.words.numbers import aligned, count, interval, number, percent

__all__ = ["Assumption", "Cell", "Cells", "cell_radii", "ends_of", "make_cells"]

Assumption = Literal["adaptive", "independent"]
"""What an interval assumes of the rounds: nothing, or independent labels given all contexts and forecasts."""

N_PRINTED = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """What happened when `value` was forecast and the function was not zero.

    mean = sum of f V / sum of |f| (for a group, the mean of V over its members): positive says that forecasts were
    too high. [low, high] is its interval; contribution = n_p |sum of f V / n_p|^r, what the cell alone would add to
    the error.

    Parameters
    ----------
    value, function, name, count, weight, mean, low, high, contribution
        As above: the forecast, which function, its name, rounds, the sum of |f|, and the numbers.

    Examples
    --------
    >>> Cell(0.3, 0, "everybody", 100, 100.0, 0.02, -0.01, 0.05, 0.04).name
    'everybody'
    """

    value: float
    function: int
    name: str
    count: int
    weight: float
    mean: float
    low: float
    high: float
    contribution: float


COLUMNS = tuple(field.name for field in fields(Cell))


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Cells in columns, the largest contribution first. Iterate, index or slice it; `to_dict` feeds any data frame.

    The intervals hold for all cells of the audit at once with probability `confidence`, so picking the worst ones is
    fair.

    Parameters
    ----------
    value, function, name, count, weight, mean, low, high, contribution
        The columns; see `Cell`.
    confidence : float
        Probability with which all intervals hold together.
    rounds : {"adaptive", "independent"}
        What they assume of the rounds.

    Examples
    --------
    >>> from swapcal.audit import Audit
    >>> audit = Audit(n=1)
    >>> audit.update_many([1, 0], [0.5, 0.5], [[1], [1]])
    >>> len(audit.cells()), audit.cells()[0].mean
    (1, 0.0)
    """

    value: Float64Array
    function: IntArray
    name: tuple[str, ...]
    count: IntArray
    weight: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    contribution: Float64Array
    confidence: float
    rounds: Assumption

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Cell]:
        return (Cell(*row) for row in zip(*self.to_dict().values(), strict=True))

    @overload
    def __getitem__(self, key: int) -> Cell: ...
    @overload
    def __getitem__(self, key: slice) -> "Cells": ...
    def __getitem__(self, key: int | slice) -> "Cell | Cells":
        kept = range(len(self))[key]
        return next(iter(self._taken([kept]))) if isinstance(kept, int) else self._taken(list(kept))

    @property
    def biased(self) -> "Cells":
        """The cells whose interval leaves out 0: bias that chance does not explain."""
        return self._taken(np.flatnonzero((self.low > 0) | (self.high < 0)).tolist())

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column, of plain Python values."""
        return {
            name: list(self.name) if name == "name" else getattr(self, name).tolist()  # the names are a tuple already
            for name in COLUMNS
        }

    def _taken(self, kept: list[int]) -> "Cells":
        columns = {name: getattr(self, name)[kept] for name in COLUMNS if name != "name"}
        names = tuple(self.name[i] for i in kept)
        return Cells(**columns, name=names, confidence=self.confidence, rounds=self.rounds)

    def __repr__(self) -> str:
        shown = self[:N_PRINTED]
        columns = {
            "forecast": [number(value, 6) for value in shown.value.tolist()],
            "function": list(shown.name),
            "rounds": [count(rounds) for rounds in shown.count.tolist()],
            "mean V": aligned(shown.mean.tolist(), sign=True),
            f"{percent(self.confidence)} interval": [interval(cell.low, cell.high) for cell in shown],
            "contribution": [number(value) for value in shown.contribution.tolist()],
        }
        rows = [tuple(columns), *zip(*columns.values(), strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        if len(self) > N_PRINTED:
            lines.append(f"... and {len(self) - N_PRINTED} more cells")
        return "\n".join(lines)


def cell_radii(table: SumTable, confidence: float, rounds: Assumption, n_possible: int | None) -> Float64Array:
    """Radii of the sums of f V in every cell, shape (n_values, n), that hold together; 0 where f was always 0.

    K cells are not empty, and `n_possible` says how many there can ever be, if that is known. "independent": each gets
    (1 - confidence) / K. "adaptive": K may depend on the labels, so each gets (1 - confidence) / n_possible. If that is
    unknown, the k-th cell to appear gets (1 - confidence) / (k (k + 1)), which adds up for any number of cells; all are
    given the last one's share, which is no larger.
    """
    level = real(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInput(f"confidence must be between 0 and 1, both left out; got {level!r}")
    occupied = table.active > 0
    n_cells = max(int(np.count_nonzero(occupied)), 1)
    if rounds == "adaptive":
        radii = adaptive_radius(table.xvxv, (1 - level) / (n_possible or n_cells * (n_cells + 1)))
    elif rounds == "independent":
        radii = independent_radius(table.active, table.xv, table.xvxv, (1 - level) / n_cells)
    else:
        raise InvalidInput(f"rounds must be 'adaptive' or 'independent'; got {rounds!r}")
    return np.where(occupied, radii, 0.0)


def ends_of(table: SumTable, radii: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Intervals of the means of all cells, from the radii of their sums."""
    weight = np.where(table.weight > 0, table.weight, 1.0)
    mean = table.xv / weight
    with np.errstate(over="ignore"):  # tiny weights: the interval is everything, and is cut to [-1, 1]
        radius = radii / weight
    return np.maximum(mean - radius, -1.0), np.minimum(mean + radius, 1.0)


def make_cells(
    table: SumTable,
    ends: tuple[Float64Array, Float64Array],
    names: tuple[str, ...],
    r: float,
    confidence: float,
    rounds: Assumption,
) -> Cells:
    """All cells that are not empty; `ends` are those of the intervals, shape (values, functions) each."""
    at, function = np.nonzero(table.active > 0)
    weight, count = table.weight[at, function], table.count[at]
    mean = table.xv[at, function] / weight
    low, high = (end[at, function] for end in ends)
    contribution = count * np.abs(table.xv[at, function] / count) ** r
    order = np.argsort(-contribution, kind="stable")
    return Cells(
        value=table.value[at][order],
        function=function[order],
        name=tuple(names[j] for j in function[order]),
        count=table.active[at, function][order].astype(np.int64),
        weight=weight[order],
        mean=mean[order],
        low=low[order],
        high=high[order],
        contribution=contribution[order],
        confidence=float(confidence),
        rounds=rounds,
    )
