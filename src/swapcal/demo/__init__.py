"""`swapcal demo`: a year of flights, a plain model, and what calibration for everybody changes; or a synthetic stream.

The stream, the model and the words are here; everything else is what `swapcal run` and `swapcal report` do.
"""

from importlib.util import find_spec
from pathlib import Path

from swapcal.errors import MissingExtra

__all__ = ["main"]

OUT = Path("swapcal-demo")
"""Where the pages go."""

NEEDED = ("rich", "pyarrow", "matplotlib", "jinja2")


def main(out: Path = OUT, *, rows: int | None = None, json: bool = False) -> None:
    """Play the demo: tables on standard output, progress on standard error, one page for each question in `out`.

    `rows` makes it shorter: the first so many flights of the year.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"the demo needs {', '.join(missing)}: install with  pip install 'swapcal[demo]'")
    from swapcal.demo.show import show

    show(out, rows, json=json)
