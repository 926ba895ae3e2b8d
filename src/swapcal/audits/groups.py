"""How each group fares over all of its rows: its bias, with an interval, and whether it is biased."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits.intervals import (
    CENTERS,
    FEWEST_CLUSTERS,
    BiasInterval,
    Terms,
    exact_bias,
    forecast_bins,
    group_bias,
)
from swapcal.audits.sums import Part, Positions, Scored, SumTable, grown
from swapcal.typing import Float64Array, IntArray

# --------
# Sums over clusters of rows (a day, a patient, a booking), for clustered intervals and the global test.

# Clusters that are told apart; further ones share the places of these, which stay independent of each other.
MOST_CLUSTERS = 4096


class ClusterSums(Part):
    """Sums of w f V and of w |f| for each cluster of rows, per group, and for all rows per range of forecasts.

    Rows come in any order, and parts add up: clusters are known by their numbers, which are the same everywhere.

    Parameters
    ----------
    n_groups : int
        Number of groups.

    Notes
    -----
    Memory: 16 bytes a cluster and group that comes up, for 4,096 clusters at most; further ones join those that are
    there, by their numbers, which leaves the sums of different places independent.

    Examples
    --------
    >>> from swapcal.protocols import Rows
    >>> sums, rows = ClusterSums(2), Rows(np.array([0, 1, 2, 4]), np.array([0, 0, 0, 1]), np.ones(4))
    >>> v = np.array([0.5, 0.25, -1.0])
    >>> sums.add(Scored(v, v, v, np.zeros(3, dtype=np.int64), rows, clusters=np.array([7, 7, 8])))
    >>> sums.count, sums.groups()[0]
    (2, array([[ 0.75,  0.  ],
           [-1.  , -1.  ]]))
    """

    saved = ("ids", "_totals", "_sizes", "_range_totals", "_range_sizes")

    def __init__(self, n_groups: int) -> None:
        self.n_groups = n_groups
        self.ids = np.zeros(0)
        self._totals, self._sizes = np.zeros((0, 0)), np.zeros((0, 0))
        self._range_totals, self._range_sizes = np.zeros((0, 0)), np.zeros((0, 0))

    def of(self, n_groups: int) -> "ClusterSums":
        """The same for so many groups."""
        copy = ClusterSums(n_groups)
        for name in self.saved:
            setattr(copy, name, getattr(self, name))
        return copy

    @property
    def count(self) -> int:
        """How many clusters there are, up to `MOST_CLUSTERS`."""
        return len(self.ids)

    def groups(self) -> tuple[Float64Array, Float64Array]:
        """Sums of w f V and of w |f|, shape (clusters, groups)."""
        shape = (self.count, self.n_groups)
        totals, sizes = (grown(each, shape)[: shape[0], : shape[1]] for each in (self._totals, self._sizes))
        return totals, sizes

    def ranges(self, slots: IntArray) -> tuple[Float64Array, Float64Array]:
        """The same for all rows, shape (clusters, ranges), of the ranges of forecasts with these numbers."""
        shape = (self.count, int(slots.max(initial=-1)) + 1)
        totals, sizes = grown(self._range_totals, shape), grown(self._range_sizes, shape)
        return totals[: self.count, slots], sizes[: self.count, slots]

    def add(self, scored: Scored) -> None:
        """Add rows."""
        if scored.clusters is None or not len(scored.clusters):
            return
        ids, where = np.unique(scored.clusters, return_inverse=True)
        places = self._places(ids.astype(np.float64))[where]
        entries = (np.repeat(places, scored.lengths), scored.rows.indices)
        sizes = np.ones(len(scored.rows.indices)) if scored.sizes is None else scored.sizes
        weights = np.ones(len(places)) if scored.weights is None else scored.weights
        self._totals, self._sizes = self._counted(self._totals, self._sizes, entries, scored.terms, sizes)
        self._range_totals, self._range_sizes = self._counted(
            self._range_totals, self._range_sizes, (places, scored.slots), scored.wv, weights
        )

    def merge(self, other: "ClusterSums", at: Positions) -> bool:
        """Add another part of the stream."""
        places = self._places(other.ids)
        for name, columns in (("totals", at.groups), ("sizes", at.groups)):
            mine, theirs = getattr(self, f"_{name}"), getattr(other, f"_{name}")[: other.count]
            setattr(self, f"_{name}", _added_at(mine, theirs, places, columns))
            mine, theirs = getattr(self, f"_range_{name}"), getattr(other, f"_range_{name}")[: other.count]
            setattr(self, f"_range_{name}", _added_at(mine, theirs, places, at.slots))
        self.n_groups = max(self.n_groups, self._totals.shape[1])
        return True

    def _places(self, ids: Float64Array) -> IntArray:
        """Where these clusters are counted; new ones get a place while there is room."""
        new = ids[~np.isin(ids, self.ids)][: MOST_CLUSTERS - self.count]
        self.ids = np.concatenate([self.ids, new])
        order = np.argsort(self.ids)
        at = order[np.minimum(np.searchsorted(self.ids[order], ids), self.count - 1)]
        known = self.ids[at] == ids
        return np.where(known, at, (ids % max(self.count, 1)).astype(np.int64)).astype(np.int64)

    def _counted(
        self,
        totals: Float64Array,
        sizes: Float64Array,
        at: tuple[IntArray, IntArray],
        terms: Float64Array,
        weights: Float64Array,
    ) -> tuple[Float64Array, Float64Array]:
        height = totals.shape[0]
        height = height if self.count <= height else max(self.count, 2 * height)
        totals, sizes = (grown(each, (height, int(at[1].max(initial=-1)) + 1)) for each in (totals, sizes))
        np.add.at(totals, at, terms)
        np.add.at(sizes, at, weights)
        return totals, sizes


def _added_at(array: Float64Array, other: Float64Array, places: IntArray, columns: IntArray | None) -> Float64Array:
    """`array` with the lines of `other` added at `places`, of which several may be the same one."""
    where = np.arange(other.shape[1]) if columns is None else columns[: other.shape[1]]
    array = grown(array, (int(places.max(initial=-1)) + 1, int(where.max(initial=-1)) + 1))
    np.add.at(array, (places[:, None], where[None, :]), other[:, : len(where)])
    return array


def cluster_terms(totals: Float64Array, sizes: Float64Array, size: Float64Array) -> Terms:
    """The terms of an interval over clusters: the spread of what is left of each where the mean bias is taken out."""
    total, m = totals.sum(axis=0), np.count_nonzero(sizes > 0, axis=0).astype(np.float64)
    mean = np.divide(total, size, out=np.zeros_like(total), where=size > 0)
    squares = ((totals - mean * sizes) ** 2).sum(axis=0) + total**2 / np.maximum(m, 1.0)
    return Terms(m, total, squares, size, clusters=True)


# --------
# Groups over all their rows: mergeable sums, and the interval of each group's bias by the method that fits.


class BinarySums(NamedTuple):
    """Of outcomes 0 and 1: rows and ones in each of the bins of `forecast_bins`, shape (26, groups); and sums of p."""

    counts: Float64Array
    ones: Float64Array
    forecasts: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """What is known of each group: rows, sum of w |f|, of w f V, of its square; and `usual`, the mean of (w V)^2.

    binary: where V = p - y with y 0 or 1, each row counts once, and functions are groups (0 or 1): intervals are exact,
    of one look, or F2, which hold at any time. Otherwise Student's or F3, from 100 rows on. clusters: where rows belong
    together: the same over these, from 20 of them on; for outcomes 0 and 1 joined with that of rows by themselves, as a
    group without events has no spread.

    Examples
    --------
    >>> from swapcal.audits.sums import Sums
    >>> from swapcal.protocols import Rows
    >>> rows = Rows(np.arange(2001), np.zeros(2000, dtype=np.int64), np.ones(2000))
    >>> cells = Sums(1)
    >>> cells.add_many(np.zeros(2000), np.tile([0.3, 0.3, 0.3, -0.7], 500), rows)
    >>> sums = group_sums(cells.table())
    >>> found = sums.bias(0.05)
    >>> sums.mean.round(3), found.low.round(3), found.high.round(3)
    (array([0.05]), array([0.031]), array([0.069]))
    """

    rows: Float64Array
    size: Float64Array
    total: Float64Array
    squares: Float64Array
    usual: float
    binary: BinarySums | None
    clusters: ClusterSums | None

    @property
    def mean(self) -> Float64Array:
        """Mean of V of each group: its bias as seen; NaN without rows."""
        nothing = np.full(len(self.size), np.nan)
        mean: Float64Array = np.divide(self.total, self.size, out=nothing, where=self.size > 0)
        return mean

    @property
    def exact(self) -> bool:
        """Whether intervals hold for any number of rows, and not only for many rows or clusters."""
        return self.binary is not None and self.clusters is None

    def bias(self, delta: Float64Array | float, *, once: bool = True) -> BiasInterval:
        """Interval of the bias of each group, each at error rate `delta`: for one look, or at any time."""
        if self.binary is None:
            return self.terms().bias(delta, once=once)
        rows = exact_bias(*self.binary, delta) if once else group_bias(*self.binary, delta)
        return rows if self.clusters is None else rows.joined(self.terms().bias(delta, once=once))

    def terms(self) -> Terms:
        """The terms of each group, and the usual square of one."""
        if self.clusters is None:
            return Terms(self.rows, self.total, self.squares, self.size, self.usual)
        totals, sizes = self.clusters.groups()
        return cluster_terms(totals, sizes, self.size)


# Probability with which anything at all is claimed that is not so.
ALPHA = 0.05

# How all rows, the groups, ranges of forecasts, cells (of a group in a range) and the global test share it.
SHARES = {"overall": 0.1, "groups": 0.6, "ranges": 0.1, "cells": 0.1, "together": 0.1}


@dataclass(frozen=True, slots=True, eq=False)
class GroupBias:
    """One entry for each group, "all" first.

    name; rows, weight: how many rows, and the sum of their weights. mean: mean of V, NaN without rows; [low, high]: its
    interval. Those of all groups hold together with 97 %, that of all rows with 99.5 %. error: what the group alone
    would give as multicalibration error at r = 2. exact: whether intervals hold for any stream; else they are those of
    many rows, or of many clusters where `clusters` says so. anytime: whether they hold at any time, else for one look.
    few_clusters: whether there are too few clusters for any interval.
    """

    name: tuple[str, ...]
    rows: Float64Array
    weight: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    error: Float64Array
    exact: bool = True
    clusters: bool = False
    anytime: bool = False
    few_clusters: bool = False

    @property
    def biased(self) -> npt.NDArray[np.bool_]:
        """Which groups are biased: those whose interval leaves out 0."""
        return np.asarray((self.low > 0) | (self.high < 0))

    @property
    def evidence(self) -> Float64Array:
        """The bias over the half-width of its interval on the side of 0: above 1 where the group is biased."""
        half = np.where(self.mean > 0, self.mean - self.low, self.high - self.mean)
        size = np.abs(np.nan_to_num(self.mean))
        evidence: Float64Array = np.divide(size, half, out=np.zeros(len(size)), where=half > 0)
        return evidence

    @property
    def near(self) -> Float64Array:
        """The end of the interval that is nearest to 0, with its sign: 0 where it holds 0."""
        near: Float64Array = np.where(self.low > 0, self.low, np.where(self.high < 0, self.high, 0.0))
        return near

    @property
    def n_used(self) -> int:
        """Groups with rows, besides that of all rows."""
        return int(np.count_nonzero(self.rows[1:] > 0))

    @property
    def n_biased(self) -> int:
        """Groups that are biased, besides that of all rows."""
        return int(np.count_nonzero(self.biased[1:]))

    def ranked(self) -> IntArray:
        """Positions of the groups with rows besides that of all rows: the biased first, the surest bias first.

        The others follow by their evidence.
        """
        keys = (-self.evidence.round(9), -np.abs(self.near).round(9))
        order = np.lexsort((np.array(self.name), *keys))
        order = order[(order > 0) & (self.rows[order] > 0)]
        return order.astype(np.int64)


def group_sums(
    table: SumTable,
    forecasts: Float64Array | None = None,
    centers: Float64Array | None = None,
    clusters: ClusterSums | None = None,
) -> GroupSums:
    """The sums of groups over all their rows, from those of their cells.

    Parameters
    ----------
    table : SumTable
        Sums per place and group.
    forecasts : array, shape (places, groups), optional
        For binary V = p - y: sums of p in each cell. None: V has more than two values.
    centers : array, shape (places,), optional
        For these a forecast that stands for each place, fixed before any outcome.
    clusters : ClusterSums, optional
        Sums over clusters.
    """
    n, binary = table.xv.shape[1], None
    if forecasts is not None and centers is not None:
        bins, counts, ones = forecast_bins(centers), np.zeros((len(CENTERS), n)), np.zeros((len(CENTERS), n))
        np.add.at(counts, bins, table.active)
        # Whole numbers, but for rounding of the sums.
        np.add.at(ones, bins, np.clip(np.round(forecasts - table.xv), 0.0, table.active))
        binary = BinarySums(counts, ones, forecasts.sum(axis=0))
    rows, size, total, squares = (each.sum(axis=0) for each in (table.active, table.weight, table.xv, table.xvxv))
    usual = float(table.vv.sum()) / max(float(table.rounds.sum()), 1.0)
    return GroupSums(rows, size, total, squares, usual, binary, None if clusters is None else clusters.of(n))


def bias_of_group(sums: GroupSums, names: tuple[str, ...], error: Float64Array, *, anytime: bool = False) -> GroupBias:
    """Intervals at the shares of all rows and of the groups."""
    rows, n = sums.rows, len(sums.rows)
    used = np.flatnonzero(rows[1:] > 0) + 1
    delta = np.full(n, ALPHA * SHARES["groups"] / max(len(used), 1))
    delta[0] = ALPHA * SHARES["overall"]
    bias = sums.bias(delta, once=not anytime)
    here = rows > 0
    mean = sums.mean
    # An interval that holds nothing new says nothing: the mean itself always lies in it.
    low, high = (np.where(here, end, np.nan) for end in (np.minimum(bias.low, mean), np.maximum(bias.high, mean)))
    return GroupBias(
        names,
        rows,
        sums.size,
        mean,
        low,
        high,
        error,
        exact=sums.exact,
        clusters=sums.clusters is not None,
        anytime=anytime,
        few_clusters=sums.clusters is not None and sums.clusters.count < FEWEST_CLUSTERS,
    )
