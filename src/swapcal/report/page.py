"""The page: one HTML file that holds everything, opens without a network, and prints."""

import base64
import hashlib
import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import InvalidInput, MissingExtra
from swapcal.report import figures, tables
from swapcal.report.drawing import DARK, LIGHT, N_STEPS, css, step_role, svg
from swapcal.state import atomic_write
from swapcal.tasks.result import Result
from swapcal.text.numbers import count, counted, group_name, number, percent, readable, shortened
from swapcal.text.sentences import notes
from swapcal.text.summary import below, next_step
from swapcal.text.verdict import class_title

# Classes with a diagram; and groups whose diagrams are printed besides that of everybody.
N_CLASSES, N_PRINTED = 7, 9


def write(result: Result, path: str | Path) -> Path:
    """Write the page of `result` to `path`, and return it."""
    text, target = html(result), Path(path)
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
    if not all(section.columns for section in result.sections):
        raise InvalidInput("a page needs forecasts before or after; this result has neither")
    if result.kind == "comparison" and len(result.sections) < 2:
        raise InvalidInput("a page of a comparison needs two models or more")
    for module in ("jinja2", "matplotlib"):
        if find_spec(module) is None:
            raise MissingExtra(f"the page needs {module}: install with  pip install 'swapcal[report]'")
    import jinja2

    # Everything is escaped that is not said to be safe.
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    named = {"readable": readable, "shortened": shortened, "group": group_name, "percent": percent}
    environment.filters |= {**named, "count": count, "counted": counted, "number": number}
    script = _text("page.js").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    safe = {"style": _style(_text("page.css")), "script": script, "script_hash": f"sha256-{digest}"}
    return environment.get_template("page.html.j2").render(_context(result), **safe)


def _text(name: str) -> str:
    return (files("swapcal.report") / name).read_text(encoding="utf-8")


def _style(text: str) -> str:
    """The style sheet with the colors of every role, and those of every shade of bias."""
    shades = "".join(f".{role}{{--c:var(--{role})}}" for role in map(step_role, range(-N_STEPS, N_STEPS + 1)))
    return text.replace("/*light*/", css(LIGHT)).replace("/*dark*/", css(DARK)).strip() + shades


def _context(result: Result) -> dict[str, Any]:
    """Everything that the template shows, ready to be read; what a kind of result does not have is empty."""
    compared, classes, scalar = result.kind == "comparison", result.task == "classes", result.task == "scalar"
    words, sides, alone = result.wording, list(result.columns.items()), scalar and not compared
    chosen = chosen_groups(result) if alone else Chosen()
    diagrams = [] if compared or result.task == "interval" else _diagrams(result, chosen)
    maps = tables.heat_maps(result) if alone else []
    return {
        "result": result,
        "headline": result.verdict.headline,
        "sides": sides,
        "words": words,
        "below": below(result),
        "next": next_step(result),
        "corrections": tables.correction_table(result) if alone else None,
        "changed": None if result.verdict.decision is None else result.verdict.decision.changed,
        "cards": tables.cards(result),
        "classes": tables.class_table(result) if classes else None,
        "models": tables.model_table(result) if compared else None,
        "groups": tables.group_table(result) if not classes or result.n_groups else None,
        "matrix": tables.class_matrix(result) if classes and result.n_groups else None,
        "diagrams": diagrams,
        "numbers": {each["name"]: each["number"] for each in diagrams if each["kind"] in ("worst", "largest")},
        "chosen": chosen,
        "maps": maps,
        "shades": [step_role(k) for k in range(-N_STEPS, N_STEPS + 1)],
        "few": figures.FEW,
        "figures": _figures(result),
        "worst": [(w, side.label, side.witness, tables.worst_table(side, words)) for w, side in sides] if maps else [],
        "errors": tables.error_cards(result) if maps else [],
        "notes": [] if compared else notes(result),
        "config": _config(result),
    }


def _config(result: Result) -> list[tuple[str, str]]:
    """What was asked, as people write it: text as it is, the rest as JSON."""
    lines: dict[str, Any] = {"source": result.source, "property": result.property}
    if result.range is not None:
        lines["range of outcomes"] = f"{number(result.range.low, 6)} to {number(result.range.high, 6)}"
    lines |= {name: value for name, value in result.settings.items() if name != "property"}
    asked = {
        name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str) for name, v in lines.items()
    }
    return list(asked.items())


# --------
# Figures, and which groups get a diagram of their own when there are too many for all of them.


class Chosen(NamedTuple):
    """Names of groups with a diagram: the worst, then the largest of the others.

    `total` groups could have one, as their curves were kept; `n_groups` have rows.
    """

    worst: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    total: int = 0
    n_groups: int = 0


def chosen_groups(result: Result, limit: int = 32) -> Chosen:
    """Three quarters of `limit` for the worst groups and a quarter for the largest; "all" is not counted."""
    groups, curves = result.first.leading.groups, [side.curves for side in result.columns.values()]
    drawn = np.array([name != "all" and any(name in c for c in curves) for name in groups.name], dtype=bool)
    drawn &= groups.rows > 0.0
    ranked = [int(j) for j in groups.ranked() if drawn[j]]
    worst = ranked if len(ranked) <= limit else ranked[: limit - limit // 4]
    others = [int(j) for j in np.argsort(-groups.rows, kind="stable") if drawn[j] and int(j) not in set(worst)]
    largest = others[: limit - len(worst)] if len(ranked) > limit else []
    names = groups.name
    return Chosen(tuple(names[j] for j in worst), tuple(names[j] for j in largest), len(ranked), groups.n_used)


def _diagrams(result: Result, chosen: Chosen) -> list[dict[str, Any]]:
    """Reliability diagrams: of all rows and of the chosen groups, or of all rows for each class."""
    if result.task == "classes":
        parts = [("class", class_title(one.title), "all", one) for one in result.sections[:N_CLASSES]]
    else:
        everybody = ["all"] if any("all" in side.curves for side in result.columns.values()) else []
        kinds = {"all": everybody, "worst": chosen.worst, "largest": chosen.largest}
        parts = [(kind, name, name, result.first) for kind, names in kinds.items() for name in names]
    diagrams = []
    for k, (kind, title, group, section) in enumerate(parts):
        drawing, finding = _drawn(figures.reliability(result, group, section), f"r{k}-")
        printed = k <= N_PRINTED
        one = {"kind": kind, "name": title, "svg": drawing, "finding": finding, "printed": printed, "number": k}
        diagrams.append(one)
    return diagrams


def _figures(result: Result) -> dict[str, tuple[str, str]]:
    """The other drawings there are, by name, each with what it shows in a sentence."""
    drawings = {}
    if result.kind == "comparison":
        drawings["models"] = figures.reliability_of_models(result)
    elif result.task == "interval":
        drawings |= {which: figures.bias_over_time(result, which) for which in result.columns}
    elif result.task == "scalar":
        drawings["histogram"] = figures.forecast_histogram(result)
        drawings |= {"time": figures.error_over_time(result)} if result.first.history is not None else {}
        drawings |= {"loss": figures.loss_change(result)} if result.change is not None else {}
        some = any(side.histories for side in result.columns.values())
        drawings |= {"bias": figures.bias_over_time(result)} if some else {}
    return {name: _drawn(figure, f"{name[0]}{k}-") for k, (name, figure) in enumerate(drawings.items())}


def _drawn(figure: figures.Figure, prefix: str) -> tuple[str, str]:
    """A figure as a drawing for the page, whose names begin with `prefix`, and what it shows in a sentence."""
    from markupsafe import Markup

    return Markup(svg(figure(), prefix)), figure.finding
