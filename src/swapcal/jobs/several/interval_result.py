"""What a run of intervals has found: plain data, from which the terminal, the page and the JSON text are made."""

from dataclasses import dataclass
from typing import Any

from swapcal.jobs.group_rows import group_rows
from swapcal.jobs.result import Result
from swapcal.jobs.storage import dumped, plain_data
from swapcal.typing import Float64Array

__all__ = ["IntervalResult", "interval_json", "interval_rows"]

FORMAT, VERSION = "swapcal.intervals", 1


@dataclass(frozen=True, slots=True, eq=False)
class IntervalResult:
    """Intervals before and after.

    covered: the audit of coverage, as a `Result` whose property is a quantile at the level that was asked for and whose
    loss is the interval score. coverage: that level. widths, scores: for "before" and "after", the mean width and the
    mean interval score of each group, in the order of the groups.
    """

    covered: Result
    coverage: float
    widths: dict[str, Float64Array]
    scores: dict[str, Float64Array]


def interval_rows(result: IntervalResult) -> list[dict[str, Any]]:
    """One row for each group, everybody first, then by the evidence against the model: coverage, width, score.

    bias, low, high: coverage beyond what was asked for and its interval, in points.
    """
    rows = group_rows(result.covered)
    place = {
        which: {name: j for j, name in enumerate(side.known_groups.name)}
        for which, side in result.covered.columns.items()
    }
    for row in rows:
        for which in result.covered.columns:
            if which in row:
                j = place[which][row["group"]]
                row[which] |= {"width": float(result.widths[which][j]), "score": float(result.scores[which][j])}
    return rows


def interval_json(result: IntervalResult) -> str:
    """The result as JSON text, all numbers as they are."""
    covered, rows = result.covered, interval_rows(result)
    everybody = rows[0] if rows else {}
    data = {
        "format": FORMAT,
        "version": VERSION,
        "verdict": plain_data(covered.verdict),
        "coverage": result.coverage,
        "everybody": {which: everybody[which] for which in covered.columns if which in everybody},
        "groups_off": {which: side.known_groups.n_off for which, side in covered.columns.items()},
        "group_table": rows,
        "score_change": covered.paired,
        "source": covered.source,
        "rows_scored": covered.n_rounds,
        "rows_without_outcome": covered.n_missing,
        "settings": covered.settings,
        "versions": covered.versions,
    }
    plain: dict[str, Any] = plain_data(data)
    return dumped(plain)
