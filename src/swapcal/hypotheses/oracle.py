"""Any class that an online agnostic learner can learn: the efficient counterpart of the paper's Algorithm 2."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swapcal.engine.theorems import combine, quadratic, quadratic_drift, quadratic_reserve
from swapcal.engine.values import grown
from swapcal.errors import InvalidInput
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import Linear, OverVectors
from swapcal.learners import Learner
from swapcal.protocols import Row, Rows, Tally
from swapcal.typing import Float64Array, Spec

_MEMBERS = ("n", "odd", "dual", "start", "predict", "update", "regret", "spec")
_ROUNDING = 1e-9
# Ratio of the visits at which a bound ahead of a run is computed.
_STEP = 1.01


@dataclass(frozen=True, slots=True, repr=False)
class Oracle(OverVectors):
    r"""The class F of an online agnostic learner, searched by the learner and not function by function.

    Every bin i has its own copies of the learner, sigma = +1 and -1, which learn to predict sigma V from the rounds
    that played the bin. A copy's answers q gather evidence S_i,sigma = sum of sigma q(x) V, and

        Phi_i(x) = sum over sigma of max(S_i,sigma, 0) sigma q_i,sigma(x) / (n_i + 1).

    The copies of an odd learner mirror each other, so that one is kept, and Phi is half of that.

    Guarantee: theorem B with an oracle (docs/guarantees.md). With probability 1 - delta, for all times at once, sum
    over i and sigma of max(S_i,sigma, 0)^2 / n_i <= k (sum_i H(n_i) + 9 ln(1/delta)) for k copies; and in every bin
    sup_f |sum f V| <= max_sigma max(S_i,sigma, 0) + Reg(n_i).

    Parameters
    ----------
    learner : Learner
        `MultiplicativeWeights(n)`, `GradientDescent(n)`, or your own (see `swapcal.learners.Learner`). Contexts are
        read as those of `Finite(n)` or `Linear(n)`, by its `dual`.

    Notes
    -----
    The paper weighs the copies of all bins with an expert algorithm (MsMwC); a quadratic potential per bin does the
    same here without rates, as for `Linear`. Cost per round: O(log N) predictions and one update of each copy in the
    played bin. Memory: N states for each copy. Where `Finite` or `Linear` serve, they are sharper: they pay no regret.

    Examples
    --------
    >>> import swapcal as sc
    >>> from swapcal.learners import GradientDescent
    >>> forecaster = sc.Forecaster(sc.Mean(), Oracle(GradientDescent(2)), horizon=500, seed=1)
    >>> for t in range(500):
    ...     forecaster.update(forecaster.predict([0.6, 0.8 * (t % 2)]), 0.9 if t % 2 else 0.2)
    >>> bool(forecaster.error() < forecaster.guarantee(0.05) < 500)
    True

    References
    ----------
    Algorithm 2 of Hu, Luo, Senapati, Sharan, Efficient Swap Multicalibration of Elicitable Properties.
    """

    learner: Learner
    _vectors: Finite | Linear = field(init=False, compare=False)

    def __post_init__(self) -> None:
        lacking = [name for name in _MEMBERS if not hasattr(self.learner, name)]
        if lacking or isinstance(self.learner, type):
            why = f"it has no {', '.join(lacking)}" if lacking else "it is a class; make one"
            raise InvalidInput(f"Oracle needs a learner such as GradientDescent(3); got {self.learner!r}: {why}")
        if self.learner.dual not in ("max", "euclidean"):
            raise InvalidInput(f'a learner\'s dual must be "max" or "euclidean"; got {self.learner.dual!r}')
        state = self.learner.start()
        if not (isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 1):
            raise InvalidInput(f"a learner must start with a flat array of float64; got {state!r}")
        functions = Finite(self.learner.n) if self.learner.dual == "max" else Linear(self.learner.n)
        object.__setattr__(self, "_vectors", functions)

    def __repr__(self) -> str:
        return f"Oracle({self.learner!r})"

    def row(self, x: Any) -> Row:
        """One context, as the class of the learner reads it."""
        return self._vectors.row(x)

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        return self._vectors.rows(X, n_rows)

    def start(self, n_bins: int) -> "OracleEvidence":
        """No evidence in any of `n_bins` bins, and learners that have seen nothing."""
        return OracleEvidence(self.learner, n_bins)

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "Oracle", "learner": dict(self.learner.spec())}


class OracleEvidence:
    """Per bin: visits, and for each copy its state and the sum S of what its answers were worth.

    Notation: sigma is +1 for the first copy and -1 for the second; an odd learner has no second.
    """

    __slots__ = ("counts", "learner", "signs", "states", "sums")

    theorem = "theorem B with an oracle"

    def __init__(self, learner: Learner, n_bins: int) -> None:
        self.learner = learner
        self.signs = (1.0,) if learner.odd else (1.0, -1.0)
        self.sums = np.zeros((n_bins, len(self.signs)))
        self.states = self._fresh(n_bins)
        self.counts = np.zeros(n_bins)

    def _fresh(self, n_bins: int) -> Float64Array:
        return np.tile(self.learner.start(), (n_bins, len(self.signs), 1))

    def _answer(self, state: Float64Array, row: Row) -> float:
        q = float(self.learner.predict(state, row))
        if not abs(q) <= 1.0 + _ROUNDING:
            raise InvalidInput(
                f"the learner {self.learner!r} predicts {q!r}, outside [-1, 1]; "
                "swapcal.checks.check_learner shows when it does"
            )
        return min(max(q, -1.0), 1.0)

    def phi(self, bin: int, row: Row) -> float:
        """The sum over sigma of max(S, 0) sigma q(x), over n + 1; only copies with something to say are asked."""
        total = 0.0
        for sign, s, state in zip(self.signs, self.sums[bin].tolist(), self.states[bin], strict=True):
            if s > 0.0:
                total += s * sign * self._answer(state, row)
        return total / (float(self.counts[bin]) + 1.0)

    def record(self, bin: int, row: Row, v: float) -> None:
        """Credit each copy's answer in force, then teach it sigma v; a learner that fails leaves the evidence alone."""
        sums, states = self.sums[bin].copy(), self.states[bin].copy()
        for k, sign in enumerate(self.signs):
            sums[k] += sign * self._answer(states[k], row) * v
            self.learner.update(states[k], row, sign * v)
        if not np.isfinite(states).all():
            raise InvalidInput(f"the learner {self.learner!r} has learned something that is not finite from {row!r}")
        self.sums[bin], self.states[bin] = sums, states
        self.counts[bin] += 1.0

    def level(self, bin: int, row: Row) -> float:
        """Infinite: the quadratic potential's argument leaves no room to trust a hint."""
        return math.inf

    def grow(self, capacity: int) -> None:
        """Make room for the evidence of `capacity` values, with learners that have seen nothing."""
        states = self._fresh(capacity)
        states[: len(self.states)] = self.states
        self.states, self.sums, self.counts = states, grown(self.sums, capacity), grown(self.counts, capacity)

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """As for every quadratic potential."""
        n = float(self.counts[bin])
        square = 0.0
        for s in self.sums[bin].tolist():
            square += max(s, 0.0) * max(s, 0.0)
        now = self.phi(bin, row)
        return quadratic_drift(now, phi, v, float(len(self.signs)), square / (n * (n + 1.0)) if n else 0.0)

    def reserve(self, phi: float) -> float:
        """As for every quadratic potential."""
        return quadratic_reserve(phi, float(len(self.signs)))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem B for the answers, and the learners' regret for what better functions would have found."""
        if tally.shown is not None and tally.counts is not None and tally.rounding is not None:
            # Where something else was shown, the learners' regret counts as rounding does.
            missed_by = np.where(tally.counts > 0, _regret(self.learner, np.maximum(tally.counts, 1.0)), 0.0)
            tally = replace(tally, rounding=tally.rounding + missed_by)
            return min(quadratic(tally, 1.0, float(len(self.signs)), r, delta), float(tally.n_rounds))
        answers = quadratic(tally, 1.0, float(len(self.signs)), r, delta)
        missed = _missed(self.learner, tally, r)
        return min(combine(answers, missed, r), float(tally.n_rounds))

    def spread(self) -> Float64Array:
        """The visits: nothing sharper is known of the answers."""
        return self.counts

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, that of every learner included."""
        return {"sums": self.sums, "states": self.states, "counts": self.counts}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over."""
        self.sums, self.states, self.counts = (arrays[name].copy() for name in ("sums", "states", "counts"))


def _missed(learner: Learner, tally: Tally, r: float) -> float:
    """The sum over bins of psi(n_i), psi(n) = n min(1, Reg(n) / n)^r, or its largest value if the n_i are unknown.

    For every slope a >= 0, sum_i psi(n_i) <= a T + N max_n (psi(n) - a n); a few dozen slopes come close to the
    smallest concave function above psi, at T / N. Between steps n_k and n_k+1, psi is at most n_k+1 and, as Reg is
    nondecreasing, at most n_k (Reg(n_k+1) / n_k)^r. Steps and slopes do not depend on T, so that more rounds never have
    a smaller bound.
    """
    if tally.counts is not None:
        n = tally.counts[tally.counts > 0]
        return float(np.sum(n * np.minimum(_regret(learner, n) / n, 1.0) ** r))
    n_steps = math.ceil(math.log(max(tally.n_rounds, 1)) / math.log(_STEP)) + 2
    steps: Float64Array = np.power(_STEP, np.arange(n_steps, dtype=np.float64))
    before, after = steps[:-1], steps[1:]
    psi = np.minimum(before * (np.minimum(_regret(learner, after), after) / before) ** r, after)
    slopes = np.concatenate([[0.0], 0.5 ** np.arange(50)])
    peaks = np.max(psi - slopes[:, None] * before, axis=1)
    return float(np.min(slopes * tally.n_rounds + tally.n_values * np.maximum(peaks, 0.0)))


def _regret(learner: Learner, n: Float64Array) -> Float64Array:
    regret = np.asarray(learner.regret(n), dtype=np.float64)
    if regret.shape != n.shape or not (regret >= 0.0).all():
        raise InvalidInput(
            f"the learner {learner!r} declares a regret of {regret!r}; it needs one number >= 0 for each n"
        )
    return regret
