"""Axes to draw on: matplotlib's objects only, no pyplot and no global state, so that threads may draw at once."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from swapcal.errors import MissingExtra
from swapcal.report.palette import LIGHT
from swapcal.typing import Float64Array
from swapcal.words.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SMALL",
    "TEXT",
    "WIDTH",
    "axes_or_new",
    "bin_places",
    "dress",
    "legend",
    "note",
    "plain_text",
    "side_label",
    "thousands",
]

WIDTH = 4.4
"""Width of a figure in inches: 317 units of a drawing, so that its text can be read at the width of a phone."""

TEXT, SMALL = 10.5, 9.5
"""Font sizes in points."""


def axes_or_new(ax: "Axes | None", height: float = 4.0) -> "Axes":
    """`ax`, or the axes of a new figure that no global state knows of."""
    if ax is not None:
        return ax
    if find_spec("matplotlib") is None:
        raise MissingExtra("figures need matplotlib: install with  pip install 'swapcal[report]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def dress(ax: "Axes", x_label: str, y_label: str, *, grid: str = "both", pad: float = 8.0) -> None:
    """Frame, grid and names. The vertical axis is named above it, to be read without turning the head."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LIGHT["reference"])
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(which="both", colors=LIGHT["muted"], labelsize=SMALL, length=3.0, width=0.8)
    ax.set_axisbelow(True)
    if grid in ("both", "x", "y"):
        ax.grid(True, axis=grid, which="major", color=LIGHT["grid"], linewidth=0.8)  # type: ignore[arg-type]
    ax.set_xlabel(x_label, fontsize=TEXT, color=LIGHT["ink"], labelpad=5.0)
    ax.set_ylabel("")
    ax.set_title(y_label, loc="left", fontsize=TEXT, color=LIGHT["ink"], pad=pad)


def legend(ax: "Axes", location: str = "best", **options: object) -> None:
    """A legend without a box, in the order in which things were drawn."""
    if ax.get_legend_handles_labels()[0]:
        # The stubs of matplotlib do not know the locations by name.
        drawn = ax.legend(loc=location, frameon=False, fontsize=SMALL, labelcolor=LIGHT["ink"], **options)  # type: ignore[call-overload]
        for handle, text in zip(drawn.legend_handles, drawn.get_texts(), strict=True):
            # So that the page can hide one side with everything that belongs to it.
            for part in (handle, text):
                part.set_gid(text.get_text().split(":")[0])


def note(ax: "Axes", text: str) -> None:
    """A sentence in the middle of axes that have nothing else to show."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=TEXT, color=LIGHT["muted"])


def side_label(which: str, label: str, alone: bool, width: int = 28) -> str:
    """How a legend calls a side: by its own label if it is alone, else "before" or "after" in front of it."""
    text = plain_text(label, width)
    if not text or text == which:
        return which
    return text if alone else f"{which}: {text}"


def bin_places(edges: Float64Array) -> tuple[Float64Array, Callable[["Axes"], None]]:
    """Where the borders of bins are drawn, and what writes their values on the horizontal axis.

    Bins of equal widths stand where they are. Others stand side by side, as those between quantiles of the forecasts
    would be too narrow to see beside the last one.
    """
    widths = np.diff(edges)
    if len(widths) < 2 or float(np.ptp(widths)) <= 0.01 * float(widths.mean()):
        return edges, lambda ax: ax.xaxis.set_major_formatter(thousands)
    places = np.arange(len(edges), dtype=np.float64)
    chosen = np.unique(np.linspace(0, len(edges) - 1, min(6, len(edges))).round().astype(int))

    def write(ax: "Axes") -> None:
        ax.set_xticks(places[chosen], [number(float(edges[k])) for k in chosen])

    return places, write


def thousands(value: float, _position: object = None) -> str:
    """Tick labels with thousands separators."""
    return number(value, 4)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """What matplotlib's own font can draw; it comes with the library, so it is there on every machine."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def plain_text(name: str, width: int = 28) -> str:
    """`name` as matplotlib can draw it: shortened, without control characters, boxes for glyphs its font lacks.

    A glyph that is missing would be warned about while the text is measured; mathematics is not meant by a dollar sign.
    """
    name = " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in name).split())
    if len(name) > width:
        name = name[: width - 8].rstrip() + "…" + name[-7:].lstrip()
    return "".join(c if ord(c) in _glyphs() else "□" for c in name).replace("$", r"\$")
