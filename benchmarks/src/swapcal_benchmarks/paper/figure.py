"""The figure: error against T on logarithmic axes, a panel for each algorithm and property."""

import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from swapcal_benchmarks.exponents import exponent
from swapcal_benchmarks.paper.rates import ErrorCurve, claimed_exponent

__all__ = ["draw", "png"]

# Okabe and Ito's colors, which color-blind readers can tell apart.
_COLORS = {1.0: "#0072B2", 1.5: "#56B4E9", 2.0: "#009E73", 3.0: "#E69F00", 4.0: "#D55E00"}
_GRAY = "#555555"


def draw(curves: Sequence[ErrorCurve]) -> Figure:
    """Rows are properties, columns algorithms; points are seeds, lines geometric means, dashes the claim."""
    properties = list(dict.fromkeys(curve.case.property_name for curve in curves))
    algorithms = list(dict.fromkeys(curve.case.algorithm for curve in curves))
    with mpl.rc_context({"font.size": 9.0, "axes.linewidth": 0.7, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(3.5 * len(algorithms) + 0.6, 2.75 * len(properties) + 1.0), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(properties), len(algorithms), sharex=True, sharey="row", squeeze=False)
        for i, name in enumerate(properties):
            for j, algorithm in enumerate(algorithms):
                mine = [c for c in curves if (c.case.property_name, c.case.algorithm) == (name, algorithm)]
                _panel(panels[i, j], mine)
                if i == 0:
                    panels[i, j].set_title(f"{algorithm.replace('Alg.', 'Algorithm')} class", fontsize=10.5, pad=8.0)
                if i == len(properties) - 1:
                    panels[i, j].set_xlabel("rounds $T$")
                if j == 0:
                    panels[i, j].set_ylabel(f"{name}\n$\\mathrm{{SMCal}}_r$")
        figure.suptitle("Swap multicalibration error of the paper's algorithms against the horizon", fontsize=12.0)
        dashes = Line2D([], [], color=_GRAY, linestyle=(0, (4, 2)), linewidth=1.1, label="claimed slope")
        solid = Line2D(
            [], [], color=_GRAY, marker="o", markersize=3.5, linewidth=1.4, label="geometric mean over seeds"
        )
        dots = Line2D([], [], color=_GRAY, marker="o", markersize=2.5, alpha=0.4, linestyle="none", label="one seed")
        figure.legend(handles=[solid, dots, dashes], loc="outside lower center", ncols=3, frameon=False)
    return figure


def png(curves: Sequence[ErrorCurve]) -> bytes:
    """The figure as a file."""
    buffer = io.BytesIO()
    draw(curves).savefig(buffer, dpi=160)
    return buffer.getvalue()


def _panel(axes: Axes, curves: Sequence[ErrorCurve]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
    axes.tick_params(which="both", width=0.5, length=2.5)
    axes.spines[["top", "right"]].set_visible(False)
    labels = []
    for curve in curves:
        color = _COLORS.get(curve.r, _GRAY)
        means = np.exp(np.log(curve.errors).mean(axis=0))
        axes.plot(curve.horizons, curve.errors.T, "o", color=color, markersize=2.6, alpha=0.35, markeredgewidth=0.0)
        axes.plot(curve.horizons, means, "-o", color=color, markersize=3.0, linewidth=1.4)
        # The dashes go through the middle of the data, so that only the slopes differ.
        claim = float(claimed_exponent(curve.r))
        offset = np.mean(np.log(means) - claim * np.log(curve.horizons))
        axes.plot(
            curve.horizons, np.exp(offset) * curve.horizons**claim, color=color, linestyle=(0, (4, 2)), linewidth=1.0
        )
        fit = exponent(curve.horizons, curve.errors)
        text = f"$r={curve.r:g}$: {fit.value:.2f} ({claimed_exponent(curve.r)})"
        labels.append(Line2D([], [], color=color, linewidth=1.8, label=text))
    axes.legend(
        handles=labels,
        title="slope (claimed)",
        title_fontsize=7.5,
        fontsize=7.5,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        handlelength=1.0,
        borderaxespad=0.2,
        labelspacing=0.35,
    )
