"""The error as the stream goes by: a look after 100 rounds, and each time a quarter more."""

import numpy as np

from swapcal.jobs.result import History
from swapcal.jobs.rowcuts import sliced
from swapcal.jobs.tally import Tally
from swapcal.roles import Rows
from swapcal.typing import Float64Array

__all__ = ["Looks"]

FIRST, PACE = 100, 1.25


class Looks:
    """Adds rounds to a tally, and notes its swap error at fixed numbers of rounds, whatever the batches are.

    Batches are cut where a look is due: some 50 times in ten million rounds.
    """

    def __init__(self, tally: Tally, r: float) -> None:
        self.tally = tally
        self.r = r
        self._due = FIRST
        self._noted: list[tuple[int, float]] = []

    def add(self, y: Float64Array, p: Float64Array, rows: Rows, weights: Float64Array | None = None) -> None:
        """Add rounds, as `Tally.add` does."""
        start = 0
        while start < len(y):
            end = min(len(y), start + self._due - self.tally.n_rounds)
            whole = start == 0 and end == len(y)
            part = slice(start, end)
            w = None if weights is None else weights[part]
            self.tally.add(y[part], p[part], rows if whole else sliced(rows, start, end), w)
            start = end
            if self.tally.n_rounds >= self._due:
                self._note()
                self._due = int(self._due * PACE)

    def _note(self) -> None:
        self._noted.append((self.tally.n_rounds, self.tally.swap_error(self.r)))

    def history(self) -> History:
        """What was noted, and the error now."""
        if not self._noted or self._noted[-1][0] < self.tally.n_rounds:
            self._note()
        rounds, errors = (np.array(each, dtype=np.float64) for each in zip(*self._noted, strict=True))
        return History(rounds=rounds, before=errors, after=None, guarantee=None)
