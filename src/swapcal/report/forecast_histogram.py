"""How forecasts are spread, before and after."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.audit import MEAN
from swapcal.audit.summary import ColumnSummary
from swapcal.jobs.result import Result
from swapcal.report.drawing import axes_or_new, bin_places, dress, legend, note, side_label, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.roles import Elicitable
from swapcal.words.numbers import number
from swapcal.words.property_words import NamedProperty, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ForecastHistogram"]


@dataclass(frozen=True, slots=True, eq=False)
class ForecastHistogram:
    """Rows by bins of forecasts: whether forecasts kept their spread.

    Parameters
    ----------
    before, after
        The model's own forecasts, and swapcal's; either may be None.
    property
        What is forecast.
    """

    before: ColumnSummary | None
    after: ColumnSummary | None
    property: Elicitable | NamedProperty = MEAN

    @classmethod
    def of(cls, result: Result) -> "ForecastHistogram":
        """The histogram of a result."""
        return cls(result.before, result.after, result.property)

    def sides(self) -> dict[str, ColumnSummary]:
        """The sides there are, by "before" and "after"."""
        return {w: side for w, side in (("before", self.before), ("after", self.after)) if side is not None}

    def frame(self, backend: str | None = None) -> Any:
        """The bins: side, low, high, count."""
        columns: dict[str, list[Any]] = {name: [] for name in ("side", "low", "high", "count")}
        for which, side in self.sides().items():
            columns["side"] += [which] * len(side.histogram)
            columns["low"] += side.edges[:-1].tolist()
            columns["high"] += side.edges[1:].tolist()
            columns["count"] += np.asarray(side.histogram, dtype=np.float64).tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the histogram shows, in a sentence."""
        parts = []
        for kind, side in self.sides().items():
            which = kind if len(self.sides()) > 1 else side.label or kind
            total = float(side.histogram.sum())
            if total <= 0.0:
                parts.append(f"{which}: no forecasts")
                continue
            at, used = int(np.argmax(side.histogram)), int(np.sum(side.histogram > 0))
            share = number(100.0 * float(side.histogram[at]) / total)
            ends = f"{number(float(side.edges[at]))} to {number(float(side.edges[at + 1]))}"
            parts.append(
                f"{which}: {used} of {len(side.histogram)} bins are used, most often {ends} ({share} % of the rows)"
            )
        return f"Spread of forecasts. {'. '.join(part[0].upper() + part[1:] for part in parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.0)
        words = property_words(self.property)
        dress(ax, f"forecast: {words.name}", "rows", grid="y", pad=24.0)
        sides = {which: side for which, side in self.sides().items() if side.histogram.sum() > 0}
        if not sides:
            note(ax, "nothing was forecast")
            return ax
        alone = len(sides) == 1
        edges = next(iter(sides.values())).edges
        together = all(np.array_equal(side.edges, edges) for side in sides.values())
        places, write_places = bin_places(edges)
        for which, side in sides.items():
            borders = places if together else side.edges
            filled = which == "after" or alone
            ax.stairs(
                side.histogram,
                borders,
                color=LIGHT[which],
                fill=filled,
                alpha=0.3 if filled else 1.0,
                linewidth=1.8,
                label=side_label(which, side.label, alone, 16),
                gid=which,
            )
            if filled:
                ax.stairs(side.histogram, borders, color=LIGHT[which], linewidth=1.8, gid=which)
        if together:
            at = np.nonzero(np.any([side.histogram > 0 for side in sides.values()], axis=0))[0]
            few = len(at) < 0.5 * len(places)
            first, last = (max(0, at[0] - 2), min(len(places) - 1, at[-1] + 3)) if few else (0, len(places) - 1)
            ax.set_xlim(float(places[first]), float(places[last]))
            write_places(ax)
        else:
            ax.xaxis.set_major_formatter(thousands)
        ax.set_ylim(bottom=0.0)
        ax.yaxis.set_major_formatter(thousands)
        ax.locator_params(axis="y", nbins=5)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=2, handlelength=1.6, borderaxespad=0.0)
        return ax
