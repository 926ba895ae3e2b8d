"""What a column of forecasts comes to: errors, chance, skill, curves, the worst cells."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swapcal.audit.cells import Cell, Cells, cell_radii, make_cells
from swapcal.audit.chance import chance
from swapcal.audit.column import ColumnAudit
from swapcal.audit.curves import Curve, make_curve
from swapcal.audit.skill import skill
from swapcal.audit.sums import SumTable
from swapcal.audit.witness import find_witness
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Linear
from swapcal.typing import Float64Array, IntArray
from swapcal.words.worst_cell import worst_cell_sentence

__all__ = ["CONFIDENCE", "NEGLIGIBLE", "ColumnSummary", "summarize"]

CONFIDENCE = 0.95
NEGLIGIBLE = 0.05
"""Bias below this part of a round's typical error is not worth a correction: taking it away saves 0.25 % of a squared
loss."""

N_WORST = 12
NEARLY = 0.9
N_CURVES = 30


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSummary:
    """One column of forecasts: the model's own, or those of swapcal.

    curves: by group, "all" first. bias: mean identification, shape (bins, groups), NaN where nothing was forecast;
    counts: rounds of each such cell. edges: the borders of those bins, in the property's units. histogram: rounds per
    bin. witness: where the forecasts are most wrong, in a sentence.

    chance_mean, chance_high: swap error that perfectly calibrated forecasts would have by chance, on average and in 95
    streams of 100 at most. typical: root mean square of V. constant_loss: loss of the best constant forecast;
    ideal_loss: loss of these forecasts after the best change of each value into another one; slope: of those others
    against the forecasts. n_cells, n_biased, n_material: cells in use, those whose interval leaves out 0, and those
    where it does by more than is negligible. weight: sum of the weights, the T of the totals.
    """

    label: str
    swap_error: float
    group_error: float
    overall_error: float
    loss: float
    curves: dict[str, Curve]
    edges: Float64Array
    bias: Float64Array
    counts: Float64Array
    histogram: Float64Array
    worst: tuple[Cell, ...]
    witness: str
    chance_mean: float | None = None
    chance_high: float | None = None
    typical: float | None = None
    constant_loss: float | None = None
    ideal_loss: float | None = None
    slope: float | None = None
    n_cells: int | None = None
    n_biased: int | None = None
    n_material: int | None = None
    weight: float | None = None


def summarize(column: ColumnAudit, r: float = 2.0) -> ColumnSummary:
    """Everything that is shown of one column of forecasts."""
    histograms, outcomes = column.histograms, column.histograms.outcomes
    if column.n_rounds == 0 or outcomes is None:
        raise InvalidInput("a column of forecasts needs a round to be summed up; add some first")
    table, names, n_bins = column.table(), column.names, column.audit.n_bins
    radii = cell_radii(table, CONFIDENCE, "adaptive", None if n_bins is None else n_bins * len(names))
    cells = make_cells(table, radii, names, r, CONFIDENCE, "adaptive")
    near = np.maximum(cells.low, -cells.high)  # how far the interval stays away from 0; negative if it holds 0
    known = skill(column.property, outcomes, histograms.by_slot[table.slot], table.value, table.count)
    luck = chance(column.audit.table(), None if column.linear is None else column.linear.table(), r)
    bins = histograms.bins(table.value)
    bias, counts = _heat(table, bins, len(histograms.forecasts))
    return ColumnSummary(
        label=column.label,
        swap_error=column.swap_error(r),
        group_error=column.group_error(r),
        overall_error=column.overall_error(r),
        loss=column.loss,
        curves=_curves(column, table, bins, cells),
        edges=histograms.edges.copy(),
        bias=bias,
        counts=counts,
        histogram=histograms.forecasts.copy(),
        worst=_worst(cells, near > 0),
        witness=_witness(column, cells, near, radii, r),
        chance_mean=luck.mean,
        chance_high=luck.high,
        typical=column.typical,
        constant_loss=known.constant,
        ideal_loss=known.ideal,
        slope=known.slope,
        n_cells=len(cells),
        n_biased=int(np.count_nonzero(near > 0)),
        n_material=int(np.count_nonzero(near > NEGLIGIBLE * column.typical)),
        weight=column.weight,
    )


def _worst(cells: Cells, sure: npt.NDArray[np.bool_]) -> tuple[Cell, ...]:
    """The worst cells by contribution, those whose interval leaves out 0 first: they are bias and not chance."""
    order = np.concatenate([np.flatnonzero(sure), np.flatnonzero(~sure)])
    # Two names for the same rows, such as "all" and a value that everybody has, are one cell.
    kept: dict[tuple[float, int, float], int] = {}
    for k in order.tolist():
        kept.setdefault((float(cells.value[k]), int(cells.count[k]), float(cells.mean[k])), k)
        if len(kept) == N_WORST:
            break
    return tuple(cells[k] for k in kept.values())


def _heat(table: SumTable, bins: IntArray, n_bins: int) -> tuple[Float64Array, Float64Array]:
    """Mean identification and rounds, shape (bins, functions): forecast values of a bin taken together."""
    sums = {name: np.zeros((n_bins, table.xv.shape[1])) for name in ("xv", "weight", "active")}
    for name, total in sums.items():
        np.add.at(total, bins, getattr(table, name))
    nothing = np.full_like(sums["xv"], np.nan)
    return np.divide(sums["xv"], sums["weight"], out=nothing, where=sums["weight"] > 0), sums["active"]


def _witness(column: ColumnAudit, cells: Cells, near: Float64Array, radii: Float64Array, r: float) -> str:
    """The sentence about where the forecasts are most wrong.

    That is the cell that adds most to the swap error, of those that are biased beyond doubt if there are any. A bias of
    one group shows in every larger group, too: of the cells of the same forecast that have 9 tenths of its sum, the one
    with the largest bias beyond doubt says most. A direction of the linear class speaks if it adds more.
    """
    sure = np.flatnonzero(near > 0)
    order = sure if len(sure) else np.arange(len(cells))
    first = order[0]
    alike = cells.value[order] == cells.value[first]
    alike &= cells.contribution[order] >= NEARLY**r * cells.contribution[first]
    found = cells[int(order[alike][np.argmax(near[order[alike]])])]
    value, name, bias, contribution = found.value, found.name, (found.mean, found.low, found.high), found.contribution
    members = True
    if column.linear is not None:
        names, radii = column.linear.function_names, radii[:, -column.linear.table().xv.shape[1] :]
        along = find_witness(
            column.linear.table(), radii, Linear(len(names)), names, r, CONFIDENCE, property=column.property
        )
        if along.contribution > contribution:
            value, name, bias = along.value, along.name, (along.mean, along.low, along.high)
            contribution, members = along.contribution, False
    total = column.swap_error(r)
    share = contribution / total if total > 0 else 0.0
    return worst_cell_sentence(column.property, value, name, bias, share, CONFIDENCE, members=members)


def _curves(column: ColumnAudit, table: SumTable, bins: IntArray, cells: Cells) -> dict[str, Curve]:
    """Reliability curves: of all rounds, and of the largest groups and those with the largest contributions."""
    histograms, outcomes, names = column.histograms, column.histograms.outcomes, column.audit.function_names
    n_bins = len(histograms.forecasts)
    if outcomes is None:
        return {}
    overall = np.zeros((n_bins, outcomes.n))
    np.add.at(overall, bins, histograms.by_slot[table.slot])
    forecast = _mean(table.count, table.value, bins, n_bins)
    curves = {"all": make_curve(column.property, outcomes, overall, forecast)}
    # Half of the places go to groups with the worst cells, in the order of these; the rest to the largest groups.
    followed = [j for j, name in enumerate(names) if name != "all" and histograms.of_group(j) is not None]
    by_size = sorted(followed, key=lambda j: -float(table.active[:, j].sum()))
    by_error = [j for j in dict.fromkeys(cells.function.tolist()) if j in set(followed)]
    chosen = list(dict.fromkeys([*by_error[: N_CURVES // 2], *by_size]))[: N_CURVES - 1]
    for j in sorted(chosen):
        counts = histograms.of_group(j)
        forecast = _mean(table.weight[:, j], table.value, bins, n_bins)
        if counts is not None and (counts.sum(axis=1) > 0).any():
            curves[names[j]] = make_curve(column.property, outcomes, counts, forecast)
    return curves


def _mean(weight: Float64Array, value: Float64Array, bins: IntArray, n_bins: int) -> Float64Array:
    """Mean forecast of each bin; NaN where there is none."""
    sums = np.bincount(bins, weights=weight * value, minlength=n_bins)
    total = np.bincount(bins, weights=weight, minlength=n_bins)
    mean: Float64Array = np.divide(sums, total, out=np.full(n_bins, np.nan), where=total > 0)
    return mean
