"""The paper's learner for a finite class: multiplicative weights."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.engine.safe_exp import safe_exp
from swapcal.errors import InvalidInput
from swapcal.roles import Row
from swapcal.typing import Float64Array, Spec

__all__ = ["MultiplicativeWeights"]


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights:
    r"""As good as the best of `n` functions f_j(x) = x_j with values in [-1, 1]; Algorithm 3 of the paper.

    The answer is the average of the functions under weights proportional to exp(eta_t G_t), where t is the number of
    rounds so far, G_t,j = sum of f_j(x) kappa over them, and eta_t = sqrt(ln n / t). Before the first round all weights
    are 1 / n: G is zero then, so no rate is needed.

    Guarantee: Reg(m) <= 2 sqrt(m ln n) for every number m of rounds. A proof: round t weighs with the rate b_t =
    eta_(t-1); as G_0 = 0, b_1 may be any number, say b_1 = b_2 = sqrt(ln n), and b is nonincreasing. Let W_t(b) = (1/n)
    sum_j exp(b G_t,j) and m_t = (ln W_t(b_t) - ln W_(t-1)(b_t)) / b_t. Hoeffding's lemma for gains in [-1, 1] gives m_t
    <= q_t kappa_t + b_t / 2. By Jensen's inequality ln W_t(b) / b grows with b, so the sum of the m_t telescopes to at
    least ln W_m(b_m) / b_m >= max_j G_m,j - ln n / b_m. Together Reg(m) <= ln n / b_m + sum_t b_t / 2. For m >= 2 the
    first term is sqrt((m - 1) ln n), and so is the second, from 1 + 1/sqrt(2) + ... + 1/sqrt(k) <= 2 sqrt(k) - 1; for
    m = 1 both make 1.5 sqrt(ln n).

    Parameters
    ----------
    n : int
        Number of functions.

    Notes
    -----
    State: the clock t, then G, then the weights, 2 n + 1 numbers. A prediction costs O(active entries), an update O(n).
    The weights are computed from G less its maximum, so that no exponential overflows. Not odd: the best of the n
    functions is one thing and the best of their negatives another.

    Examples
    --------
    >>> learner = MultiplicativeWeights(2)
    >>> state, row = learner.start(), Row(np.array([0, 1]), np.array([1.0, -1.0]))
    >>> for _ in range(9):
    ...     learner.update(state, row, 1.0)
    >>> learner.predict(state, row) > 0.98, float(learner.regret(np.array(100.0)).round(2))
    (True, 16.65)

    References
    ----------
    Algorithm 3 of Hu, Luo, Senapati, Sharan, Efficient Swap Multicalibration of Elicitable Properties; Arora, Hazan,
    Kale (2012), The multiplicative weights update method; Cesa-Bianchi and Lugosi (2006), Prediction, learning, and
    games, section 2.3, for rates that fall with time.
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise InvalidInput(f"MultiplicativeWeights needs a whole number of functions, 1 or more; got {self.n!r}")

    @property
    def odd(self) -> bool:
        """False."""
        return False

    @property
    def dual(self) -> str:
        """The class: the entries of the context."""
        return "max"

    def start(self) -> Float64Array:
        """No rounds, no gains, equal weights."""
        return np.concatenate([np.zeros(self.n + 1), np.full(self.n, 1.0 / self.n)])

    def predict(self, state: Float64Array, row: Row) -> float:
        """The weighted average of the functions' values, added up in the order of the positions."""
        if not row.indices.size:
            return 0.0
        # cumsum adds from left to right; a dot product may pair terms up differently on another machine.
        return float((state[self.n + 1 :].take(row.indices) * row.values).cumsum()[-1])

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """Add the gains and renew all weights."""
        gains = state[1 : self.n + 1]
        state[0] += 1.0
        gains[row.indices] += row.values * kappa
        rate = math.sqrt(math.log(self.n) / float(state[0]))
        raw = safe_exp(rate * (gains - gains.max()))
        state[self.n + 1 :] = raw / raw.cumsum()[-1]

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """2 sqrt(n_rounds ln n)."""
        return np.asarray(2.0 * np.sqrt(n_rounds * math.log(self.n)))

    def possible(self, states: Float64Array, n_rounds: Float64Array) -> bool:
        """Whether states, one in each row, can be those after so many rounds; for files that somebody else wrote."""
        gains, weights = states[:, 1 : self.n + 1], states[:, self.n + 1 :]
        sound = (states[:, 0] == n_rounds).all() and (np.abs(gains) <= (1.0 + 1e-9) * n_rounds[:, None]).all()
        return bool(sound and (weights >= 0.0).all() and (np.abs(weights.sum(axis=1) - 1.0) <= 1e-9).all())

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "MultiplicativeWeights", "n": self.n}
