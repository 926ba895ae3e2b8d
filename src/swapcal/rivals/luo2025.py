"""Luo, Senapati, Sharan (2025): swap multicalibration over a linear class by online Newton steps, for means."""

import math
from typing import ClassVar

import numpy as np

from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival, Card
from swapcal.rivals.games import affine
from swapcal.typing import Float64Array, IntArray

# Shares below this are zero: they move a mean by less than rounding does, and keep the chain free of tiny steps.
_SNAP = 1e-12


def two_neighbors(forecasts: Float64Array, n: int) -> tuple[IntArray, Float64Array]:
    """Random rounding of numbers in [0, 1] to the grid 0, 1/n, ..., 1 that keeps the mean.

    Returns the lower neighbor k and the share of k + 1; the variance is at most 1 / (4 n^2).

    Examples
    --------
    >>> two_neighbors(np.array([0.3, 1.0]), 4)
    (array([1, 3]), array([0.2, 1. ]))
    """
    scaled = forecasts * n
    lower = np.minimum(scaled.astype(np.int64), n - 1)
    share = scaled - lower
    share = np.where(share < _SNAP, 0.0, np.where(share > 1.0 - _SNAP, 1.0, share))
    return lower, share


def _reachable(edges: list[tuple[int, ...]], start: int) -> set[int]:
    states, waiting = {start}, [start]
    while waiting:
        for state in edges[waiting.pop()]:
            if state not in states:
                states.add(state)
                waiting.append(state)
    return states


def stationary(lower: IntArray, share: Float64Array, start: int) -> tuple[list[int], Float64Array]:
    """A stationary distribution of the chain i -> lower[i] or lower[i] + 1 (with probability share[i]).

    It lives on one closed class of states, the first that is met from `start`. Within the class the elimination of
    Grassmann, Taksar and Heyman is used: no subtraction, so that no probability loses digits. O(N^3) in the worst case,
    though the class has two or three states as a rule, because all learners forecast much the same.

    Examples
    --------
    >>> states, chances = stationary(np.array([0, 0, 1]), np.array([0.5, 0.25, 1.0]), 1)
    >>> states, chances.round(3)
    ([0, 1], array([0.6, 0.4]))
    """
    edges: list[tuple[int, ...]] = [
        (k,) if s == 0.0 else (k + 1,) if s == 1.0 else (k, k + 1)
        for k, s in zip(lower.tolist(), share.tolist(), strict=True)
    ]
    reached = _reachable(edges, start)
    while True:
        # A state from which there is no way back belongs to a smaller reachable set; go there.
        onward = next((s for s in reached if start not in _reachable(edges, s)), None)
        if onward is None:
            break
        start, reached = onward, _reachable(edges, onward)
    states = sorted(reached)
    place = {state: k for k, state in enumerate(states)}
    chain = np.zeros((len(states), len(states)))
    for k, state in enumerate(states):
        for following in edges[state]:
            above = following > lower[state]
            chain[k, place[following]] = share[state] if above else 1.0 - share[state]
    for k in range(len(states) - 1, 0, -1):
        chain[:k, k] /= chain[k, :k].sum()
        chain[:k, :k] += np.outer(chain[:k, k], chain[k, :k])
    chances = np.ones(len(states))
    for k in range(1, len(states)):
        chances[k] = chances[:k] @ chain[:k, k]
    return states, chances / chances.sum()


def projected(point: Float64Array, inverse: Float64Array, radius: float) -> Float64Array:
    """The point of the ball that is nearest to `point` in the norm of A, given the inverse of A.

    The solution is (A + l I)^-1 A point; l solves one equation, by Newton's method on 1 / length, which approaches it
    from one side. O(d^3), and needed only where `point` lies outside.
    """
    sizes, axes = np.linalg.eigh(inverse)
    turned = axes.T @ point
    multiplier = 0.0
    for _ in range(60):
        shrunk = turned / (1.0 + multiplier * sizes)
        length = float(np.linalg.norm(shrunk))
        if length <= radius * (1.0 + 1e-12):
            break
        slope = float(np.sum(shrunk * shrunk * sizes / (1.0 + multiplier * sizes))) / length**3
        multiplier += (1.0 / radius - 1.0 / length) / slope
    shrunk = turned / (1.0 + multiplier * sizes)
    result: Float64Array = axes @ shrunk * min(1.0, radius / float(np.linalg.norm(shrunk)))
    return result


class Luo2025(BinnedRival):
    r"""N + 1 online Newton steps, one for each value that may be forecast, and a stationary distribution over them.

    Guarantee: external regret O(d log T) of each learner gives contextual swap regret O(N d log T + T / N^2), which
    bounds the swap multicalibration error over the linear class: SMCal_2 = O~(T^(1/3)) at N = (T / (d log T))^(1/3),
    with high probability.

    Parameters
    ----------
    property : Elicitable
        A mean: `Mean`, `Probability` or `Moment`.
    hypotheses : Hypotheses
        A linear class. The source has no other; n groups can be posed to it as `Linear(n, radius=math.sqrt(n))`.
    horizon : int
        T.
    seed : int
        Of the draws.
    bins : int, optional
        N, instead of ceil((T / (d ln T))^(1/3)).

    Notes
    -----
    Notation: z = (x, 1), |z| <= sqrt 2; targets u in [0, 1]; P(i) the probability of value i/N. Learner i takes Newton
    steps on the losses P(i) (<w, z> - u)^2 over the ball |w| <= R = sqrt 2, with r = <w_i, z> - u, B = 3 >= |r|:

    .. math:: g = 2 P(i) r z, \quad A_i \leftarrow A_i + g g^T, \quad
              w_i \leftarrow \Pi_{A_i}\big(w_i - A_i^{-1} g / \gamma\big), \quad \gamma = \frac{1}{2 B^2}.

    The squared loss is its own quadratic lower bound with this gamma, so the regret to any w of the ball is at most
    (d / 2 gamma) ln(1 + sum |g|^2 / (d eps)) + gamma eps R^2 / 2, where A_i starts at eps I, eps = 1 / (2 gamma R)^2.
    Its clipped forecast is rounded at random to the two neighboring values, without bias; the rounded forecasts of all
    learners are the rows of a chain, of which P is a stationary distribution. Only learners with P(i) > 0 change.
    Time per round O(N k + s d^2) with k active entries and s values in the support, and O(d^3) for each projection;
    memory O(N d^2).

    Examples
    --------
    >>> from swapcal.hypotheses import Linear
    >>> from swapcal.properties import Mean
    >>> method = Luo2025(Mean(), Linear(1), horizon=1000, bins=4)
    >>> sorted(set(method.run([[1.0]] * 100, [0.5] * 100)[-20:].tolist()))
    [0.5]

    References
    ----------
    Luo, Senapati, Sharan (2025), Improved bounds for swap multicalibration and swap omniprediction, NeurIPS,
    arXiv:2505.20885. Hazan, Agarwal, Kale (2007), Logarithmic regret algorithms for online convex optimization.
    """

    card: ClassVar[Card] = Card(
        name="Luo 2025",
        reference="Luo, Senapati, Sharan (2025), Improved bounds for swap multicalibration and swap omniprediction",
        assumes="linear class; T known",
        classes=("linear",),
        exponent=1.0 / 3.0,
        error="SMCal_2",
        cost="O(N k + s d^2), N = (T / (d ln T))^(1/3), s values in the support",
        reconstructed="a constant feature, the ball's radius sqrt 2, the Newton step's constants; which closed class",
    )

    def start(self) -> None:
        """Check the options, and start with nothing learned."""
        super().start()
        d = self.hypotheses.n + 1
        self.radius = math.sqrt(2.0)
        self.gamma = 1.0 / (2.0 * 3.0**2)
        self.epsilon = 1.0 / (2.0 * self.gamma * self.radius) ** 2
        self.coefficients = np.zeros((self.bins + 1, d))
        self.inverses = np.tile(np.eye(d) / self.epsilon, (self.bins + 1, 1, 1))

    def default_bins(self) -> int:
        """As the theory has it."""
        share = self.horizon / ((self.hypotheses.n + 1) * math.log(max(self.horizon, 3)))
        return max(2, math.ceil(math.pow(share, 1.0 / 3.0)))

    def regressions(self, row: Row) -> Float64Array:
        """What each learner would forecast, in widths of the domain, clipped to [0, 1]."""
        indices, values = affine(row, self.hypotheses.n)
        return np.clip(self.coefficients[:, indices] @ values, 0.0, 1.0)

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The stationary distribution of the rounded forecasts. A hint is not used."""
        lower, share = two_neighbors(self.regressions(row), self.bins)
        states, chances = stationary(lower, share, self.bins // 2)
        values = tuple(self.scaled(i / self.bins) for i in states)
        return Plan(values, tuple(chances.tolist()), tuple(states))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Every learner in the support takes a Newton step on its scaled loss."""
        states, (indices, values) = list(plan.notes), affine(row, self.hypotheses.n)
        chances = np.array(plan.probabilities)
        coefficients, inverses = self.coefficients[states], self.inverses[states]
        residuals = coefficients[:, indices] @ values - self.target(y)
        gradients = (2.0 * chances * residuals)[:, None] * values
        solved = (inverses[:, :, indices] @ gradients[:, :, None])[:, :, 0]
        stretch = 1.0 + np.sum(solved[:, indices] * gradients, axis=1)
        # The square root on both sides of the product keeps the inverse symmetric to the last bit.
        halves = solved / np.sqrt(stretch)[:, None]
        inverses -= halves[:, :, None] * halves[:, None, :]
        coefficients -= solved / (stretch * self.gamma)[:, None]
        for k in np.flatnonzero(np.sum(coefficients * coefficients, axis=1) > self.radius**2):
            coefficients[k] = projected(coefficients[k], inverses[k], self.radius)
        self.coefficients[states], self.inverses[states] = coefficients, inverses
