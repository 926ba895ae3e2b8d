"""The page: one HTML file that holds everything, opens without a network, and prints."""

import base64
import hashlib
import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from swapcal.audit.summary import ColumnSummary
from swapcal.errors import InvalidInput, MissingExtra
from swapcal.jobs.result import Result
from swapcal.replacing import replacing
from swapcal.report.bias_over_time import BiasOverTime
from swapcal.report.cell_table import cell_tables
from swapcal.report.chosen_groups import ChosenGroups, chosen_groups
from swapcal.report.error_over_time import ErrorOverTime
from swapcal.report.forecast_histogram import ForecastHistogram
from swapcal.report.group_table import group_table
from swapcal.report.headline_numbers import error_numbers, headline_numbers, rows
from swapcal.report.loss_change import LossChange
from swapcal.report.palette import DARK, LIGHT, N_STEPS, css, step_role
from swapcal.report.reliability import FEW, Reliability
from swapcal.report.svg import svg
from swapcal.words.names import group_name, readable, shortened
from swapcal.words.numbers import count, number
from swapcal.words.property_words import property_words
from swapcal.words.verdicts import headline_below_badge

__all__ = ["drawn", "environment", "html", "safe_parts", "settings_shown", "write", "write_text"]

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
            with replacing(target) as file:
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
