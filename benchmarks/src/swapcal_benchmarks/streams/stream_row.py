"""One row of the result: numbers before and after, and whether they meet the criterion."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FLOOR", "LOSS", "StreamErrors", "StreamRow"]

FLOOR = 0.8
"""Swap errors below this many times T^(1/3) need not be halved."""

LOSS = 1.005
"""What the loss may become, in units of the model's own."""


@dataclass(frozen=True, slots=True)
class StreamErrors:
    """Swap, group and overall error: SMCal_2, MCal_2 and Cal_2, totals over the rounds."""

    swap: float
    group: float
    overall: float


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A stream, a question, a model and a kind of hint.

    values: how many can be forecast at the end. before: the model's errors, measured in four ways, by name. after:
    ours, on the values that were spoken, one for each seed. loss_before, losses_after: mean losses; difference, low,
    high: of their means, with a 95 % interval. rounding: loss of the model rounded to our values over its own. clipped,
    hints_clipped: outcomes and the model's forecasts outside the range.
    """

    stream: str
    outcome: str
    question: str
    model: str
    hint: str
    n_rounds: int
    n_groups: int
    values: int
    low: float
    high: float
    jitter: float
    clipped: int
    hints_clipped: int
    before: dict[str, StreamErrors]
    after: tuple[StreamErrors, ...]
    guaranteed: float
    loss_before: float
    losses_after: tuple[float, ...]
    difference: float
    interval: tuple[float, float]
    rounding: float

    @property
    def unit(self) -> float:
        """T^(1/3)."""
        return float(self.n_rounds ** (1 / 3))

    @property
    def swap_after(self) -> float:
        """The mean over seeds."""
        return sum(each.swap for each in self.after) / len(self.after)

    @property
    def loss_ratio(self) -> float:
        """Loss after, the mean over seeds, in units of the model's own."""
        return sum(self.losses_after) / len(self.losses_after) / self.loss_before

    @property
    def to_halve(self) -> float | None:
        """The smallest of the model's errors that are above the floor; None if none is."""
        return min((each.swap for each in self.before.values() if each.swap > FLOOR * self.unit), default=None)

    @property
    def swap_ratio(self) -> float | None:
        """Swap error after over the one to halve, the mean over seeds."""
        return None if self.to_halve is None else self.swap_after / self.to_halve

    @property
    def halved(self) -> bool:
        """Whether it is halved with every seed, or need not be."""
        return self.to_halve is None or max(each.swap for each in self.after) <= 0.5 * self.to_halve

    @property
    def loss_kept(self) -> bool:
        """Whether the loss stays within its limit with every seed."""
        return max(self.losses_after) <= LOSS * self.loss_before

    def data(self) -> dict[str, Any]:
        """Plain data, with what follows from it."""
        derived = ("unit", "swap_after", "to_halve", "swap_ratio", "halved", "loss_ratio", "loss_kept")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}
