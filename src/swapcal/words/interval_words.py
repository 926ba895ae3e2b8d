"""Intervals in words: whether to use the recalibrated ones, coverage before and after, width and score."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from swapcal.audit.paired import Paired
from swapcal.audit.summary import ColumnSummary
from swapcal.properties import Quantile
from swapcal.words.group_sentences import groups_off, seen_sentence, worst_groups
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import change, count, number, percent, precise, relative
from swapcal.words.property_words import property_words
from swapcal.words.quantities import guarantee_sentence
from swapcal.words.verdicts import Verdict, healed, what_is_off

__all__ = ["SCORE", "coverage_text", "interval_notes", "interval_verdict", "width_sentence"]

SCORE = "interval score"


def coverage_text(share: float) -> str:
    """A share of outcomes covered.

    Examples
    --------
    >>> coverage_text(0.8951)
    '89.5 %'
    """
    return f"{100.0 * share:.1f} %"


def interval_verdict(
    before: ColumnSummary | None,
    after: ColumnSummary,
    property: Quantile,
    paired: Paired | None,
    widths: dict[str, float],
) -> Verdict:
    """What to make of intervals, the model's own and swapcal's.

    Parameters
    ----------
    before, after : ColumnSummary
        The audits of coverage.
    property : Quantile
        At the level that was asked for.
    paired : Paired, optional
        Interval scores before and after, on the same rows.
    widths : dict
        Mean widths of all rows, by "before" and "after".

    Notes
    -----
    Coverage is off where everybody or a group is off beyond doubt, and by more than 2 % of the standard deviation of a
    row. Keep the model's intervals if they are not off and ours do not have the smaller score beyond doubt; "not yet"
    if ours are off and half of what was off is left.
    """
    level = property.level
    now = _coverage_sentence(before, after, level)
    width, score = width_sentence(widths), _score_sentence(paired, after)
    left = bool(after.material().any())
    still = (f"Not there yet, and falling with more rows: {what_is_off(after, property)}.",) if left else ()
    seen = (seen_sentence(after.known_groups, property_words(property)),)
    if before is None:
        if left:
            headline = f"The intervals are still learning: {what_is_off(after, property)}."
            return Verdict("recalibrate", headline, (now, *_named(after, property), width, score))
        return Verdict("fine", f"The intervals hold: {_holding(after, level)}.", (now, width, score, *seen))
    gain = "" if paired is None else relative(paired.difference, paired.before)
    better, worse = paired is not None and paired.high < 0, paired is not None and paired.low > 0
    counts = _counts(before, after)
    if not before.material().any():
        if better:
            headline = f"Use the recalibrated intervals: the {SCORE} changes by {gain}."
            return Verdict("recalibrate", headline, (now, *counts, width, score, *still))
        price = f"; recalibrated ones would cost {gain} of the {SCORE}" if worse else ""
        headline = f"Keep the model's intervals: {_holding(before, level)}{price}."
        return Verdict("fine", headline, (now, *counts, width, score, *seen))
    off = what_is_off(before, property)
    if off.startswith("coverage too"):
        off = f"the model's coverage is{off.removeprefix('coverage')}"
    if left and not healed(before, after):
        return Verdict(
            "recalibrate",
            f"Not yet better: {off}, and so far less than half of that is gone.",
            (now, *still, *counts, width, score),
        )
    return Verdict(
        "recalibrate",
        f"Use the recalibrated intervals: {off}.",
        (now, *counts, *_named(before, property), width, score, *still),
    )


def interval_notes(settings: Mapping[str, Any], n_missing: int, n_clipped: int) -> list[str]:
    """What was assumed and what was left out, for below the tables."""
    notes = []
    bands = settings.get("bands") or {}
    if bands:
        notes.append(f"numbers of many values are in bands; for a group of every value: --categories {','.join(bands)}")
    for n_rows, what in (
        (n_missing, "rows without an outcome: an interval, not scored"),
        (settings["rows_without_interval_yet"], "rows at the start without an interval, not scored"),
        (settings["rows_without_hint"], "rows without a forecast of the model"),
        (settings["intervals_crossed_before"], "intervals of the model with the lower end above the upper"),
        (n_clipped, "outcomes outside the range, moved to its end"),
    ):
        if n_rows:
            notes.append(f"{count(n_rows)} {what}")
    bound, rows = float(settings["miscovered_rows_at_most"]), int(settings["rows"])
    if bound < rows:
        notes.append(
            f"guaranteed in every group at once: the number of covered rows is off by {count(bound)} at most, "
            f"{guarantee_sentence(0.05).removeprefix('holds ')}"
        )
    notes.append(
        "an outcome equal to an end counts as covered; intervals of points hold for all groups together (95 %)"
    )
    return notes


def width_sentence(widths: dict[str, float]) -> str:
    """The mean width, and what it was.

    Examples
    --------
    >>> width_sentence({"before": 4.0, "after": 3.0}), width_sentence({"after": 3.0})
    ('The mean width was 4 and is 3 (25 % smaller).', 'The mean width is 3.')
    """
    if "before" not in widths:
        return f"The mean width is {precise(widths['after'])}."
    told = change(widths["before"], widths["after"])
    more = f" ({told})" if told else ""
    return f"The mean width was {precise(widths['before'])} and is {precise(widths['after'])}{more}."


def _score_sentence(paired: Paired | None, after: ColumnSummary) -> str:
    if paired is None:
        return f"The {SCORE}, width plus a price for misses, is {precise(after.loss)}; lower is better."
    low, middle, high = (relative(v, paired.before) for v in (paired.low, paired.difference, paired.high))
    return (
        f"The {SCORE}, width plus a price for misses, was {precise(paired.before)} and is {precise(paired.after)}: "
        f"{middle} ({percent(paired.confidence)} interval {low} to {high})."
    )


def _coverage_sentence(before: ColumnSummary | None, after: ColumnSummary, level: float) -> str:
    """Coverage of everybody and of the group that is furthest away, before and after."""
    now = coverage_text(level + float(after.known_groups.mean[0]))
    was = "" if before is None else f"was {coverage_text(level + float(before.known_groups.mean[0]))} and "
    text = f"Coverage of all rows {was}is {now}; {percent(level)} was asked for."
    sides = [(which, side) for which, side in (("before", before), ("after", after)) if side is not None]
    worst = [f"{_worst(side, level)} {which}" if before is not None else _worst(side, level) for which, side in sides]
    if any(worst) and after.known_groups.n_used:
        text += f" Furthest from it: {', '.join(worst)}."
    return text


def _worst(side: ColumnSummary, level: float) -> str:
    """The group that is furthest from the level beyond what chance explains, or, without any, by itself."""
    groups = side.known_groups
    chosen = groups.ranked()
    if not len(chosen):
        return ""
    j = int(chosen[np.argmax(np.abs(groups.near[chosen]))]) if groups.n_off else int(chosen[0])
    return f"{shortened(group_name(groups.name[j]), 40)} with {coverage_text(level + float(groups.mean[j]))}"


def _holding(side: ColumnSummary, level: float) -> str:
    groups = side.known_groups
    covered = (
        f"{coverage_text(level + float(groups.mean[0]))} of the outcomes are covered where {percent(level)} was asked"
    )
    if not groups.n_used:
        return covered
    if not groups.off.any():
        return f"{covered}, and no group is off beyond doubt"
    most = number(100.0 * float(np.max(np.abs(groups.mean[groups.off > 0]))))
    return f"{covered}, and {groups_off(groups)}, by {most} points at most"


def _named(side: ColumnSummary, property: Quantile) -> tuple[str, ...]:
    told = worst_groups(side, property)
    return (told,) if told else ()


def _counts(before: ColumnSummary, after: ColumnSummary) -> tuple[str, ...]:
    first, last = before.known_groups, after.known_groups
    if not first.n_used:
        return ()
    n = max(first.n_used, last.n_used)
    return (f"Groups whose coverage is off beyond doubt: {first.n_off:,} of {n:,} before, {last.n_off:,} after.",)
