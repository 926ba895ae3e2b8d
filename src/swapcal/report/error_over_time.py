"""Error as the stream went by, against the guarantee and T^(1/3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.jobs.result import History, Result
from swapcal.report.drawing import axes_or_new, dress, legend, note, thousands
from swapcal.report.figure_frame import frame
from swapcal.report.palette import LIGHT
from swapcal.typing import Float64Array
from swapcal.words.numbers import counted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ErrorOverTime"]


@dataclass(frozen=True, slots=True, eq=False)
class ErrorOverTime:
    """Swap error against rows so far, both on logarithmic scales, with the guarantee and the rate T^(1/3) beside it.

    Parameters
    ----------
    history
        The errors by rows so far.
    """

    history: History

    @classmethod
    def of(cls, result: Result) -> "ErrorOverTime":
        """The history of a result that has one."""
        if result.history is None:
            raise InvalidInput("this result has no history; errors over time come from a run, or an audit that kept it")
        return cls(result.history)

    def lines(self) -> dict[str, Float64Array]:
        """Errors by name: before, after, guarantee (where there is one) and rate, which is T^(1/3)."""
        known = {name: getattr(self.history, name) for name in ("before", "after", "guarantee")}
        rate = np.cbrt(np.asarray(self.history.rounds, dtype=np.float64))
        return {name: np.asarray(v, dtype=np.float64) for name, v in known.items() if v is not None} | {"rate": rate}

    def frame(self, backend: str | None = None) -> Any:
        """One row for each number of rows so far: rounds, before, after, guarantee, rate."""
        columns = {"rounds": np.asarray(self.history.rounds, dtype=np.float64).tolist()}
        return frame(columns | {name: values.tolist() for name, values in self.lines().items()}, backend)

    def finding(self) -> str:
        """What the figure shows, in a sentence."""
        if not len(self.history.rounds):
            return "Swap error over time: nothing was recorded."
        names = {"before": "before", "after": "after", "guarantee": "guaranteed at most", "rate": "T^(1/3)"}
        if self.history.before is None or self.history.after is None:
            names |= {"before": "observed", "after": "observed"}
        parts = [f"{names[name]} {number(float(values[-1]))}" for name, values in self.lines().items()]
        return f"Swap error after {counted(float(self.history.rounds[-1]))}: {', '.join(parts)}."

    def __call__(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, and return them."""
        ax = axes_or_new(ax, height=3.7)
        dress(ax, "rows so far", "swap error", pad=24.0)
        rounds = np.asarray(self.history.rounds, dtype=np.float64)
        styles: dict[str, dict[str, Any]] = {
            "before": {"color": LIGHT["before"], "linewidth": 1.8, "linestyle": (0, (6, 1.5)), "label": "before"},
            "after": {"color": LIGHT["after"], "linewidth": 2.2, "label": "after"},
            "guarantee": {"color": LIGHT["ink"], "linewidth": 1.2, "linestyle": (0, (5, 3)), "label": "guarantee"},
            "rate": {"color": LIGHT["reference"], "linewidth": 1.2, "linestyle": (0, (1, 2)), "label": "T^(1/3)"},
        }
        shown, alone = False, self.history.before is None or self.history.after is None
        for name, values in self.lines().items():
            # Logarithms have no place for zero; a line starts with the first error.
            keep = np.isfinite(values) & (values > 0.0) & (rounds > 0.0)
            if keep.any():
                if alone and name in ("before", "after"):
                    styles[name]["label"] = "observed"
                dot: dict[str, Any] = {"marker": "o", "markersize": 4.0} if keep.sum() == 1 else {}
                ax.plot(rounds[keep], values[keep], gid=name, **styles[name], **dot)
                shown = shown or name in ("before", "after")
        if not shown:
            note(ax, "no error was recorded")
            return ax
        ax.set_xscale("log")
        ax.set_yscale("log")
        from matplotlib.ticker import LogLocator, NullFormatter

        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            wide = np.log10(limits[1] / limits[0]) > (1.8 if axis is ax.xaxis else 2.5)
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(thousands)
            axis.set_minor_formatter(NullFormatter())
        legend(
            ax,
            "lower left",
            bbox_to_anchor=(-0.03, 1.0),
            ncols=4,
            handlelength=1.6,
            columnspacing=0.9,
            borderaxespad=0.0,
        )
        return ax
