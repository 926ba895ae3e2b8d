"""The loss before and after, with the interval of the difference."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swapcal.audit.paired import Paired
from swapcal.errors import InvalidInput
from swapcal.jobs.result import Result
from swapcal.report.drawing import SMALL, axes_or_new, dress, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.words.numbers import percent, precise, relative
from swapcal.words.quantities import capitalized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LossChange"]


@dataclass(frozen=True, slots=True, eq=False)
class LossChange:
    """Mean loss before and after. The interval at "after" is that of the paired difference, laid off from "before".

    Both columns meet the same outcomes, so the difference is known much better than either loss.

    Parameters
    ----------
    paired
        The two losses and the interval of their difference.
    loss_name
        How people call the mean of the loss.
    """

    paired: Paired
    loss_name: str = "loss"

    @classmethod
    def of(cls, result: Result) -> "LossChange":
        """The losses of a result that has both columns."""
        if result.paired is None:
            raise InvalidInput("this result has forecasts of one kind only; a change of loss needs before and after")
        return cls(result.paired, result.loss_name)

    def frame(self, backend: str | None = None) -> Any:
        """One row: loss_name, before, after, difference, low, high, confidence."""
        names = ("before", "after", "difference", "low", "high", "confidence")
        columns: dict[str, list[Any]] = {name: [float(getattr(self.paired, name))] for name in names}
        return frame({"loss_name": [self.loss_name]} | columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        paired = self.paired
        if not self._known():
            beyond = "too few rows for an interval"
        elif paired.low > 0.0:
            beyond = "worse beyond chance"
        elif paired.high < 0.0:
            beyond = "better beyond chance"
        else:
            beyond = "no difference beyond chance"
        low, change, high = (relative(v, paired.before) for v in (paired.low, paired.difference, paired.high))
        interval = f"{percent(paired.confidence)} interval {low} to {high}"
        return (
            f"{capitalized(self.loss_name)}: {precise(paired.before)} before, "
            f"{precise(paired.after)} after, a change of {change} ({interval}): {beyond}."
        )

    def _known(self) -> bool:
        """Whether there were rows enough for an interval."""
        return math.isfinite(self.paired.low) and math.isfinite(self.paired.high)

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=2.3)
        paired = self.paired
        dress(ax, f"{self.loss_name} (lower is better)", "", grid="x")
        ax.plot([paired.before] * 2, [0.0, 1.5], color=LIGHT["before"], linewidth=1.0, linestyle=(0, (4, 3)))
        ends = [paired.before + paired.low, paired.before + paired.high] if self._known() else []
        if ends:
            ax.hlines([1.0], ends[:1], ends[1:], color=LIGHT["after"], linewidth=3.0, alpha=0.5)
        common: dict[str, Any] = {"linestyle": "none", "markersize": 7.0, "markeredgewidth": 1.6}
        ax.plot([paired.before], [0.0], marker="s", color=LIGHT["before"], markerfacecolor=LIGHT["paper"], **common)
        ax.plot([paired.after], [1.0], marker="o", color=LIGHT["after"], **common)
        for value, row, text in (
            (paired.before, 0.0, precise(paired.before)),
            (paired.after, 1.0, f"{precise(paired.after)}  ({relative(paired.difference, paired.before)})"),
        ):
            ax.annotate(
                text,
                (value, row),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
                color=LIGHT["ink"],
            )
        ax.set_yticks([0.0, 1.0], ["before", "after"], fontsize=SMALL)
        ax.set_ylim(1.5, -0.75)
        low, high = min(paired.before, paired.after, *ends), max(paired.before, paired.after, *ends)
        # Room for the numbers; and a difference that is nothing must not fill the picture.
        room = max(0.35 * (high - low), 0.01 * abs(paired.before), 1e-12)
        ax.set_xlim(low - room, high + room)
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(thousands)
        return ax
