"""The hint's own record: the errors that it would have made by itself, and what overruling it has cost."""

import math

import numpy as np

from swapcal.roles import Row
from swapcal.typing import Float64Array

__all__ = ["CLEAN", "HintRecord"]

CLEAN = 2.0
"""Squared standard errors, for each unit of 1 + ln n, that a clean record may show."""


class HintRecord:
    """Per function the sum of x V(hint, y) and of its square; and for all rounds with a hint, five totals.

    Totals: rounds; sum of V(hint)^2; what overruling hints has cost in loss, and the sum of squares of that; values
    that hints have added to the grid. The loss is the one of which V is the derivative, by the trapezoid rule.

    Parameters
    ----------
    n : int
        Number of functions.
    """

    __slots__ = ("squares", "sums", "totals")

    def __init__(self, n: int) -> None:
        self.sums, self.squares = np.zeros(n), np.zeros(n)
        self.totals = np.zeros(5)

    def clean(self, row: Row) -> bool:
        """Whether no active function shows bias of the hint beyond doubt.

        One more outcome as large as any can be must not clear or convict a hint, so each sum is first moved by 1
        towards 0.
        """
        limit = CLEAN * (1.0 + math.log(max(float(self.totals[0]), 1.0)))
        beyond = np.maximum(np.abs(self.sums.take(row.indices)) - 1.0, 0.0)
        return bool((beyond * beyond <= limit * self.squares.take(row.indices)).all())

    @property
    def missed(self) -> bool:
        """Whether overruling hints has cost more than it has gained, by a standard error."""
        return float(self.totals[2]) > math.sqrt(float(self.totals[3]))

    def add(self, row: Row, v_hint: float, overruled: float | None) -> None:
        """A round with a hint: V there, and the loss of the forecast over the hint's where it was overruled."""
        gains = row.values * v_hint
        self.sums[row.indices] += gains
        self.squares[row.indices] += gains * gains
        self.totals[0] += 1.0
        self.totals[1] += v_hint * v_hint
        if overruled is not None:
            self.totals[2] += overruled
            self.totals[3] += overruled * overruled

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {"sums": self.sums, "squares": self.squares, "totals": self.totals}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""
        self.sums, self.squares, self.totals = (arrays[name].copy() for name in ("sums", "squares", "totals"))
