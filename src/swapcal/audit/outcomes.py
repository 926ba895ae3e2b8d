"""Histograms of outcomes, from which the property of any set of rounds can be read."""

import numpy as np

from swapcal.audit.bins import bins_between
from swapcal.roles import Elicitable
from swapcal.typing import Float64Array, IntArray

__all__ = ["OutcomeBins", "root"]

N_BINS = 100
N_POINTS = 5
"""Points that stand for a bin of outcomes between the smallest and the largest of them."""

N_HALVINGS = 50


class OutcomeBins:
    """At most 100 bins of outcomes, settled by the first outcomes; of each bin, the mean and both ends are kept.

    Up to 100 different outcomes get a bin each, so that 0/1 and other counts are exact. Otherwise half of the edges
    are quantiles of the first outcomes and half are equally far apart, which suits both the bulk and a long tail.
    """

    def __init__(self, y: Float64Array, low: float, high: float) -> None:
        distinct = np.unique(y)
        if len(distinct) <= N_BINS:
            edges = (distinct[1:] + distinct[:-1]) / 2
        else:
            half = N_BINS // 2
            # The lower of two neighbors, so that edges are outcomes themselves and heaps stay in one bin.
            bulk = np.quantile(y, np.arange(1, half) / half, method="lower")
            edges = np.unique(np.concatenate([bulk, np.linspace(low, high, half + 1)[1:-1]]))
        self._begin(edges)

    def _begin(self, edges: Float64Array) -> None:
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

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {name: getattr(self, name) for name in ("edges", "count", "total", "least", "most")}

    @classmethod
    def restored(cls, arrays: dict[str, Float64Array]) -> "OutcomeBins":
        """Go on from what `arrays` held."""
        bins = cls.__new__(cls)
        for name in ("edges", "count", "total", "least", "most"):
            setattr(bins, name, np.array(arrays[name], dtype=np.float64))
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
