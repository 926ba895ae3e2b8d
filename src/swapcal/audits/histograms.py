"""Histograms of outcomes, per forecast value and per group and bin of the pictures, and of the forecasts themselves."""

from dataclasses import dataclass

import numpy as np

from swapcal.audits.cells import adaptive_radius
from swapcal.audits.sums import Part, Positions, Scored, added, bins_between, counted, grown
from swapcal.errors import InvalidInput
from swapcal.protocols import Elicitable
from swapcal.state import part_of
from swapcal.typing import Float64Array, IntArray

# --------
# Histograms of outcomes, from which the property of any set of rounds can be read.

N_BINS = 100
# Points that stand for a bin of outcomes between the smallest and the largest of them.
N_POINTS = 5

N_HALVINGS = 50


class OutcomeBins(Part):
    """At most 100 bins of outcomes, settled by the first outcomes; of each bin, the mean and both ends are kept.

    Up to 100 different outcomes get a bin each, so that 0/1 and other counts are exact. Otherwise half of the edges
    are quantiles of the first outcomes and half are equally far apart, which suits both the bulk and a long tail.
    """

    saved = ("edges", "count", "total", "least", "most")

    def __init__(self, y: Float64Array, low: float, high: float) -> None:
        distinct = np.unique(y)
        if len(distinct) <= N_BINS:
            edges = (distinct[1:] + distinct[:-1]) / 2
        else:
            half = N_BINS // 2
            # The lower of two neighbors, so that edges are outcomes themselves and heaps stay in one bin.
            bulk = np.quantile(y, np.arange(1, half) / half, method="lower")
            edges = np.unique(np.concatenate([bulk, np.linspace(low, high, half + 1)[1:-1]]))
        self.empty(edges)

    def empty(self, edges: Float64Array) -> None:
        """Begin anew, with bins between these edges."""
        n = len(edges) + 1
        self.edges = edges
        self.count, self.total = np.zeros(n), np.zeros(n)
        self.least, self.most = np.full(n, np.inf), np.full(n, -np.inf)

    @property
    def n(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1

    def add(self, y: Float64Array, weights: Float64Array | None = None) -> IntArray:
        """Count these outcomes; returns their bins. An edge belongs to the bin below it."""
        bins = bins_between(self.edges, y, upper=False)
        count = np.bincount(bins, minlength=self.n)
        self.count += count if weights is None else np.bincount(bins, weights, minlength=self.n)
        self.total += np.bincount(bins, weights=y if weights is None else weights * y, minlength=self.n)
        # Ends of the bins: sorting by bin and cutting is much faster than np.minimum.at.
        order = np.argsort(bins, kind="stable")
        filled = np.flatnonzero(count)
        starts = np.concatenate([[0], np.cumsum(count)[:-1]])[filled]
        if len(y):
            self.least[filled] = np.minimum(self.least[filled], np.minimum.reduceat(y[order], starts))
            self.most[filled] = np.maximum(self.most[filled], np.maximum.reduceat(y[order], starts))
        return bins

    def points(self, *, spread: bool) -> Float64Array:
        """Outcomes that stand for each bin, shape (n, points): its mean, or points spread evenly between its ends."""
        mean = np.divide(self.total, self.count, out=np.zeros(self.n), where=self.count > 0)
        if not spread:
            return mean[:, None]
        filled = self.count > 0
        least, most = np.where(filled, self.least, mean), np.where(filled, self.most, mean)
        return least[:, None] + (most - least)[:, None] * ((np.arange(N_POINTS) + 0.5) / N_POINTS)

    def merge(self, other: "OutcomeBins") -> None:
        """Add what bins with the same edges have counted."""
        if not np.array_equal(self.edges, other.edges):
            raise InvalidInput("only histograms with the same bins of outcomes can be merged: settle once, and copy")
        self.count, self.total = self.count + other.count, self.total + other.total
        self.least, self.most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)

    @classmethod
    def restored(cls, arrays: dict[str, Float64Array]) -> "OutcomeBins":
        """Go on from what `arrays` held."""
        bins = cls(np.zeros(1), 0.0, 0.0)
        bins.restore(arrays)
        return bins


def root(
    property: Elicitable, counts: Float64Array, points: Float64Array, shift: Float64Array | float = 0.0
) -> Float64Array:
    """Where the mean identification of each histogram equals `shift`, by bisection over the property's domain.

    Parameters
    ----------
    property : Elicitable
        Its V is nondecreasing in the forecast, or at least changes sign once.
    counts : array, shape (m, n)
        One histogram a row; none empty.
    points : array, shape (n, k)
        The outcomes in each bin, in equal parts.
    shift : float or array, shape (m,)
        0 gives the property of the outcomes; -rho and rho give the ends of its interval if rho is the radius of the
        mean identification.
    """
    low, high = property.domain
    outcomes, k = points.reshape(-1), points.shape[1]
    shares = np.repeat(counts / counts.sum(axis=1, keepdims=True) / k, k, axis=1)
    below, above = np.full(len(counts), low), np.full(len(counts), high)
    for _ in range(N_HALVINGS):
        middle = (below + above) / 2
        v = np.asarray(property.identification(middle[:, None], outcomes[None, :]))
        early = np.einsum("ij,ij->i", shares, v) < shift
        below, above = np.where(early, middle, below), np.where(early, above, middle)
    return above


# --------
# Reliability curves: the property of the outcomes in each bin of forecasts, with an interval.

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A reliability curve: where forecasts were (mean forecast of a bin), and what came (the property of its labels).

    All arrays have one entry for each bin that was forecast at all; [low, high] holds for all bins together.
    """

    forecast: Float64Array
    outcome: Float64Array
    low: Float64Array
    high: Float64Array
    count: Float64Array


def make_curve(
    property: Elicitable,
    outcomes: OutcomeBins,
    histograms: Float64Array,
    forecast: Float64Array,
    exact: Float64Array | None = None,
) -> Curve:
    """The curve of one group.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    outcomes : OutcomeBins
        The bins of the histograms.
    histograms : array, shape (bins, n)
        Outcomes in each bin of forecasts.
    forecast : array, shape (bins,)
        Mean forecast of each bin; NaN where there is none.
    exact : array, shape (bins,), optional
        The outcome of each bin, where it is known better than from a histogram.

    Notes
    -----
    The outcome q of a bin is the root of the mean identification of its outcomes, which for a mean is their mean, and
    for a quantile their quantile. Its interval is found by inverting that function: all q at which the mean
    identification is no further from 0 than its radius, `adaptive_radius` with the squares of V at the root. That is
    right for every property without a word about densities. It holds for all bins of a curve together with 95 %.
    """
    count = histograms.sum(axis=1)
    used = np.flatnonzero((count > 0) & np.isfinite(forecast))
    histograms, count = histograms[used], count[used]
    points = outcomes.points(spread=not property.continuous)
    outcome = root(property, histograms, points) if exact is None else exact[used]
    v = np.asarray(property.identification(outcome[:, None, None], points[None, :, :]))
    squares = np.sum(np.mean(v * v, axis=2) * histograms, axis=1)
    radius = adaptive_radius(squares, (1 - CONFIDENCE) / max(len(used), 1)) / count
    # Both ends are halved together: calls cost more than numbers.
    ends = root(property, np.tile(histograms, (2, 1)), points, np.concatenate([-radius, radius]))
    return Curve(
        forecast=forecast[used],
        outcome=outcome,
        low=np.minimum(ends[: len(used)], outcome),
        high=np.maximum(ends[len(used) :], outcome),
        count=count,
    )


# Groups whose outcomes are kept in histograms; 16 kB each. The most frequent ones at the first look come first.
MOST_CURVES = 400


class Histograms(Part):
    """What reliability curves and skill are read from.

    Parameters
    ----------
    property : Elicitable
        What was forecast.
    edges : array
        Edges of the bins of the pictures.
    slot_edges : array, optional
        Edges of the bins of the audit whose slots come with the rounds, if it has any.

    Attributes
    ----------
    outcomes : OutcomeBins or None
        The bins of the outcomes, which the first outcomes settle.
    by_slot : array, shape (slots of the audit, bins of outcomes)
        Outcomes of each forecast value.
    forecasts : array, shape (bins,)
        Weight of the forecasts in each bin of the pictures.
    """

    saved = ("by_slot", "_by_group", "forecasts", "_tracks", "_members")

    def __init__(self, property: Elicitable, edges: Float64Array, slot_edges: Float64Array | None = None) -> None:
        self.property = property
        self.edges = edges
        self.outcomes: OutcomeBins | None = None
        self.by_slot = np.zeros((0, 0))
        self.forecasts = np.zeros(len(edges) - 1)
        self._bin_of_slot: IntArray | None = None
        if slot_edges is not None and np.isin(edges[1:-1], slot_edges[1:-1]).all():
            # Bins of the pictures are unions of those of the audit, so that a slot tells its bin.
            self._bin_of_slot = self.bins(slot_edges[:-1])
        self._by_group = np.zeros((len(edges) - 1, 0, 0))
        self._tracks = np.full(0, -1, dtype=np.int64)
        self._members = np.zeros(0)

    def settle(self, y: Float64Array) -> None:
        """Let these outcomes, if there are any, settle the bins of the outcomes."""
        if self.outcomes is None and len(y):
            self.outcomes = OutcomeBins(y, self.property.low, self.property.high)

    def settle_as(self, other: "Histograms") -> None:
        """The bins of another one's outcomes."""
        if other.outcomes is not None:
            self.outcomes = OutcomeBins.restored(other.outcomes.arrays())
            self.outcomes.empty(self.outcomes.edges)

    def of_group(self, j: int) -> Float64Array | None:
        """Outcomes of group `j`, shape (bins of the pictures, bins of outcomes); None where they were not kept."""
        if j >= len(self._tracks) or self._tracks[j] < 0:
            return None
        return self._by_group[:, self._tracks[j], :]

    def bins(self, values: Float64Array) -> IntArray:
        """The bins of the pictures that hold these forecasts."""
        return bins_between(self.edges[1:-1], values)

    def add(self, scored: Scored) -> None:
        """Add rounds."""
        y, slots, rows = scored.y, scored.slots, scored.rows
        self.settle(y)
        if self.outcomes is None:
            return
        labels = self.outcomes.add(y, scored.weights)
        n_labels = self.outcomes.n
        self.by_slot = grown(self.by_slot, (int(slots.max()) + 1, n_labels))
        self.by_slot += counted(slots * n_labels + labels, scored.weights, self.by_slot.shape)
        bins = self.bins(scored.p) if self._bin_of_slot is None else self._bin_of_slot[slots]
        self.forecasts += counted(bins, scored.weights, self.forecasts.shape)
        n_tracks = self._follow(np.bincount(rows.indices, minlength=len(self._members)))
        self._by_group = grown(self._by_group, (len(self.forecasts), n_tracks, n_labels))
        track = self._tracks[rows.indices]
        keys = np.repeat(bins * (n_tracks * n_labels) + labels, scored.lengths)
        keys += track * n_labels
        sizes = scored.sizes
        if n_tracks < len(self._tracks):
            followed = track >= 0
            keys, sizes = keys[followed], None if sizes is None else sizes[followed]
        self._by_group += counted(keys, sizes, self._by_group.shape)

    def _follow(self, members: IntArray) -> int:
        """Groups that come up get histograms while there is room, the most frequent first; how many have one."""
        new = np.where(grown(self._members, members.shape) > 0, 0, members)
        self._members = grown(self._members, members.shape) + members
        self._tracks = np.append(self._tracks, np.full(len(members) - len(self._tracks), -1))
        n_tracks = int(self._tracks.max(initial=-1)) + 1
        first = np.argsort(-new, kind="stable")[: max(MOST_CURVES - n_tracks, 0)]
        first = np.sort(first[new[first] > 0])
        self._tracks[first] = n_tracks + np.arange(len(first))
        return n_tracks + len(first)

    def merge(self, other: "Histograms", at: Positions) -> bool:
        """Add another part of the stream; a group stays followed if both parts have followed it from its first row."""
        if not np.array_equal(self.edges, other.edges):
            raise InvalidInput("only histograms with the same bins of forecasts can be merged")
        if other.outcomes is None:
            return True
        if self.outcomes is None:
            self.outcomes = OutcomeBins.restored(other.outcomes.arrays())
        else:
            self.outcomes.merge(other.outcomes)
        self.by_slot = added(grown(self.by_slot, (0, self.outcomes.n)), other.by_slot, at.slots, None)
        self.forecasts += other.forecasts
        members = added(self._members.copy(), other._members, at.groups)
        mine, theirs = np.zeros((2, len(members))), np.zeros((2, len(members)))
        for both, one, groups in ((mine, self, None), (theirs, other, at.groups)):
            added(both, np.stack([one._members, one._tracks + 1.0]), None, groups)
        whole = np.where([(both[0] == 0) | (both[1] > 0) for both in (mine, theirs)], members, 0.0).min(axis=0)
        followed = np.argsort(-whole, kind="stable")[:MOST_CURVES]
        followed = np.sort(followed[whole[followed] > 0])
        by_group = np.zeros((len(self.forecasts), len(followed), self.outcomes.n))
        for one, track in ((self, mine[1, followed]), (other, theirs[1, followed])):
            counts = grown(one._by_group, (0, 0, self.outcomes.n))
            by_group[:, track > 0] += counts[:, track[track > 0].astype(np.int64) - 1]
        self._by_group, self._members = by_group, members
        self._tracks = np.full(len(members), -1, dtype=np.int64)
        self._tracks[followed] = np.arange(len(followed))
        return True

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state; `restore` goes on from it."""
        outcomes = {} if self.outcomes is None else self.outcomes.arrays()
        return {**super().arrays(), **{f"outcomes.{name}": array for name, array in outcomes.items()}}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held; the edges must be those of the histograms that had it."""
        super().restore(arrays)
        outcomes = part_of(arrays, "outcomes.")
        self.outcomes = OutcomeBins.restored(outcomes) if outcomes else None
