"""The table of groups as rows, in the units that people read: for the terminal, for JSON and for the page."""

from typing import Any

from swapcal.audit.group_bias import GroupBias
from swapcal.jobs.result import Result
from swapcal.properties import Quantile
from swapcal.typing import IntArray
from swapcal.words.group_sentences import since_text
from swapcal.words.property_words import property_words

__all__ = ["group_order", "group_rows"]


def group_order(result: Result) -> IntArray | None:
    """Positions of all groups with rows besides everybody, the worst of the model first; None without groups."""
    side = result.before if result.before is not None else result.after
    if side is None or side.groups is None:
        return None
    order: IntArray = side.groups.ranked()
    return order


def group_rows(result: Result) -> list[dict[str, Any]]:
    """One row for each group, everybody first, then by the evidence against the model.

    bias, low, high are in `unit`: points for probabilities and quantiles, else the unit of the outcome. For quantiles
    there is `coverage`, the share of outcomes at or below their forecasts.
    """
    order = group_order(result)
    if order is None:
        return []
    words = property_words(result.property)
    level = result.property.level if isinstance(result.property, Quantile) else None
    rows = []
    for j in [0, *order.tolist()]:
        row: dict[str, Any] = {"unit": words.unit or "outcome"}
        for which, side in result.columns.items():
            groups = side.groups
            if groups is None or j >= len(groups.name) or not groups.rows[j] > 0:
                continue
            row = {"group": groups.name[j], "rows": int(groups.rows[j]), **row}
            row[which] = _side(groups, j, words.scale, level)
            since = since_text(side, groups.name[j])
            if since:
                row[which]["since"] = since.removeprefix("since ")
        if "group" in row:
            rows.append(row)
    return rows


def _side(groups: GroupBias, j: int, scale: float, level: float | None) -> dict[str, Any]:
    row = {
        "bias": scale * float(groups.mean[j]),
        "low": scale * float(groups.low[j]),
        "high": scale * float(groups.high[j]),
        "off": bool(groups.off[j]),
    }
    return row if level is None else {"coverage": level + float(groups.mean[j]), **row}
