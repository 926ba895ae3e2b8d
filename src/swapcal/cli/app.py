"""The command `swapcal`: its subcommands, one module each.

Whatever takes time to import is imported by the command that needs it, so that `--help` answers at once.
"""

from typing import Annotated

import typer

from swapcal.cli.audit import audit
from swapcal.cli.bench import bench
from swapcal.cli.demo import demo
from swapcal.cli.exits import HELP
from swapcal.cli.report import report
from swapcal.cli.run import run
from swapcal.cli.serve import serve
from swapcal.cli.watch import watch

__all__ = ["app"]

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


app.command()(audit)
app.command()(run)
app.command()(watch)
app.command()(report)
app.command()(demo)
app.add_typer(serve, name="serve")
# Everything after the word, --help included, is for the benchmarks to understand.
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(bench)
