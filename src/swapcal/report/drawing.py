"""Axes to draw on: matplotlib's objects only, no pyplot and no global state, so that threads may draw at once."""

import io
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from swapcal.errors import MissingExtra
from swapcal.text.numbers import number
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --------
# Colors by role. Figures are drawn in the light ones; the page swaps roles for style variables, so one drawing does.
#
# Before is orange and after is blue; biases run from purple (too low) over neutral to green (too high). Both pairs stay
# apart for color-blind readers, and before and after differ in their markers too.

# Shades of bias on either side of zero.
N_STEPS = 7


def _blend(start: str, end: str, share: float) -> str:
    a, b = (tuple(int(color[k : k + 2], 16) for k in (1, 3, 5)) for color in (start, end))
    return "#" + "".join(f"{round(x + share * (y - x)):02x}" for x, y in zip(a, b, strict=True))


def _ramp(zero: str, low: str, high: str) -> dict[str, str]:
    """Shades from `zero` to `low` and to `high`; the first is already told apart from zero."""
    shares = [0.14 + 0.86 * (k / (N_STEPS - 1)) for k in range(N_STEPS)]
    steps = {f"low{k + 1}": _blend(zero, low, share) for k, share in enumerate(shares)}
    return {"zero": zero} | steps | {f"high{k + 1}": _blend(zero, high, share) for k, share in enumerate(shares)}


LIGHT = {
    "ink": "#1b1f27",
    "muted": "#586174",
    "grid": "#e3e6ec",
    "paper": "#fefefe",
    "before": "#b54a06",
    "after": "#1a5fb4",
    "reference": "#7b8494",
} | _ramp("#eff0f3", "#5b2a86", "#14692f")

DARK = {
    "ink": "#e8eaf0",
    "muted": "#a3acbd",
    "grid": "#333a47",
    "paper": "#1a1e26",
    "before": "#f7a35c",
    "after": "#7db7ff",
    "reference": "#8b95a7",
} | _ramp("#2c323d", "#c9a0f5", "#74d68f")


def step(value: float, limit: float) -> int:
    """The shade of a bias on a scale that ends at `limit`: from -N_STEPS (too low) to N_STEPS (too high).

    Examples
    --------
    >>> [step(value, 0.2) for value in (-0.5, -0.1, -0.001, 0.0, 0.02, 0.2)]
    [-7, -4, 0, 0, 1, 7]
    """
    if limit <= 0.0:
        return 0
    size = min(N_STEPS, round(abs(value) / limit * N_STEPS))
    return size if value > 0.0 else -size


def step_role(shade: int) -> str:
    """The role of a shade.

    Examples
    --------
    >>> step_role(-7), step_role(0), step_role(2)
    ('low7', 'zero', 'high2')
    """
    return "zero" if shade == 0 else f"low{-shade}" if shade < 0 else f"high{shade}"


def css(colors: dict[str, str]) -> str:
    """Declarations of style variables, one for each role."""
    return "".join(f"--{role}:{color};" for role, color in colors.items())


# Width of a figure in inches: 317 units of a drawing, so that its text can be read at the width of a phone.
WIDTH = 4.4

# Font sizes in points.
TEXT, SMALL = 10.5, 9.5


def axes_or_new(ax: "Axes | None", height: float = 4.0) -> "Axes":
    """`ax`, or the axes of a new figure that no global state knows of."""
    if ax is not None:
        return ax
    if find_spec("matplotlib") is None:
        raise MissingExtra("figures need matplotlib: install with  pip install 'swapcal[report]'")
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Shown(Axes):
        """Axes that a notebook shows as a picture, as no pyplot knows of them."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot(axes_class=Shown)


def dress(ax: "Axes", x: str, y: str, *, grid: str = "both", pad: float = 8.0) -> None:
    """Frame, grid, names and numbers. The vertical axis is named above it, to be read without turning the head."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LIGHT["reference"])
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(which="both", colors=LIGHT["muted"], labelsize=SMALL, length=3.0, width=0.8)
    ax.set_axisbelow(True)
    if grid in ("both", "x", "y"):
        ax.grid(True, axis=grid, which="major", color=LIGHT["grid"], linewidth=0.8)  # type: ignore[arg-type]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(thousands)
    ax.set_xlabel(x, fontsize=TEXT, color=LIGHT["ink"], labelpad=5.0)
    ax.set_ylabel("")
    ax.set_title(y, loc="left", fontsize=TEXT, color=LIGHT["ink"], pad=pad)


def legend(ax: "Axes", *, above: int = 0, **options: object) -> None:
    """A legend without a box, in the order in which things were drawn: inside, or in columns above the axes."""
    if above:
        options |= {"bbox_to_anchor": (-0.03, 1.0), "ncols": above, "borderaxespad": 0.0}
    location = "lower left" if above else "upper left"
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
        return edges, lambda ax: None
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


# --------
# A drawing for the page: matplotlib's SVG, with its colors turned into style variables and its weight taken off.
#
# One drawing serves light, dark and print, because colors are looked up by role when it is shown. Names of elements are
# made unique, so that many drawings can stand in one document.

# Whether text stays text is a global setting of matplotlib; this page is the only one to change it, one at a time.
_LOCK = Lock()

_ROLES = {color: f"var(--{role})" for role, color in LIGHT.items()}
_CLASSES = ("before", "after", "guarantee", "rate", "diagonal")
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def svg(ax: "Axes", prefix: str) -> str:
    """The figure of `ax` as an SVG element without a name; `prefix` must differ between drawings of a document."""
    return _lightened(_rendered(ax), prefix)


def _rendered(ax: "Axes") -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    for patch in (figure.patch, *(each.patch for each in figure.axes)):
        patch.set_visible(False)
    own = any(
        mpl.rcParams[key] != mpl.rcParamsDefault[key] for key in ("text.usetex", "font.family", "font.sans-serif")
    )
    for text in figure.findobj(Text) if own else ():
        # Whatever the reader's own settings are.
        text.set_usetex(False)
        text.set_fontfamily("DejaVu Sans")
    buffer = io.StringIO()
    canvas = FigureCanvasSVG(figure)
    with _LOCK:
        before = mpl.rcParams["svg.fonttype"]
        mpl.rcParams["svg.fonttype"] = "none"
        try:
            canvas.print_svg(buffer, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
        finally:
            mpl.rcParams["svg.fonttype"] = before
    return buffer.getvalue()


def _lightened(text: str, prefix: str) -> str:
    size = re.search(r'viewBox="([^"]*)"', text)
    assert size is not None
    text = text[text.index(">", text.index("<svg")) + 1 :]
    for rubbish in (r"<metadata>.*?</metadata>", r"<style[^>]*>.*?</style>", r"<!--.*?-->"):
        text = re.sub(rubbish, "", text, flags=re.DOTALL)
    names: dict[str, str] = {}
    used = set(re.findall(r"(?:url\(|href=\")#([^\")]+)", text))

    def short(name: str) -> str:
        return names.setdefault(name, f"{prefix}{len(names)}")

    def named(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in _CLASSES:
            return f' class="{name}"'
        return f' id="{short(name)}"' if name in used else ""

    def tag(match: re.Match[str]) -> str:
        # Only what stands inside tags is changed: text may look like a number or a color.
        text = match.group(0)
        text = re.sub(r' id="([^"]*)"', named, text)
        text = re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{short(m.group(1))})", text)
        text = re.sub(r'(?:xlink:)?href="#([^"]+)"', lambda m: f'href="#{short(m.group(1))}"', text)
        # Releases before 3.11 write one `font` for size and family.
        text = re.sub(r"font:\s*(?:[^;\"]*?\s)?([\d.]+px)[^;\"]*", r"font-size:\1", text)
        text = re.sub(r"font-family:[^;\"]*;?\s*", "", text)
        text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
        text = re.sub(r"#[0-9a-f]{6}", lambda m: _ROLES.get(m.group(0), m.group(0)), text)
        text = re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m.group(0)):.2f}".rstrip("0").rstrip("."), text)
        return re.sub(r"\s+", " ", text).replace(": ", ":").replace("; ", ";").replace(" />", "/>")

    text = re.sub(r"<[^>]+>", tag, text)
    text = re.sub(r">\s+<", "><", text).replace("<defs></defs>", "").replace("</svg>", "").strip()
    return f'<svg viewBox="{size.group(1)}" aria-hidden="true" focusable="false">{text}</svg>'
