"""The command `swapcal`: its subcommands, one module each.

Whatever takes time to import is imported by the command that needs it, so that `--help` answers at once.
"""

import typer

from swapcal.cli.audit import audit
from swapcal.cli.bench import bench
from swapcal.cli.demo import demo
from swapcal.cli.exits import HELP
from swapcal.cli.report import report
from swapcal.cli.run import run
from swapcal.cli.serve import serve

__all__ = ["app"]

app = typer.Typer(
    help="Online forecasts that are calibrated for everybody.\n\nExample: swapcal audit scores.csv --y late --p score "
    "--groups carrier,origin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
app.command()(audit)
app.command()(run)
app.command()(report)
app.command()(demo)
app.add_typer(serve, name="serve")
# Everything after the word, --help included, is for the benchmarks to understand.
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(bench)
