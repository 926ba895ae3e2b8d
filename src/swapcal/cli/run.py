"""`swapcal run`: forecasts for every row, and what they are worth beside the model's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from swapcal.cli import options
from swapcal.cli.output import show
from swapcal.cli.terminal import afterwards, error_boundary, following, interruptible, listen_alone, needs
from swapcal.errors import InvalidInput
from swapcal.tables.records import read
from swapcal.tasks.classes import run_classes
from swapcal.tasks.columns import ClassColumns, IntervalColumns
from swapcal.tasks.config import TaskConfig, parse_columns
from swapcal.tasks.files import check_distinct
from swapcal.tasks.interval import run_interval
from swapcal.text.numbers import printable


def run(
    file: options.File,
    y: options.Outcome,
    hint: Annotated[
        str | None,
        typer.Option(
            "--p",
            "--hint",
            help="Column of a model's forecasts, to start from. With --interval also lower,upper or "
            "lower,forecast,upper; with --classes one column for each class.",
        ),
    ] = None,
    groups: options.Groups = None,
    categories: options.Categories = None,
    linear: Annotated[
        str | None, typer.Option(help="Columns of numbers: all linear functions of them; with --learn, features.")
    ] = None,
    property: options.Property = "mean",
    interval: Annotated[
        float | None, typer.Option(help="Intervals that cover this share of outcomes, such as 0.9, in every group.")
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="The outcome names a class: probabilities of all classes.")
    ] = False,
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
    order: Annotated[
        str, typer.Option(help="Late outcomes are learned by arrival, or by forecast: when all earlier ones are known.")
    ] = "arrival",
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
        str | None,
        typer.Option(help="Column of keys: one forecaster for each, on all cores. A page: --report."),
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

    With --interval 0.9 the output has a lower and an upper end for each row, with --classes a probability for each
    class, the likeliest class and how sure that is.

    Exit codes: 0 fine, 1 above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal run scores.csv --y late --p score --groups carrier,origin --out better.csv --state run.state
    """
    with error_boundary() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.terminal import following
        from swapcal.tables.records import read
        from swapcal.tasks import run_by_key
        from swapcal.tasks import scalar as running
        from swapcal.tasks.files import check_distinct, check_page
        from swapcal.tasks.result import parse_threshold

        listen_alone()
        asked: dict[str, Any] = {"property": property, "low": low, "high": high, "positive": positive}
        asked |= {"weight": weight, "r": r, "costs": costs}
        asked |= {"categories": categories, "limit": limit, "time": time, "known": known, "delay": delay}
        asked |= {"later": later, "id": id, "order": order}
        several = interval is not None or classes
        question = options.question(y, None if several else hint, groups, linear, **asked)
        if fail_above is not None:
            parse_threshold(fail_above)
        check_page(report)
        if several:
            unfit: dict[str, Any] = {
                "--by": by,
                "--linear": linear,
                "--weight": weight,
                "--positive": positive,
                "--costs": costs,
            }
            unfit |= {"--later": later, "--id": id, "--outcomes": outcomes}
            unfit |= {"--known": known, "--delay": delay, "--time": time, "--jitter": jitter, "--bins": bins}
            unfit |= {"--trust": trust, "--levels": levels if levels != 10 else None, "--r": r if r != 2.0 else None}
            unfit |= {"--property": property if property != "mean" else None}
            if classes:
                unfit |= {"--interval": interval, "--low": low, "--high": high}
            run_several(
                file,
                question,
                None if classes else interval,
                hint,
                unfit,
                {"learn": learn, "out": out, "state": state, "horizon": horizon, "seed": seed}
                | {"fresh": fresh, "overwrite": overwrite},
                {"report": report, "json": json, "fail_above": fail_above},
                stopped,
            )
            return
        if by is not None:
            refused = {"--horizon": horizon, "--bins": bins, "--jitter": jitter, "--costs": costs}
            refused |= {"--later": later, "--id": id, "--outcomes": outcomes}
            if given := [name for name, value in refused.items() if value]:
                raise InvalidInput(
                    f"--by goes without {', '.join(given)}, which would be of one stream: keys have one each"
                )
            with interruptible() as stop:
                found = run_by_key(
                    file,
                    question,
                    by,
                    out=out,
                    state=state,
                    seed=seed,
                    processes=processes,
                    learn=bool(learn),
                    trust=trust,
                    levels=levels,
                    fresh=fresh,
                    overwrite=overwrite,
                    stop=stop,
                    say=lambda sentence: typer.echo(printable(sentence), err=True),
                )
            if report is not None or json or fail_above is not None:
                show(found.result(file, question, by), report=report, json=json, fail_above=fail_above)
                return
            for sentence in found.sentences():
                typer.echo(printable(sentence))
            return
        records = read(file, columns=question.columns, whole_lines=state is not None)
        files = {"the input": records.file, "the output": out, "the state": state, "the page": report}
        check_distinct({**files, "the second file of outcomes": outcomes})
        with following(records, "forecasting", stopped, afterwards(out, state)) as progress, interruptible() as stop:
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
        last = None if out is None else f"The forecasts of all {result.counts.rows:,} rows are in {out}"
        show(result, report=report, json=json, fail_above=fail_above, last=last)


# --------
# `swapcal run --interval 0.9` and `swapcal run --classes`: more than one number for each row.

WITH_INTERVALS = "--p, --groups, --categories, --low, --high, --learn, --horizon, --seed, --limit, --out and --state"
WITH_CLASSES = "--p, --groups, --categories, --learn, --horizon, --seed, --limit, --out and --state"


def run_several(
    file: str,
    question: TaskConfig,
    coverage: float | None,
    model: str | None,
    refused: Mapping[str, Any],
    settings: dict[str, Any],
    told: dict[str, Any],
    stopped: list[str],
) -> None:
    """Play a file and tell what came of it.

    Parameters
    ----------
    file : str
        The table.
    question : TaskConfig
        Outcomes, groups, the range of outcomes.
    coverage : float, optional
        Of intervals; None asks for classes.
    model : str, optional
        What --p names.
    refused : mapping
        Options that do not go with either, by name, with what was given.
    settings, told : dict
        How to play, and how to tell.
    stopped : list of str
        Its first entry is the sentence for Ctrl-C.
    """
    name = "--classes" if coverage is None else "--interval"
    if given := [option for option, value in refused.items() if value is not None and value is not False]:
        works = WITH_CLASSES if coverage is None else WITH_INTERVALS
        raise InvalidInput(f"{name} goes without {', '.join(given)}; it takes {works}")
    named = () if model is None else parse_columns(model)
    columns = ClassColumns(question, named) if coverage is None else IntervalColumns(question, named)
    out, state = settings["out"], settings["state"]
    records = read(file, columns=columns.names, whole_lines=state is not None)
    check_distinct({"the input": records.file, "the output": out, "the state": state, "the page": told["report"]})
    learn = settings.pop("learn")
    doing = "forecasting classes" if coverage is None else "making intervals"
    with following(records, doing, stopped, afterwards(out, state)) as progress, interruptible() as stop:
        followed: dict[str, Any] = {
            "learn": True if learn is None else learn,
            "progress": progress,
            "stop": stop,
            "say": lambda sentence: typer.echo(printable(sentence), err=True),
        }
        if coverage is None:
            result = run_classes(records, question, model=named, **settings, **followed)
        else:
            result = run_interval(records, question, coverage, model=named, **settings, **followed)
    last = None if out is None else f"The forecasts of all {result.counts.rows:,} rows are in {out}"
    show(result, last=last, **told)
