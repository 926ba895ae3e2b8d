"""One row: a stream, a kind of hint, and the numbers of both engines on it."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["HINTS", "GridRow", "GridScores"]

HINTS = ("none", "frozen", "learning", "truth")
"""Kinds of hint: none, a biased model that does not change, a regression that learns on it, and the truth itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridScores:
    """The numbers of one run.

    swap: SMCal_2 over the groups and, where there is a hint, ten level sets of it. values: how many were spoken. loss,
    hint_loss, truth_loss: means. mean, rate: of the forecasts and the outcomes. log_loss and what follows: of rare
    events; worst_group is the largest relative error of the mean forecast in a group with 500 events or more. near: the
    first rounds whose forecasts were all within 1 % of the hint, relative to its distance from the nearer end.
    """

    swap: float
    values: int
    loss: float
    mean: float
    rate: float
    hint_loss: float | None = None
    truth_loss: float | None = None
    log_loss: float | None = None
    hint_log_loss: float | None = None
    truth_log_loss: float | None = None
    worst_group: float | None = None
    near: int | None = None

    def above_hint(self) -> float | None:
        """Loss above the hint's, in percent of it."""
        return None if self.hint_loss is None else 100.0 * (self.loss / self.hint_loss - 1.0)


@dataclass(frozen=True, slots=True)
class GridRow:
    """Which set of streams, the stream, the kind of hint, rounds; the engine with equal bins (`old`), and this one."""

    group: str
    stream: str
    hint: str
    n_rounds: int
    old: GridScores
    new: GridScores

    @property
    def unit(self) -> float:
        """T^(1/3)."""
        return float(self.n_rounds ** (1.0 / 3.0))

    @property
    def ratio(self) -> float:
        """Swap error over the old one; an error of nothing counts as 1e-12."""
        return max(self.new.swap, 1e-12) / max(self.old.swap, 1e-12)

    @property
    def change(self) -> float:
        """Change of the loss, in percent of the old one."""
        return 100.0 * (self.new.loss / self.old.loss - 1.0)

    def data(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "ratio": self.ratio, "change": self.change}
