"""Histograms of outcomes, per forecast value and per group and bin of the pictures, and of the forecasts themselves."""

import numpy as np

from swapcal.audit.bins import bins_between
from swapcal.audit.outcomes import OutcomeBins
from swapcal.roles import Elicitable, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Histograms"]

MOST_CURVES = 400
"""Groups whose outcomes are kept in histograms; 16 kB each. The most frequent ones at the first look come first."""


class Histograms:
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

    def of_group(self, j: int) -> Float64Array | None:
        """Outcomes of group `j`, shape (bins of the pictures, bins of outcomes); None where they were not kept."""
        if j >= len(self._tracks) or self._tracks[j] < 0:
            return None
        return self._by_group[:, self._tracks[j], :]

    def bins(self, values: Float64Array) -> IntArray:
        """The bins of the pictures that hold these forecasts."""
        return bins_between(self.edges[1:-1], values)

    def add(
        self, y: Float64Array, p: Float64Array, slots: IntArray, rows: Rows, weights: Float64Array | None = None
    ) -> None:
        """Add rounds: outcomes, forecasts, the slots that an audit has for them, groups and weights."""
        self.settle(y)
        if self.outcomes is None:
            return
        labels = self.outcomes.add(y, weights)
        n_labels = self.outcomes.n
        self.by_slot = _grown(self.by_slot, (int(slots.max()) + 1, n_labels))
        self.by_slot += _counted(slots * n_labels + labels, weights, self.by_slot.shape)
        bins = self.bins(p) if self._bin_of_slot is None else self._bin_of_slot[slots]
        self.forecasts += _counted(bins, weights, self.forecasts.shape)
        n_tracks, lengths = self._follow(rows), np.diff(rows.indptr)
        self._by_group = _grown(self._by_group, (len(self.forecasts), n_tracks, n_labels))
        track = self._tracks[rows.indices]
        keys = np.repeat(bins * (n_tracks * n_labels) + labels, lengths)
        keys += track * n_labels
        ones = weights is None and bool((rows.values == 1.0).all())
        terms = None if ones else np.abs(rows.values) * (1.0 if weights is None else np.repeat(weights, lengths))
        if n_tracks < len(self._tracks):
            followed = track >= 0
            keys, terms = keys[followed], None if terms is None else terms[followed]
        self._by_group += _counted(keys, terms, self._by_group.shape)

    def _follow(self, rows: Rows) -> int:
        """Groups that have come up get histograms while there is room, the most frequent first; how many have one."""
        width = max(len(self._members), int(rows.indices.max(initial=-1)) + 1)
        self._members = _grown(self._members, (width,))
        self._members += np.bincount(rows.indices, minlength=width)
        self._tracks = np.concatenate([self._tracks, np.full(width - len(self._tracks), -1, dtype=np.int64)])
        n_tracks = int(self._tracks.max(initial=-1)) + 1
        if n_tracks >= MOST_CURVES:
            return n_tracks
        waiting = np.where(self._tracks >= 0, 0.0, self._members)
        new = np.argsort(-waiting, kind="stable")[: MOST_CURVES - n_tracks]
        new = np.sort(new[waiting[new] > 0])
        self._tracks[new] = n_tracks + np.arange(len(new))
        return n_tracks + len(new)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        outcomes = {} if self.outcomes is None else {f"outcomes.{k}": v for k, v in self.outcomes.arrays().items()}
        return {
            **outcomes,
            "by_slot": self.by_slot,
            "by_group": self._by_group,
            "forecasts": self.forecasts,
            "tracks": self._tracks.astype(np.float64),
            "members": self._members,
        }

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over; the edges must be those of the histograms that had it."""
        kept = {name.removeprefix("outcomes."): each for name, each in arrays.items() if name.startswith("outcomes.")}
        self.outcomes = OutcomeBins.restored(kept) if kept else None
        self.by_slot, self._by_group = arrays["by_slot"].copy(), arrays["by_group"].copy()
        self.forecasts, self._members = arrays["forecasts"].copy(), arrays["members"].copy()
        self._tracks = arrays["tracks"].astype(np.int64)


def _counted(keys: IntArray, weights: Float64Array | None, shape: tuple[int, ...]) -> Float64Array:
    """How often each key comes, or the weight with which it does, in an array of `shape`."""
    counts = np.bincount(keys, weights=weights, minlength=int(np.prod(shape)))
    return counts.reshape(shape).astype(np.float64, copy=False)


def _grown(array: Float64Array, shape: tuple[int, ...]) -> Float64Array:
    """`array` with zeros behind it up to `shape`, where that is larger."""
    wanted = tuple(max(have, want) for have, want in zip(array.shape, shape, strict=True))
    if wanted == array.shape:
        return array
    larger = np.zeros(wanted)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger
