"""The page of several models: which is best, each with its verdict, every group, their reliability in one diagram."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.jobs.comparing import Comparison
from swapcal.jobs.comparison_rows import group_lines, headline, model_lines, sentences
from swapcal.report.drawing import SMALL, axes_or_new, dress, legend, plain_text, thousands
from swapcal.report.page import environment, safe_parts, write_text
from swapcal.report.palette import LIGHT
from swapcal.report.svg import svg
from swapcal.words.numbers import MISSING, count, interval, number, precise, relative, signed
from swapcal.words.property_words import PropertyWords, property_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison_html", "reliability_of_models", "write_comparison"]

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
