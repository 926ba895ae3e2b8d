"""The page of a run of classes: the likeliest class, every class, and both for every group, before and after."""

from pathlib import Path
from typing import Any

from swapcal.jobs.several.class_result import TOP, ClassResult, class_lines, class_rows
from swapcal.report.group_table import group_table
from swapcal.report.headline_numbers import HeadlineNumber
from swapcal.report.page import drawn, environment, safe_parts, settings_shown, write_text
from swapcal.report.reliability import Reliability
from swapcal.words.class_words import BRIER, class_notes, class_title
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import MISSING, count, counted, interval, percent, precise, relative
from swapcal.words.property_words import property_words
from swapcal.words.quantities import capitalized
from swapcal.words.verdicts import headline_below_badge

__all__ = ["class_html", "write_classes"]

N_GROUPS, N_COLUMNS, N_DIAGRAMS = 25, 12, 7
"""Groups and classes of the table of both, and diagrams."""


def write_classes(result: ClassResult, path: str | Path) -> Path:
    """Write the page of a run of classes to `path`, and return it."""
    return write_text(class_html(result), Path(path))


def class_html(result: ClassResult) -> str:
    """The page of a run of classes."""
    top, rows = result.top, class_rows(result)
    sides = list(top.columns)
    shown = list(result.classes)[:N_COLUMNS]
    audits = {TOP: top, **result.classes}
    page = (
        environment()
        .get_template("classes.html.j2")
        .render(
            safe_parts(),
            result=top,
            said=result.verdict,
            headline=headline_below_badge(result.verdict),
            rows=f"{counted(top.n_rounds)} with an outcome, {counted(len(result.classes), 'class', 'classes')}, "
            f"{counted(len(top.groups) - 1, 'group')}.",
            told=_cards(result),
            sides=list(top.columns.items()),
            whiches=sides,
            both=len(sides) == 2,
            words=property_words(top.property),
            lines=[_line(line, sides) for line in class_lines(result)],
            groups=group_table(top) if len(rows) > 1 else None,
            numbers={},
            whose="Groups: the likeliest class",
            figures={},
            n_groups=len(rows) - 1,
            titles=[class_title(name) for name in shown],
            left_out=max(len(result.classes) - N_COLUMNS, 0),
            matrix=[_matrix_row(row, shown, sides) for row in rows[: N_GROUPS + 1]],
            diagrams=[
                (class_title(name), *drawn(Reliability.of(one, "all"), f"r{k}-"))
                for k, (name, one) in enumerate(list(audits.items())[:N_DIAGRAMS])
            ],
            notes=class_notes(top.settings, top.n_missing, top.guarantee),
            settings=[each for each in settings_shown(top) if each[0] != "class"],
        )
    )
    return str(page)


def _line(line: dict[str, Any], sides: list[str]) -> dict[str, Any]:
    """A class as texts."""
    last = line[sides[-1]]
    words = {
        which: {
            "bias": _points(line[which]["bias"]),
            "interval": interval(line[which]["low"], line[which]["high"]),
            "off": line[which]["off"],
            "groups_off": f"{line[which]['groups_off']:,} of {line[which]['groups']:,}",
        }
        for which in sides
    }
    worst = last["worst_group"]
    return {
        "title": class_title(line["class"]),
        "came": MISSING if last["came"] is None else f"{100.0 * last['came']:.1f} %",
        "sides": words,
        "worst": "" if worst is None else f"{shortened(group_name(worst), 30)}: {_points(last['worst_bias'])}",
    }


def _matrix_row(row: dict[str, Any], classes: list[str], sides: list[str]) -> dict[str, Any]:
    """A group with the bias of each class: after, and before in brackets."""
    cells = []
    for name in classes:
        found = {which: (row.get(which) or {}).get("classes", {}).get(name) for which in sides}
        now, was = found[sides[-1]], found[sides[0]] if len(sides) == 2 else None
        cells.append(
            {
                "text": MISSING if now is None else _points(now["bias"]),
                "off": now is not None and now["off"],
                "was": "" if was is None else _points(was["bias"]),
                "was_off": was is not None and was["off"],
                "title": "" if now is None else f"interval {interval(now['low'], now['high'])}",
            }
        )
    return {"name": row["group"], "count": count(row["rows"]), "cells": cells}


def _points(bias: float) -> str:
    return f"{bias:+.2f}".replace("-", "\u2212")


def _cards(result: ClassResult) -> list[HeadlineNumber]:
    means = {which: {name: float(values[0]) for name, values in some.items()} for which, some in result.means.items()}

    def share(name: str) -> tuple[str, str]:
        first, last = (f"{100.0 * means[w][name]:.1f} %" if w in means else "" for w in ("before", "after"))
        return first, last

    cards = [
        HeadlineNumber("Likeliest class came up", *share("right"), "share of rows: the accuracy"),
        HeadlineNumber(
            "Its mean probability", *share("confidence"), "equal to the accuracy where it is right on average"
        ),
    ]
    n = max(side.known_groups.n_used for side in result.top.columns.values())
    if n:
        off = {
            which: count(sum(one.columns[which].known_groups.n_off for one in (result.top, *result.classes.values())))
            for which in result.top.columns
        }
        total = n * (1 + len(result.classes))
        note = f"of {count(total)}: {counted(n, 'group')} for the likeliest and every class"
        cards.append(HeadlineNumber("Groups off beyond doubt", off.get("before", ""), off["after"], note))
    for title, name, pair in ((BRIER, "brier", result.brier), ("log loss", "log_loss", result.log)):
        if pair is None:
            cards.append(HeadlineNumber(capitalized(title), "", precise(means["after"][name]), "lower is better"))
            continue
        low, middle, high = (relative(v, pair.before) for v in (pair.low, pair.difference, pair.high))
        note = f"{middle} ({percent(pair.confidence)} interval {low} to {high})"
        cards.append(HeadlineNumber(capitalized(title), precise(pair.before), precise(pair.after), note))
    return cards
