"""Which forecasts are taken together: bins for the totals, and coarser ones for the pictures."""

from typing import NamedTuple

import numpy as np

from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Binning", "binning"]

MOST_VALUES = 200
N_BINS = 48
N_SHOWN = 20
FEW = 6
"""So many of 20 equal bins must hold a hundredth of the forecasts each, or the pictures get bins between quantiles."""


class Binning(NamedTuple):
    """Bins as `Audit` takes them, edges of the bins of the pictures, and a clause that says what was done."""

    audit_bins: int | Float64Array
    shown: Float64Array
    stated: str


def binning(property: Elicitable, p: Float64Array, n_bins: int | None, distinct: Float64Array | None = None) -> Binning:
    """How to bin a column of forecasts of which `p` is a sample, and `distinct` are all values, if that is known.

    With `n_bins`: forecasts are rounded to the mid-points of that many equal bins of the domain. Otherwise, if `p` has
    at most 200 different values, each is a bin of its own, and a value that comes up later joins the nearest. Else
    there are about 48 bins: 20 of the pictures, cut further at quantiles of `p` so that dense parts get more. In these
    two cases each forecast is judged at its own value: nothing is rounded.
    """
    low, high = property.domain
    even = np.linspace(low, high, N_SHOWN + 1)
    if n_bins is not None:
        edges = np.linspace(low, high, n_bins + 1)
        stated = f"forecasts were rounded to the mid-points of {n_bins} equal bins of [{low:g}, {high:g}]"
        return Binning(n_bins, _snapped(even, edges), stated)
    distinct = np.unique(p if distinct is None else distinct)
    shown = even if _balanced(p, even) or len(distinct) < 2 else _quantile_edges(p, N_SHOWN, low, high)
    if len(distinct) <= MOST_VALUES:
        # Neighbors that differ in the last bit have no number between them, and share a bin.
        edges = np.unique(np.concatenate([[low], (distinct[1:] + distinct[:-1]) / 2, [high]]))
        edges = edges if len(distinct) > 1 else np.array([low, high])
        stated = f"every one of the {len(distinct)} forecast values was judged by itself"
        if len(distinct) == 1:
            stated = f"the forecasts are all {distinct[0]:g}, and were judged together"
        return Binning(edges, _snapped(shown, edges), stated)
    edges = np.unique(np.concatenate([shown, _quantile_edges(p, N_BINS - N_SHOWN + 1, low, high)]))
    return Binning(edges, shown, f"forecasts were taken together in {len(edges) - 1} bins, denser where they are dense")


def _balanced(p: Float64Array, edges: Float64Array) -> bool:
    counts = np.bincount(np.searchsorted(edges[1:-1], p, side="right"), minlength=len(edges) - 1)
    return bool(np.count_nonzero(counts >= 0.01 * max(len(p), 1)) >= FEW)


def _quantile_edges(p: Float64Array, n_bins: int, low: float, high: float) -> Float64Array:
    inner = np.quantile(p, np.arange(1, n_bins) / n_bins)
    edges: Float64Array = np.unique(np.concatenate([[low], inner, [high]]))
    return edges


def _snapped(wanted: Float64Array, edges: Float64Array) -> Float64Array:
    """The edges nearest to those that are wanted, both ends included: bins that are unions of the finer ones."""
    if len(edges) <= len(wanted):
        return edges
    nearest = np.abs(edges[None, :] - wanted[:, None]).argmin(axis=1)
    snapped: Float64Array = edges[np.unique(np.concatenate([[0], nearest, [len(edges) - 1]]))]
    return snapped
