"""The worst groups: a dot and an interval each, before and after."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.audit import MEAN
from swapcal.audit.group_bias import GroupBias
from swapcal.audit.summary import ColumnSummary
from swapcal.jobs.result import Result
from swapcal.report.drawing import SMALL, axes_or_new, dress, legend, note, plain_text, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.roles import Elicitable
from swapcal.typing import IntArray
from swapcal.words.names import group_name, readable
from swapcal.words.numbers import counted
from swapcal.words.property_words import NamedProperty, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WorstGroups"]


@dataclass(frozen=True, slots=True, eq=False)
class WorstGroups:
    """Mean bias of "all" and of the worst groups, with intervals that hold for all groups together.

    Parameters
    ----------
    before, after
        The model's own forecasts, and swapcal's; either may be None. Groups are ordered by how far they are off before,
        or after if there is no before: those off beyond doubt first.
    groups
        Names in the order of the columns of `ColumnSummary.bias`.
    property
        What is forecast.
    limit
        At most this many groups besides "all"; `frame` holds every group.
    """

    before: ColumnSummary | None
    after: ColumnSummary | None
    groups: tuple[str, ...]
    property: Elicitable | NamedProperty = MEAN
    limit: int = 12

    @classmethod
    def of(cls, result: Result, limit: int = 12) -> "WorstGroups":
        """The worst groups of a result."""
        return cls(result.before, result.after, result.groups, result.property, limit)

    def sides(self) -> dict[str, GroupBias]:
        """Biases of all groups, by "before" and "after"."""
        given = {"before": self.before, "after": self.after}
        return {which: side.known_groups for which, side in given.items() if side is not None}

    def order(self) -> IntArray:
        """Positions of the groups that are drawn: "all" first, then the worst first; none without rows."""
        sides = self.sides()
        leading = sides.get("before", sides.get("after"))
        if leading is None:
            return np.zeros(0, dtype=np.int64)
        everybody = [0] if len(leading.rows) and leading.rows[0] > 0 else []
        return np.array([*everybody, *leading.ranked()[: self.limit].tolist()], dtype=np.int64)

    def frame(self, backend: str | None = None) -> Any:
        """Every group and side: side, group, count, bias (mean identification), low, high, off (1 or 0), error."""
        names = {"count": "rows", "bias": "mean", "low": "low", "high": "high", "off": "off", "error": "error"}
        columns: dict[str, list[Any]] = {k: [] for k in ("side", "group", *names)}
        for which, found in self.sides().items():
            columns["side"] += [which] * len(found.name)
            columns["group"] += list(found.name)
            for name, field in names.items():
                columns[name] += getattr(found, field).tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        words, parts = property_words(self.property), []
        for which, found in self.sides().items():
            start = f"{which}, " if len(self.sides()) > 1 else ""
            verb = "is" if found.n_off == 1 else "are"
            parts.append(f"{start}{found.n_off} of {counted(found.n_used, 'group')} {verb} off beyond doubt")
            some = [j for j in self.order() if j > 0 and found.rows[j] > 0]
            if some:
                parts[-1] += f"; {readable(self.groups[some[0]])}: {words.bias(float(found.mean[some[0]]))}"
        return f"Worst groups: {'. '.join(parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        order, sides, words = self.order(), self.sides(), property_words(self.property)
        ax = axes_or_new(ax, height=1.4 + 0.33 * max(3, len(order)))
        dress(ax, f"{words.axis()}, with intervals", "group", grid="x", pad=24.0)
        if not len(order):
            note(ax, "no group has rows")
            return ax
        ax.axvline(0.0, color=LIGHT["reference"], linewidth=1.2)
        rows = np.arange(len(order), dtype=np.float64)
        for which, found in sides.items():
            shift = (-0.16 if which == "before" else 0.16) if len(sides) > 1 else 0.0
            mean, low, high = (words.scale * v[order] for v in (found.mean, found.low, found.high))
            ax.hlines(rows + shift, low, high, color=LIGHT[which], linewidth=2.2, alpha=0.5, gid=which)
            ax.plot(
                mean,
                rows + shift,
                linestyle="none",
                marker="s" if which == "before" else "o",
                markersize=5.0,
                color=LIGHT[which],
                markerfacecolor=LIGHT["paper"] if which == "before" else LIGHT[which],
                markeredgewidth=1.3,
                label=which,
                gid=which,
            )
        ax.set_yticks(rows, [plain_text(group_name(self.groups[j])) for j in order], fontsize=SMALL)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.xaxis.set_major_formatter(thousands)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=2, borderaxespad=0.0)
        return ax
