"""Any class that an online agnostic learner can learn: the efficient counterpart of the paper's Algorithm 2."""

import copy
import json
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from swapcal.engine.theorems import combine, quadratic, quadratic_drift, quadratic_reserve
from swapcal.engine.values import grown
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses.finite import Finite
from swapcal.hypotheses.linear import Linear, OverVectors
from swapcal.learners import Learner
from swapcal.protocols import Row, Rows, Tally
from swapcal.sparse import read_row, read_rows
from swapcal.typing import Float64Array, Spec

_MEMBERS = ("n", "start", "predict", "update", "spec")
_OF_VECTORS = ("odd", "regret")
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
        `MultiplicativeWeights(n)`, `GradientDescent(n)`, `model(...)`, or your own (see `swapcal.learners.Learner`).
        Contexts are read as those of `Finite(n)` or `Linear(n)`, by its `dual`; without a `dual` by the learner's own
        `row`, or as n numbers, and the class is known through the learner alone (`TaughtEvidence`).

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

    # A `Learner`; one without a `dual` need not have all of its members.
    learner: Any
    _vectors: Any = field(init=False, compare=False)

    def __post_init__(self) -> None:
        dual = getattr(self.learner, "dual", None)
        needed = _MEMBERS if dual is None else _MEMBERS + _OF_VECTORS
        lacking = [name for name in needed if not hasattr(self.learner, name)]
        if lacking or isinstance(self.learner, type):
            why = f"it has no {', '.join(lacking)}" if lacking else "it is a class; make one"
            raise InvalidInput(f"Oracle needs a learner such as GradientDescent(3); got {self.learner!r}: {why}")
        if dual is None:
            object.__setattr__(self, "_vectors", _Contexts(self.learner))
            return
        if dual not in ("max", "euclidean"):
            raise InvalidInput(f'a learner\'s dual must be "max", "euclidean" or None; got {dual!r}')
        state = self.learner.start()
        if not (isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 1):
            raise InvalidInput(f"a learner must start with a flat array of float64; got {state!r}")
        functions = Finite(self.learner.n) if dual == "max" else Linear(self.learner.n)
        object.__setattr__(self, "_vectors", functions)

    def __repr__(self) -> str:
        return f"Oracle({self.learner!r})"

    def row(self, x: Any) -> Row:
        """One context, as the class of the learner reads it."""
        row: Row = self._vectors.row(x)
        return row

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        rows: Rows = self._vectors.rows(X, n_rows)
        return rows

    def start(self, n_bins: int) -> "OracleEvidence":
        """No evidence in any of `n_bins` bins, and learners that have seen nothing."""
        return (TaughtEvidence if isinstance(self._vectors, _Contexts) else OracleEvidence)(self.learner, n_bins)

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

    def _weight(self, s: float) -> float:
        """What counts of a copy's evidence S."""
        return max(s, 0.0)

    def phi(self, bin: int, row: Row) -> float:
        """The sum over sigma of max(S, 0) sigma q(x), over n + 1; only copies with something to say are asked."""
        total = 0.0
        for k, (sign, s) in enumerate(zip(self.signs, map(self._weight, self.sums[bin].tolist()), strict=True)):
            if s != 0.0:
                state = self.states[bin][k]
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
            square += self._weight(s) * self._weight(s)
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


# --------
# A class that is known through its learner alone: theorem O (docs/guarantees.md, section 3).


class _Contexts:
    """Reads contexts as the learner does: by its own `row`, where it has one, else as `n` numbers of any size."""

    __slots__ = ("n", "read")

    def __init__(self, learner: Learner) -> None:
        self.n = Finite(learner.n).n
        self.read = getattr(learner, "row", None)

    def row(self, x: Any) -> Row:
        return read_row(x if self.read is None else self.read(x), self.n)

    def rows(self, X: Any, n_rows: int) -> Rows:
        if self.read is not None:
            records = X.to_dict("records") if hasattr(X, "to_dict") else X
            X = np.array([self.read(x) for x in records], dtype=np.float64).reshape(-1, self.n)
        return read_rows(X, self.n, n_rows)

    @property
    def dual(self) -> str:
        raise InvalidInput(
            "this class is known through its learner alone, so nobody can look through its functions: ask the "
            "forecaster's error(), or audit over another class"
        )

    def supremum(self, sums: Float64Array) -> Float64Array:
        raise InvalidInput(self.dual)


class TaughtEvidence(OracleEvidence):
    r"""Copies that are taught V where the forecast counts, as line 9 of the paper's Algorithm 2 has it; any states.

    A round said in value i, with v at the evidence point, counts in the value j nearest to what was shown, with kappa
    there. The copies of i add sigma q v to S; those of j add sigma q kappa to A, and are then taught sigma kappa.
    Theorem O: whatever happened, sup_f |sum f kappa| over the rounds that count in j is at most max_sigma max(A, 0) +
    Reg(n_j). And A <= S + R, where theorem B bounds S, and R = A - S is observed.

    Where the learner declares no regret, nothing is known of a class. One copy for each value is taught kappa itself;
    S counts with both signs, and what is promised is about its answers: |sum q kappa| is small.
    """

    __slots__ = ("answers", "declared", "excess", "taught")

    def __init__(self, learner: Learner, n_bins: int) -> None:
        self.learner = learner
        self.declared = getattr(learner, "regret", None) is not None
        odd = getattr(learner, "odd", False) or not self.declared
        self.signs = (1.0,) if odd else (1.0, -1.0)
        self.sums, self.answers = np.zeros((n_bins, len(self.signs))), np.zeros((n_bins, len(self.signs)))
        self.counts, self.taught, self.excess = np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins)
        # Made with the first outcome that counts in a value.
        self.states: Any = {}

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What the bound rests on."""
        return "theorem O" if self.declared else "the theorem on answers"

    @property
    def kind(self) -> str:
        """What `reach` is: over the class, at most that, or over the answers alone."""
        if not self.declared:
            return "answers"
        return "exact" if hasattr(self.learner, "supremum") else "at most"

    def _weight(self, s: float) -> float:
        return max(s, 0.0) if self.declared else s

    def _copies(self, bin: int) -> list[Any]:
        return self.states[bin] if bin in self.states else [self.learner.start() for _ in self.signs]

    def record(self, bin: int, row: Row, v: float) -> None:
        """A round without rounding, that was shown as it was said."""
        self.learn(bin, row, v, bin, v)

    def learn(self, bin: int, row: Row, v: float, cell: int, kappa: float) -> None:
        """Credit the copies of `bin`, and credit and teach those of `cell`; a learner that fails leaves all alone."""
        known = min(max(kappa, -1.0), 1.0)
        sums, answers = self.sums[bin].copy(), self.answers[cell].copy()
        copies = self._copies(cell)
        said = copies if cell == bin else self._copies(bin)
        taught = copies if getattr(self.learner, "atomic", False) else copy.deepcopy(copies)
        for k, sign in enumerate(self.signs):
            sums[k] += sign * self._answer(said[k], row) * v
            answers[k] += sign * self._answer(copies[k], row) * known
        for k, sign in enumerate(self.signs):
            self.learner.update(taught[k], row, sign * known)
            self._answer(taught[k], row)
        self.states[cell], self.sums[bin], self.answers[cell] = taught, sums, answers
        self.counts[bin] += 1.0
        self.taught[cell] += 1.0
        self.excess[cell] += abs(kappa - known)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        for name, array in self.arrays().items():
            setattr(self, name, grown(array, capacity))

    def reach(self, n_values: int) -> Float64Array:
        """For each value sup_f |sum f kappa|, by `kind`."""
        answers = self.answers[:n_values]
        if not self.declared:
            return np.asarray(np.abs(answers[:, 0]) + self.excess[:n_values])
        if self.kind == "exact":
            return np.array([self._supremum(slot) for slot in range(n_values)]) + self.excess[:n_values]
        most = self.taught[:n_values] + self.excess[:n_values]
        return np.asarray(np.minimum(np.maximum(answers, 0.0).max(axis=1) + self._paid(n_values), most))

    def _supremum(self, bin: int) -> float:
        learner: Any = self.learner
        found = [float(learner.supremum(state)) for state in self.states.get(bin, ())]
        return max(found, default=0.0)

    def _paid(self, n_values: int) -> Float64Array:
        """Regret, and what was cut off from kappa to be taught."""
        n, excess = self.taught[:n_values], self.excess[:n_values]
        if not self.declared:
            return excess
        return np.asarray(np.where(n > 0.0, _regret(self.learner, np.maximum(n, 1.0)), 0.0) + excess)

    def rounding(self, n_values: int) -> Float64Array:
        """For each value what lies between the evidence S and `reach`, at most: observed rounding and regret."""
        between = self.answers[:n_values] - self.sums[:n_values]
        sizes = np.maximum(between, 0.0) if self.declared else np.abs(between)
        most = self.taught[:n_values] + self.excess[:n_values]
        return np.asarray(np.minimum(sizes.max(axis=1) + self._paid(n_values), most))

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """Theorem B for S; the `rounding` has the regret in it, but ahead of a run."""
        value = quadratic(tally, 1.0, float(len(self.signs)), r, delta)
        if tally.counts is None and self.declared:
            value = combine(value, _missed(self.learner, tally, r), r)
        return min(value, float(tally.n_rounds))

    def arrays(self) -> dict[str, Float64Array]:
        """All but what the copies have learned, which `dumped` has."""
        return {name: getattr(self, name) for name in ("sums", "counts", "answers", "taught", "excess")}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over."""
        for name, array in arrays.items():
            setattr(self, name, array.copy())

    def dumped(self) -> bytes:
        """What the copies have learned: by the learner's `dump`, else as JSON."""
        dump = getattr(self.learner, "dump", _as_json)
        texts = [dump(state) for slot in sorted(self.states) for state in self.states[slot]]
        head = json.dumps([sorted(self.states), [len(text) for text in texts]]).encode()
        return b"\n".join([head, b"".join(texts)])

    def load(self, data: bytes) -> None:
        """Take over what was `dumped`."""
        head, _, body = data.partition(b"\n")
        try:
            bins, lengths = json.loads(head)
            ends = np.cumsum([0, *lengths]).tolist()
            load = getattr(self.learner, "load", json.loads)
            states = [load(body[a:b]) for a, b in pairwise(ends)]
            k = len(self.signs)
            if len(states) != k * len(bins) or ends[-1] != len(body):
                raise ValueError("their number is another")
            self.states = {int(slot): states[k * i : k * (i + 1)] for i, slot in enumerate(bins)}
        except (TypeError, ValueError, KeyError) as error:
            raise StateFileError(f"the states of {self.learner!r} cannot be read: {error}") from error


def _as_json(state: Any) -> bytes:
    try:
        text = json.dumps(state).encode()
        if json.loads(text) == state:
            return text
        why = "it comes back as something else"
    except (TypeError, ValueError) as error:
        why = str(error)
    raise InvalidInput(f"a learner's state cannot be saved as JSON ({why}); give the learner `dump` and `load`")


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
