"""What a run says of late outcomes: that they were taken as known at once, or how late they were and what follows."""

import csv
from collections.abc import Sequence

from swapcal.engine.late_look import Lateness
from swapcal.jobs.guard import regular
from swapcal.jobs.late_outcomes import LateOutcomes
from swapcal.jobs.row_times import day_of
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded
from swapcal.words.numbers import count, counted, number

__all__ = ["late_sentences", "time_column"]

_HEAD = 1 << 16


def late_sentences(late: LateOutcomes, looked: Lateness, time: str | None) -> tuple[str, ...]:
    """For the verdict: when outcomes were taken as known, and what the forecaster made of that.

    Parameters
    ----------
    late : LateOutcomes
        What was said of it.
    looked : Lateness
        What the forecaster says.
    time : str or None
        A column that looks like a time, where nothing was said.

    Examples
    --------
    >>> print(late_sentences(LateOutcomes(), Lateness(0, 0, 0, 0.0, False, None, 0, 0.0, 0.0, None, ()), "booked")[0])
    Outcomes were taken as known at once, each before the next row. If they come later, the numbers above are too good:
    say when with --time booked and --delay 2d, or --known COLUMN.
    """
    if not late.given:
        column = "" if time is None else f"--time {time if time.isidentifier() else repr(time)} and "
        return (
            "Outcomes were taken as known at once, each before the next row. If they come later, the numbers above are "
            f"too good: say when with {column}--delay {'500' if time is None else '2d'}, or --known COLUMN.",
        )
    waits = (
        f", and {count(looked.n_pending)} {'is' if looked.n_pending == 1 else 'are'} out at the end"
        if looked.n_pending
        else ""
    )
    rows = "row" if number(looked.mean_delay) == "1" else "rows"
    how = f", after {number(looked.mean_delay)} later {rows} on average" if looked.n_late and looked.mean_delay else ""
    were = "was" if looked.n_late == 1 else "were"
    return (f"{counted(looked.n_late, 'outcome')} {were} learned after later rows{how}{waits}.", *looked.sentences)


def time_column(path: object, first: Sequence[Batch], named: str | None) -> str | None:
    """A column that looks like a time: the one that was named, or one of a text file's first lines, or of the table."""
    if named is not None:
        return named
    if isinstance(path, str) and regular(path):
        found = _in_text(path)
        if found is not None:
            return found
    for batch in first[:1]:
        for name in batch.columns:
            column = batch.column(name)
            values = column.values[:3] if isinstance(column, Coded) else ()
            if values and all(day_of(_text(value)) for value in values):
                return str(name)
    return None


def _in_text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            lines = list(csv.reader(file.read(_HEAD).splitlines()[:3]))
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if len(lines) < 2 or len(lines[0]) != len(lines[1]):
        return None
    return next((name for name, value in zip(lines[0], lines[1], strict=True) if day_of(value.strip())), None)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
