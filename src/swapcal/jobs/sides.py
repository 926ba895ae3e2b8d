"""From a tally to what is shown of it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swapcal.audit.cells import Cells, cell_radii, make_cells
from swapcal.audit.sums import Table
from swapcal.audit.witness import find_witness
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Linear
from swapcal.jobs.cells import columns
from swapcal.jobs.chance import chance
from swapcal.jobs.curves import make_curve
from swapcal.jobs.result import CellRow, Curve, Side
from swapcal.jobs.skill import skill
from swapcal.typing import Float64Array, IntArray
from swapcal.words.sentences import witness_sentence

if TYPE_CHECKING:
    from swapcal.jobs.tally import Tally

__all__ = ["CONFIDENCE", "NEGLIGIBLE", "make_side"]

CONFIDENCE = 0.95
NEGLIGIBLE = 0.05
"""Bias below this part of a round's typical error is not worth a correction: taking it away saves 0.25 % of a squared
loss."""

N_WORST = 12
NEARLY = 0.9
N_CURVES = 30


def make_side(tally: "Tally", names: tuple[str, ...], r: float) -> Side:
    """Everything that is shown of one column of forecasts."""
    n_own = len(names) - tally.n_linear
    if n_own < 0 or tally.n_rounds == 0:
        raise InvalidInput("a tally needs a round, and a name for each coordinate of its linear class, to be shown")
    used, everything = tally.table(tally.n if tally.n_linear else max(n_own, 1))
    positions = np.concatenate([np.arange(n_own), np.arange(tally.n - tally.n_linear, tally.n)])
    table = replace(columns(everything, positions), value=_tidy(everything.value))
    own = columns(table, slice(n_own)) if n_own else None
    linear = columns(table, slice(n_own, None)) if tally.n_linear else None
    n_possible = tally.places.n * len(names) if tally.places.fixed else None
    radii = cell_radii(table, CONFIDENCE, "adaptive", n_possible)
    cells = make_cells(table, radii, names, r, CONFIDENCE, "adaptive")
    near = np.maximum(cells.low, -cells.high)  # how far the interval stays away from 0; negative if it holds 0
    if tally.outcomes is None:
        raise InvalidInput("a tally without rounds cannot be shown; add some first")
    known = skill(tally.property, tally.outcomes, tally.by_place[used], table.value, table.count)
    luck = chance(own, linear, r)
    bins = np.searchsorted(tally.edges[1:-1], table.value, side="right")
    bias, counts = _heat(table, bins, len(tally.edges) - 1)
    return Side(
        label=tally.label,
        swap_error=tally.swap_error(r),
        group_error=tally.group_error(r),
        overall_error=tally.overall_error(r),
        loss=tally.loss,
        curves=_curves(tally, names[:n_own], table, bins, used, cells),
        edges=tally.edges.copy(),
        bias=bias,
        counts=counts,
        histogram=tally.forecasts.copy(),
        worst=_rows(cells, near > 0),
        witness=_witness(tally, names, cells, near, linear, radii, r),
        chance_mean=luck.mean,
        chance_high=luck.high,
        typical=tally.typical,
        constant_loss=known.constant,
        ideal_loss=known.ideal,
        slope=known.slope,
        n_cells=len(cells),
        n_biased=int(np.count_nonzero(near > 0)),
        n_material=int(np.count_nonzero(near > NEGLIGIBLE * tally.typical)),
        weight=tally.weight,
    )


def _rows(cells: Cells, sure: npt.NDArray[np.bool_]) -> tuple[CellRow, ...]:
    """The worst cells by contribution, those whose interval leaves out 0 first: they are bias and not chance."""
    order = np.concatenate([np.flatnonzero(sure), np.flatnonzero(~sure)])
    # Two names for the same rows, such as "all" and a value that everybody has, are one cell.
    kept: dict[tuple[float, int, float], int] = {}
    for k in order.tolist():
        kept.setdefault((float(cells.value[k]), int(cells.count[k]), float(cells.mean[k])), k)
        if len(kept) == N_WORST:
            break
    chosen = [cells[k] for k in kept.values()]
    return tuple(CellRow(c.value, c.name, c.count, c.mean, c.low, c.high, c.contribution) for c in chosen)


def _tidy(values: Float64Array) -> Float64Array:
    """Mean forecasts without the last digits, which are the rounding of sums: the mean of many 0.4 is 0.4."""
    return np.array([float(f"{value:.12g}") for value in values.tolist()])


def _heat(table: Table, bins: IntArray, n_bins: int) -> tuple[Float64Array, Float64Array]:
    """Mean identification and rounds, shape (bins, functions): places of a bin taken together."""
    sums = {name: np.zeros((n_bins, table.xv.shape[1])) for name in ("xv", "weight", "active")}
    for name, total in sums.items():
        np.add.at(total, bins, getattr(table, name))
    nothing = np.full_like(sums["xv"], np.nan)
    return np.divide(sums["xv"], sums["weight"], out=nothing, where=sums["weight"] > 0), sums["active"]


def _witness(
    tally: "Tally",
    names: tuple[str, ...],
    cells: Cells,
    near: Float64Array,
    linear: Table | None,
    radii: Float64Array,
    r: float,
) -> str:
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
    cell = cells[int(order[alike][np.argmax(near[order[alike]])])]
    total = tally.swap_error(r)
    if linear is not None:
        n_own = len(names) - tally.n_linear
        found = find_witness(linear, radii[:, n_own:], Linear(tally.n_linear), names[n_own:], r, CONFIDENCE)
        if found.contribution > cell.contribution:
            return witness_sentence(tally.property, found, found.contribution / total if total > 0 else 0.0)
    return witness_sentence(tally.property, cell, cell.contribution / total if total > 0 else 0.0)


def _curves(
    tally: "Tally", names: tuple[str, ...], table: Table, bins: IntArray, used: IntArray, cells: Cells
) -> dict[str, Curve]:
    """Reliability curves: of all rounds, and of the largest groups and those with the largest contributions."""
    n_bins = len(tally.edges) - 1
    outcomes = tally.outcomes
    if outcomes is None:
        return {}
    overall = np.zeros((n_bins, outcomes.n))
    np.add.at(overall, bins, tally.by_place[used])
    curves = {"all": make_curve(tally.property, outcomes, overall, _mean(table.count, table.value, bins, n_bins))}
    # Half of the places go to groups with the worst cells, in the order of these; the rest to the largest groups.
    followed = [j for j in range(len(names)) if names[j] != "all" and j < len(tally.tracks) and tally.tracks[j] >= 0]
    by_size = sorted(followed, key=lambda j: -float(table.active[:, j].sum()))
    by_error = [j for j in dict.fromkeys(cells.function.tolist()) if j in set(followed)]
    chosen = list(dict.fromkeys([*by_error[: N_CURVES // 2], *by_size]))[: N_CURVES - 1]
    for j in sorted(chosen):
        histograms = tally.histograms[:, tally.tracks[j], :]
        forecast = _mean(table.weight[:, j], table.value, bins, n_bins)
        if (histograms.sum(axis=1) > 0).any():
            curves[names[j]] = make_curve(tally.property, outcomes, histograms, forecast)
    return curves


def _mean(weight: Float64Array, value: Float64Array, bins: IntArray, n_bins: int) -> Float64Array:
    """Mean forecast of each bin; NaN where there is none."""
    sums = np.bincount(bins, weights=weight * value, minlength=n_bins)
    total = np.bincount(bins, weights=weight, minlength=n_bins)
    mean: Float64Array = np.divide(sums, total, out=np.full(n_bins, np.nan), where=total > 0)
    return mean
