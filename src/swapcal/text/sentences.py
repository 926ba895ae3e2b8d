"""Sentences about groups, late outcomes, subgroups that were found, and what was assumed and left out."""

from typing import TYPE_CHECKING

import numpy as np

from swapcal.audits.discovery import Discovery
from swapcal.audits.groups import GroupBias
from swapcal.audits.summary import ColumnSummary
from swapcal.engine.lateness import Lateness
from swapcal.properties.base import Wording
from swapcal.text.numbers import count, counted, group_name, guarantee_sentence, number, percent, shortened

if TYPE_CHECKING:
    from swapcal.tasks.result import Clusters, Result

# --------
# What a run says of late outcomes: that they were taken as known at once, or how late they were and what follows.


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
    >>> print(late_sentences(False, Lateness(0, 0, 0, 0.0, 1.0, 1.0, 1.0, None, 0.0, 0.0, ()), "booked")[0])
    Assumed: every outcome is known before the next row. If yours come later, these numbers are too good: add --delay
    ROWS, or --time booked --delay 2d.
    """
    if not late:
        column = "COLUMN" if time is None else time if time.isidentifier() else repr(time)
        way = f"--time {column} --known COLUMN" if time is None else f"--time {column} --delay 2d"
        return (
            "Assumed: every outcome is known before the next row. If yours come later, these numbers are too good: "
            f"add --delay ROWS, or {way}.",
            *looked.sentences,
        )
    are = "is" if looked.n_pending == 1 else "are"
    waits = f", and {count(looked.n_pending)} {are} out at the end" if looked.n_pending else ""
    rows = "row" if number(looked.mean_delay) == "1" else "rows"
    how = f", after {number(looked.mean_delay)} later {rows} on average" if looked.n_late and looked.mean_delay else ""
    were = "was" if looked.n_late == 1 else "were"
    return (f"{counted(looked.n_late, 'outcome')} {were} learned after later rows{how}{waits}.", *looked.sentences)


# --------
# Subgroups that nobody listed, in sentences.

N_TOLD = 3


def discovery_sentences(discovery: Discovery, wording: Wording) -> tuple[str, ...]:
    """What was found, confirmed ones only, and which columns give the outcome away."""
    confirmed, parts = discovery.confirmed, []
    for one in confirmed[:N_TOLD]:
        bias, least = wording.bias(one.bias / wording.scale), wording.size(one.bound / wording.scale)
        parts.append(f"{shortened(one.name, 80)}: {bias}, by {least} at least ({counted(one.rows, 'fresh row')})")
    if parts:
        more = f"; and {len(confirmed) - len(parts)} more" if len(confirmed) > len(parts) else ""
        sentences = [f"Searched and confirmed on rows that were not searched: {'; '.join(parts)}{more}."]
    else:
        sentences = [f"A search of {counted(discovery.rows)} for other subgroups confirmed none."]
    leaks = [f"{shortened(leak.name)} ({percent(round(leak.share, 2))})" for leak in discovery.leaks]
    if leaks:
        sentences.append(
            f"These give the outcome away, and cannot have been known in time, or say how it was made: "
            f"{', '.join(leaks[:N_TOLD])} of the error is known from them."
        )
    if parts and discovery.explained > 0:
        share = number(100 * discovery.explained, 2)
        sentences.append(f"Correcting them takes {share} % off the mean square error of a row.")
    return tuple(sentences)


N_NAMED = 3


def groups_off(groups: GroupBias) -> str:
    """How many groups are biased, as a clause."""
    if groups.n_used == 1:
        return "the group is biased"
    n = groups.n_biased
    return f"{n:,} of {groups.n_used:,} groups {'is' if n == 1 else 'are'} biased"


def since_text(side: ColumnSummary, name: str) -> str:
    """Since when a group is off, if it was not from the start: by the time of the row, or by its number."""
    row = None if side.since is None else side.since.get(name)
    if row is None:
        return ""
    history = (side.histories or {}).get(name)
    at = None if history is None else int(np.searchsorted(history.start, row - 1))
    time = side.times[at] if at is not None and at < len(side.times) else None
    return f"since {time}" if time else f"since row {count(row)}"


def worst_groups(side: ColumnSummary, words: Wording) -> tuple[str, ...]:
    """The worst groups that are off, in a sentence; none if none is."""
    groups = side.groups
    chosen = [j for j in (0, *groups.ranked().tolist()) if groups.biased[j]]
    named = []
    for j in chosen[:N_NAMED]:
        span = f"95 % CI {words.interval(float(groups.low[j]), float(groups.high[j]))}"
        inside = ", ".join(part for part in (counted(groups.rows[j]), span, since_text(side, groups.name[j])) if part)
        named.append(f"{shortened(group_name(groups.name[j]))} {words.bias(float(groups.mean[j]))} ({inside})")
    more = f"; and {len(chosen) - len(named):,} more" if len(chosen) > len(named) else ""
    return (f"Biased: {'; '.join(named)}{more}.",) if named else ()


def seen_sentence(groups: GroupBias, words: Wording) -> str:
    """How large a bias would have shown."""
    half, used, more = (groups.high - groups.low) / 2, np.flatnonzero(groups.rows[1:] > 0) + 1, ""
    if len(used):
        more = f" in all rows, and of {words.size(float(np.median(half[used])))} in half of the groups,"
    return f"A bias of more than about {words.size(float(half[0]))}{more} would have shown."


def clusters_sentence(clusters: "Clusters | None") -> str:
    """Which rows count together."""
    if clusters is None:
        return "rows are treated as independent"
    what = f"one day of {clusters.column}" if clusters.by_day else f"one {clusters.column}"
    return f"rows of {what} count together: {clusters.count:,} clusters"


# --------
# What was assumed and what was left out, for below the tables.

BAD = "rows with a cell that is no number, or an outcome known before the row: passed over"
_LEFT_OUT = {
    "scalar": {
        "without_outcome": "rows without an outcome, not scored",
        "without_forecast": "rows without a forecast, not scored",
        "outcomes_outside": "outcomes outside the range, scored as they are",
        "forecasts_outside": "forecasts outside the range, scored as they are",
        "weights_outside": "weights above the largest at the start, cut",
        "bad_rows": BAD,
    },
    "interval": {
        "without_outcome": "rows without an outcome: an interval, not scored",
        "without_interval": "rows without an interval, at the start or with an infinite end: not scored",
        "without_hint": "rows without a forecast of the model",
        "crossed": "intervals of the model with the lower end above the upper",
        "outcomes_outside": "outcomes outside the range, moved to its end",
        "bad_rows": BAD,
    },
    "classes": {
        "without_outcome": "rows without an outcome: forecast, not scored",
        "of_no_class": "rows whose outcome is none of the classes: forecast, not scored",
        "without_hint": "rows without probabilities of the model",
        "rescaled": "rows whose probabilities did not add up to 1, divided by their sum",
        "bad_rows": BAD,
    },
}
_PROMISES = {
    "interval": "guaranteed in every group at once: the number of covered rows is off by {} at most",
    "classes": "guaranteed: the swap error of the likeliest class's probability is {} at most",
}
_READING = {
    "scalar": "bias above 0: predicted more than observed; CIs hold for all groups and ranges together (95 %)",
    "interval": "an outcome equal to an end counts as covered; CIs of points hold for all groups together (95 %)",
    "classes": "bias above 0: probabilities too high; CIs hold for all groups of one class together (95 %)",
}


def notes(result: "Result") -> list[str]:
    """What to know besides the verdict and the tables."""
    counts, promise, sentences = result.counts, result.guarantee, []
    if result.range is not None and result.range.origin:
        sentences.append(
            f"outcomes in [{number(result.range.low)}, {number(result.range.high)}]: {result.range.origin}"
        )
    sentences += [result.first.binning] if result.first.binning else []
    sentences.append(clusters_sentence(result.clusters))
    sentences += [result.costs.sentence] if result.costs is not None else []
    if result.bands:
        listed = ",".join(result.bands)
        sentences.append(f"numeric columns are binned; for a group of every value: --categories {listed}")
    if result.jitter:
        sentences.append(f"outcomes heap up and were spread over {number(result.jitter)}, as --jitter does")
    sentences += [f"{count(n)} {what}" for name, what in _LEFT_OUT[result.task].items() if (n := getattr(counts, name))]
    if promise is not None and result.task == "scalar":
        sentences.append(f"guarantee: {promise.reason}")
    elif promise is not None and promise.bound is not None and promise.bound < counts.rows:
        why = guarantee_sentence(0.05).removeprefix("holds ")
        sentences.append(f"{_PROMISES[result.task].format(count(promise.bound))}, {why}")
    return [*sentences, _READING[result.task]]
