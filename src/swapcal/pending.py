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

    __slots__ = ("flags", "issued", "open")

    def __init__(self, window: int) -> None:
        self.flags: npt.NDArray[np.uint8] = np.zeros(window, dtype=np.uint8)
        self.issued = 0
        self.open = 0

    def issue(self) -> int:
        """The number of a new round, now open."""
        t = self.issued
        position = t % len(self.flags)
        self.open += 1 - int(self.flags[position])
        self.flags[position] = 1
        self.issued = t + 1
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
        self.open -= 1
