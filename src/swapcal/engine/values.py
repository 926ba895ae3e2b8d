"""The values that can be forecast: a sorted set that only grows, the one place that turns numbers into values."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

# --------
# The grid of forecasts: the one place that turns values into bins and bins into values.


@dataclass(frozen=True, slots=True)
class Grid:
    """`n` equal bins of the interval [low, high], numbered from 0; a bin forecasts its mid-point.

    Bin i is [border(i), border(i + 1)), the last one closed. Cutting every bin into three keeps the old mid-points:
    `refined(3)` is how a forecaster without a horizon gets finer and forgets nothing.

    Parameters
    ----------
    low, high : float
        The ends of the interval.
    n : int
        Number of bins, 1 or more.

    Examples
    --------
    >>> grid = Grid(0.0, 1.0, 4)
    >>> grid.midpoints
    array([0.125, 0.375, 0.625, 0.875])
    >>> grid.bin(0.5), grid.border(2), grid.midpoint(2)
    (2, 0.5, 0.625)
    """

    low: float
    high: float
    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise InvalidInput(f"a grid needs a whole number of bins, 1 or more; got {self.n!r}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidInput(f"a grid needs finite ends with low < high; got low={self.low!r}, high={self.high!r}")

    @property
    def width(self) -> float:
        """Width of a bin."""
        return (self.high - self.low) / self.n

    def border(self, i: int) -> float:
        """Left end of bin `i`; `border(n)` is the right end of the last one.

        Parameters
        ----------
        i : int
            From 0 to n.

        Returns
        -------
        float
            In the domain.
        """
        return self.low + (self.high - self.low) * (i / self.n)

    def midpoint(self, i: int) -> float:
        """The value that bin `i` forecasts.

        Parameters
        ----------
        i : int
            From 0 to n - 1.

        Returns
        -------
        float
            In the domain.
        """
        # (2i + 1) / 2n is the same rational number after `refined`, so it rounds to the same float.
        return self.low + (self.high - self.low) * ((2 * i + 1) / (2 * self.n))

    @property
    def midpoints(self) -> Float64Array:
        """The values that can be forecast, in increasing order."""
        return self.low + (self.high - self.low) * ((2 * np.arange(self.n) + 1) / (2 * self.n))

    def bin(self, value: float) -> int:
        """The bin that holds `value`; values outside the interval belong to the nearest bin.

        Parameters
        ----------
        value : float
            In the domain.

        Returns
        -------
        int
            From 0 to n - 1.
        """
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        i = min(int(share * self.n), self.n - 1)
        # The quotient may be rounded across a border, by one bin at most.
        if i > 0 and value < self.border(i):
            return i - 1
        return i + 1 if i < self.n - 1 and value >= self.border(i + 1) else i

    def bins(self, values: Float64Array) -> IntArray:
        """`bin` for an array.

        Parameters
        ----------
        values : array
            In the domain.

        Returns
        -------
        array of int
            Of the same shape.
        """
        borders = self.low + (self.high - self.low) * (np.arange(1, self.n) / self.n)
        return np.searchsorted(borders, np.asarray(values, dtype=np.float64), side="right")

    def round(self, values: Float64Array) -> Float64Array:
        """Each value replaced by the mid-point of its bin.

        Parameters
        ----------
        values : array
            In the domain.

        Returns
        -------
        array
            Of the same shape.
        """
        return self.midpoints[self.bins(values)]

    def refined(self, factor: int) -> "Grid":
        """The grid with every bin cut into `factor` bins; an odd factor keeps the mid-points.

        Parameters
        ----------
        factor : int
            1 or more.

        Returns
        -------
        Grid
            With n * factor bins.
        """
        return Grid(self.low, self.high, self.n * factor)


ROOM = 32
"""For how many values there is room at first."""


class Values:
    """Values in [low, high], each with a slot that it keeps for good: its place in order of birth.

    Whatever is gathered for a value is kept under its slot; its rank is its place in increasing order. The gap of rank
    i lies between the values of ranks i - 1 and i; the first one begins at `low`, and that of rank n ends at `high`. A
    gap counts what `cuts` adds to it: rounds, their rounding, and their noise. Values are found by bisection, and added
    by shifting ranks: O(log n) and O(n).

    Parameters
    ----------
    low, high : float
        Ends of the domain.
    capacity : int
        For how many values there is room.

    Examples
    --------
    >>> values = Values(0.0, 1.0)
    >>> values.add(0.5), values.add(0.1), values.add(0.3)
    (0, 1, 2)
    >>> values.sorted, values.nearest(0.24), values.slot(1)
    (array([0.1, 0.3, 0.5]), 1, 2)
    """

    __slots__ = ("by_slot", "gaps", "high", "low", "numbers", "order", "ranked")

    def __init__(self, low: float, high: float, capacity: int = ROOM) -> None:
        self.low, self.high = low, high
        self.by_slot: Float64Array = np.zeros(capacity)
        self.order: IntArray = np.zeros(capacity, dtype=np.int64)
        # The values once more, by rank: side by side in memory, where a bisection looks for them.
        self.ranked: Float64Array = np.zeros(capacity)
        self.gaps: Float64Array = np.zeros((capacity + 1, 3))
        # How many; in an array, because kernels count too.
        self.numbers: IntArray = np.zeros(1, dtype=np.int64)

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.numbers[0])

    @property
    def capacity(self) -> int:
        """How many there is room for."""
        return len(self.by_slot)

    @property
    def sorted(self) -> Float64Array:
        """The values in increasing order."""
        return self.ranked[: self.n].copy()

    def unit(self, x: float) -> float:
        """Where `x` lies between the ends, in [0, 1]."""
        return (x - self.low) / (self.high - self.low)

    def slot(self, rank: int) -> int:
        """The slot of the value of a rank."""
        return int(self.order[rank])

    def value(self, rank: int) -> float:
        """The value of a rank."""
        return float(self.ranked[rank])

    def above(self, x: float) -> int:
        """The first rank whose value is at least `x`; n if there is none."""
        return int(np.searchsorted(self.ranked[: self.n], x, side="left"))

    def nearest(self, x: float) -> int:
        """The rank of the value next to `x`, the lower one of two that are as near."""
        i = self.above(x)
        return i - 1 if i == self.n or (i > 0 and x - self.value(i - 1) <= self.value(i) - x) else i

    def find(self, x: float) -> int:
        """The slot of the value `x`; -1 if it is not one."""
        i = self.above(x)
        return self.slot(i) if i < self.n and self.value(i) == x else -1

    def add(self, x: float) -> int:
        """A new value, and its slot. It must not be there yet; both parts of the gap in which it lies start anew."""
        n, i = self.n, self.above(x)
        self.by_slot[n] = x
        for array, own in ((self.order, n), (self.ranked, x)):
            array[i + 1 : n + 1] = array[i:n].copy()
            array[i] = own
        self.gaps[i + 1 : n + 2] = self.gaps[i : n + 1].copy()
        self.gaps[i : i + 2] = 0.0
        self.numbers[0] = n + 1
        return n

    def spread(self, n: int) -> None:
        """Start with the mid-points of `n` equal bins."""
        for midpoint in Grid(self.low, self.high, n).midpoints.tolist():
            self.add(midpoint)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        self.by_slot, self.order, self.ranked = (
            grown(each, capacity) for each in (self.by_slot, self.order, self.ranked)
        )
        self.gaps = grown(self.gaps, capacity + 1)

    def arrays(self) -> dict[str, Any]:
        """The whole state."""
        return {"by_slot": self.by_slot[: self.n], "gaps": self.gaps[: self.n + 1]}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from the state in `arrays`; there must be room for it."""
        n = len(arrays["by_slot"])
        self.by_slot[:n], self.gaps[: n + 1], self.numbers[0] = arrays["by_slot"], arrays["gaps"], n
        self.order[:n] = np.argsort(arrays["by_slot"], kind="stable")
        self.ranked[:n] = self.by_slot[self.order[:n]]


def grown(array: Any, n_rows: int) -> Any:
    """`array` with empty rows behind it, `n_rows` in all."""
    larger = np.zeros((n_rows, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
