"""The grid of forecasts: the one place that turns values into bins and bins into values."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["Grid"]


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
