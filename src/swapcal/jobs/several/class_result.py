"""What a run of classes has found: plain data, from which the terminal, the page and the JSON text are made."""

from dataclasses import dataclass
from typing import Any

from swapcal.audit.paired import Paired
from swapcal.jobs.group_rows import group_rows
from swapcal.jobs.result import Result
from swapcal.jobs.storage import dumped, plain_data
from swapcal.typing import Float64Array
from swapcal.words.verdicts import Verdict

__all__ = ["TOP", "ClassResult", "class_json", "class_lines", "class_rows"]

FORMAT, VERSION = "swapcal.classes", 1
TOP = "top"
"""How the likeliest class is called in tables."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassResult:
    """Probabilities of classes before and after.

    top: the audit of the probability of the likeliest class, which may be another one before and after. classes: the
    audit of each class. means: for "before" and "after", the means of each group, by name: right (how often the
    likeliest class came up), confidence (its mean probability), brier, log_loss. brier, log: losses before and after on
    the same rows. n_rows: all rows; n_strange: those whose outcome is none of the classes.
    """

    top: Result
    classes: dict[str, Result]
    means: dict[str, dict[str, Float64Array]]
    brier: Paired | None
    log: Paired | None
    verdict: Verdict
    n_rows: int
    n_strange: int


def class_lines(result: ClassResult) -> list[dict[str, Any]]:
    """One row for the likeliest class and one for each class: share of rows, bias of everybody, groups off, the worst.

    bias, low, high are in points.
    """
    lines = []
    for name, one in {TOP: result.top, **result.classes}.items():
        line: dict[str, Any] = {"class": name}
        for which, side in one.columns.items():
            groups = side.known_groups
            ranked = groups.ranked()
            worst = int(ranked[0]) if len(ranked) else None
            line[which] = {
                "came": None if side.scores is None else side.scores.base_rate,
                "bias": 100.0 * float(groups.mean[0]),
                "low": 100.0 * float(groups.low[0]),
                "high": 100.0 * float(groups.high[0]),
                "off": bool(groups.off[0]),
                "groups_off": groups.n_off,
                "groups": groups.n_used,
                "worst_group": None if worst is None else groups.name[worst],
                "worst_bias": None if worst is None else 100.0 * float(groups.mean[worst]),
                "swap_error": side.swap_error,
                "brier": side.loss,
                "auc": None if side.scores is None else side.scores.auc,
            }
        lines.append(line)
    return lines


def class_rows(result: ClassResult) -> list[dict[str, Any]]:
    """One row for each group: for the likeliest class and every class the bias in points with its interval.

    Everybody first, then by the evidence against the model's probability of its likeliest class.
    """
    rows = []
    tables = {name: {row["group"]: row for row in group_rows(one)} for name, one in result.classes.items()}
    for row in group_rows(result.top):
        place = {which: side.known_groups.name.index(row["group"]) for which, side in result.top.columns.items()}
        line: dict[str, Any] = {"group": row["group"], "rows": row["rows"], "unit": row["unit"]}
        for which in result.top.columns:
            if which in row:
                means = {name: float(values[place[which]]) for name, values in result.means[which].items()}
                of = {name: tables[name].get(row["group"], {}).get(which) for name in result.classes}
                line[which] = {TOP: row[which], "classes": of, **means}
        rows.append(line)
    return rows


def class_json(result: ClassResult) -> str:
    """The result as JSON text, all numbers as they are."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "verdict": result.verdict,
        "classes": class_lines(result),
        "group_table": class_rows(result),
        "brier_change": result.brier,
        "log_loss_change": result.log,
        "source": result.top.source,
        "rows_scored": result.top.n_rounds,
        "rows_without_outcome": result.top.n_missing,
        "rows_of_no_class": result.n_strange,
        "settings": result.top.settings,
        "versions": result.top.versions,
    }
    plain: dict[str, Any] = plain_data(data)
    return dumped(plain)
