"""Where a forecast is counted: under its own value, in a bin of a grid, or in a bin between edges."""

from typing import NamedTuple, Protocol

import numpy as np

from swapcal.engine.grid import Grid
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["Between", "Distinct", "Midpoints", "Placed", "Places"]

MOST_VALUES = 20_000
"""Distinct forecasts beyond which nothing can be said of any one of them, and memory would grow with the stream."""


class Placed(NamedTuple):
    """For each forecast: the number of its place, and the value at which it is judged."""

    places: IntArray
    values: Float64Array


class Places(Protocol):
    """Numbers forecasts; places may be added as forecasts come, never taken away."""

    @property
    def n(self) -> int:
        """Places so far."""

    @property
    def fixed(self) -> bool:
        """Whether their number was known before the first forecast."""

    def of(self, p: Float64Array) -> Placed:
        """The places of these forecasts."""

    def state(self) -> Float64Array:
        """What tells the places apart, as an array."""


class Distinct:
    """Each distinct value is a place: for forecasts on a grid, and for exact totals."""

    def __init__(self, values: Float64Array | None = None) -> None:
        self._number: dict[float, int] = {}
        for value in np.zeros(0) if values is None else values:
            self._number[float(value)] = len(self._number)

    @property
    def n(self) -> int:
        """Distinct values so far."""
        return len(self._number)

    @property
    def fixed(self) -> bool:
        """False."""
        return False

    def of(self, p: Float64Array) -> Placed:
        """The number of each value, in the order in which they came up."""
        distinct, which = np.unique(p, return_inverse=True)
        numbers = self._number
        if len(numbers) + len(distinct) > MOST_VALUES:
            new = sum(value not in numbers for value in distinct.tolist())
            if len(numbers) + new > MOST_VALUES:
                raise InvalidInput(
                    f"more than {MOST_VALUES:,} different forecasts leave few rounds for each; give bins (--bins 48)"
                )
        found = [numbers.setdefault(value, len(numbers)) for value in distinct.tolist()]
        return Placed(np.array(found, dtype=np.int64)[which], p)

    def state(self) -> Float64Array:
        """The values in their order."""
        return np.array(list(self._number), dtype=np.float64)


class Midpoints:
    """Forecasts are rounded to the mid-points of equal bins, and judged there."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._midpoints = grid.midpoints

    @property
    def n(self) -> int:
        """Bins."""
        return self.grid.n

    @property
    def fixed(self) -> bool:
        """True."""
        return True

    def of(self, p: Float64Array) -> Placed:
        """The bins, and their mid-points."""
        bins = self.grid.bins(p)
        return Placed(bins, self._midpoints[bins])

    def state(self) -> Float64Array:
        """The mid-points."""
        return self._midpoints


class Between:
    """Forecasts share a bin if no edge lies between them, and are judged at their own value: nothing is rounded."""

    def __init__(self, edges: Float64Array) -> None:
        self.edges = np.unique(np.asarray(edges, dtype=np.float64))

    @property
    def n(self) -> int:
        """Bins: what lies outside the edges belongs to the first or the last."""
        return max(len(self.edges) - 1, 1)

    @property
    def fixed(self) -> bool:
        """True."""
        return True

    def of(self, p: Float64Array) -> Placed:
        """The bins: an inner edge belongs to the bin above it."""
        return Placed(np.searchsorted(self.edges[1:-1], p, side="right"), p)

    def state(self) -> Float64Array:
        """The edges."""
        return self.edges
