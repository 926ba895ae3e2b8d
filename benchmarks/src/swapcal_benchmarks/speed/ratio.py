"""Ratios of times: the two sides in turns, the median of the ratios.

Times are processor times of the thread that works, so that other programs on the machine count little; work that one
side hands to other threads is not held against it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["Ratio", "Side", "compare", "median"]

Side = Callable[[], Callable[[], object]]
"""Makes everything ready, untimed, and returns the work to be timed."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the repeats, and their quartiles."""

    measured: float
    low: float
    high: float

    def row(
        self, section: str, what: str, against: str, target: float | None = None, *, least: bool = False, note: str = ""
    ) -> TargetRow:
        """A line of the benchmark."""
        return TargetRow(
            section=section,
            what=what,
            against=against,
            measured=self.measured,
            target=target,
            least=least,
            low=self.low,
            high=self.high,
            note=note,
        )


def median(ratios: Sequence[float]) -> Ratio:
    """The median with the quartiles.

    Examples
    --------
    >>> median([3.0, 1.0, 2.0])
    Ratio(measured=2.0, low=1.5, high=2.5)
    """
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
    return Ratio(middle, low, high)


def compare(
    ours: Side, theirs: Side, repeats: int, *, scale: float = 1.0, clock: Callable[[], float] = time.thread_time
) -> Ratio:
    """How many times longer our side takes than theirs.

    Parameters
    ----------
    ours, theirs : Side
        What is compared. A first turn of both warms caches up and is not counted.
    repeats : int
        Turns; who goes first alternates.
    scale : float
        Factor of every ratio, such as theirs rounds over ours where the sides play streams of different lengths.
    clock : callable
        Seconds.
    """
    sides = (ours, theirs)
    for side in sides:
        side()()
    ratios = []
    for turn in range(repeats):
        times = [0.0, 0.0]
        for k in (0, 1) if turn % 2 == 0 else (1, 0):
            work = sides[k]()
            start = clock()
            work()
            times[k] = clock() - start
        ratios.append(scale * times[0] / times[1])
    return median(ratios)
