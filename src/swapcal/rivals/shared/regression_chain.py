"""What the oracle-efficient methods of Garg et al. share: copies of a regression, rounded, and their chain's cycle."""

from collections.abc import Sequence

import numpy as np

from swapcal.engine.grid import Grid
from swapcal.engine.published import Plan
from swapcal.roles import Row
from swapcal.typing import Float64Array, IntArray

__all__ = ["affine", "cycle", "play_cycle", "rounded"]


def cycle(successors: Sequence[int], start: int) -> tuple[int, ...]:
    """The cycle into which `start` runs when every state i is followed by `successors[i]`.

    The uniform distribution on it is stationary for the chain whose row i is a point mass at `successors[i]`; O(m).

    Examples
    --------
    >>> cycle([1, 2, 1, 0], 3)
    (1, 2)
    """
    seen: dict[int, int] = {}
    state = start
    while state not in seen:
        seen[state] = len(seen)
        state = successors[state]
    return tuple(seen)[seen[state] :]


def rounded(forecasts: Float64Array, n_bins: int) -> list[int]:
    """The bin of each copy's forecast, given in widths of the domain: row i of the chain is a point mass there."""
    chosen: list[int] = np.clip(forecasts * n_bins, 0, n_bins - 1).astype(np.int64).tolist()
    return chosen


def play_cycle(successors: Sequence[int], grid: Grid) -> Plan:
    """The uniform distribution on the cycle reached from the middle; the notes are its states."""
    states = cycle(successors, grid.n // 2)
    values = tuple(grid.midpoint(i) for i in states)
    return Plan(values, (1.0 / len(states),) * len(states), states)


def affine(row: Row, n: int) -> tuple[IntArray, Float64Array]:
    """The context of length `n` with a constant behind it."""
    return np.append(row.indices, n), np.append(row.values, 1.0)
