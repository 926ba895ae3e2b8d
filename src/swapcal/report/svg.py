"""A drawing for the page: matplotlib's SVG, with its colors turned into style variables and its weight taken off.

One drawing serves light, dark and print, because colors are looked up by role when it is shown. Names of elements are
made unique, so that many drawings can stand in one document.
"""

import io
import re
from threading import Lock
from typing import TYPE_CHECKING

from swapcal.report.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["svg"]

_LOCK = Lock()
"""Whether text stays text is a global setting of matplotlib; this page is the only one to change it, one at a time."""

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
        kept = mpl.rcParams["svg.fonttype"]
        mpl.rcParams["svg.fonttype"] = "none"
        try:
            canvas.print_svg(buffer, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
        finally:
            mpl.rcParams["svg.fonttype"] = kept
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
        found = match.group(0)
        found = re.sub(r' id="([^"]*)"', named, found)
        found = re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{short(m.group(1))})", found)
        found = re.sub(r'(?:xlink:)?href="#([^"]+)"', lambda m: f'href="#{short(m.group(1))}"', found)
        # Releases before 3.11 write one `font` for size and family.
        found = re.sub(r"font:\s*(?:[^;\"]*?\s)?([\d.]+px)[^;\"]*", r"font-size:\1", found)
        found = re.sub(r"font-family:[^;\"]*;?\s*", "", found)
        found = re.sub(r' transform="rotate\(-0 [^"]*"', "", found)
        found = re.sub(r"#[0-9a-f]{6}", lambda m: _ROLES.get(m.group(0), m.group(0)), found)
        found = re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m.group(0)):.2f}".rstrip("0").rstrip("."), found)
        return re.sub(r"\s+", " ", found).replace(": ", ":").replace("; ", ";").replace(" />", "/>")

    text = re.sub(r"<[^>]+>", tag, text)
    text = re.sub(r">\s+<", "><", text).replace("<defs></defs>", "").replace("</svg>", "").strip()
    return f'<svg viewBox="{size.group(1)}" aria-hidden="true" focusable="false">{text}</svg>'
