"""`swapcal bench`: the measurements of what is claimed, where the benchmarks are installed."""

from importlib.util import find_spec

import typer

from swapcal.cli.exits import stop

__all__ = ["bench"]


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
