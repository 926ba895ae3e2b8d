"""`swapcal run --interval 0.9` and `swapcal run --classes`: more than one number for each row."""

from collections.abc import Mapping
from typing import Any

import typer

from swapcal.cli.class_view import tell_classes
from swapcal.cli.interval_view import tell_intervals
from swapcal.cli.plain_text import printable
from swapcal.cli.progress import following
from swapcal.cli.stopping import afterwards, interruptible
from swapcal.errors import InvalidInput
from swapcal.jobs.guard import apart
from swapcal.jobs.question import Question, parse_columns
from swapcal.jobs.several.class_columns import ClassColumns
from swapcal.jobs.several.class_run import run_classes
from swapcal.jobs.several.interval_columns import IntervalColumns
from swapcal.jobs.several.interval_run import run_interval
from swapcal.tables.records import read

__all__ = ["run_several"]

WITH_INTERVALS = "--p, --groups, --categories, --low, --high, --learn, --horizon, --seed, --limit, --out and --state"
WITH_CLASSES = "--p, --groups, --categories, --learn, --horizon, --seed, --limit, --out and --state"


def run_several(
    file: str,
    question: Question,
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
    question : Question
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
    apart({"the input": records.file, "the output": out, "the state": state, "the page": told["report"]})
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
            classes = run_classes(records, question, model=named, **settings, **followed)
        else:
            intervals = run_interval(records, question, coverage, model=named, **settings, **followed)
    rows = classes.n_rows if coverage is None else int(intervals.covered.settings["rows"])
    last = None if out is None else f"The forecasts of all {rows:,} rows are in {out}"
    if coverage is None:
        tell_classes(classes, last=last, **told)
    else:
        tell_intervals(intervals, last=last, **told)
