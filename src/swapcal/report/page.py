"""The page: one HTML file that holds everything, opens without a network, and prints."""

import base64
import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.audits.summary import ColumnSummary
from swapcal.errors import InvalidInput, MissingExtra
from swapcal.report.drawing import (
    DARK,
    LIGHT,
    N_STEPS,
    SMALL,
    axes_or_new,
    css,
    dress,
    legend,
    plain_text,
    step_role,
    svg,
    thousands,
)
from swapcal.report.figures import FEW, BiasOverTime, ErrorOverTime, ForecastHistogram, LossChange, Reliability
from swapcal.report.tables import HeadlineNumber, cell_tables, error_numbers, group_table, headline_numbers, rows
from swapcal.state import atomic_write
from swapcal.tasks.audit import Comparison, group_lines, headline, model_lines, sentences
from swapcal.tasks.result import TOP, ClassResult, IntervalResult, Result, class_lines, class_rows, interval_rows
from swapcal.text.numbers import (
    MISSING,
    capitalized,
    change,
    count,
    counted,
    group_name,
    interval,
    number,
    percent,
    precise,
    readable,
    relative,
    shortened,
    signed,
)
from swapcal.text.property_words import PropertyWords, property_words
from swapcal.text.verdict import (
    BRIER,
    SCORE,
    class_notes,
    class_title,
    coverage_text,
    headline_below_badge,
    interval_notes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------
# Which groups get a diagram of their own on the page, when there are too many for all of them.


@dataclass(frozen=True, slots=True)
class ChosenGroups:
    """Names with a diagram: the worst, then the largest of the others.

    `total` groups could have one, as their curves were kept; `n_groups` have rows.
    """

    worst: tuple[str, ...]
    largest: tuple[str, ...]
    total: int
    n_groups: int

    @property
    def complete(self) -> bool:
        """Whether every group that could have one is among them."""
        return len(self.worst) + len(self.largest) >= self.total


def chosen_groups(result: Result, limit: int = 32) -> ChosenGroups:
    """Three quarters of `limit` for the worst groups and a quarter for the largest; "all" is not counted."""
    side = result.before if result.before is not None else result.after
    if side is None:
        return ChosenGroups((), (), 0, 0)
    found = side.known_groups
    curves = [side.curves for side in result.columns.values()]
    having = np.array([name != "all" and any(name in c for c in curves) for name in found.name], dtype=bool)
    having &= found.rows > 0.0
    by_error = [int(j) for j in found.ranked() if having[j]]
    total = len(by_error)
    n_worst = total if total <= limit else limit - limit // 4
    worst = by_error[:n_worst]
    by_size = [int(j) for j in np.argsort(-found.rows, kind="stable") if having[j] and int(j) not in set(worst)]
    largest = by_size[: limit - n_worst] if total > limit else []
    names = found.name
    return ChosenGroups(tuple(names[j] for j in worst), tuple(names[j] for j in largest), total, found.n_used)


_PRINTED = 9
"""How many groups' diagrams are printed besides that of everybody."""


def write(result: Result, path: str | Path) -> Path:
    """Write the page of `result` to `path`, and return it."""
    return write_text(html(result), Path(path))


def write_text(text: str, target: Path) -> Path:
    """Put the text of a page into a file, whole or not at all."""
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")  # a pipe or a device
        else:
            with atomic_write(target) as file:
                file.write(text.encode("utf-8"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the page cannot be written to {str(target)!r}: {reason}; give another path") from error
    return target


def html(result: Result) -> str:
    """The page of `result`."""
    if result.before is None and result.after is None:
        raise InvalidInput("a page needs forecasts before or after; this result has neither")
    return str(environment().get_template("page.html.j2").render(_context(result), **safe_parts()))


def environment() -> Any:
    """What renders the templates of this room; everything is escaped that is not said to be safe."""
    for module in ("jinja2", "matplotlib"):
        if find_spec(module) is None:
            raise MissingExtra(f"the page needs {module}: install with  pip install 'swapcal[report]'")
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters |= {
        "readable": readable,
        "shortened": shortened,
        "group": group_name,
        "count": count,
        "number": number,
    }
    return found


def safe_parts() -> dict[str, str]:
    """The style sheet, the script and its digest, for the head of a page."""
    script = _text("page.js").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": _style(_text("page.css")), "script": script, "script_hash": f"sha256-{digest}"}


def _text(name: str) -> str:
    return (files("swapcal.report") / name).read_text(encoding="utf-8")


def _style(text: str) -> str:
    """The style sheet with the colors of every role, and those of every shade of bias."""
    shades = "".join(f".{role}{{--c:var(--{role})}}" for role in map(step_role, range(-N_STEPS, N_STEPS + 1)))
    return text.replace("/*light*/", css(LIGHT)).replace("/*dark*/", css(DARK)).strip() + shades


def _context(result: Result) -> dict[str, Any]:
    """Everything that the template shows, ready to be read."""
    chosen = chosen_groups(result)
    diagrams = _diagrams(result, chosen)
    tables, end, left_out = cell_tables(result)
    sides = list(result.columns.items())
    known = [side.chance_mean for _, side in sides if side.chance_mean is not None]
    chance = number(known[-1]) if known else ""
    figures: dict[str, tuple[str, str]] = {}
    if result.history is not None:
        figures["time"] = drawn(ErrorOverTime.of(result), "t")
    if result.paired is not None:
        figures["loss"] = drawn(LossChange.of(result), "l")
    if any((side.histories or {}) for _, side in sides):
        figures["bias"] = drawn(BiasOverTime.of(result), "b")
    figures["histogram"] = drawn(ForecastHistogram.of(result), "h")
    return {
        "result": result,
        "headline": headline_below_badge(result.verdict),
        "property": repr(result.property),
        "sides": sides,
        "both": len(sides) == 2,
        "words": property_words(result.property),
        "told": headline_numbers(result),
        "errors": error_numbers(result),
        "rows": rows(result),
        "chance": chance,
        "power": number(result.r),
        "yardstick": number(float(max(result.n_rounds, 0)) ** (1.0 / 3.0)),
        "diagrams": diagrams,
        "numbers": {each["name"]: each["number"] for each in diagrams if each["kind"] != "all"},
        "chosen": chosen,
        "tables": tables,
        "scale_end": end,
        "cells_left_out": left_out,
        "shades": [step_role(k) for k in range(-N_STEPS, N_STEPS + 1)],
        "few": FEW,
        "groups": group_table(result),
        "figures": figures,
        "worst": [(which, side.label, _worst(side, result)) for which, side in sides],
        "settings": settings_shown(result),
    }


def settings_shown(result: Result) -> list[tuple[str, str]]:
    """The settings of a result by name, as people write them, but for the property, which is told anyway."""
    told = ("property", repr(result.property))
    return [(name, _plain(value)) for name, value in result.settings.items() if (name, value) != told]


def drawn(figure: Any, prefix: str) -> tuple[str, str]:
    """A figure as a drawing for the page, whose names begin with `prefix`, and what it shows in a sentence."""
    from markupsafe import Markup

    return Markup(svg(figure(), prefix)), figure.finding()


def _diagrams(result: Result, chosen: ChosenGroups) -> list[dict[str, Any]]:
    """Reliability diagrams: everybody first, then the chosen groups."""
    found = []
    everybody = [name for name in ("all",) if any(name in side.curves for side in result.columns.values())]
    kinds = [("all", name) for name in everybody]
    kinds += [("worst", name) for name in chosen.worst] + [("largest", name) for name in chosen.largest]
    for k, (kind, name) in enumerate(kinds):
        drawing, finding = drawn(Reliability.of(result, name), f"r{k}-")
        found.append(
            {"kind": kind, "name": name, "svg": drawing, "finding": finding, "printed": k <= _PRINTED, "number": k}
        )
    return found


def _worst(side: ColumnSummary, result: Result) -> list[dict[str, str]]:
    words = property_words(result.property)
    return [
        {
            "name": cell.name,
            "value": number(cell.value),
            "count": count(cell.count),
            "bias": words.bias(cell.mean),
            "interval": words.interval(cell.low, cell.high),
            "beyond": "yes" if cell.low > 0.0 or cell.high < 0.0 else "no",
            "contribution": number(cell.contribution),
        }
        for cell in side.worst
    ]


def _plain(value: object) -> str:
    """A setting as people write it: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# --------
# The page of a run of classes: the likeliest class, every class, and both for every group, before and after.

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
            told=_class_cards(result),
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


def _class_cards(result: ClassResult) -> list[HeadlineNumber]:
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


# --------
# The page of several models: which is best, each with its verdict, every group, their reliability in one diagram.

AT_FIRST, MOST = 15, 800
"""Groups that are shown before somebody asks for all of them, and that the page holds."""

ROLES = ("before", "after", "high7", "low7", "muted")
MARKERS = "soD^v"


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the page of a comparison to `path`, and return it."""
    return write_text(comparison_html(comparison), Path(path))


def comparison_html(comparison: Comparison) -> str:
    """The page of a comparison."""
    if len(comparison.results) < 2:
        raise InvalidInput("a page of a comparison needs two models or more")
    from markupsafe import Markup

    words = property_words(comparison.first.property)
    lines, models = group_lines(comparison), model_lines(comparison)
    page = (
        environment()
        .get_template("comparison.html.j2")
        .render(
            safe_parts(),
            comparison=comparison,
            headline=headline(comparison),
            sentences=sentences(comparison),
            words=words,
            loss=comparison.first.loss_name,
            rows=count(comparison.first.n_rounds),
            models=[_model(line, words) for line in models],
            ordered=any(line["auc"] is not None for line in models),
            groups=[_group(line, comparison, words) for line in lines[: MOST + 1]],
            left_out=max(len(lines) - MOST - 1, 0),
            at_first=AT_FIRST,
            drawing=Markup(svg(reliability_of_models(comparison), "m")),
        )
    )
    return str(page)


def reliability_of_models(comparison: Comparison, group: str = "all", ax: "Axes | None" = None) -> "Axes":
    """What was forecast against what came, every model's curve on the same axes; at most five are drawn."""
    ax = axes_or_new(ax, height=4.3)
    words = property_words(comparison.first.property)
    dress(ax, f"forecast: {words.name}", words.outcome)
    ends = []
    for model, role, marker in zip(comparison.models, ROLES, MARKERS, strict=False):
        side = comparison.results[model].before
        if side is None or group not in side.curves:
            continue
        curve = side.curves[group]
        order = np.argsort(curve.forecast)
        x, y = curve.forecast[order], curve.outcome[order]
        used = np.isfinite(x) & np.isfinite(y)
        ends += [*x[used].tolist(), *y[used].tolist()]
        label = plain_text(model, 22)
        ax.plot(x[used], y[used], color=LIGHT[role], marker=marker, markersize=4.0, linewidth=1.2, label=label)
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    ax.plot([low, high], [low, high], color=LIGHT["reference"], linewidth=1.0, linestyle=(0, (4, 3)), gid="diagonal")
    ax.xaxis.set_major_formatter(thousands)
    ax.yaxis.set_major_formatter(thousands)
    ax.tick_params(labelsize=SMALL)
    legend(ax, "upper left")
    return ax


def _model(line: dict[str, Any], words: PropertyWords) -> dict[str, str]:
    pair = line["difference"]
    change = low = high = ""
    if pair is not None:
        change, low, high = (relative(pair[name], pair["first"]) for name in ("mean", "low", "high"))
    return {
        "model": line["model"],
        "kind": line["kind"],
        "headline": line["headline"],
        "off": f"{line['groups_off']:,} of {line['groups']:,}",
        "bias": words.signed(line["bias"]),
        "worst": line["worst_group"] or "",
        "worst_bias": "" if line["worst_bias"] is None else words.signed(line["worst_bias"]),
        "loss": precise(line["loss"]),
        "change": change,
        "interval": f"{low} to {high}" if change else "",
        "sure": "better" if pair is not None and pair["high"] < 0 else "worse" if pair and pair["low"] > 0 else "",
        "auc": "" if line["auc"] is None else number(line["auc"]),
    }


def _group(line: dict[str, Any], comparison: Comparison, words: PropertyWords) -> dict[str, Any]:
    cells = []
    for k, model in enumerate(comparison.models):
        side = line.get(model)
        if side is None:
            cells.append({"key": f"m{k}", "text": MISSING, "off": False, "loss": "", "there": False})
            continue
        cell = {"key": f"m{k}", "text": words.signed(side["bias"]), "off": side["off"], "there": True, "loss": ""}
        cell |= {name: f"{side[name]:.5g}" for name in ("bias", "low", "high")}
        cell["interval"] = interval(side["low"], side["high"])
        if k and "loss" in side:
            sure = side["loss_high"] < 0 or side["loss_low"] > 0
            cell |= {"loss": signed(side["loss"]), "plain_loss": f"{side['loss']:.5g}", "sure": sure}
            cell["loss_interval"] = interval(side["loss_low"], side["loss_high"])
        cells.append(cell)
    return {"name": line["group"], "rows": line["rows"], "count": count(line["rows"]), "cells": cells}


# --------
# The page of a run of intervals: coverage and width of every group, before and after.


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
            told=_interval_cards(result, rows),
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


def _interval_cards(result: IntervalResult, rows: list[dict[str, Any]]) -> list[HeadlineNumber]:
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
