"""A score against T on logarithmic axes, a panel for each board, with the lines named at their ends."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from swapcal.typing import Float64Array
from swapcal_benchmarks.rivals.contestant_colors import GRAY, featured
from swapcal_benchmarks.rivals.standings import Standing, Summary

__all__ = ["cost_figure", "growth_figure"]

_DASHES = (0, (4, 2))
_GAP = 0.062
"""Least distance between two names, as a share of the panel's height."""


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    text: str
    horizons: Float64Array
    values: Float64Array
    claim: float | None


def growth_figure(summary: Summary) -> Figure:
    """SMCal_2 against T, the mean over all streams of the board; slopes beside the names, claimed ones dashed."""

    def lines(board: str) -> list[_Line]:
        found = []
        for row in summary.rows[board]:
            streams = [each for each in summary.streams(board) if (each, row.horizon) in row.cells]
            curve = row.curve(streams, "smcal")
            if curve is None or not (curve[1] > 0.0).all():
                continue
            slope = row.exponent(streams, "smcal")
            claim = row.contestant.card.exponent if row.claimed_score() == "smcal" else None
            text = row.contestant.name + ("" if slope is None else f"  {slope.value:.2f}")
            text += "" if claim is None else f" ({claim:.2f})"
            found.append(_Line(row.contestant.name, text, curve[0], curve[1].mean(axis=0), claim))
        return found

    title = "Swap multicalibration error against the number of rounds"
    note = "beside the names: fitted slope (claimed slope)"
    return _figure(summary, lines, title, "$\\mathrm{SMCal}_2$, mean over streams", note)


def cost_figure(summary: Summary) -> Figure:
    """Processor time a round against T."""

    def lines(board: str) -> list[_Line]:
        found = []
        for row in summary.rows[board]:
            horizons = sorted({horizon for _, horizon in row.cells})
            values = [_typical(row, summary.streams(board), horizon) for horizon in horizons]
            if values and None not in values:
                at = np.array(horizons, dtype=np.float64)
                name = row.contestant.name
                found.append(_Line(name, f"{name}  {values[-1]:.0f} µs", at, np.array(values, dtype=np.float64), None))
        return found

    return _figure(summary, lines, "Processor time of a round against the number of rounds", "microseconds a round", "")


def _typical(row: Standing, streams: tuple[str, ...], horizon: int) -> float | None:
    values = [value for each in streams if (value := row.at(each, "microseconds", horizon)) is not None]
    return float(np.median(values)) if values else None


def _figure(summary: Summary, lines: Callable[[str], list[_Line]], title: str, label: str, note: str) -> Figure:
    boards = summary.plan.boards
    columns = min(2, len(boards))
    n_rows = math.ceil(len(boards) / columns)
    height = 3.9 * n_rows + 0.9
    with mpl.rc_context({"font.size": 9.0, "axes.linewidth": 0.7, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(6.9 * columns, height))
        FigureCanvasAgg(figure)
        panels = figure.subplots(n_rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.13 / columns,
            right=1.0 - 0.4 / columns,
            wspace=1.05,
            hspace=0.3,
            top=1.0 - 0.8 / height,
            bottom=0.9 / height,
        )
        for axes, board in zip(panels.flat, boards, strict=False):
            _panel(axes, summary, board.name, lines(board.name))
            axes.set_title(board.title, fontsize=10.0, loc="left", pad=6.0)
            axes.set_xlabel("rounds $T$")
            axes.set_ylabel(label)
        for axes in list(panels.flat)[len(boards) :]:
            axes.set_visible(False)
        figure.suptitle(title, fontsize=12.5, x=0.13 / columns, ha="left", y=1.0 - 0.12 / height)
        handles = [Line2D([], [], color=GRAY, linewidth=1.0, label="other methods")]
        if note:
            handles.append(Line2D([], [], color="#555555", linewidth=1.0, linestyle=_DASHES, label="claimed slope"))
        figure.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.11 / columns, 0.0),
            ncols=2,
            frameon=False,
            fontsize=8.5,
        )
        if note:
            figure.text(0.62 / columns, 0.15 / height, note, fontsize=8.5, color="#444444")
    return figure


def _panel(axes: Axes, summary: Summary, board: str, lines: list[_Line]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#e8e8e8", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    horizons = list(summary.plan.horizons)
    axes.xaxis.set_major_locator(FixedLocator(horizons))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    styles = featured(summary, board)
    ends = []
    for line in sorted(lines, key=lambda line: line.name in styles):
        style = styles.get(line.name)
        if style is None:
            axes.plot(line.horizons, line.values, color=GRAY, linewidth=0.8, zorder=1)
            continue
        axes.plot(
            line.horizons, line.values, color=style.color, marker=style.marker, markersize=5.0, linewidth=1.6, zorder=3
        )
        if line.claim is not None and len(line.horizons) > 1:
            claimed = line.values[0] * (line.horizons / line.horizons[0]) ** line.claim
            axes.plot(line.horizons, claimed, color=style.color, linestyle=_DASHES, linewidth=0.9, zorder=2, alpha=0.8)
        ends.append((float(line.values[-1]), float(line.horizons[-1]), line.text, style.color))
    if not lines:
        return
    _name_ends(axes, ends)


def _name_ends(axes: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Names to the right of the panel, pushed apart where they would overlap, each with a thin line to its end."""
    low, high = (math.log(v) for v in axes.get_ylim())
    axes.set_ylim(*axes.get_ylim())
    order = sorted(ends)
    wanted = [(math.log(max(value, 1e-12)) - low) / (high - low) for value, *_ in order]
    places = spread(wanted, _GAP)
    for place, (value, horizon, text, color) in zip(places, order, strict=True):
        axes.annotate(
            text,
            xy=(horizon, value),
            xycoords="data",
            xytext=(1.05, place),
            textcoords="axes fraction",
            fontsize=8.0,
            color=color,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )


def spread(wanted: list[float], gap: float) -> list[float]:
    """Increasing places near increasing `wanted` ones, at least `gap` apart: touching ones move as a block.

    Examples
    --------
    >>> [round(v, 2) for v in spread([0.1, 0.5, 0.5, 0.9], 0.2)]
    [0.1, 0.4, 0.6, 0.9]
    """
    blocks: list[list[float]] = []  # center, number of names
    for value in wanted:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * 0.5 * (blocks[-1][1] + blocks[-2][1]) - 1e-12:
            center, count = blocks.pop()
            total = blocks[-1][1] + count
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + center * count) / total, total]
    return [center + gap * (k - 0.5 * (count - 1.0)) for center, count in blocks for k in range(int(count))]
