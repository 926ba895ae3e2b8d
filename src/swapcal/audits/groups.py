"""How each group fares over all of its rows: bias, an interval, the evidence, and whether it is called off."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from swapcal.audits.intervals import (
    CENTERS,
    BiasInterval,
    LogWealth,
    Terms,
    both_sides,
    discoveries,
    forecast_bins,
    group_bias,
    group_evidence,
)
from swapcal.audits.sums import Part, Positions, Scored, SumTable, added, grown
from swapcal.typing import Float64Array, IntArray

# --------
# Sums over clusters of rows (a day, a patient, a booking), closed one after the other, for clustered intervals.


class ClusterSums(Part):
    """Per group: the number of clusters, the sum of their sums, and the sum of their squared sums.

    Rows come sorted by cluster; where the id changes, the cluster is closed. One that comes again later counts as a new
    one, which makes intervals too narrow: sort first, and do not cut a cluster in two between parts.

    Parameters
    ----------
    n_groups : int
        Number of groups.

    Notes
    -----
    Memory: 33 bytes a group, whatever the number of clusters.

    Examples
    --------
    >>> from swapcal.protocols import Rows
    >>> sums, rows = ClusterSums(2), Rows(np.array([0, 1, 2, 4]), np.array([0, 0, 0, 1]), np.ones(4))
    >>> v = np.array([0.5, 0.25, -1.0])
    >>> sums.add(Scored(v, v, v, np.zeros(3, dtype=np.int64), rows, clusters=np.array([7, 7, 8])))
    >>> sums.close()
    >>> sums.terms, sums.total, sums.squares
    (array([2., 1.]), array([-0.25, -1.  ]), array([1.5625, 1.    ]))
    """

    saved = ("terms", "total", "squares", "_open", "_touched", "_id")

    def __init__(self, n_groups: int) -> None:
        self.terms, self.total, self.squares = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
        self._open = np.zeros(n_groups)
        self._touched = np.zeros(n_groups, dtype=np.bool_)
        # The number of the cluster that is open.
        self._id = math.nan

    def add(self, scored: Scored) -> None:
        """Add rows; equal numbers of clusters stand together."""
        clusters = scored.clusters
        if clusters is None or not len(clusters):
            return
        starts = np.flatnonzero(np.concatenate([[clusters[0] != self._id], np.diff(clusters) != 0]))
        run_of_row = np.zeros(len(clusters), dtype=np.int64)
        run_of_row[starts] = 1
        # Run 0 goes on with the cluster that is open; the last run stays open.
        n_cells, last = len(self.terms), len(starts)
        keys, where = np.unique(scored.cells(np.cumsum(run_of_row), n_cells), return_inverse=True)
        sums = np.bincount(where, weights=scored.terms, minlength=len(keys))
        run, cell = np.divmod(keys, n_cells)
        first = run == 0
        self._add_open(cell[first], sums[first])
        if last:
            self.close()
            closed = (run > 0) & (run < last)
            np.add.at(self.terms, cell[closed], 1.0)
            np.add.at(self.total, cell[closed], sums[closed])
            np.add.at(self.squares, cell[closed], sums[closed] ** 2)
            self._add_open(cell[run == last], sums[run == last])
        self._id = float(clusters[-1])

    def close(self) -> None:
        """Close the cluster that is open, as at the end of the stream."""
        cells = np.flatnonzero(self._touched)
        self.terms[cells] += 1.0
        self.total[cells] += self._open[cells]
        self.squares[cells] += self._open[cells] ** 2
        self._open[cells] = 0.0
        self._touched[cells] = False
        self._id = math.nan

    def merge(self, other: "ClusterSums", at: Positions) -> bool:
        """Add another part of the stream; what is open on either side is closed."""
        theirs = other.first(len(other.terms))
        self.close()
        for name in ("terms", "total", "squares"):
            setattr(self, name, added(getattr(self, name), getattr(theirs, name), at.groups))
        self._open = grown(self._open, self.terms.shape)
        self._touched = np.zeros(len(self.terms), dtype=np.bool_)
        return True

    def first(self, n_groups: int) -> "ClusterSums":
        """A copy for the first `n_groups` groups, all clusters closed."""
        copy = ClusterSums(n_groups)
        for name in ("terms", "total", "squares", "_open", "_touched"):
            setattr(copy, name, getattr(self, name)[:n_groups].copy())
        copy.close()
        return copy

    def _add_open(self, cells: IntArray, sums: Float64Array) -> None:
        self._open[cells] += sums
        self._touched[cells] = True


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

    binary: where V = p - y with y 0 or 1, each row counts once, and functions are groups (0 or 1): F2, which assumes
    nothing. Otherwise F3, from 100 rows on. clusters: where rows hang together: F3 over these, from 30 of them on.

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
    (array([0.05]), array([0.02]), array([0.08]))
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
        """Whether intervals hold for any stream at any time, and not only for many rows or clusters."""
        return self.binary is not None and self.clusters is None

    def bias(self, delta: Float64Array | float) -> BiasInterval:
        """Interval of the bias of each group, each at error rate `delta`."""
        if self.binary is not None and self.clusters is None:
            return group_bias(*self.binary, delta)
        return self._terms().bias(delta)

    def evidence(self, delta: float, tolerance: float = 0.0) -> LogWealth:
        """Log e-values of both sides; `delta`, the rate of one group, matters to asymptotic ones only."""
        if self.binary is not None and self.clusters is None:
            return group_evidence(*self.binary, tolerance)
        return self._terms().evidence(delta, tolerance)

    def _terms(self) -> Terms:
        """The terms of each group, and the usual square of one."""
        sums = self.clusters
        if sums is None:
            return Terms(self.rows, self.total, self.squares, self.size, self.usual)
        usual = self.usual * self.rows / np.maximum(sums.terms, 1.0)
        return Terms(sums.terms, sums.total, sums.squares, self.size, usual, clusters=True)


# Probability with which anything at all is claimed that is not so.
ALPHA = 0.05

# How everybody, groups and cells share that probability.
SHARES = {"everybody": 0.1, "groups": 0.6, "cells": 0.3}


@dataclass(frozen=True, slots=True, eq=False)
class GroupBias:
    """One entry for each group, "all" first.

    name; rows, weight: how many rows, and the sum of their weights. mean: mean of V, NaN without rows; [low, high]: its
    interval. Those of all groups hold together with 97 %, that of everybody with 99.5 %. evidence: logarithm of the
    e-value of the larger side. significant: 1 where the group is called off (e-BH), else 0. error: what the group alone
    would give as multicalibration error at r = 2. exact: whether intervals hold for any stream; else they are those of
    many rows, or of many clusters where `clusters` says so.
    """

    name: tuple[str, ...]
    rows: Float64Array
    weight: Float64Array
    mean: Float64Array
    low: Float64Array
    high: Float64Array
    evidence: Float64Array
    significant: Float64Array
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
    def n_significant(self) -> int:
        """Groups that are called off, besides everybody."""
        return int(np.count_nonzero(self.significant[1:]))

    def ranked(self) -> IntArray:
        """Positions of the groups with rows besides everybody: those off first, the largest bias beyond doubt first.

        The others follow by their evidence.
        """
        order = np.lexsort((-self.evidence, -np.abs(self.near), self.significant == 0))
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
    return GroupSums(rows, size, total, squares, usual, binary, None if clusters is None else clusters.first(n))


def bias_of_group(sums: GroupSums, names: tuple[str, ...], error: Float64Array) -> GroupBias:
    """Intervals at the shares of everybody and of the groups, and which of the groups are off."""
    rows, n = sums.rows, len(sums.rows)
    used = np.flatnonzero(rows[1:] > 0) + 1
    n_groups = max(len(used), 1)
    rate = ALPHA * SHARES["groups"]
    delta = np.full(n, rate / n_groups)
    delta[0] = ALPHA * SHARES["everybody"]
    bias = sums.bias(delta)
    here = rows > 0
    mean = sums.mean
    # An interval that holds nothing new says nothing: the mean itself always lies in it.
    low, high = (np.where(here, end, np.nan) for end in (np.minimum(bias.low, mean), np.maximum(bias.high, mean)))
    evidence = both_sides(sums.evidence(rate / n_groups), one_test=not sums.exact)
    off = np.zeros(n)
    # e-BH calls every group whose interval leaves out 0 (the case k = 1); rounding at the very edge must not undo that.
    off[used] = discoveries(evidence[used], rate, n_groups) | (low[used] > 0) | (high[used] < 0)
    off[0] = float(here[0] and (low[0] > 0 or high[0] < 0))
    return GroupBias(
        names,
        rows,
        sums.size,
        mean,
        low,
        high,
        evidence,
        off,
        error,
        exact=sums.exact,
        clusters=sums.clusters is not None,
    )
