"""How each group fares over all of its rows: bias, an interval, the evidence, and whether it is called off."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.binary_intervals import forecast_bins
from swapcal.audit.cluster_sums import ClusterSums
from swapcal.audit.e_values import both_sides, discoveries
from swapcal.audit.group_sums import GroupSums
from swapcal.audit.sums import SumTable
from swapcal.typing import Float64Array, IntArray

__all__ = ["ALPHA", "SHARES", "GroupBias", "group_bias", "group_sums"]

ALPHA = 0.05
"""Probability with which anything at all is claimed that is not so."""

SHARES = {"everybody": 0.1, "groups": 0.6, "cells": 0.3}
"""How everybody, groups and cells share that probability."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBias:
    """One entry for each group, "all" first.

    name; rows, weight: how many rows, and the sum of their weights. mean: mean of V, NaN without rows; [low, high]: its
    interval. Those of all groups hold together with 97 %, that of everybody with 99.5 %. evidence: logarithm of the
    e-value of the larger side. off: 1 where the group is called off (e-BH), else 0. error: what the group alone would
    give as multicalibration error at r = 2. exact: whether intervals hold for any stream; else they are those of many
    rows, or of many clusters where `clusters` says so.
    """

    name: tuple[str, ...]
    rows: Float64Array
    weight: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    evidence: Float64Array
    off: Float64Array
    error: Float64Array
    exact: bool = True
    clusters: bool = False

    @property
    def near(self) -> Float64Array:
        """The end of the interval that is nearest to 0, with its sign: bias beyond doubt; 0 where it holds 0."""
        near: Float64Array = np.where(self.low > 0, self.low, np.where(self.high < 0, self.high, 0.0))
        return near

    @property
    def n_used(self) -> int:
        """Groups with rows, besides everybody."""
        return int(np.count_nonzero(self.rows[1:] > 0))

    @property
    def n_off(self) -> int:
        """Groups that are called off, besides everybody."""
        return int(np.count_nonzero(self.off[1:]))

    def ranked(self) -> IntArray:
        """Positions of the groups with rows besides everybody: those off first, the largest bias beyond doubt first.

        The others follow by their evidence.
        """
        order = np.lexsort((-self.evidence, -np.abs(self.near), self.off == 0))
        order = order[(order > 0) & (self.rows[order] > 0)]
        return order.astype(np.int64)


def group_sums(
    table: SumTable, forecasts: Float64Array | None, centers: Float64Array, clusters: ClusterSums | None = None
) -> GroupSums:
    """The sums of groups over all their rows, from those of their cells.

    Parameters
    ----------
    table : SumTable
        Sums per place and group.
    forecasts : array, shape (places, groups), optional
        For binary V = p - y: sums of p in each cell. None: V has more than two values.
    centers : array, shape (places,)
        A forecast that stands for each place, fixed before any outcome.
    clusters : ClusterSums, optional
        Sums over clusters, closed.
    """
    n = table.xv.shape[1]
    sums = GroupSums(n, binary=forecasts is not None, clusters=clusters is not None)
    cells = {"rows": table.active, "size": table.weight, "total": table.xv, "squares": table.xvxv}
    for name, each in cells.items():
        sums.arrays[name] += each.sum(axis=0)
    sums._squares += [float(table.vv.sum()), float(table.rounds.sum())]
    if forecasts is not None:
        bins = forecast_bins(centers)
        sums.arrays["forecasts"] += forecasts.sum(axis=0)
        np.add.at(sums.arrays["counts"], bins, table.active)
        # Whole numbers, but for rounding of the sums.
        np.add.at(sums.arrays["ones"], bins, np.clip(np.round(forecasts - table.xv), 0.0, table.active))
    if clusters is not None:
        sums._clusters = clusters.first(n)
    return sums


def group_bias(sums: GroupSums, names: tuple[str, ...], error: Float64Array) -> GroupBias:
    """Intervals at the shares of everybody and of the groups, and which of the groups are off."""
    rows = sums.arrays["rows"]
    used = np.flatnonzero(rows[1:] > 0) + 1
    n_groups = max(len(used), 1)
    rate = ALPHA * SHARES["groups"]
    delta = np.full(sums.n, rate / n_groups)
    delta[0] = ALPHA * SHARES["everybody"]
    found = sums.bias(delta)
    here = rows > 0
    mean = sums.mean
    # An interval that holds nothing new says nothing: the mean itself always lies in it.
    low, high = (np.where(here, end, np.nan) for end in (np.minimum(found.low, mean), np.maximum(found.high, mean)))
    evidence = both_sides(sums.evidence(rate / n_groups), one_test=not sums.exact)
    off = np.zeros(sums.n)
    # e-BH calls every group whose interval leaves out 0 (the case k = 1); rounding at the very edge must not undo that.
    off[used] = discoveries(evidence[used], rate, n_groups) | (low[used] > 0) | (high[used] < 0)
    off[0] = float(here[0] and (low[0] > 0 or high[0] < 0))
    return GroupBias(
        names,
        rows.copy(),
        sums.arrays["size"].copy(),
        mean,
        low,
        high,
        evidence,
        off,
        error,
        exact=sums.exact,
        clusters=sums.clusters,
    )
