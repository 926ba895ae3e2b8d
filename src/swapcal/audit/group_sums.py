"""Groups over all their rows: mergeable sums, and the interval of each group's bias by the method that fits."""

import numpy as np

from swapcal.audit.asymptotic_intervals import asymptotic_bias, asymptotic_evidence
from swapcal.audit.binary_intervals import (
    CENTERS,
    BiasInterval,
    LogWealth,
    forecast_bins,
    group_bias,
    group_evidence,
)
from swapcal.audit.cluster_sums import ClusterSums
from swapcal.errors import InvalidInput
from swapcal.roles import Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["GroupSums"]

N_BINS = len(CENTERS)
PER_GROUP = ("rows", "size", "total", "squares", "forecasts")
PER_BIN = ("counts", "ones")


class GroupSums:
    """What is kept of each group: rows, sum of w |f|, of w f V, of its square; and for binary outcomes, per bin.

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
    Memory: 40 bytes a group, 456 where outcomes are binary, and 33 more with clusters. A batch costs five counts over
    its entries. Everything merges; clusters must be closed first.

    Examples
    --------
    >>> rows = Rows(np.arange(2001), np.zeros(2000, dtype=np.int64), np.ones(2000))
    >>> sums = GroupSums(1, binary=True)
    >>> sums.add(rows, np.tile([0.3, 0.3, 0.3, -0.7], 500), np.full(2000, 0.3))
    >>> found = sums.bias(0.05)
    >>> sums.mean.round(3), found.low.round(3), found.high.round(3)
    (array([0.05]), array([0.017]), array([0.081]))
    """

    def __init__(self, n: int, *, binary: bool, clusters: bool = False) -> None:
        self.n, self.binary, self.clusters = n, binary, clusters
        self.arrays = {name: np.zeros(n) for name in PER_GROUP}
        if binary:
            self.arrays |= {name: np.zeros((N_BINS, n)) for name in PER_BIN}
        self._squares = np.zeros(2)
        """Sum of (w V)^2 over all rows, and their number: the usual size of a term."""
        self._clusters = ClusterSums(n) if clusters else None

    def add(
        self,
        rows: Rows,
        v: Float64Array,
        p: Float64Array | None = None,
        weights: Float64Array | None = None,
        clusters: IntArray | None = None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        rows : Rows
            Their groups.
        v : array
            V of each row.
        p : array, optional
            For binary outcomes, the p of V = p - y: the forecast, or 1 - q for a quantile of level q.
        weights : array, optional
            In [0, 1].
        clusters : array, optional
            Whole numbers; equal ones stand together.
        """
        if self.binary and (p is None or weights is not None or bool((rows.values != 1.0).any())):
            raise InvalidInput("binary sums need p, groups of 0 and 1, and no weights; use binary=False for others")
        if self.clusters != (clusters is not None):
            raise InvalidInput(
                f"clusters must be given with every batch, or never; this one was made with {self.clusters}"
            )
        lengths = np.diff(rows.indptr)
        row = np.repeat(np.arange(len(v)), lengths)
        wv = v if weights is None else weights * v
        xv = rows.values * wv[row]
        size = np.abs(rows.values) if weights is None else np.abs(rows.values) * weights[row]
        terms = {"rows": None, "size": size, "total": xv, "squares": xv * xv}
        for name, each in terms.items():
            self.arrays[name] += np.bincount(rows.indices, each, self.n)
        self._squares += [float(wv @ wv), len(v)]
        if p is not None and self.binary:
            self.arrays["forecasts"] += np.bincount(rows.indices, p[row], self.n)
            keys = forecast_bins(p)[row] * self.n + rows.indices
            self.arrays["counts"] += np.bincount(keys, minlength=N_BINS * self.n).reshape(N_BINS, self.n)
            self.arrays["ones"] += np.bincount(keys, (p - v)[row], N_BINS * self.n).reshape(N_BINS, self.n)
        if self._clusters is not None and clusters is not None:
            self._clusters.add(clusters, row, rows.indices, xv)

    def close(self) -> None:
        """Close the cluster that is open, at the end of the stream."""
        if self._clusters is not None:
            self._clusters.close()

    def merge(self, other: "GroupSums") -> None:
        """Add the sums of another part of the stream, over the same functions."""
        if (self.n, self.binary, self.clusters) != (other.n, other.binary, other.clusters):
            raise InvalidInput("only sums over the same functions, of the same kind, can be merged")
        for name, array in self.arrays.items():
            array += other.arrays[name]
        self._squares += other._squares
        if self._clusters is not None and other._clusters is not None:
            self._clusters.merge(other._clusters)

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
        terms, total, squares, usual = self._terms()
        return asymptotic_bias(terms, total, squares, a["size"], delta, usual=usual, clusters=self.clusters)

    def evidence(self, delta: float, tolerance: float = 0.0) -> LogWealth:
        """Log e-values of both sides; `delta`, the rate of one group, matters to asymptotic ones only."""
        a = self.arrays
        if self.exact:
            return group_evidence(a["counts"], a["ones"], a["forecasts"], tolerance)
        terms, total, squares, usual = self._terms()
        return asymptotic_evidence(
            terms, total, squares, a["size"], delta, tolerance, usual=usual, clusters=self.clusters
        )

    def _terms(self) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """Number, sum and sum of squares of the terms of each group, and the usual square of one."""
        a, square = self.arrays, self._squares[0] / max(self._squares[1], 1.0)
        if self._clusters is None:
            return a["rows"], a["total"], a["squares"], np.full(self.n, square)
        sums = self._clusters
        return sums.terms, sums.total, sums.squares, square * a["rows"] / np.maximum(sums.terms, 1.0)
