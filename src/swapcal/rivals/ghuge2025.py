"""Ghuge, Muthukumar, Singla (2025): l1 multicalibration of means, over all functions or by one oracle call a round."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival, Card
from swapcal.rivals.games import first_change, play_points
from swapcal.typing import Float64Array, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class Ghuge2025(BinnedRival):
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
        exponent=2.0 / 3.0,
        error="MCal_1",
        cost="O(bins * active functions)",
        reconstructed="step sizes, and the halfspace oracle as the two-point rule; from notes on the source, whose "
        "text was not available",
    )

    exponent_of_bins: ClassVar[float] = 1.0 / 3.0

    halfspace: str = "sampled"

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        n = self.hypotheses.n
        self.halfspace = inputs.one_of(self.halfspace, "halfspace", ("sampled", "averaged"))
        self.points = np.linspace(*self.property.domain, self.bins + 1)
        self.step = math.sqrt((self.bins + 1) / self.horizon)
        self.rate = math.sqrt(2.0 * math.log(n) / self.horizon)
        self.thetas = np.zeros((n, self.bins + 1))
        self.sums = np.zeros((n, self.bins + 1))
        self.gains = np.zeros(n)

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
        errors = row.values * inputs.identified(self.property, plan.values[drawn], y)
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


class Ghuge2025Oracle(BinnedRival):
    r"""Follow the perturbed leader: the group and the signs that look worst in past rounds plus made-up ones.

    Guarantee: E[MCal_1] = O~(T^(3/4)) for groups (functions with values 0 and 1), with the contexts that belong to
    exactly one group each as the small set on which every two groups differ (the separated setting of the source).

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        A finite class whose contexts are 0 and 1; others are refused.
    horizon : int
        T.
    seed : int
        Of the draws and of the noise.
    bins : int, optional
        m, instead of ceil(T^(1/4)); there are m + 1 values, 0, 1/m, ..., 1.

    Notes
    -----
    Let S[h, i] be the sum over past rounds of h(x) (p - u) with p = i/m forecast. In each round fresh noise gives each
    context c of the set and bin i a made-up residual a[c, i]; the oracle finds

    .. math:: (h, \theta) = \arg\max_{h, \theta \in \{-1, 1\}^{m+1}}
              \sum_i \theta_i \Big(S_{h, i} + \sum_c h(c)\, a_{c, i}\Big),

    the largest l1-multicalibration error of the perturbed past, by looking at each of the n groups. A distribution on
    one or two neighbors with theta_i = -1, theta_{i+1} = 1 then has sum_i theta_i P(i) (i/m - u) <= 1/(2m) for every u.
    The noise is Gaussian, of standard deviation sqrt(T / (m + 1)). Time O(n m) a round, memory O(n m). Noise belongs to
    the draw: who sees the plan of a round before choosing its label sees more than the guarantee allows.

    Examples
    --------
    >>> from swapcal.hypotheses import Finite
    >>> from swapcal.properties import Mean
    >>> method = Ghuge2025Oracle(Mean(), Finite(2), horizon=256)
    >>> bool(abs(method.run([[1, 0]] * 256, [0.5] * 256).mean() - 0.5) < 0.2)
    True

    References
    ----------
    Ghuge, Muthukumar, Singla (2025), Improved and oracle-efficient online l1-multicalibration, ICML, arXiv:2505.17365.
    Dudik, Haghtalab, Luo, Schapire, Syrgkanis, Vaughan (2020), Oracle-efficient online learning and auction design.
    """

    check_exceptions: ClassVar[dict[str, str]] = BinnedRival.check_exceptions | {
        "predict_learns_nothing": "the leader's perturbation is drawn anew for every round, before the forecast"
    }
    card: ClassVar[Card] = Card(
        name="Ghuge 2025 oracle",
        reference="Ghuge, Muthukumar, Singla (2025), Improved and oracle-efficient online l1-multicalibration",
        assumes="groups (0 or 1); separated; noise unseen by the adversary; T known",
        exponent=0.75,
        error="MCal_1",
        cost="O(n m), m = T^(1/4); the oracle looks at each group",
        reconstructed="the noise's law and size, fresh in each round; the oracle by enumeration; which of several "
        "crossings, and the forecast where the chosen group is absent",
    )

    fewest_bins: ClassVar[int] = 2

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        self.deviation = math.sqrt(self.horizon / (self.bins + 1))
        self.sums = np.zeros((self.hypotheses.n, self.bins + 1))

    def perturbation(self) -> Float64Array:
        """The noise of the coming round for each group and bin: a pure function of the seed and the round's number."""
        generator = np.random.default_rng((self.seed, self._issued))
        return self.deviation * np.asarray(generator.standard_normal(self.sums.shape))

    def evaluate(self, sums: Float64Array) -> tuple[int, IntArray]:
        """The offline oracle: the group with the largest sum_i |sums[h, i]|, and the signs of its entries."""
        group = int(np.argmax(np.abs(sums).sum(axis=1)))
        return group, np.where(sums[group] > 0.0, 1, -1)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """One oracle call, then one or two values that no label can exploit. A hint is not used."""
        if row.values.size and not (row.values == 1.0).all():
            raise InvalidInput(f"{self.card.name} knows groups only, so contexts of 0 and 1; got {row.values.tolist()}")
        _, signs = self.evaluate(self.sums + self.perturbation())
        chosen = self._neighbors(signs)
        values = tuple(self.scaled(i / self.bins) for i in chosen)
        return Plan(values, (1.0 / len(chosen),) * len(chosen), chosen)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the residual to the bin that was played, for each group of the context."""
        i = plan.notes[drawn]
        self.sums[row.indices, i] += inputs.identified(self.property, plan.values[drawn], y)

    def _neighbors(self, signs: IntArray) -> tuple[int, ...]:
        """An end of the grid where its sign allows it, or the two neighbors around the up-crossing nearest the middle.

        Where the chosen group does not contain the context every forecast would do; the same rule is kept.
        """
        if signs[0] > 0:
            return (0,)
        if signs[-1] < 0:
            return (self.bins,)
        crossings = np.flatnonzero((signs[:-1] < 0) & (signs[1:] > 0))
        i = int(crossings[np.argmin(np.abs(crossings + 0.5 - self.bins / 2))])
        return (i, i + 1)
