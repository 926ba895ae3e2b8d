"""Notices labels that heap on a few values, in bounded memory."""

import warnings

import numpy as np

from swapcal.errors import AtomsWarning
from swapcal.typing import Float64Array

__all__ = ["Atoms"]

_COUNTERS = 100  # finds every value with a share above 1/100
_SHARE = 0.02  # the share of one value that is called an atom
_FIRST_LOOK = 200


class Atoms:
    """Misra and Gries's frequent values (1982).

    At most 100 counters, each too low by at most a hundredth of the rounds.
    Looks after 200 labels and whenever their number has doubled, and warns once.
    """

    __slots__ = ("counters", "n", "warned")

    def __init__(self) -> None:
        self.counters: dict[float, int] = {}
        self.n = 0
        self.warned = False

    def add(self, y: float) -> None:
        """Count a label, and warn if one value has come too often."""
        self.n += 1
        if y in self.counters:
            self.counters[y] += 1
        elif len(self.counters) < _COUNTERS:
            self.counters[y] = 1
        else:
            self.counters = {value: count - 1 for value, count in self.counters.items() if count > 1}
        if not self.warned and self.n >= _FIRST_LOOK and (self.n & (self.n - 1) == 0 or self.n == _FIRST_LOOK):
            self._look()

    def _look(self) -> None:
        value, count = max(self.counters.items(), key=lambda item: item[1], default=(0.0, 0))
        if count > _SHARE * self.n:
            self.warned = True
            warnings.warn(
                f"{count} or more of the first {self.n} labels are equal to {value:g}, and the quantile's guarantee "
                "assumes labels without such atoms. Pass jitter= the spacing of the labels to spread them out",
                AtomsWarning,
                stacklevel=5,
            )

    def arrays(self) -> dict[str, Float64Array]:
        """The state as one array: values, counts, and the two numbers last."""
        pairs = [*self.counters.items(), (float(self.n), int(self.warned))]
        return {"counters": np.array(pairs, dtype=np.float64)}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""
        *pairs, (n, warned) = arrays["counters"].tolist()
        self.counters = {value: int(count) for value, count in pairs}
        self.n, self.warned = int(n), bool(warned)
