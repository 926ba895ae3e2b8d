"""The paper's learner for the linear class: online gradient descent in the unit ball."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.roles import Row
from swapcal.typing import Float64Array, Spec

__all__ = ["GradientDescent"]


@dataclass(frozen=True, slots=True)
class GradientDescent:
    r"""As good as the best <theta, x> with ||theta|| <= 1, for contexts with ||x|| <= 1; Algorithm 4 of the paper.

    theta_1 = 0, the answer is <theta_t, x_t>, and theta_(t+1) is theta_t + eta_t kappa_t x_t, divided by its length
    where that exceeds 1; eta_t = 2 / sqrt(t).

    Guarantee: Reg(m) <= 3 sqrt(m) - 7/4 for every number m >= 1 of rounds. A proof: projection does not increase the
    distance d_t = ||theta_t - u|| to a point u of the ball, so (<u, x_t> - <theta_t, x_t>) kappa_t <= (d_t^2 -
    d_(t+1)^2) / 2 eta_t + eta_t / 2. Sum over t, with d_1 <= 1 and d_t <= 2: the first terms make at most 1 / 2 eta_1 +
    sum over t >= 2 of 4 (1 / 2 eta_t - 1 / 2 eta_(t-1)) = 1/4 + sqrt(m) - 1, the second sum of 1 / sqrt(t) <= 2 sqrt(m)
    - 1.

    Parameters
    ----------
    n : int
        Number of features, the d of the paper.

    Notes
    -----
    State: the clock t, then theta, n + 1 numbers. A prediction costs O(active entries), an update O(n). Odd: with
    -kappa throughout, theta is minus what it was, to the last bit.

    Examples
    --------
    >>> learner = GradientDescent(2)
    >>> state, row = learner.start(), Row(np.array([0, 1]), np.array([0.6, 0.8]))
    >>> learner.update(state, row, -1.0)
    >>> round(learner.predict(state, row), 12), float(learner.regret(np.array(100.0)))
    (-1.0, 28.25)

    References
    ----------
    Algorithm 4 of Hu, Luo, Senapati, Sharan, Efficient Swap Multicalibration of Elicitable Properties; Zinkevich
    (2003), Online convex programming; Hazan (2016), Introduction to online convex optimization, chapter 3.
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise InvalidInput(f"GradientDescent needs a whole number of features, 1 or more; got {self.n!r}")

    @property
    def odd(self) -> bool:
        """True."""
        return True

    @property
    def dual(self) -> str:
        """The class: the unit ball."""
        return "euclidean"

    def start(self) -> Float64Array:
        """No rounds, theta = 0."""
        return np.zeros(self.n + 1)

    def predict(self, state: Float64Array, row: Row) -> float:
        """<theta, x>, added up in the order of the positions."""
        if not row.indices.size:
            return 0.0
        return float((state[1:].take(row.indices) * row.values).cumsum()[-1])

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """A step along kappa x, and back into the ball."""
        theta = state[1:]
        state[0] += 1.0
        theta[row.indices] += 2.0 / math.sqrt(float(state[0])) * kappa * row.values
        length = math.sqrt(float(np.square(theta).cumsum()[-1]))
        if length > 1.0:
            theta /= length

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """3 sqrt(n_rounds) - 7/4, and 0 for no rounds."""
        return np.asarray(np.maximum(3.0 * np.sqrt(n_rounds) - 1.75, 0.0))

    def possible(self, states: Float64Array, n_rounds: Float64Array) -> bool:
        """Whether states, one in each row, can be those after so many rounds; for files that somebody else wrote."""
        lengths = np.square(states[:, 1:]).sum(axis=1)
        return bool((states[:, 0] == n_rounds).all() and (lengths <= 1.0 + 1e-9).all())

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "GradientDescent", "n": self.n}
