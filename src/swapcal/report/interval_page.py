"""The page of a run of intervals: coverage and width of every group, before and after."""

from pathlib import Path
from typing import Any

from swapcal.jobs.several.interval_result import IntervalResult, interval_rows
from swapcal.report.bias_over_time import BiasOverTime
from swapcal.report.group_table import group_table
from swapcal.report.headline_numbers import HeadlineNumber
from swapcal.report.page import drawn, environment, safe_parts, settings_shown, write_text
from swapcal.words.interval_words import SCORE, coverage_text, interval_notes
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import change, count, counted, number, percent, precise, relative
from swapcal.words.quantities import capitalized
from swapcal.words.verdicts import headline_below_badge

__all__ = ["interval_html", "write_intervals"]


def write_intervals(result: IntervalResult, path: str | Path) -> Path:
    """Write the page of a run of intervals to `path`, and return it."""
    return write_text(interval_html(result), Path(path))


def interval_html(result: IntervalResult) -> str:
    """The page of a run of intervals."""
    covered, rows = result.covered, interval_rows(result)
    tail = (1.0 - result.coverage) / 2
    figures = [
        (which, *drawn(BiasOverTime(side, covered.property), f"b{which}")) for which, side in covered.columns.items()
    ]
    page = (
        environment()
        .get_template("intervals.html.j2")
        .render(
            safe_parts(),
            result=covered,
            headline=headline_below_badge(covered.verdict),
            percent=percent(result.coverage),
            price=number(2.0 / (1.0 - result.coverage)),
            tails=[percent(round(level, 6)) for level in (tail, 1.0 - tail)],
            rows=_how_many(result),
            told=_cards(result, rows),
            sides=list(covered.columns),
            both=len(covered.columns) == 2,
            groups=group_table(covered),
            extra={row["group"]: {w: _told(row[w]) for w in covered.columns if w in row} for row in rows},
            figures=figures,
            notes=interval_notes(covered.settings, covered.n_missing, covered.n_clipped),
            settings=settings_shown(covered),
        )
    )
    return str(page)


def _how_many(result: IntervalResult) -> str:
    covered, n = result.covered, len(result.covered.groups) - 1
    return f"{counted(covered.n_rounds)} with an outcome and an interval, {counted(n, 'group')}."


def _told(side: dict[str, Any]) -> dict[str, str]:
    """The numbers of a group as they are, and as they are shown."""
    plain = {name: f"{side[name]:.6g}" for name in ("coverage", "width", "score")}
    return {**plain, "width_text": number(side["width"]), "score_text": number(side["score"])}


def _cards(result: IntervalResult, rows: list[dict[str, Any]]) -> list[HeadlineNumber]:
    covered, everybody = result.covered, rows[0]

    def texts(row: dict[str, Any], name: str) -> tuple[str, str]:
        show = coverage_text if name == "coverage" else precise
        first, last = ("" if which not in row else show(row[which][name]) for which in ("before", "after"))
        return first, last

    cards = [
        HeadlineNumber(
            "Coverage of all rows", *texts(everybody, "coverage"), f"{percent(result.coverage)} was asked for"
        )
    ]
    if len(rows) > 1:
        off = {which: count(side.known_groups.n_off) for which, side in covered.columns.items()}
        cards.append(
            HeadlineNumber("Groups off beyond doubt", off.get("before", ""), off["after"], f"of {count(len(rows) - 1)}")
        )
        name = shortened(group_name(rows[1]["group"]), 48)
        note = f"{name}, {counted(rows[1]['rows'])}"
        cards.append(HeadlineNumber("Coverage of the worst group", *texts(rows[1], "coverage"), note))
    first, last = texts(everybody, "width")
    told = change(everybody["before"]["width"], everybody["after"]["width"]) if "before" in everybody else ""
    cards.append(HeadlineNumber("Mean width", first, last, told or "in units of the outcome"))
    pair = covered.paired
    if pair is None:
        cards.append(HeadlineNumber(capitalized(SCORE), *texts(everybody, "score"), "lower is better"))
    else:
        low, middle, high = (relative(v, pair.before) for v in (pair.low, pair.difference, pair.high))
        note = f"{middle} ({percent(pair.confidence)} interval {low} to {high})"
        cards.append(HeadlineNumber(capitalized(SCORE), precise(pair.before), precise(pair.after), note))
    return cards
