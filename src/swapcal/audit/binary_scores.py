"""Scores that people know for 0/1 outcomes: log loss, AUC, and CORP's parts of the Brier score."""

from dataclasses import dataclass

import numpy as np

from swapcal.audit.bins import bins_between
from swapcal.typing import Float64Array

__all__ = ["BinaryScores", "ScoreSums", "fine_edges", "pooled"]

SMALLEST = 1e-15
"""Forecasts of 0 and 1 count as this near to them in the log loss, as in scikit-learn."""

N_FINE = 10_000


@dataclass(frozen=True, slots=True)
class BinaryScores:
    """brier = miscalibration - discrimination + uncertainty (CORP); log_loss; auc, None where all outcomes agree.

    miscalibration: what isotonic recalibration takes off. discrimination: what that has over the base rate.
    """

    brier: float
    log_loss: float
    auc: float | None
    miscalibration: float
    discrimination: float
    uncertainty: float
    base_rate: float


def fine_edges(p: Float64Array) -> Float64Array:
    """Inner edges of about 10,000 bins between quantiles of a sample of forecasts; of fewer values, each has its own.

    Examples
    --------
    >>> fine_edges(np.array([0.1, 0.5, 0.5, 0.9]))
    array([0.3, 0.7])
    """
    distinct = np.unique(p)
    if len(distinct) > N_FINE:
        distinct = np.unique(np.quantile(p, np.arange(N_FINE) / (N_FINE - 1), method="inverted_cdf"))
    edges: Float64Array = (distinct[1:] + distinct[:-1]) / 2
    return edges


class ScoreSums:
    """What the scores are read from: per fine bin of forecasts, weight and ones; and sums of losses, which are exact.

    Where every forecast value has its bin, so are AUC and the parts; else they are within about 0.0001.
    """

    def __init__(self, edges: Float64Array) -> None:
        self.edges = edges
        self.sums = np.zeros((2, len(edges) + 1))
        self.losses = np.zeros(2)

    def add(self, y: Float64Array, p: Float64Array, weights: Float64Array | None = None) -> None:
        """Add rows; outcomes are 0 or 1."""
        bins, n = bins_between(self.edges, p), len(self.edges) + 1
        w = np.ones(len(y)) if weights is None else weights
        self.sums[0] += np.bincount(bins, weights, n)
        self.sums[1] += np.bincount(bins, y if weights is None else w * y, n)
        q = np.clip(np.where(y > 0.5, p, 1.0 - p), SMALLEST, 1.0)
        self.losses += [float(np.sum(w * (p - y) ** 2)), float(-np.sum(w * np.log(q)))]

    def scores(self) -> BinaryScores:
        """The scores of the rows so far."""
        used = self.sums[0] > 0
        weight, ones = self.sums[:, used]
        total, events = float(weight.sum()), float(ones.sum())
        rate = events / total
        zeros = weight - ones
        auc = None
        if 0.0 < events < total:
            below = np.cumsum(zeros) - zeros
            auc = float(np.sum(ones * (below + zeros / 2)) / (events * (total - events)))
        fitted = pooled(ones / weight, weight)
        brier, log_loss = (self.losses / total).tolist()
        uncertainty = rate * (1.0 - rate)
        recalibrated = float(np.sum(ones * (1.0 - fitted) ** 2 + zeros * fitted**2)) / total
        return BinaryScores(
            brier=brier,
            log_loss=log_loss,
            auc=auc,
            miscalibration=brier - recalibrated,
            discrimination=uncertainty - recalibrated,
            uncertainty=uncertainty,
            base_rate=rate,
        )

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return {"sums": self.sums, "losses": self.losses, "edges": self.edges}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.sums, self.losses = arrays["sums"].copy(), arrays["losses"].copy()
        self.edges = arrays["edges"].copy()


def pooled(means: Float64Array, weights: Float64Array) -> Float64Array:
    """Isotonic regression: the nondecreasing sequence nearest to `means` (pool adjacent violators).

    Examples
    --------
    >>> pooled(np.array([0.1, 0.5, 0.3, 0.8]), np.ones(4))
    array([0.1, 0.4, 0.4, 0.8])
    """
    blocks: list[list[float]] = []
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        blocks.append([mean, weight, 1.0])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean_last, weight_last, n_last = blocks.pop()
            mean_first, weight_first, n_first = blocks.pop()
            both = weight_first + weight_last
            blocks.append([(mean_first * weight_first + mean_last * weight_last) / both, both, n_first + n_last])
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])
