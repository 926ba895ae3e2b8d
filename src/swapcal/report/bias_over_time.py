"""Bias of everybody and of the worst groups as the stream went by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audit.audit import MEAN
from swapcal.audit.summary import ColumnSummary
from swapcal.audit.timeline import GroupHistory
from swapcal.jobs.result import Result
from swapcal.report.drawing import axes_or_new, dress, legend, note, plain_text, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array
from swapcal.words.group_sentences import since_text
from swapcal.words.names import group_name, readable
from swapcal.words.numbers import count
from swapcal.words.property_words import NamedProperty, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BiasOverTime"]

N_POINTS = 12
N_GROUPS = 2
_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)))


@dataclass(frozen=True, slots=True, eq=False)
class BiasOverTime:
    """Mean bias of everybody and of the two worst groups in about twelve stretches of the stream, one after the other.

    Parameters
    ----------
    side
        One column of forecasts.
    property
        What is forecast.
    """

    side: ColumnSummary
    property: Elicitable | NamedProperty = MEAN

    @classmethod
    def of(cls, result: Result) -> "BiasOverTime":
        """Of the model's own forecasts, or swapcal's where there is no model."""
        side = result.before if result.before is not None else result.after
        assert side is not None
        return cls(side, result.property)

    def lines(self) -> dict[str, tuple[Float64Array, Float64Array]]:
        """Rows so far at the middle of each stretch, and the bias there in units that people read, by group."""
        words = property_words(self.property)
        found = {}
        for name, history in list((self.side.histories or {}).items())[: N_GROUPS + 1]:
            at, mean = _stretches(history)
            found[name] = (at, words.scale * mean)
        return found

    def frame(self, backend: str | None = None) -> Any:
        """One row for each group and stretch: group, rows so far at its middle, bias."""
        columns: dict[str, list[Any]] = {"group": [], "rows": [], "bias": []}
        for name, (at, mean) in self.lines().items():
            columns["group"] += [name] * len(at)
            columns["rows"] += at.tolist()
            columns["bias"] += mean.tolist()
        return frame(columns, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        told = []
        words = property_words(self.property)
        for name, (_, mean) in self.lines().items():
            known = mean[np.isfinite(mean)] / words.scale
            if len(known):
                since = since_text(self.side, name)
                told.append(
                    f"{readable(group_name(name))} from {words.bias(float(known[0]))} to {words.bias(float(known[-1]))}"
                    + (f", off {since}" if since else "")
                )
        return f"Bias from the first rows to the last: {'; '.join(told)}." if told else "Nothing was recorded."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.6)
        words, lines = property_words(self.property), self.lines()
        dress(ax, "time" if any(self.side.times) else "rows", words.axis(), grid="y", pad=56.0)
        if not lines:
            note(ax, "nothing was recorded")
            return ax
        ax.axhline(0.0, color=LIGHT["reference"], linewidth=1.2)
        for (name, (at, mean)), style in zip(lines.items(), _STYLES, strict=False):
            color = LIGHT["muted"] if name == "all" else LIGHT["before"]
            label = plain_text(group_name(name), 30)
            ax.plot(at, mean, color=color, linewidth=1.8, linestyle=style, marker="o", markersize=3.2, label=label)
        legend(ax, "lower left", bbox_to_anchor=(-0.03, 1.0), ncols=1, borderaxespad=0.0)
        self._ticks(ax)
        ax.yaxis.set_major_formatter(thousands)
        return ax

    def _ticks(self, ax: "Axes") -> None:
        """Times where they are known, else numbers of rows."""
        history = next(iter((self.side.histories or {}).values()))
        if not any(self.side.times):
            ax.xaxis.set_major_formatter(thousands)
            ax.locator_params(axis="x", nbins=4)
            return
        n = min(len(self.side.times), len(history.start))
        chosen = np.unique(np.linspace(0, n - 1, 3).round().astype(int))
        texts = [plain_text(self.side.times[k] or count(float(history.start[k])), 12) for k in chosen]
        ax.set_xticks(history.start[chosen], texts)


def _stretches(history: GroupHistory) -> tuple[Float64Array, Float64Array]:
    """The blocks taken together, up to about twelve that hold rows."""
    n = len(history.start)
    step = max(1, -(-n // N_POINTS))
    cuts = np.arange(0, n, step)
    weight, total = np.add.reduceat(history.weight, cuts), np.add.reduceat(history.total, cuts)
    width = history.start[1] - history.start[0] if n > 1 else 1.0
    at = history.start[cuts] + width * np.minimum(step, n - cuts) / 2
    mean = np.divide(total, weight, out=np.full(len(cuts), np.nan), where=weight > 0)
    return at, mean
