"""`swapcal run`: forecasts for every row, and what they are worth beside the model's own."""

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from swapcal.cli import options
from swapcal.cli.exits import guarded, listen_alone, needs
from swapcal.cli.plain_text import printable
from swapcal.errors import InvalidInput

__all__ = ["run"]

PATIENCE = 3.0
"""Seconds that somebody who pressed Ctrl-C may have to wait for the end of a batch, or for input from a pipe."""


def run(
    file: options.File,
    y: options.Outcome,
    hint: Annotated[
        str | None, typer.Option("--p", "--hint", help="Column of a model's forecasts, to start from.")
    ] = None,
    groups: options.Groups = None,
    categories: options.Categories = None,
    linear: Annotated[
        str | None, typer.Option(help="Columns of numbers: all linear functions of them; with --learn, features.")
    ] = None,
    property: options.Property = "mean",
    low: options.Low = None,
    high: options.High = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    learn: Annotated[
        bool | None,
        typer.Option("--learn/--no-learn", help="A model learns between hint and engine; usual with groups."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Rows that will come; else what the file says, or any number.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of the rows' times, not falling.")] = None,
    known: Annotated[str | None, typer.Option(help="Column of when each outcome was known; else at once.")] = None,
    delay: Annotated[
        str | None, typer.Option(help="Outcomes are known after so long (2d, 6h; needs --time) or so many rows (500).")
    ] = None,
    later: Annotated[
        bool,
        typer.Option("--later", help="Blank outcomes come later: learn them when the file has them; with --state."),
    ] = False,
    outcomes: Annotated[
        str | None, typer.Option(help="A second file with outcomes of rows that were blank; needs --id.")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column by which --outcomes names the rows; blank outcomes come later then.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the draws between two neighboring forecasts; else drawn, and printed.")
    ] = None,
    trust: Annotated[float | None, typer.Option(min=0.0, help="How clean a hint must be to be kept: 0 to 1.")] = None,
    levels: Annotated[int, typer.Option(min=0, help="Level sets of the hint that join the groups.")] = 10,
    jitter: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="For quantiles: what to spread equal outcomes over; else the gap where they heap up."
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(min=1, help="Values to forecast; else what rows and hint suggest.")
    ] = None,
    r: options.Power = 2.0,
    costs: options.Costs = None,
    limit: options.Limit = 2_500,
    out: Annotated[Path | None, typer.Option(help="Forecasts of all rows: .csv, .jsonl or .parquet.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an --out that is there already.")] = False,
    state: Annotated[Path | None, typer.Option(help="Keeps how far it is; the same command then goes on.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, whatever is in --state.")] = False,
    by: Annotated[
        str | None, typer.Option(help="Column of keys: one forecaster for each, on all cores; no other tables then.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="With --by: how many; else one for each core.")] = None,
    report: options.Page = None,
    json: options.AsJson = False,
    fail_above: options.FailAbove = None,
) -> None:
    """Forecast every row from the rows before it; before and after beside each other.

    Rows without an outcome are forecast and not learned from. With --state, a run that was stopped or killed at any
    moment goes on with the same command, no row lost and none twice; when it is done, rows that were added to the file
    since are next. With --later, outcomes that were blank and have been filled in since are learned from first, once
    each, and rows that were forecast keep their forecasts; --outcomes takes them from a second file. Without --out
    there is only the summary. With --by store every store has a forecaster of its own, and a process for each core
    plays its share of them.

    Exit codes: 0 fine, 1 above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal run scores.csv --y late --p score --groups carrier,origin --out better.csv --state run.state
    """
    with guarded() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.output import tell
        from swapcal.cli.progress import following
        from swapcal.jobs import running
        from swapcal.jobs.by_key import run_by_key
        from swapcal.jobs.guard import apart, check_page
        from swapcal.jobs.threshold import parse_threshold
        from swapcal.tables.records import read

        listen_alone()
        asked: dict[str, Any] = {
            "property": property,
            "low": low,
            "high": high,
            "positive": positive,
            "weight": weight,
            "r": r,
            "costs": costs,
        }
        asked |= {"categories": categories, "limit": limit, "time": time, "known": known, "delay": delay}
        asked |= {"later": later, "id": id}
        question = options.question(y, hint, groups, linear, **asked)
        if fail_above is not None:
            parse_threshold(fail_above)
        check_page(report)
        if by is not None:
            refused: dict[str, Any] = {
                "--report": report,
                "--json": json,
                "--fail-above": fail_above,
                "--horizon": horizon,
            }
            refused |= {"--bins": bins, "--jitter": jitter, "--learn": learn, "--costs": costs}
            refused |= {"--later": later, "--id": id, "--outcomes": outcomes}
            if given := [name for name, value in refused.items() if value]:
                raise InvalidInput(f"--by goes without {', '.join(given)}; audit its output for tables and a page")
            with _interruptible() as stop:
                found = run_by_key(
                    file,
                    question,
                    by,
                    out=out,
                    state=state,
                    seed=seed,
                    processes=processes,
                    trust=trust,
                    levels=levels,
                    fresh=fresh,
                    overwrite=overwrite,
                    stop=stop,
                    say=lambda sentence: typer.echo(printable(sentence), err=True),
                )
            for sentence in found.sentences():
                typer.echo(printable(sentence))
            return
        records = read(file, columns=question.columns, whole_lines=state is not None)
        files = {"the input": records.file, "the output": out, "the state": state, "the page": report}
        apart({**files, "the second file of outcomes": outcomes})
        with following(records, "forecasting", stopped, _afterwards(out, state)) as progress, _interruptible() as stop:
            result = running.run(
                records,
                question,
                learn=groups is not None if learn is None else learn,
                out=out,
                state=state,
                outcomes=outcomes,
                horizon=horizon,
                seed=seed,
                trust=trust,
                levels=levels,
                jitter=jitter,
                bins=bins,
                fresh=fresh,
                overwrite=overwrite,
                progress=progress,
                stop=stop,
                say=lambda sentence: typer.echo(printable(sentence), err=True),
            )
        last = None if out is None else f"The forecasts of all {result.settings['rows']:,} rows are in {out}"
        tell(result, report=report, json=json, fail_above=fail_above, last=last)


def _afterwards(out: Path | None, state: Path | None) -> str:
    """What to say after Ctrl-C: where the rows are, and how to go on."""
    if state is None:
        kept = "nothing was written" if out is None else f"the rows so far are in {out}"
        return f"{kept}, and without --state it cannot go on from there"
    arguments = [each for each in sys.argv[1:] if each not in ("--fresh", "--overwrite")]
    return f"go on with  {shlex.join(['swapcal', *arguments])}"


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """While this lasts, Ctrl-C lets the run finish its batch; at once if it is pressed again or a batch takes long."""
    pressed, asked = False, time.monotonic()

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed or time.monotonic() - asked > PATIENCE:
            raise KeyboardInterrupt
        pressed = True

    def stop() -> bool:
        nonlocal asked
        asked = time.monotonic()
        return pressed

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
