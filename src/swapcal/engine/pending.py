"""Which forecasts still wait for their outcome: four bytes for each of the last `window` rounds, and no more."""

import numpy as np
import numpy.typing as npt

from swapcal.errors import AlreadyUpdated, ExpiredForecast, UnknownForecast
from swapcal.typing import IntArray

__all__ = ["UNMARKED", "Pending"]

UNMARKED = 1
"""The mark of open rounds that never leave: those that `run` keeps itself."""

_FIRST = 1 << 10


class Pending:
    """Makes every forecast good for exactly one update.

    Rounds are numbered as they are issued. The flag of round t stands at position t mod the length of `flags`, which is
    doubled as rounds wait for longer, up to `window`; from then on issuing round t + window overwrites it, and a
    forecast of round t can then no longer be updated. Memory is 4 `window` bytes at most, however many outcomes never
    come, and four kilobytes where none is late. A flag is 0 for a round that does not wait, and else its `marks.mark`.

    Parameters
    ----------
    window : int
        How many rounds a forecast can wait.
    """

    __slots__ = ("flags", "numbers", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.flags: npt.NDArray[np.uint32] = np.zeros(min(_FIRST, window), dtype=np.uint32)
        # In an array, because kernels count too.
        self.numbers: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def issued(self) -> int:
        """Rounds so far."""
        return int(self.numbers[0])

    @property
    def open(self) -> int:
        """Rounds that wait for their outcome."""
        return int(self.numbers[1])

    @property
    def full(self) -> bool:
        """Whether the next round would overwrite one that waits, though there may be room for it."""
        return len(self.flags) < self.window and bool(self.flags[self.issued % len(self.flags)])

    def issue(self) -> tuple[int, bool]:
        """The number of a new round, now open; and whether another has expired for it."""
        t = self.issued
        position = t % len(self.flags)
        expired = bool(self.flags[position])
        self.numbers += (1, 0 if expired else 1)
        self.flags[position] = UNMARKED
        return t, expired

    def mark(self, t: int, mark: int) -> None:
        """Know round `t` by its mark from now on."""
        self.flags[t % len(self.flags)] = mark

    def check(self, t: int) -> None:
        """Raise unless round `t` is open."""
        if not 0 <= t < self.issued:
            raise UnknownForecast(
                f"round {t} was never forecast here, where {self.issued:,} rounds were, counted from 0; if a copy of "
                "this forecaster made the forecast (a fork, or one loaded from its file), give the outcome to that one"
            )
        if t < self.issued - self.window:
            raise ExpiredForecast(
                f"the forecast of round {t} is more than {self.window:,} rounds old and has expired; "
                "give max_pending= a larger value if outcomes come this late"
            )
        if t < self.issued - len(self.flags) or not self.flags[t % len(self.flags)]:
            raise AlreadyUpdated(f"the forecast of round {t} has had its outcome; each forecast is updated once")

    def is_open(self, t: int) -> bool:
        """Whether round `t` waits for its outcome."""
        return max(0, self.issued - len(self.flags)) <= t < self.issued and bool(self.flags[t % len(self.flags)])

    def close(self, t: int) -> None:
        """Mark round `t` as updated."""
        self.flags[t % len(self.flags)] = 0
        self.numbers[1] -= 1

    def grow(self) -> None:
        """Make room for rounds that wait for longer."""
        rounds = self.waiting()
        self._take(rounds, self.marks(rounds), min(2 * len(self.flags), self.window))

    def waiting(self) -> IntArray:
        """The numbers of the rounds that wait, in increasing order."""
        size = len(self.flags)
        ages = (self.issued - 1 - np.flatnonzero(self.flags)) % size
        return np.sort(self.issued - 1 - ages)

    def marks(self, rounds: IntArray) -> npt.NDArray[np.uint32]:
        """The marks of open rounds."""
        marks: npt.NDArray[np.uint32] = self.flags[rounds % len(self.flags)]
        return marks

    def restore(self, issued: int, waiting: IntArray, marks: npt.NDArray[np.uint32]) -> None:
        """Continue where `issued` rounds were made and those in `waiting` are open, with these marks."""
        oldest = issued - int(waiting[0]) if len(waiting) else 0
        size = len(self.flags)
        while size < min(oldest, self.window):
            size = min(2 * size, self.window)
        self.numbers[:] = issued, len(waiting)
        self._take(waiting, marks, size)

    def _take(self, waiting: IntArray, marks: npt.NDArray[np.uint32], size: int) -> None:
        self.flags = np.zeros(size, dtype=np.uint32)
        self.flags[waiting % size] = marks
