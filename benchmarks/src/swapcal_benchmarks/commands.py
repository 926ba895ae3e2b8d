"""The commands of `swapcal bench`: measurements of what is claimed.

Whatever takes time to import is imported by the command that needs it, so that `--help` answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from swapcal.cli.terminal import HELP, error_boundary, stop

__all__ = ["bench"]

bench = typer.Typer(
    help="Measurements of what is claimed.\n\nExample: swapcal bench paper --out results",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP,
)


@bench.command("paper")
def bench_paper(
    full: Annotated[bool, typer.Option("--full", help="T up to a million; a night on 2 cores.")] = False,
    out: Annotated[Path, typer.Option(help="Directory for paper.json, paper.csv and paper.png.")] = Path("bench-paper"),
    seeds: Annotated[int | None, typer.Option(min=2, help="Repetitions, from which the intervals come.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Every claim of the paper that a computer can measure, beside its measurement.

    Takes some minutes on 2 cores that have nothing else to do. Seeds are fixed, so that two runs give the same
    numbers.

    Example: swapcal bench paper --out results
    """
    from dataclasses import replace

    from swapcal_benchmarks import paper
    from swapcal_benchmarks.paper import claim_tables, figure
    from swapcal_benchmarks.report import Report, progress

    sizes = paper.FULL if full else paper.DEFAULT
    jobs = paper.plan(sizes if seeds is None else replace(sizes, n_seeds=seeds))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"--out must be a directory that can be written to: {error}")
    try:
        with progress("measuring", jobs.cost) as done:
            report = paper.measure(jobs, workers=workers, done=done)
    except KeyboardInterrupt:
        stop("interrupted; nothing was written", code=130)
    shown = [table.text() for table in claim_tables.tables(report.rows)]
    files: dict[str, str | bytes] = {
        "paper.json": claim_tables.to_json(report.rows),
        "paper.csv": claim_tables.to_csv(report.rows),
        "paper.png": figure.png(report.curves),
    }
    Report("\n\n".join(shown), [row.to_dict() for row in report.rows], files=files).publish(
        typer.echo, json=json, out=out
    )


@bench.command("rivals")
def bench_rivals(
    only: Annotated[
        str | None, typer.Option(help="Methods whose names contain one of these words: swapcal,garg.")
    ] = None,
    streams: Annotated[str | None, typer.Option(help="Streams and adversaries: iid,drifting,greedy.")] = None,
    boards: Annotated[str | None, typer.Option(help="Any of probability,quantile,expectile,linear.")] = None,
    horizons: Annotated[str | None, typer.Option(help="Numbers of rounds: 200,800,3200.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions, from which the intervals come.")] = None,
    full: Annotated[bool, typer.Option("--full", help="T up to 64,000 and 5 seeds; hours on 2 cores.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Play on the rows of this CSV file instead.")] = None,
    y: Annotated[str | None, typer.Option(help="With --csv: column of the labels.")] = None,
    hint: Annotated[str | None, typer.Option(help="With --csv: column of a model's forecasts.")] = None,
    groups: Annotated[str | None, typer.Option(help="With --csv: columns that are 0 or 1: young,female.")] = None,
    property: Annotated[str | None, typer.Option(help="With --csv: probability, mean, quantile or expectile.")] = None,
    level: Annotated[float | None, typer.Option(help="With --csv: of the quantile or expectile.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for results; finished runs in it are skipped.")] = Path(
        "bench-rivals"
    ),
    docs: Annotated[
        Path | None, typer.Option(help="Also write benchmark.md and its figures into this directory.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the finished runs in --out.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Every rival in one arena: the same streams, adversaries and scores for all.

    Takes 5 to 8 minutes on 2 cores. Ctrl-C loses nothing: the same command goes on. After a change of a method, --fresh
    plays anew.

    Example: swapcal bench rivals --only swapcal,garg --streams iid,greedy --out results
    """
    from swapcal.errors import InvalidInput
    from swapcal_benchmarks.rivals.command_line import settings_from
    from swapcal_benchmarks.rivals.rivals_command import compare

    try:
        settings = settings_from(
            only=only,
            streams=streams,
            boards=boards,
            horizons=horizons,
            seeds=seeds,
            full=full,
            csv=None if csv is None else str(csv),
            y=y,
            hint=hint,
            groups=groups,
            kind=property,
            level=level,
        )
        code = compare(settings, out, workers=workers, docs=docs, fresh=fresh, json=json, echo=typer.echo)
    except InvalidInput as error:
        stop(str(error))
    raise typer.Exit(code)


@bench.command("speed")
def bench_speed(
    only: Annotated[
        str | None,
        typer.Option(
            help="Any of run,events,growth,memory,state,startup,peers,threads,instructions,float32; all if not given."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller streams and fewer repeats: a look.")] = False,
    out: Annotated[Path, typer.Option(help="Directory for speed.json.")] = Path("bench-speed"),
    docs: Annotated[
        Path | None, typer.Option(help="Also write performance.md and instructions.json into this directory.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """How fast, and how large: ratios that mean the same on every machine, each beside its target.

    Takes about 3 minutes, and 2 GB of memory for the longest stream. Exit code 1 if a target is missed.

    Example: swapcal bench speed --only run,events
    """
    with error_boundary():
        from swapcal_benchmarks.speed.speed_command import speed_report

        report = speed_report(only=only, quick=quick, pages=docs is not None)
        code = report.publish(typer.echo, json=json, docs=docs, out=out)
    raise typer.Exit(code)


@bench.command("streams")
def bench_streams(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory with adult.csv, elec2.csv, ...")],
    only: Annotated[str | None, typer.Option(help="Some of the streams: adult,elec2.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also write streams.md into this directory.")] = None,
) -> None:
    """Five recorded streams, before and after: a frozen model, and swapcal with it as the hint.

    DIR holds adult.csv, elec2.csv, fte_games.csv, bike_hour.csv and beijing_pm25.csv, or those of --only; nothing is
    downloaded. Takes less than a minute.

    Example: swapcal bench streams data --only fte_games
    """
    with error_boundary():
        from swapcal_benchmarks.streams.streams_command import chosen, streams_report

        streams_report(directory, chosen(only)).publish(typer.echo, json=json, docs=docs)


@bench.command("grid")
def bench_grid(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Directory with adult.csv, elec2.csv, ...; left out if not given."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Also five streams of a million rounds.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.", min=1)] = None,
    before: Annotated[
        Path | None, typer.Option(help="What an earlier version printed with --json, to be compared on fresh seeds.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also write grid.md into this directory.")] = None,
) -> None:
    """The grid that follows the forecasts beside the engine with equal bins, whose numbers are kept in a file.

    Rare events, quiet means, narrow quantiles, heaps, adversaries, and with DIR the five recorded files; with no hint,
    a biased model, a learning one, and the truth. Takes a few minutes.

    Example: swapcal bench grid data --docs docs
    """
    with error_boundary():
        from swapcal_benchmarks.grid.grid_command import grid_report

        grid_report(directory, full=full, workers=workers, before=before).publish(typer.echo, json=json, docs=docs)


@bench.command("late")
def bench_late(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Directory with adult.csv, elec2.csv, ...; left out if not given."),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only rows whose label contains one of these: 'no_shows, real;sine'.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="What an earlier version printed with --json, as one more column.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Directory for what rivals forecast, which is not made twice.")] = Path(
        "build/late-cache"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also write late.md into this directory.")] = None,
) -> None:
    """Outcomes that come late, beside a model that is refitted on what is known: recorded and simulated streams.

    Loss against the frozen model of ours, of refits with group indicators, isotonic regression and Platt scaling by
    segment, under every kind of delay. Takes some minutes, and seconds when the rivals' forecasts are there. Exit code
    1 if a target is missed.

    Example: swapcal bench late data --rows 'no_shows;group bias' --docs docs
    """
    with error_boundary():
        from swapcal_benchmarks.late.late_command import late_report

        wanted = [] if rows is None else [each.strip() for each in rows.split(";") if each.strip()]
        code = late_report(directory, wanted, before=before, cache=cache).publish(typer.echo, json=json, docs=docs)
    raise typer.Exit(code)


@bench.command("classes")
def bench_classes(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory with bike_hour.csv, adult.csv, ...")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also write classes.md into this directory.")] = None,
) -> None:
    """Boxes against groups on four files and on a bias in corners; what each class costs; regret of every loss.

    Exit code 1 if a target is missed.

    Example: swapcal bench classes data --docs docs
    """
    with error_boundary():
        from swapcal_benchmarks.classes import classes_report

        code = classes_report(directory).publish(typer.echo, json=json, docs=docs)
    raise typer.Exit(code)


@bench.command("wrapper")
def bench_wrapper(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory with adult.csv, elec2.csv, ...")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also write wrapper.md into this directory.")] = None,
) -> None:
    """The scikit-learn classifier, fitted once, against the model that it is around: log loss on rows unseen.

    Random splits and splits in time of four files, two models each. Exit code 1 if a target is missed.

    Example: swapcal bench wrapper data --docs docs
    """
    with error_boundary():
        from swapcal_benchmarks.wrapper import wrapper_report

        code = wrapper_report(directory).publish(typer.echo, json=json, docs=docs)
    raise typer.Exit(code)


@bench.command("service")
def bench_service(
    store: Annotated[
        str | None, typer.Option(help="postgresql://..., an empty database, instead of a SQLite file of its own.")
    ] = None,
    turns: Annotated[int, typer.Option(min=1, help="Seconds for each row of the table.")] = 10,
    soak: Annotated[
        float | None, typer.Option(metavar="MINUTES", min=0.05, help="Steady load for so long instead of the table.")
    ] = None,
    rate: Annotated[int, typer.Option(min=10, help="With --soak: cases a second.")] = 500,
    docs: Annotated[Path | None, typer.Option(help="Also write service-bench.md into this directory.")] = None,
) -> None:
    """The service under load, as ratios to an empty endpoint of the same stack in the same run.

    Starts both servers on the loopback. Takes a minute; exit code 1 if a target is missed or a request refused.

    Example: swapcal bench service --docs docs
    """
    from importlib.util import find_spec

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        stop("the service is not installed: pip install 'swapcal[serve]'")
    with error_boundary():
        from swapcal_benchmarks.service.service_command import service_report

        report = service_report(store=store, turns=turns, minutes=soak, rate=rate, docs=docs)
        code = report.publish(typer.echo, docs=docs)
    raise typer.Exit(code)


@bench.command("scale")
def bench_scale(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer keys and rows.")] = False,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="With Spark, where it and Java are there.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="Directory for what was measured; what is in it is not measured again.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(help="Write scale.md into this directory.")] = None,
) -> None:
    """What many keys cost: a key, a row, two cores, Spark, cold keys; and ten billion rows a day on paper.

    Takes some minutes, with Spark some more. Ratios are of one run; times are of processors.

    Example: swapcal bench scale --docs docs
    """
    with error_boundary():
        from swapcal_benchmarks.scale.scale_command import scale_report

        scale_report(quick=quick, spark=spark, out=out).publish(typer.echo, docs=docs)


@bench.command("verdicts")
def bench_verdicts(
    runs: Annotated[int, typer.Option(min=1, help="Files of each kind.")] = 200,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    docs: Annotated[Path | None, typer.Option(help="Write verdicts.md into this directory.")] = None,
) -> None:
    """Whether the first line is right: files without bias, files with a planted one, alarms on right models.

    Takes four minutes of a core. Seeds are fixed.

    Example: swapcal bench verdicts --runs 20
    """
    from swapcal_benchmarks import verdicts
    from swapcal_benchmarks.report import progress

    with error_boundary(), progress("judging", float(len(verdicts.KINDS) + 2)) as done:
        tables = []
        for table in verdicts.tables(runs, workers, done):
            tables.append(table)
            typer.echo(f"\n**{table.title}**\n\n{table.markdown()}")
        if docs is not None:
            (docs / "verdicts.md").write_text(verdicts.page(tables), encoding="utf-8")
