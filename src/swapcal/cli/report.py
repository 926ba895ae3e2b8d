"""`swapcal report`: the page from a result."""

from pathlib import Path
from typing import Annotated

import typer

from swapcal.cli.exits import guarded, needs
from swapcal.cli.plain_text import printable

__all__ = ["report"]


def report(
    file: Annotated[str, typer.Argument(help="What audit or run printed with --json; - for standard input.")],
    out: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("swapcal.html"),
    json: Annotated[bool, typer.Option("--json", help="Print the path as JSON.")] = False,
) -> None:
    """One self-contained HTML page from the result of an audit or a run.

    Exit codes: 0 fine, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal audit scores.csv --y late --p score --json > result.json; swapcal report result.json
    """
    with guarded() as progress:
        progress.append("stopped; no page was written")
        needs("jinja2", "pages")
        from swapcal.cli.output import plain, save_page
        from swapcal.jobs.guard import apart, check_page
        from swapcal.jobs.storage import read_result

        apart({"the result": 0 if file == "-" else file, "the page": out})
        check_page(out)
        path = save_page(read_result(file), out)
        typer.echo(plain({"page": str(path)}) if json else printable(f"The page is {path}"))
