"""Algorithm 2 of the paper: the oracle-efficient version, with 2N online agnostic learners for the functions."""

from dataclasses import dataclass

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Oracle
from swapcal.learners import Learner
from swapcal.paper.algorithm1 import PaperMethod
from swapcal.paper.method import Plan
from swapcal.protocols import Row
from swapcal.typing import Float64Array

_SIGNS = (1.0, -1.0)
_ROUNDING = 1e-9
"""By how much a learner's answer may leave [-1, 1]; it is cut back."""


@dataclass(eq=False, repr=False)
class Algorithm2(PaperMethod):
    """2N experts (i, sigma), each with a learner OAL_{i,sigma} that supplies the function q to audit against.

    Guarantee (theorem 1 of the paper): SMCal_r = O~((rho^r + (log 1/delta)^(r/2) + comp(F)^r) T^(1/(r+1))) with
    probability 1 - delta for r >= 2, if the learner's regret is O~(sqrt(n) comp(F)); the exponent is 1 - r/3 for 1 <=
    r < 2. A regret of O~(n^alpha comp(F)) with another alpha in [0, 1) adds T^(1 - r + r/(r+1) + alpha r^2/(r+1))
    comp(F)^r (theorem 3), or T^(1 + 2r (alpha - 1)/3) comp(F)^r below r = 2; it is the larger one above one half.

    Parameters
    ----------
    property : Elicitable
        Its identification function is the paper's V.
    learner : Learner
        The online agnostic learner; `MultiplicativeWeights(n)` and `GradientDescent(n)` are the paper's two.
    horizon, r, seed, bins, experts, gains, forecasts
        As in `Algorithm1`.

    Notes
    -----
    The learners of the played bin are fed sigma V(p_t, y_t), at the forecast p_t and not at p~_t (line 9); the others
    are left alone, with their own clocks. Cost per round: 2N predictions of the learner, two updates, and O(N) for
    each of the projection's iterations.

    References
    ----------
    Hu, Luo, Senapati, Sharan (2026), Efficient Swap Multicalibration of Elicitable Properties, Algorithm 2.

    Examples
    --------
    >>> from swapcal import Mean
    >>> from swapcal.learners import GradientDescent
    >>> method = Algorithm2(Mean(), GradientDescent(2), horizon=27, seed=1)
    >>> forecast = method.predict([0.6, 0.8])
    >>> method.update(forecast, 1.0)
    >>> {round(value, 3): round(p, 3) for value, p in method.distribution([0.6, 0.8]).items()}
    {1.0: 1.0}
    """

    learner: Learner

    def __post_init__(self) -> None:
        self.start(Oracle(self.learner), 1)
        self.learners = [[self.learner.start() for _ in _SIGNS] for _ in range(self.grid.n_bins)]

    def tests(self, row: Row) -> Float64Array:
        """Line 4: q_{t,i,sigma}(x_t), in the shape (2, N)."""
        q = np.array([[float(self.learner.predict(pair[s], row)) for pair in self.learners] for s in (0, 1)])
        size = np.abs(q)
        if not (size <= 1.0 + _ROUNDING).all():
            worst = float(q.flat[np.argmax(np.where(np.isnan(q), np.inf, size))])
            raise InvalidInput(
                f"the learner {self.learner!r} predicts {worst!r}, outside [-1, 1]; "
                "swapcal.checks.check_learner shows when it does"
            )
        return np.asarray(np.clip(q, -1.0, 1.0))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Lines 3 to 6: weights, test functions, Phi_t, P_t."""
        q = self.tests(row)
        plus, minus = self.experts.weights.reshape(2, self.grid.n_bins)
        return self.two_point_plan(plus * q[0] - minus * q[1], q)

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Lines 8 and 9: the experts' expected gains, and the outcome for the two learners of the played bin."""
        support, q = plan.notes
        gains = np.zeros((2, self.grid.n_bins))
        for j, probability in self.fed(support, drawn):
            i = self.grid.bin(j)
            v = inputs.identified(self.property, self.grid.point(j), y)
            gains[0, i] += probability * q[0, i] * v
            gains[1, i] -= probability * q[1, i] * v
        outcome = inputs.identified(self.property, plan.values[drawn], y)
        # On copies, and the experts last: a learner that fails leaves all as it was.
        i = self.grid.bin(support[drawn][0])
        learners = [state.copy() for state in self.learners[i]]
        for sign, state in zip(_SIGNS, learners, strict=True):
            self.learner.update(state, row, sign * outcome)
        if not all(np.isfinite(state).all() for state in learners):
            raise InvalidInput(f"the learner {self.learner!r} has learned something that is not finite from {row!r}")
        self.experts.update(gains.ravel())
        self.learners[i] = learners
