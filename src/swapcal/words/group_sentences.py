"""Groups in sentences: how many are off, which, by how much, since when; and what would have been seen."""

import numpy as np

from swapcal.audit.group_bias import GroupBias
from swapcal.audit.summary import ColumnSummary
from swapcal.roles import Elicitable
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import count, counted
from swapcal.words.property_words import NamedProperty, PropertyWords, property_words

__all__ = ["groups_off", "seen_sentence", "since_text", "worst_groups"]

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
