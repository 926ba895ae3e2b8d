"""Algorithms 1 and 2 of the paper, line by line: over a finite class, and with 2N online agnostic learners."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite, Oracle
from swapcal.learners import Learner
from swapcal.paper.grid import Support, grid_for, two_points
from swapcal.paper.method import Plan, PublishedMethod
from swapcal.paper.msmwc import Experts, MsMwC
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.typing import Float64Array


def experts_for(make: Callable[[int], Experts] | None, n_experts: int, horizon: int) -> Experts:
    """The expert algorithm of a run: MsMwC, or what `make` makes of the number of experts."""
    if make is None:
        return MsMwC(n_experts, horizon=horizon)
    if not callable(make):
        raise InvalidInput(
            "experts must be a function from the number of experts to an expert algorithm, such as "
            f"lambda n: MsMwC(n, horizon=1000); got {inputs.short_repr(make)}"
        )
    experts = make(n_experts)
    inputs.role(experts, ("weights", "update"), "what experts makes", f"MsMwC({n_experts}, horizon={horizon})")
    if np.shape(experts.weights) != (n_experts,):
        raise InvalidInput(f"experts must make {n_experts} weights; got the shape {np.shape(experts.weights)}")
    return experts


@dataclass(eq=False, repr=False, kw_only=True)
class PaperMethod(PublishedMethod):
    """What both algorithms share: the grids, the experts, P_t, and whose gains the experts are fed."""

    property: Elicitable = field(kw_only=False)
    horizon: int
    r: float = 2.0
    seed: int = 0
    bins: int | None = None
    experts: Any = None
    gains: str = "expected"
    forecasts: str = "right"

    def start(self, hypotheses: Hypotheses, n_tests: int) -> None:
        """Check the options, and start with `n_tests` experts for each bin and sign."""
        super().__init__(self.property, hypotheses, seed=self.seed)
        self.grid = grid_for(self.property, self.horizon, self.r, self.bins, self.forecasts)
        self.gains = inputs.one_of(self.gains, "gains", ("expected", "realized"))
        self.experts = experts_for(self.experts, 2 * self.grid.n_bins * n_tests, self.horizon)

    def two_point_plan(self, phi: Float64Array, *notes: Any) -> Plan:
        """P_t for the values of Phi_t on the bins; its notes are the support, and `notes` if there are any."""
        support = two_points(phi, self.grid.horizon)
        values = tuple(self.grid.forecast(self.grid.bin(j)) for j, _ in support)
        return Plan(values, tuple(p for _, p in support), (support, *notes) if notes else support)

    def fed(self, support: Support, drawn: int) -> Support:
        """Over which points the gains are taken: all of P_t, or the one that was drawn."""
        return support if self.gains == "expected" else ((support[drawn][0], 1.0),)


@dataclass(eq=False, repr=False)
class Algorithm1(PaperMethod):
    """2 N |F| experts, one for each function, bin and sign; slow, and the measure of everything else here.

    Guarantee (theorem 2 of the paper): SMCal_r = O~(rho^r T^(1/(r+1)) + T^(1/(r+1)) (log(|F|/delta))^(r/2)) with
    probability 1 - delta, for r >= 2; the exponent is 1 - r/3 for 1 <= r < 2.

    Parameters
    ----------
    property : Elicitable
        Its identification function is the paper's V.
    n_functions : int
        |F|; the context is the vector of the functions' values in [-1, 1].
    horizon : int
        T.
    r : float
        Exponent of the error; sets N.
    seed : int
        Of the draws.
    bins : int, optional
        N, instead of ceil(T^(1/(r+1))).
    experts : callable, optional
        Makes the expert algorithm from the number of experts; MsMwC as in the paper (who spell it McMwC) by default.
    gains : {"expected", "realized"}
        What is fed to the experts: E over p ~ P_t of the gain (line 7), or the gain of the p~_t that was drawn.
    forecasts : {"right", "middle"}
        Where in its bin the forecast lies: the right end i/N (line 5), or the mid-point.

    Notes
    -----
    Cost per round: O(N |F|) for Phi_t and for each of the projection's iterations. Only the conditional mean of the
    weighted gain is at most rho/T where V is not Lipschitz for every label (quantiles); proposition 1 takes the
    supremum over all label distributions, for which Lipschitzness is not assumed.

    References
    ----------
    Hu, Luo, Senapati, Sharan (2026), Efficient Swap Multicalibration of Elicitable Properties, Algorithm 1.

    Examples
    --------
    >>> from swapcal import Mean
    >>> method = Algorithm1(Mean(), 2, horizon=27, seed=1)
    >>> forecast = method.predict([1.0, -0.5])
    >>> method.update(forecast, 1.0)
    >>> {round(value, 3): round(p, 3) for value, p in method.distribution([1.0, -0.5]).items()}
    {1.0: 1.0}
    """

    n_functions: int

    def __post_init__(self) -> None:
        self.start(Finite(self.n_functions), self.n_functions)

    def phi(self, row: Row) -> Float64Array:
        """Line 4: Phi_t on each bin, the sum over (f, sigma) of w_{t,f,i,sigma} sigma f(x_t)."""
        plus, minus = self.experts.weights.reshape(2, self.grid.n_bins, self.hypotheses.n)
        if not row.indices.size:
            return np.zeros(self.grid.n_bins)
        # cumsum adds products from left to right. The fused multiplications of a matrix product would leave 1e-21 in
        # place of the 0 of two functions that cancel, and P_t depends on the sign.
        terms: Float64Array = ((plus - minus)[:, row.indices] * row.values).cumsum(axis=1)
        return terms[:, -1]

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Lines 3 to 5: weights, Phi_t, P_t. A hint is not used: the paper has none."""
        return self.two_point_plan(self.phi(row))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Line 7: feed every expert its gain, sigma 1{p in I_i} f(x_t) V(p, y_t), in expectation over p ~ P_t."""
        gains = np.zeros((2, self.grid.n_bins, self.hypotheses.n))
        for j, probability in self.fed(plan.notes, drawn):
            i = self.grid.bin(j)
            gain = probability * inputs.identified(self.property, self.grid.point(j), y) * row.values
            gains[0, i, row.indices] += gain
            gains[1, i, row.indices] -= gain
        self.experts.update(gains.ravel())


_SIGNS = (1.0, -1.0)
# By how much a learner's answer may leave [-1, 1]; it is cut back.
_ROUNDING = 1e-9


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
        self.oracle = Oracle(self.learner)
        self.start(self.oracle, 1)
        self.learners = [[self.learner.start() for _ in _SIGNS] for _ in range(self.grid.n_bins)]

    def tests(self, row: Row) -> Float64Array:
        """Line 4: q_{t,i,sigma}(x_t), in the shape (2, N)."""
        x = self.oracle.read(row)
        q = np.array([[float(self.learner.predict(pair[s], x)) for pair in self.learners] for s in (0, 1)])
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
        learners, x = copy.deepcopy(self.learners[i]), self.oracle.read(row)
        for sign, state in zip(_SIGNS, learners, strict=True):
            self.learner.update(state, x, sign * outcome)
        if not all(np.isfinite(state).all() for state in learners if isinstance(state, np.ndarray)):
            raise InvalidInput(f"the learner {self.learner!r} has learned something that is not finite from {x!r}")
        self.experts.update(gains.ravel())
        self.learners[i] = learners
