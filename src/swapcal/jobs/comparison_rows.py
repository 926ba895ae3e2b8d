"""A comparison as rows of tables: one for each model, and one for each group with the bias of every model."""

from typing import Any

import numpy as np

from swapcal.jobs.comparing import Comparison, LossDifference
from swapcal.jobs.storage import dumped, plain_data, plain_result
from swapcal.words.names import group_name, shortened
from swapcal.words.numbers import counted, number, relative
from swapcal.words.property_words import property_words

__all__ = ["comparison_json", "group_lines", "headline", "model_lines", "sentences"]

FORMAT, VERSION = "swapcal.comparison", 1


def model_lines(comparison: Comparison) -> list[dict[str, Any]]:
    """One row for each model: verdict, groups off, the worst group, losses, and the difference from the first."""
    lines = []
    for model, result in comparison.results.items():
        side = result.before
        assert side is not None
        groups, words = side.known_groups, property_words(result.property)
        worst = groups.ranked()
        scores = side.scores
        lines.append(
            {
                "model": model,
                "kind": result.verdict.kind,
                "headline": result.verdict.headline,
                "groups_off": groups.n_off,
                "groups": groups.n_used,
                "bias": words.scale * float(groups.mean[0]),
                "worst_group": groups.name[worst[0]] if len(worst) else None,
                "worst_bias": words.scale * float(groups.mean[worst[0]]) if len(worst) else None,
                "loss": side.loss,
                "auc": None if scores is None else scores.auc,
                "log_loss": None if scores is None else scores.log_loss,
                "difference": _overall(comparison.differences.get(model)),
            }
        )
    return lines


def _overall(difference: LossDifference | None) -> dict[str, float] | None:
    if difference is None or difference.overall is None:
        return None
    pair = difference.overall
    return {"first": pair.before, "mean": pair.difference, "low": pair.low, "high": pair.high}


def group_lines(comparison: Comparison) -> list[dict[str, Any]]:
    """One row for each group, everybody first, then those where some model is off most, beyond doubt first.

    bias, low, high are in `unit`; loss: the difference of the loss from that of the first model, in the loss's own
    unit, with its interval.
    """
    words = property_words(comparison.first.property)
    found: dict[str, dict[str, Any]] = {}
    rank: dict[str, tuple[float, float, float]] = {}
    for model, result in comparison.results.items():
        side = result.before
        assert side is not None
        groups, difference = side.known_groups, comparison.differences.get(model)
        for j in np.flatnonzero(groups.rows > 0).tolist():
            name = groups.name[j]
            line = found.setdefault(name, {"group": name, "rows": int(groups.rows[j]), "unit": words.unit or "outcome"})
            line[model] = {
                "bias": words.scale * float(groups.mean[j]),
                "low": words.scale * float(groups.low[j]),
                "high": words.scale * float(groups.high[j]),
                "off": bool(groups.off[j]),
            }
            if difference is not None and name in difference.mean:
                ends = {"loss_low": difference.low[name], "loss_high": difference.high[name]}
                line[model] |= {"loss": difference.mean[name], **ends}
            near, off = float(abs(groups.near[j])), float(groups.off[j])
            old = rank.get(name, (0.0, 0.0, -np.inf))
            rank[name] = (max(old[0], off), max(old[1], near), max(old[2], float(groups.evidence[j])))
    rest = sorted((name for name in found if name != "all"), key=lambda name: rank[name], reverse=True)
    return [found[name] for name in ("all", *rest) if name in found]


def headline(comparison: Comparison) -> str:
    """Which model is best, in one line; nothing is claimed that an interval does not bear out."""
    first, name = comparison.models[0], comparison.first.loss_name
    pairs = {model: each.overall for model, each in comparison.differences.items() if each.overall is not None}
    better = {model: pair for model, pair in pairs.items() if pair.high < 0.0}
    off = {line["model"]: line["groups_off"] for line in model_lines(comparison)}
    if better:
        best = min(better, key=lambda model: better[model].difference)
        lower = relative(better[best].difference, better[best].before)
        return (
            f"{shortened(best, 40)} is better than {shortened(first, 40)}: {name} {lower}, "
            f"groups off beyond doubt {off[best]:,} instead of {off[first]:,}."
        )
    if pairs and all(pair.low > 0.0 for pair in pairs.values()):
        verb = "is" if off[first] == 1 else "are"
        return f"{shortened(first, 40)} has the lowest {name} beyond doubt; {counted(off[first], 'group')} {verb} off."
    fewest = min(comparison.models, key=lambda model: off[model])
    more = (
        f"; fewest groups off: {off[fewest]:,} with {shortened(fewest, 40)}, {off[first]:,} with {shortened(first, 40)}"
        if off[fewest] < off[first]
        else ""
    )
    return f"No model has a lower {name} than {shortened(first, 40)} beyond doubt{more}."


def sentences(comparison: Comparison) -> list[str]:
    """Every model beside the first: the difference of its loss, where it is better and where it is worse."""
    first, name, said = comparison.models[0], comparison.first.loss_name, []
    for model, difference in comparison.differences.items():
        pair = difference.overall
        if pair is None:
            continue
        low, middle, high = (relative(value, pair.before) for value in (pair.low, pair.difference, pair.high))
        sure = {group: difference.sure(group) for group in difference.mean if group != "all"}
        better, worse = (sum(value == sign for value in sure.values()) for sign in (-1, 1))
        text = f"{model}: {name} {middle} against {first} (95 % interval {low} to {high})"
        if sure:
            text += f"; lower beyond doubt in {better:,} of {counted(len(sure), 'group')}, higher in {worse:,}"
            badly = [group for group, value in sure.items() if value == 1]
            if badly:
                worst = max(badly, key=lambda group: difference.low[group])
                text += f", most for {group_name(worst)}, by {number(difference.mean[worst])}"
        said.append(text + ".")
    said.append(f"Losses were compared on the {counted(comparison.n_paired)} with a forecast of every model.")
    return said


def comparison_json(comparison: Comparison) -> str:
    """Everything as JSON: models, groups, and the audit of each model as `swapcal audit --json` gives it."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "headline": headline(comparison),
        "sentences": sentences(comparison),
        "models": plain_data(model_lines(comparison)),
        "group_table": plain_data(group_lines(comparison)),
        "rows_compared": comparison.n_paired,
        "audits": {model: plain_result(result) for model, result in comparison.results.items()},
    }
    return dumped(data)
