"""Groups in sentences: how many are off, which, by how much, since when; and what would have been seen."""

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal.audits.groups import GroupBias
from swapcal.audits.summary import ColumnSummary
from swapcal.engine.lateness import Lateness
from swapcal.protocols import Elicitable
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded
from swapcal.tasks.columns import day_of
from swapcal.tasks.files import regular
from swapcal.text.numbers import count, counted, group_name, number, percent, shortened
from swapcal.text.property_words import NamedProperty, PropertyWords, property_words

# --------
# What a run says of late outcomes: that they were taken as known at once, or how late they were and what follows.

_HEAD = 1 << 16


def late_sentences(late: bool, looked: Lateness, time: str | None) -> tuple[str, ...]:
    """For the verdict: when outcomes were taken as known, and what the forecaster made of that.

    Parameters
    ----------
    late : bool
        Whether anything was said of it.
    looked : Lateness
        What the forecaster says.
    time : str or None
        A column that looks like a time, where nothing was said.

    Examples
    --------
    >>> print(late_sentences(False, Lateness(0, 0, 0, 0.0, False, None, 0, 0.0, 0.0, None, ()), "booked")[0])
    Outcomes were taken as known at once, each before the next row. If they come later, the numbers above are too good:
    say when with --time booked and --delay 2d, or --known COLUMN.
    """
    if not late:
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


# --------
# Subgroups that nobody listed, in sentences.

N_TOLD = 3


def discovery_sentences(found: dict[str, Any], property: Elicitable) -> tuple[str, ...]:
    """What was found, confirmed ones only, and which columns give the outcome away.

    `found` is what `jobs.discovering.discovered` returns.
    """
    words, told = property_words(property), []
    confirmed = [one for one in found["subgroups"] if one["confirmed"]]
    for one in confirmed[:N_TOLD]:
        bias = words.bias(float(one["bias"]) / words.scale)
        least = words.size(float(one["bound"]) / words.scale)
        told.append(f"{shortened(one['name'], 80)}: {bias}, by {least} at least ({counted(one['rows'], 'fresh row')})")
    if told:
        more = f"; and {len(confirmed) - len(told)} more" if len(confirmed) > len(told) else ""
        sentences = [f"Searched and confirmed on rows that were not searched: {'; '.join(told)}{more}."]
    else:
        sentences = [f"A search of {counted(found['rows'])} for other subgroups confirmed none."]
    leaks = [f"{shortened(leak['name'])} ({percent(round(leak['share'], 2))})" for leak in found["leaks"]]
    if leaks:
        sentences.append(
            f"These give the outcome away, and cannot have been known in time, or say how it was made: "
            f"{', '.join(leaks[:N_TOLD])} of the error is known from them."
        )
    if told and found["explained"] > 0:
        share = number(100 * found["explained"], 2)
        sentences.append(f"Correcting them takes {share} % off the mean square error of a row.")
    return tuple(sentences)


N_NAMED = 3


def groups_off(groups: GroupBias) -> str:
    """How many groups are off, as a clause."""
    if groups.n_used == 1:
        return "the group is off beyond doubt"
    return f"{groups.n_off:,} of {groups.n_used:,} groups {'is' if groups.n_off == 1 else 'are'} off beyond doubt"


def since_text(side: ColumnSummary, name: str) -> str:
    """Since when a group is off, if it was not from the start: by the time of the row, or by its number."""
    row = None if side.since is None else side.since.get(name)
    if row is None:
        return ""
    history = (side.histories or {}).get(name)
    at = None if history is None else int(np.searchsorted(history.start, row - 1))
    time = side.times[at] if at is not None and at < len(side.times) else None
    return f"since {time}" if time else f"since row {count(row)}"


def worst_groups(side: ColumnSummary, property: Elicitable | NamedProperty) -> str:
    """The worst groups that are off, in a sentence; empty if none is."""
    groups, words = side.groups, property_words(property)
    if groups is None:
        return ""
    chosen = [j for j in groups.ranked().tolist() if groups.off[j]]
    if groups.off[0]:
        chosen = [0, *chosen]
    told = []
    for j in chosen[:N_NAMED]:
        since = since_text(side, groups.name[j])
        inside = ", ".join(
            part
            for part in (
                counted(groups.rows[j]),
                f"interval {words.interval(float(groups.low[j]), float(groups.high[j]))}",
                since,
            )
            if part
        )
        told.append(f"{shortened(group_name(groups.name[j]))} {words.bias(float(groups.mean[j]))} ({inside})")
    if not told:
        return ""
    more = f"; and {len(chosen) - len(told):,} more" if len(chosen) > len(told) else ""
    return f"Off: {'; '.join(told)}{more}."


def seen_sentence(groups: GroupBias, words: PropertyWords) -> str:
    """How large a bias would have been seen."""
    half = (groups.high - groups.low) / 2
    used = np.flatnonzero(groups.rows[1:] > 0) + 1
    if not len(used):
        return f"A bias of more than about {words.size(float(half[0]))} would have been seen."
    middle = float(np.median(half[used]))
    return (
        f"A bias of more than about {words.size(float(half[0]))} in all rows, and of {words.size(middle)} in half of "
        "the groups, would have been seen."
    )
