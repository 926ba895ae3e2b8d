"""Which forecasts still wait for their outcome: one byte for each of the last `window` rounds, and no more."""

import numpy as np
import numpy.typing as npt

from swapcal.errors import AlreadyUpdated, ExpiredForecast, UnknownForecast

__all__ = ["Pending"]


class Pending:
    """Makes every forecast good for exactly one update.

    Rounds are numbered as they are issued. The flag of round t stands at position t mod `window`; issuing round t +
    window overwrites it, and a forecast of round t can then no longer be updated. Memory is `window` bytes however
    many outcomes never come.
    """

    __slots__ = ("flags", "numbers")

    def __init__(self, window: int) -> None:
        self.flags: npt.NDArray[np.uint8] = np.zeros(window, dtype=np.uint8)
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

    def issue(self) -> int:
        """The number of a new round, now open."""
        t = self.issued
        position = t % len(self.flags)
        self.numbers += (1, 1 - int(self.flags[position]))
        self.flags[position] = 1
        return t

    def check(self, t: int) -> None:
        """Raise unless round `t` is open."""
        if not 0 <= t < self.issued:
            raise UnknownForecast(f"round {t} was never forecast here; rounds so far go from 0 to {self.issued - 1}")
        if t < self.issued - len(self.flags):
            raise ExpiredForecast(
                f"the forecast of round {t} is more than {len(self.flags)} rounds old and has expired; "
                "give max_pending= a larger value if outcomes come this late"
            )
        if not self.flags[t % len(self.flags)]:
            raise AlreadyUpdated(f"the forecast of round {t} has had its outcome; each forecast is updated once")

    def close(self, t: int) -> None:
        """Mark round `t` as updated."""
        self.flags[t % len(self.flags)] = 0
        self.numbers[1] -= 1
