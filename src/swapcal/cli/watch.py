"""`swapcal watch`: alarms while a stream goes by."""

from typing import Annotated, Any

import typer

from swapcal.cli import options as shared
from swapcal.cli.terminal import error_boundary

ALARMED = 1


@shared.configured(
    "y p groups categories property low high positive time cluster limit",
    p="Column of forecasts.",
    time="Column of times, which alarms then tell.",
    cluster="Column by which rows hang together (a day), sorted by it.",
)
def watch(
    file: shared.File,
    options: dict[str, Any],
    config: shared.ConfigFile = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Bias that is no matter, in the unit of the outcome (0.02: 2 points).")
    ] = 0.0,
    alpha: Annotated[
        float | None, typer.Option(help="Probability of ever a false alarm; 0.01 unless --every is given.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Or: rows in which there is one false alarm on average.")] = None,
    settle: Annotated[int, typer.Option(min=1, help="Rows at the start that settle range and groups.")] = 1_000,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for lines that are added to the file.")] = False,
    first: Annotated[bool, typer.Option("--first", help="End at the first alarm.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line for each alarm.")] = False,
) -> None:
    """Say which group's forecasts have gone wrong, as soon as that is sure.

    One may look after every row: with --alpha 0.01 there is ever a false alarm in one stream of a hundred, whatever
    the stream does. Alarms are lines on standard output. A file of CSV or JSON lines may grow while it is watched.

    Exit codes: 0 no alarm, 1 an alarm, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal watch scores.csv --y late --p score --groups carrier --tolerance 0.02 --follow --json
    """
    with error_boundary() as stopped:
        from swapcal.cli.output import plain
        from swapcal.tables.records import growing_batches, read
        from swapcal.tasks.watch import watch as alarms_of

        question = shared.task_config(config, options, prefix=settle)
        grows = follow or file == "-"
        batches = (
            growing_batches(file, question.columns, follow=follow) if grows else read(file, columns=question.columns)
        )
        stopped[:] = [f"stopped watching {file}"]
        n_alarms = 0
        for alarm in alarms_of(batches, question, tolerance=tolerance, alpha=alpha, every=every, source=file):
            n_alarms += 1
            typer.echo(plain(alarm) if json else alarm["message"])
            if first:
                break
        if n_alarms:
            raise typer.Exit(ALARMED)
        if not json:
            typer.echo("no alarm")
