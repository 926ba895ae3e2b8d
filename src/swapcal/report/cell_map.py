"""The heat map of cells: bias by bins of forecasts and groups, to see at a glance where it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.audit import MEAN
from swapcal.audit.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.jobs.result import Result
from swapcal.report.drawing import SMALL, axes_or_new, bin_places, dress, note, plain_text
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT, N_STEPS, step, step_role
from swapcal.report.reliability import FEW
from swapcal.roles import Elicitable
from swapcal.typing import IntArray
from swapcal.words.names import group_name
from swapcal.words.numbers import MINUS, count, number
from swapcal.words.property_words import NamedProperty, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CellMap"]


@dataclass(frozen=True, slots=True, eq=False)
class CellMap:
    """The mean identification of every cell (bin of forecasts, group) of one column of forecasts.

    Green: forecasts were too high; purple: too low; no square: nothing was forecast there; a small square: fewer than
    30 rows. Groups with the largest error come first, after "all".

    Parameters
    ----------
    side
        The column of forecasts.
    groups
        Names in the order of the columns of `side.bias`.
    property
        What is forecast.
    limit
        At most this many groups are drawn; `frame` holds all of them.
    """

    side: ColumnSummary
    groups: tuple[str, ...]
    property: Elicitable | NamedProperty = MEAN
    limit: int = 30

    @classmethod
    def of(cls, result: Result, which: str = "after", limit: int = 30) -> "CellMap":
        """The map of one side of a result: "before" or "after"."""
        side = result.columns.get(which)
        if side is None:
            raise InvalidInput(f"this result has no forecasts {which!r}; a map can be of 'before' or 'after'")
        return cls(side, result.groups, result.property, limit)

    def order(self) -> IntArray:
        """Positions of the groups that are drawn: "all" first, then the worst first, then linear functions."""
        groups = self.side.known_groups
        linear = range(len(groups.name), len(self.groups))
        return np.array([0, *groups.ranked().tolist(), *linear], dtype=np.int64)[: self.limit]

    def scale(self) -> float:
        """The bias at which colors end: the 0.98 quantile over cells with enough rows, as one cell must not decide."""
        size = np.abs(self.side.bias[np.isfinite(self.side.bias) & (self.side.counts >= FEW)])
        if not len(size):
            size = np.abs(self.side.bias[np.isfinite(self.side.bias)])
        return max(float(np.quantile(size, 0.98)), 1e-9) if len(size) else 1.0

    def frame(self, backend: str | None = None) -> Any:
        """The cells that hold rows: group, low and high end of the bin, bias (mean identification), count."""
        bins, groups = np.nonzero(np.isfinite(self.side.bias) & (self.side.counts > 0))
        columns = {
            "group": [self.groups[j] for j in groups],
            "low": self.side.edges[bins].tolist(),
            "high": self.side.edges[bins + 1].tolist(),
            "bias": self.side.bias[bins, groups].tolist(),
            "count": self.side.counts[bins, groups].tolist(),
        }
        return frame(columns, backend)

    def finding(self) -> str:
        """What the map shows, in a sentence."""
        words, side = property_words(self.property), self.side
        enough = np.isfinite(side.bias) & (side.counts >= FEW)
        if not enough.any():
            return f"Bias by forecast and group, {side.label}: no cell has {FEW} rows or more."
        at = np.unravel_index(int(np.argmax(np.where(enough, np.abs(side.bias), -1.0))), side.bias.shape)
        low, high = number(float(side.edges[at[0]])), number(float(side.edges[at[0] + 1]))
        where = (
            f"{group_name(self.groups[at[1]])} where {low} to {high} was forecast: {words.bias(float(side.bias[at]))}"
        )
        return (
            f"Bias by forecast and group, {side.label}: among cells with {FEW} rows or more "
            f"({count(float(enough.sum()))}), the largest bias is for {where}."
        )

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        order = self.order()
        ax = axes_or_new(ax, height=1.5 + 0.24 * max(4, len(order)))
        words, side, scale = property_words(self.property), self.side, self.scale()
        dress(ax, f"forecast: {words.name}", "group", grid="none", pad=24.0)
        if not len(order):
            note(ax, "there are no groups")
            return ax
        from matplotlib.collections import PolyCollection

        squares, colors = [], []
        places, write_places = bin_places(side.edges)
        for row, j in enumerate(order):
            for i in np.nonzero(np.isfinite(side.bias[:, j]) & (side.counts[:, j] > 0))[0]:
                left, right = float(places[i]), float(places[i + 1])
                # A small square keeps its center.
                gap, inset = (0.46, 0.27) if side.counts[i, j] < FEW else (0.04, 0.46)
                pad = 0.5 * gap * (right - left)
                x, y = (left + pad, right - pad), (row - inset, row + inset)
                squares.append([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])
                colors.append(LIGHT[step_role(step(float(side.bias[i, j]), scale))])
        ax.add_collection(PolyCollection(squares, facecolors=colors, edgecolors="none"), autolim=False)
        ax.set_xlim(float(places[0]), float(places[-1]))
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.set_yticks(range(len(order)), [plain_text(group_name(self.groups[j])) for j in order], fontsize=SMALL)
        write_places(ax)
        self._key(ax, scale)
        return ax

    def _key(self, ax: "Axes", scale: float) -> None:
        """Shades and what they stand for, above the map."""
        words = property_words(self.property)
        end = f"{number(scale * words.scale, 2)} {words.unit}".strip()
        shades = range(-N_STEPS, N_STEPS + 1)
        marks = [(0.35, f"{MINUS}{end}", "right", LIGHT["muted"]), (0.69, f"+{end}", "left", LIGHT["muted"])]
        marks += [(0.52 + 0.15 * k / N_STEPS, "■", "center", LIGHT[step_role(k)]) for k in shades]
        for place, text, align, color in marks:
            ax.annotate(
                text,
                (place, 1.0),
                xycoords="axes fraction",
                xytext=(0, 8),
                textcoords="offset points",
                ha=align,
                fontsize=SMALL,
                color=color,
            )
