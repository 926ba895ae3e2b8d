"""Loss against swap error, a panel for each stream: who has little of one pays with the other."""

import math

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from swapcal_benchmarks.rivals.contestant_colors import GRAY, Style, featured
from swapcal_benchmarks.rivals.standings import Summary

__all__ = ["frontier", "frontier_figure"]

_COLUMNS = 4


def frontier_figure(summary: Summary, board: str) -> Figure:
    """One panel for each stream; loss above the truth's where there is a truth, and the loss itself elsewhere."""
    streams = summary.streams(board)
    title = next(each.title for each in summary.plan.boards if each.name == board)
    columns = min(_COLUMNS, len(streams) + 1)
    n_rows = math.ceil((len(streams) + 1) / columns)
    styles = featured(summary, board)
    height = 2.6 * n_rows + 0.9
    with mpl.rc_context({"font.size": 8.5, "axes.linewidth": 0.7, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(3.1 * columns, height), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(n_rows, columns, squeeze=False)
        for axes, stream in zip(panels.flat, streams, strict=False):
            _panel(axes, summary, board, stream, styles)
        spare = list(panels.flat)[len(streams) :]
        for axes in spare:
            axes.set_axis_off()
        handles = [
            Line2D([], [], color=s.color, marker=s.marker, markersize=7, linestyle="none", label=name)
            for name, s in styles.items()
        ]
        handles.append(Line2D([], [], color=GRAY, marker="o", markersize=5, linestyle="none", label="other methods"))
        handles.append(Line2D([], [], color="#888888", linewidth=0.9, label="frontier"))
        spare[0].legend(handles=handles, loc="upper left", frameon=False, fontsize=8.5, bbox_to_anchor=(-0.1, 1.05))
        top = summary.plan.horizons[-1]
        figure.suptitle(
            f"{title}: loss against swap error after {top:,} rounds (lower left is better)",
            fontsize=11.5,
            x=0.01,
            ha="left",
        )
    return figure


def frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point beats in both coordinates, from left to right.

    Examples
    --------
    >>> frontier([(1.0, 3.0), (2.0, 2.0), (3.0, 2.5), (4.0, 1.0)])
    [(1.0, 3.0), (2.0, 2.0), (4.0, 1.0)]
    """
    kept: list[tuple[float, float]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


def _panel(axes: Axes, summary: Summary, board: str, stream: str, styles: dict[str, Style]) -> None:
    points = {}
    known = any(row.at(stream, "excess") is not None for row in summary.rows[board])
    for row in summary.rows[board]:
        error, loss = row.at(stream, "smcal"), row.at(stream, "excess" if known else "loss")
        if error is not None and loss is not None and error > 0.0:
            points[row.contestant.name] = (error, loss)
    axes.set_xscale("log")
    axes.set_title(stream, fontsize=9.5, loc="left", pad=4.0)
    axes.set_xlabel("$\\mathrm{SMCal}_2$", labelpad=1.0)
    axes.set_ylabel("loss above the truth's" if known else "loss", labelpad=2.0)
    axes.grid(True, which="major", color="#ececec", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    # The clairvoyant is nobody's competitor: it is shown and is no part of the frontier.
    edge = frontier([point for name, point in points.items() if name != "clairvoyant"])
    axes.plot([e for e, _ in edge], [v for _, v in edge], color="#888888", linewidth=0.9, zorder=1)
    for name, (error, loss) in points.items():
        style = styles.get(name)
        if style is None:
            axes.plot(error, loss, "o", color=GRAY, markersize=4.0, zorder=2)
        else:
            size = 9.0 if style.marker == "*" else 6.5
            axes.plot(
                error,
                loss,
                style.marker,
                color=style.color,
                markersize=size,
                zorder=3,
                markeredgecolor="white",
                markeredgewidth=0.5,
            )
    axes.margins(0.1)
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 60.0 * low else (1.0,)))
    _name_others(axes, points, edge, styles)


def _name_others(
    axes: Axes, points: dict[str, tuple[float, float]], edge: list[tuple[float, float]], styles: dict[str, Style]
) -> None:
    """Names for gray points on the frontier, where there is room to the right of them."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return math.log(point[0] / left) / math.log(right / left), (point[1] - low) / (high - low)

    taken = [place(point) for point in points.values()]
    for name, point in points.items():
        if name in styles or point not in edge:
            continue
        u, v = place(point)
        width = 0.023 * len(name) + 0.03
        below = v - 0.07
        free = all(not (u < a < u + width and abs(b - below) < 0.06) for a, b in taken)
        if free and u + width < 1.15 and below > 0.0:
            axes.annotate(
                name, point, (2, -7), textcoords="offset points", fontsize=6.5, color="#555555", va="center", zorder=4
            )
            taken.extend((u + share * width, below) for share in (0.0, 0.5, 1.0))
