"""Ghuge, Muthukumar, Singla (2025): l1 multicalibration of means over a finite class, directly in l1."""

import math
from typing import ClassVar

import numpy as np

from swapcal import checked
from swapcal.engine.published import Plan, PublishedMethod
from swapcal.rivals.shared.card import Card
from swapcal.rivals.shared.sign_change import first_change, play_points
from swapcal.roles import Elicitable, Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["Ghuge2025"]


class Ghuge2025(PublishedMethod):
    r"""Each function has a gradient ascent that looks for its worst signs; weights look for the worst function.

    Guarantee (theorem 3.1 of the source, for |f| <= 1), with S_{f,j} the sum of f(x_t) (p_t - y_t) over the rounds with
    p_t = j/m, and R_T the regret of the ascents and weights, here at most sqrt((m + 1) T) + sqrt(2 T ln |F|):

        E max_f (1/T) sum_j |S_{f,j}| <= 1/m + R_T / T + 4 sqrt(m ln(6 T |F|) / T) + 4 m / T,

    which is O~(T^(-1/3)) for m = T^(1/3).

    Parameters
    ----------
    property : Elicitable
        A mean.
    hypotheses : Hypotheses
        A finite class.
    horizon : int
        T.
    bins : int, optional
        m: forecasts are 0, 1/m, ..., 1. Default ceil(T^(1/3)).
    halfspace : {"sampled", "averaged"}
        Whose weighted error the two points cancel: that of a function drawn from the weights, as the source is told,
        or that of their average. Only for the average does the bound follow from the regret line by line: a drawn
        function's forecast is correlated with the errors that the weights are fed.
    seed : int
        Of the draws.

    Notes
    -----
    theta_f in [-1, 1]^(m+1) gains f(x) theta_{f,j} (p - y) at point j and is moved along the gradient with step
    sqrt((m + 1) / T), then clipped; weights are multiplied by exp(sqrt(2 ln |F| / T) gain). The drawn function and the
    drawn point are one draw from the mixture over the functions that are not 0 at x. Time O(m active functions) a
    round, memory O(m |F|).

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> method = Ghuge2025(Mean(), Finite(2), horizon=1000, seed=1)
    >>> for t in range(1000):
    ...     method.update(method.predict([1.0, t % 2]), float(t % 4 == 1))
    >>> bool(np.abs(method.sums).sum(axis=1).max() < 0.2 * 1000)
    True

    References
    ----------
    Ghuge, Muthukumar, Singla (2025), Improved and oracle-efficient online l1-multicalibration, ICML, arXiv:2505.17365,
    theorems 1.1 and 3.1, algorithm 2.
    """

    card: ClassVar[Card] = Card(
        name="Ghuge et al. 2025",
        reference="Ghuge, Muthukumar, Singla (2025), Improved and oracle-efficient online l1-multicalibration, "
        "theorem 1.1",
        assumes="values in [-1, 1]; horizon known",
        properties=("mean",),
        classes=("finite",),
        exponent=2.0 / 3.0,
        error="MCal_1",
        cost="O(bins * active functions)",
        reconstructed="step sizes, and the halfspace oracle as the two-point rule; from notes on the source, whose "
        "text was not available",
    )

    def __init__(
        self,
        property: Elicitable,
        hypotheses: Hypotheses,
        *,
        horizon: int,
        seed: int = 0,
        bins: int | None = None,
        halfspace: str = "sampled",
    ) -> None:
        self.card.check(property, hypotheses)
        super().__init__(property, hypotheses, seed=seed)
        self.horizon = checked.whole(horizon, "horizon", 1)
        default = max(1, math.ceil(math.cbrt(self.horizon) - 1e-9))
        self.bins = default if bins is None else checked.whole(bins, "bins", 1)
        self.halfspace = checked.one_of(halfspace, "halfspace", ("sampled", "averaged"))
        self.points = np.linspace(*property.domain, self.bins + 1)
        self.step = math.sqrt((self.bins + 1) / self.horizon)
        self.rate = math.sqrt(2.0 * math.log(hypotheses.n) / self.horizon)
        self.thetas = np.zeros((hypotheses.n, self.bins + 1))
        self.sums = np.zeros((hypotheses.n, self.bins + 1))
        self.gains = np.zeros(hypotheses.n)

    def weights(self) -> Float64Array:
        """The probability of each function."""
        raw = np.exp(self.rate * (self.gains - self.gains.max()))
        return np.asarray(raw / raw.sum())

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Two points for each active function, mixed by the weights; hints are not used."""
        if not row.indices.size:
            return play_points(self.points, first_change(np.zeros(len(self.points))))
        evidence = self.thetas[row.indices] * row.values[:, None]
        weights = self.weights()[row.indices]
        if self.halfspace == "averaged":
            return play_points(self.points, first_change(weights @ evidence))
        mixture = _mixture(evidence, weights / weights.sum())
        support = np.flatnonzero(mixture)
        return Plan(tuple(self.points[support].tolist()), tuple(mixture[support].tolist()), tuple(support.tolist()))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Reward the weights, and move every active function's theta at the point that was played."""
        j, where = plan.notes[drawn], row.indices
        errors = row.values * checked.identified(self.property, plan.values[drawn], y)
        self.gains[where] += self.thetas[where, j] * errors
        self.thetas[where, j] = np.clip(self.thetas[where, j] + self.step * errors, -1.0, 1.0)
        self.sums[where, j] += errors


def _mixture(evidence: Float64Array, weights: Float64Array) -> Float64Array:
    """`first_change` for each row of the evidence, as one distribution over the points."""
    n_points = evidence.shape[1]
    signs = np.sign(evidence)
    changes = signs[:, :-1] * signs[:, 1:] <= 0.0
    lower = changes.argmax(axis=1)
    rows = np.arange(len(evidence))
    below, above = np.abs(evidence[rows, lower]), np.abs(evidence[rows, lower + 1])
    total = below + above
    p_lower = np.where(total > 0.0, above / np.where(total > 0.0, total, 1.0), 1.0)
    outside = ~changes[rows, lower]
    at_top = outside & (evidence[:, 0] <= 0.0)
    lower = np.where(outside, np.where(at_top, n_points - 2, 0), lower)
    p_lower = np.where(outside, np.where(at_top, 0.0, 1.0), p_lower)
    mixture = np.bincount(lower, weights * p_lower, minlength=n_points)
    upper = np.bincount(lower + 1, weights * (1.0 - p_lower), minlength=n_points)
    return np.asarray(mixture + upper, dtype=np.float64)
