"""`swapcal run`: forecasts for every row, and what they are worth beside the model's own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swapcal.cli import options as shared
from swapcal.cli.terminal import afterwards, error_boundary, interruptible, listen_alone, needs
from swapcal.text.numbers import printable


@shared.configured(
    "y p groups categories linear property interval classes low high positive weight learn horizon time known delay "
    "order later id seed trust levels jitter bins r costs limit by"
)
def run(
    file: shared.File,
    options: dict[str, Any],
    config: shared.ConfigFile = None,
    outcomes: Annotated[
        str | None, typer.Option(help="A second file with outcomes of rows that were blank; needs --id.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Forecasts of all rows: .csv, .jsonl or .parquet.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an --out that is there already.")] = False,
    state: Annotated[Path | None, typer.Option(help="Keeps how far it is; the same command then goes on.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, whatever is in --state.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="With --by: how many; else one for each core.")] = None,
    report: shared.Page = None,
    json: shared.AsJson = False,
    fail_above: shared.FailAbove = None,
) -> None:
    """Forecast every row from the rows before it; before and after beside each other.

    Rows without an outcome are forecast and not learned from. With --state, a run that was stopped or killed at any
    moment goes on with the same command, no row lost and none twice; when it is done, rows that were added to the file
    since are next. With --later, outcomes that were blank and have been filled in since are learned from first, once
    each, and rows that were forecast keep their forecasts; --outcomes takes them from a second file. Without --out
    there is only the summary. With --by store every store has a forecaster of its own, and a process for each core
    plays its share of them.

    With --interval 0.9 the output has a lower and an upper end for each row, with --classes a probability for each
    class, the likeliest class and how sure that is.

    Exit codes: 0 fine, 1 above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal run scores.csv --y late --p score --groups carrier,origin --out better.csv --state run.state
    """
    with error_boundary() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.output import show
        from swapcal.cli.progress import following
        from swapcal.tables.records import read
        from swapcal.tasks.by_key import ByKey, run_by_key
        from swapcal.tasks.files import check_distinct, check_page
        from swapcal.tasks.result import parse_threshold
        from swapcal.tasks.runner import TASKS, run

        listen_alone()
        task = shared.task_config(config, options)
        if fail_above is not None:
            parse_threshold(fail_above)
        check_page(report)
        files: dict[str, Any] = {"out": out, "state": state, "fresh": fresh, "overwrite": overwrite}
        files |= {"outcomes": outcomes, "say": lambda sentence: typer.echo(printable(sentence), err=True)}
        if task.by is not None:
            with interruptible() as stop:
                result = run_by_key(file, task, processes=processes, stop=stop, **files)
        else:
            records = read(file, columns=task.columns, whole_lines=state is not None)
            named = {"the input": records.file, "the output": out, "the state": state, "the page": report}
            check_distinct({**named, "the second file of outcomes": outcomes})
            doing, after = TASKS[task.task].doing, afterwards(out, state)
            with following(records, doing, stopped, after) as progress, interruptible() as stop:
                result = run(records, task, progress=progress, stop=stop, **files)
        if isinstance(result, ByKey):
            if report is None and not json and fail_above is None:
                for sentence in result.sentences():
                    typer.echo(printable(sentence))
                return
            result, out = result.result(file, task), None
        last = None if out is None else f"The forecasts of all {result.counts.rows:,} rows are in {out}"
        show(result, report=report, json=json, fail_above=fail_above, last=last)
