"""How each group fares over all of its rows: bias, an interval, the evidence, and whether it is called off."""

import math
from dataclasses import dataclass

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
from swapcal.errors import InvalidInput
from swapcal.protocols import Rows
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

N_BINS = len(CENTERS)
PER_GROUP = ("rows", "size", "total", "squares", "forecasts")
PER_BIN = ("counts", "ones")


class GroupSums:
    """What is known of each group: rows, sum of w |f|, of w f V, of its square; and for binary outcomes, per bin.

    Parameters
    ----------
    n : int
        Number of functions.
    binary : bool
        Whether V = p - y with y 0 or 1, each row counts once, and functions are groups (0 or 1): F2, which assumes
        nothing. Otherwise F3, from 100 rows on.
    clusters : bool
        Whether rows hang together in clusters: F3 over clusters, from 30 of them on.

    Notes
    -----
    Memory: 40 bytes a group, 456 where outcomes are binary, and 33 more with clusters.

    Examples
    --------
    >>> rows = Rows(np.arange(2001), np.zeros(2000, dtype=np.int64), np.ones(2000))
    >>> sums = GroupSums(1, binary=False)
    >>> sums.add(rows, np.tile([0.3, 0.3, 0.3, -0.7], 500))
    >>> found = sums.bias(0.05)
    >>> sums.mean.round(3), found.low.round(3), found.high.round(3)
    (array([0.05]), array([0.02]), array([0.08]))
    """

    def __init__(self, n: int, *, binary: bool, clusters: bool = False) -> None:
        self.n, self.binary, self.clusters = n, binary, clusters
        self.arrays = {name: np.zeros(n) for name in PER_GROUP}
        if binary:
            self.arrays |= {name: np.zeros((N_BINS, n)) for name in PER_BIN}
        # Sum of (w V)^2 over all rows, and their number: the usual size of a term.
        self._squares = np.zeros(2)
        self._clusters = ClusterSums(n) if clusters else None

    def add(
        self,
        rows: Rows,
        v: Float64Array,
        weights: Float64Array | None = None,
        clusters: IntArray | None = None,
    ) -> None:
        """Add rows that are not binary: their groups, V, weights in [0, 1], numbers of clusters, equal ones together.

        Those of binary outcomes come from the cells of an audit: `group_sums`.
        """
        if self.binary or self.clusters != (clusters is not None):
            raise InvalidInput(
                f"clusters must be given with every batch, or never; this one was made with {self.clusters}"
            )
        scored = Scored(v, v, v, np.zeros(0, dtype=np.int64), rows, weights=weights, clusters=clusters)
        terms = {"rows": None, "size": scored.sizes, "total": scored.terms, "squares": scored.terms**2}
        for name, each in terms.items():
            self.arrays[name] += np.bincount(rows.indices, each, self.n)
        self._squares += [float(scored.wv @ scored.wv), len(v)]
        if self._clusters is not None:
            self._clusters.add(scored)

    def close(self) -> None:
        """Close the cluster that is open, at the end of the stream."""
        if self._clusters is not None:
            self._clusters.close()

    @property
    def mean(self) -> Float64Array:
        """Mean of V of each group: its bias as seen; NaN without rows."""
        size: Float64Array = self.arrays["size"]
        mean: Float64Array = np.divide(self.arrays["total"], size, out=np.full(self.n, np.nan), where=size > 0)
        return mean

    @property
    def exact(self) -> bool:
        """Whether intervals hold for any stream at any time, and not only for many rows or clusters."""
        return self.binary and not self.clusters

    def bias(self, delta: Float64Array | float) -> BiasInterval:
        """Interval of the bias of each group, each at error rate `delta`."""
        a = self.arrays
        if self.exact:
            return group_bias(a["counts"], a["ones"], a["forecasts"], delta)
        return self._terms().bias(delta)

    def evidence(self, delta: float, tolerance: float = 0.0) -> LogWealth:
        """Log e-values of both sides; `delta`, the rate of one group, matters to asymptotic ones only."""
        a = self.arrays
        if self.exact:
            return group_evidence(a["counts"], a["ones"], a["forecasts"], tolerance)
        return self._terms().evidence(delta, tolerance)

    def _terms(self) -> Terms:
        """The terms of each group, and the usual square of one."""
        a, square = self.arrays, self._squares[0] / max(self._squares[1], 1.0)
        if self._clusters is None:
            return Terms(a["rows"], a["total"], a["squares"], a["size"], square)
        sums = self._clusters
        usual = square * a["rows"] / np.maximum(sums.terms, 1.0)
        return Terms(sums.terms, sums.total, sums.squares, a["size"], usual, clusters=True)


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


def bias_of_group(sums: GroupSums, names: tuple[str, ...], error: Float64Array) -> GroupBias:
    """Intervals at the shares of everybody and of the groups, and which of the groups are off."""
    rows = sums.arrays["rows"]
    used = np.flatnonzero(rows[1:] > 0) + 1
    n_groups = max(len(used), 1)
    rate = ALPHA * SHARES["groups"]
    delta = np.full(sums.n, rate / n_groups)
    delta[0] = ALPHA * SHARES["everybody"]
    bias = sums.bias(delta)
    here = rows > 0
    mean = sums.mean
    # An interval that holds nothing new says nothing: the mean itself always lies in it.
    low, high = (np.where(here, end, np.nan) for end in (np.minimum(bias.low, mean), np.maximum(bias.high, mean)))
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
