"""Any class that an online agnostic learner can learn: the efficient counterpart of the paper's Algorithm 2."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from swapcal.engine.theorems import combine, log_potential
from swapcal.engine.values import Values, grown
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses.blocks import BlocksEvidence, Union
from swapcal.hypotheses.finite import Composable
from swapcal.learners import Taught
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Quadratic
from swapcal.protocols import Evidence, Row, Rows, Tally
from swapcal.sparse import checked_rows, of_rows, parted, read_row
from swapcal.typing import Float64Array, IntArray, Spec

_MEMBERS = ("start", "predict", "update", "spec")
_CONTRACTS = ("correlation", "squares")
_ROUNDING = 1e-9
# Ratio of the visits at which a bound ahead of a run is computed.
_STEP = 1.01
# A context that is not a vector travels as bytes, so many of them in a number, in so many numbers at most.
_BYTES, _MOST = 6, 1 << 17
_POWERS = 256 ** np.arange(_BYTES)


@dataclass(frozen=True, slots=True, repr=False)
class Oracle(Composable):
    r"""The class F of an online agnostic learner, searched by the learner and not function by function.

    Every value that was played has its own copies of the learner, sigma = +1 and -1 (one if it is odd, or learns
    squares). A copy is asked for its answer a(x), which is then a function of the context like any other: Phi weighs it
    by the sum S of sigma a V and its spread. When the outcome comes, the copies of the value in which the forecast
    counts are taught sigma V *there*, as line 9 of the paper's Algorithm 2 has it.

    Guarantee (docs/guarantees.md, section 3): theorem O, whatever happened: sup_f |sum f V| is at most the sum of a V,
    and Reg(n). Theorem Q for learners of squares. Where a learner declares no regret: the theorem on answers.

    Parameters
    ----------
    learner : Learner
        `MultiplicativeWeights(n)`, `GradientDescent(n)`, `model(...)`, or your own (see `swapcal.learners.Learner`).
    shared : bool
        Whether one copy serves all values; then nothing is promised but about its answers.
    scaled : bool
        Whether Phi sees an answer as a share of the largest that its copy has given, as models answer with small
        numbers.
    potential : Potential
        How evidence is weighed, as for `Finite`.

    Notes
    -----
    Cost per round: a few predictions, and one update of each copy. Memory: a state for each copy of each value that was
    played. Where `Finite` or `Linear` serve, they are sharper: they pay no regret.

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

    learner: Any
    shared: bool = field(default=False, kw_only=True)
    scaled: bool = field(default=True, kw_only=True)
    potential: Potential = field(default_factory=AdaNormalHedge, kw_only=True)

    # Neither "max" nor "euclidean": nobody can look through the functions.
    dual = "learner"

    def __post_init__(self) -> None:
        lacking = [name for name in _MEMBERS if not hasattr(self.learner, name)]
        if lacking or isinstance(self.learner, type):
            why = f"it has no {', '.join(lacking)}" if lacking else "it is a class; make one"
            raise InvalidInput(f"Oracle needs a learner such as GradientDescent(3); got {self.learner!r}: {why}")
        if self.contract not in _CONTRACTS:
            raise InvalidInput(f'a learner\'s contract is "correlation" or "squares"; got {self.contract!r}')
        if not self.edge > 0.0:
            raise InvalidInput(f"the edge of a learner must be a positive number; got {self.edge!r}")
        if isinstance(self.potential, (PNorm, Quadratic)):
            raise InvalidInput(
                "a learner's answers are weighed by themselves: AdaNormalHedge(), Exponential(), Squint()"
            )

    def __repr__(self) -> str:
        own = "".join(
            f", {name}={getattr(self, name)!r}" for name in ("shared", "scaled") if self.shared or name == "scaled"
        )
        return f"Oracle({self.learner!r}{own if self.shared or not self.scaled else ''})"

    @property
    def contract(self) -> str:
        """What the learner promises: to correlate as well as the best function, or to predict as well in squares."""
        return str(getattr(self.learner, "contract", "correlation"))

    @property
    def edge(self) -> float:
        """How much of the best correlation a weak learner promises; 1 for others."""
        return float(getattr(self.learner, "edge", 1.0))

    @property
    def declared(self) -> bool:
        """Whether a regret is known, so that something is promised of the class."""
        return not self.shared and getattr(self.learner, "regret", None) is not None

    @property
    def signs(self) -> tuple[float, ...]:
        """Of the copies of a value."""
        one = not self.declared or self.contract == "squares" or getattr(self.learner, "odd", False)
        return (1.0,) if one else (1.0, -1.0)

    @property
    def n(self) -> int:
        """How many positions a context can take: those of a vector, or of bytes."""
        return int(getattr(self.learner, "n", _MOST))

    @property
    def n_inputs(self) -> int:
        """How many of them a learning hint sees: those of a vector."""
        return int(getattr(self.learner, "n", 0))

    @property
    def n_functions(self) -> int:
        """For how many functions of a value the theorem counts: its answers."""
        return len(self.signs)

    def row(self, x: Any) -> Row:
        """One context, as the learner reads it: a vector, or anything that becomes bytes."""
        read = getattr(self.learner, "row", None)
        row = x if read is None else read(x)
        if hasattr(self.learner, "n"):
            return read_row(row, self.n)
        encode = getattr(self.learner, "encode", None)
        try:
            data = json.dumps(row).encode() if encode is None else bytes(encode(row))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"a context of {self.learner!r} cannot be kept as JSON ({error}); give the learner encode and decode"
            ) from error
        padded = np.frombuffer(data + bytes(-len(data) % _BYTES), dtype=np.uint8).reshape(-1, _BYTES)
        values = np.concatenate([[len(data)], padded @ _POWERS]) + 1.0
        if len(values) > _MOST:
            raise InvalidInput(f"a context of {self.learner!r} takes {len(data)} bytes; that is too much")
        return Row(np.arange(len(values)), values)

    def read(self, row: Row) -> Any:
        """What the learner is asked about, from the positions of a context."""
        if hasattr(self.learner, "n"):
            return row
        numbers = (row.values[1:] - 1.0).astype(np.int64)
        data = ((numbers[:, None] // _POWERS) % 256).astype(np.uint8).tobytes()[: int(row.values[0]) - 1]
        decode = getattr(self.learner, "decode", json.loads)
        return decode(data)

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows, largest=math.inf)
        return of_rows(self, X, n_rows)

    def complexity(self, n_rounds: float) -> float | None:
        """What the learner says of its class, or the regret that it declares, which is never less; None: unknown."""
        if hasattr(self.learner, "complexity"):
            return float(self.learner.complexity(n_rounds))
        if not self.declared:
            return None
        found = self.learner.regret(np.array([float(n_rounds)]))
        return None if found is None else float(found[0])

    def supremum(self, sums: Float64Array) -> Float64Array:
        """Not known from sums of a context."""
        raise InvalidInput(
            "this class is known through its learner alone, so nobody can look through its functions: ask the "
            "forecaster's error(), or audit over another class"
        )

    def extended(self, extra: int) -> Union:
        """The class with the level sets of a hint behind it."""
        return Union([self]).extended(extra)

    def start(self, capacity: int) -> Evidence:
        """No evidence, and learners that have seen nothing."""
        return Union([self]).start(capacity)

    def evidence(self, hidden: tuple[int, int], blocks: IntArray, capacity: int) -> "OracleEvidence":
        """No evidence for the answers, and none for functions beside them."""
        return OracleEvidence(self, hidden, blocks, capacity)

    def spec(self) -> Spec:
        """Plain data."""
        plain = {"shared": self.shared, "scaled": self.scaled, "potential": dict(self.potential.spec())}
        return {"kind": "Oracle", "learner": dict(self.learner.spec()), **plain}


class OracleEvidence:
    r"""Evidence of functions that are known, and of the answers of learners' copies, side by side.

    A round said in value i, with v at the evidence point, counts in the value j nearest to what was shown, with kappa
    there. The answers a of the copies of i add sigma a v to S; those of j add sigma a kappa to A, and are then taught
    sigma kappa. R = A - S, whatever was rounded or moved, is observed, and S is bounded like that of every function.

    Parameters
    ----------
    oracle : Oracle
        The learner, and how it is used.
    hidden : tuple of int
        The positions of a context that the learner reads; the others are functions that are known.
    blocks : array of int
        The block of each of these.
    capacity : int
        For how many values there is room.
    """

    __slots__ = (
        "_last",
        "answers",
        "columns",
        "copies",
        "excess",
        "hidden",
        "largest",
        "n_known",
        "oracle",
        "squares",
        "taught",
        "values",
    )

    def __init__(self, oracle: Oracle, hidden: tuple[int, int], blocks: IntArray, capacity: int) -> None:
        self.oracle, self.hidden, self.n_known, k = oracle, hidden, len(blocks), len(oracle.signs)
        first = int(blocks[-1]) + 1 if len(blocks) else 0
        self.columns = BlocksEvidence(np.append(blocks, first + np.arange(k)), oracle.potential, capacity)
        self.answers, self.largest = np.zeros((capacity, k)), np.zeros((capacity, k))
        # Sums of a^2 where kappa was, rounds that were taught, and what was cut off from kappa.
        self.squares, self.taught, self.excess = (np.zeros(capacity) for _ in range(3))
        # Made with the first outcome that counts in a value; a shared one has the slot -1.
        self.copies: dict[int, list[Taught]] = {}
        # The values that there are, for a shared learner that is told which one it is asked about.
        self.values: Values | None = None
        self._last: tuple[Any, Any] = (None, None)

    @property
    def counts(self) -> Float64Array:
        """Visits of each value."""
        return self.columns.counts

    @property
    def theorem(self) -> str:
        """What the bound rests on."""
        if not self.oracle.declared:
            return "the theorem on answers"
        return "theorem Q" if self.oracle.contract == "squares" else "theorem O"

    @property
    def kind(self) -> str:
        """What `reach` is: over the class, at most that, or over the answers alone."""
        if not self.oracle.declared:
            return "answers"
        return "exact" if hasattr(self.oracle.learner, "supremum") else "at most"

    def _split(self, row: Row) -> tuple[Row, Any]:
        """The functions that are known, and what the learner is asked about; decoded once for all values."""
        if self._last[0] is row:
            known: tuple[Row, Any] = self._last[1]
            return known
        known_part, own = parted(row, self.hidden)
        split = known_part, self.oracle.read(own)
        self._last = row, split
        return split

    def _copies(self, bin: int) -> list[Taught]:
        slot = -1 if self.oracle.shared else bin
        return self.copies[slot] if slot in self.copies else [Taught(self.oracle.learner) for _ in self.oracle.signs]

    def _asked(self, bin: int, read: Any) -> Any:
        at = getattr(self.oracle.learner, "at", None)
        if not self.oracle.shared or at is None or self.values is None:
            return read
        return at(read, float(self.values.by_slot[bin]))

    def _answer(self, copy: Taught, asked: Any) -> float:
        a = float(self.oracle.learner.predict(copy.state, asked))
        if not abs(a) <= 1.0 + _ROUNDING:
            raise InvalidInput(
                f"the learner {self.oracle.learner!r} predicts {a!r}, outside [-1, 1]; "
                "swapcal.checks.check_learner shows when it does"
            )
        return min(max(a, -1.0), 1.0)

    def _answers(self, bin: int, read: Any) -> list[float]:
        """The answer of each copy of a value, times its sign."""
        asked = self._asked(bin, read)
        return [
            sign * self._answer(copy, asked) for sign, copy in zip(self.oracle.signs, self._copies(bin), strict=True)
        ]

    def _with(self, known: Row, bin: int, answers: list[float]) -> Row:
        """The functions that are known, and behind them the answers, as Phi sees them."""
        values = [self._seen(bin, k, a) for k, a in enumerate(answers)]
        indices = self.n_known + np.arange(len(values))
        return Row(np.concatenate([known.indices, indices]), np.concatenate([known.values, values]))

    def _seen(self, bin: int, k: int, a: float) -> float:
        largest = max(float(self.largest[bin, k]), abs(a))
        return a / largest if self.oracle.scaled and largest > 0.0 else a

    def phi(self, bin: int, row: Row) -> float:
        """As of any functions; the learner is asked where its answers have weight."""
        known, read = self._split(row)
        if not self.columns.factors[bin, -len(self.oracle.signs) :].any():
            return self.columns.phi(bin, known)
        return self.columns.phi(bin, self._with(known, bin, self._answers(bin, read)))

    def level(self, bin: int, row: Row) -> float:
        """That of the functions that are known, and of the answers."""
        k = len(self.oracle.signs)
        known, _ = self._split(row)
        behind = self.n_known + np.arange(k)
        return self.columns.level(bin, Row(np.concatenate([known.indices, behind]), np.ones(len(known.indices) + k)))

    def record(self, bin: int, row: Row, v: float) -> None:
        """A round without rounding, that was shown as it was said."""
        self.learn(bin, row, v, bin, v)

    def learn(self, bin: int, row: Row, v: float, cell: int, kappa: float) -> None:
        """Credit the copies of `bin`, and credit and teach those of `cell`; a learner that fails leaves all alone."""
        (known, read), kappa_known = self._split(row), min(max(kappa, -1.0), 1.0)
        said = self._answers(bin, read)
        answers = said if cell == bin else self._answers(cell, read)
        copies, asked, taught = self._copies(cell), self._asked(cell, read), []
        try:
            for copy, sign in zip(copies, self.oracle.signs, strict=True):
                copy.update(asked, sign * kappa_known)
                taught.append(copy)
                self._answer(copy, asked)
        except BaseException:
            for copy in taught:
                copy.undo()
            raise
        self.copies[-1 if self.oracle.shared else cell] = copies
        self.columns.record(bin, self._with(known, bin, said), v)
        for k, a in enumerate(answers):
            # Of answers about which nothing else is known the sum is of what Phi sees.
            self.answers[cell, k] += (a if self.oracle.declared else self._seen(cell, k, a)) * kappa_known
            self.squares[cell] += a * a
        for k, a in enumerate(said):
            self.largest[bin, k] = max(float(self.largest[bin, k]), abs(a))
        self.taught[cell] += 1.0
        self.excess[cell] += abs(kappa - kappa_known)
        for copy in copies:
            copy.keep()
        self._last = (None, None)

    def drift(self, bin: int, row: Row, phi: float, v: float) -> float:
        """(Phi now - Phi at the draw) V."""
        return (self.phi(bin, row) - phi) * v

    def reserve(self, phi: float) -> float:
        """|Phi|."""
        return abs(phi)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        self.columns.grow(capacity)
        for name in _OWN:
            setattr(self, name, grown(getattr(self, name), capacity))

    def reach(self, n_values: int) -> Float64Array:
        """For each value sup_f |sum f kappa| over the learner's class, by `kind`."""
        n = n_values
        if self.kind == "exact":
            return np.array([self._supremum(slot) for slot in range(n)]) + self.excess[:n]
        if not self.oracle.declared:
            return np.asarray(np.abs(self.answers[:n]).max(axis=1) + self.excess[:n])
        return self._class(np.zeros(n), self.answers[:n])

    def _class(self, known: Float64Array, sums: Float64Array) -> Float64Array:
        """The supremum over the class at most, where the sums of sigma a kappa are at most `known` + `sums`."""
        n = self.taught[: len(sums)]
        paid = np.where(n > 0.0, _regret(self.oracle.learner, np.maximum(n, 1.0)), 0.0)
        found = np.maximum(known[:, None] + sums, 0.0).max(axis=1)
        if self.oracle.contract == "squares":
            explained = 2.0 * (known + sums[:, 0]) - self.squares[: len(sums)]
            found = np.sqrt(n * np.maximum(explained + paid, 0.0))
        else:
            found = (found + paid) / self.oracle.edge
        excess = self.excess[: len(sums)]
        return np.asarray(np.minimum(found, n) + excess)

    def _supremum(self, bin: int) -> float:
        learner: Any = self.oracle.learner
        return max((float(learner.supremum(copy.state)) for copy in self.copies.get(bin, ())), default=0.0)

    def bound(self, tally: Tally, r: float, delta: float) -> float:
        """The potential's theorem for S, and what leads from there to the class."""
        if tally.counts is None:
            value = self.oracle.potential.bound(tally, r, delta)
            if self.oracle.declared and self.oracle.contract == "squares":
                return float(tally.n_rounds)
            if self.oracle.declared:
                missed = _missed(lambda n: _regret(self.oracle.learner, n), tally, r)
                value = combine(value, missed, r) / self.oracle.edge**r
            return min(value, float(tally.n_rounds))
        n, rounding = tally.n_values, tally.rounding
        between = self.answers[:n] - self.columns.sums[:n, self.n_known :]

        def reach(known: Float64Array, visited: Any) -> Float64Array:
            assert rounding is not None
            whole = np.zeros(n)
            whole[visited] = known
            if self.oracle.declared:
                found = self._class(whole, between)
            else:
                found = whole + np.abs(between).max(axis=1) + self.excess[:n]
            return np.asarray(np.maximum(known + rounding[visited], found[visited]))

        return self.oracle.potential.bound(replace(tally, reach=reach), r, delta)

    def ahead(self, tally: Tally, r: float, delta: float, half_bin: float) -> float | None:
        """Theorem Q ahead of a run; None where `bound` says all, or answers are not weighed as they are."""
        learner, potential, n_rounds = self.oracle.learner, self.oracle.potential, tally.n_rounds
        squares = self.oracle.declared and self.oracle.contract == "squares" and not self.oracle.scaled
        if not squares or not isinstance(potential, Exponential):
            return None
        explained = 4.0 * (log_potential(tally, 1.0, delta) + math.log(potential.n_rates))
        missed = _missed(lambda n: np.sqrt(n * (explained + _regret(learner, n))), tally, r)
        rounded = n_rounds * (math.sqrt(4.4) * half_bin) ** r
        if tally.n_functions > len(self.oracle.signs):
            return combine(potential.bound(tally, r, delta) + missed, rounded, r)
        return combine(missed, rounded, max(0.5 * r, 1.0))

    def spread(self) -> Float64Array:
        """The largest spread of each value."""
        return self.columns.spread()

    def arrays(self) -> dict[str, Float64Array]:
        """All but what the copies have learned, which `dumped` has."""
        return self.columns.arrays() | {name: getattr(self, name) for name in _OWN}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Take the state of `arrays` over."""
        self.columns.restore({name: array for name, array in arrays.items() if name not in _OWN})
        for name in _OWN:
            own = np.zeros((len(self.columns.counts), *arrays[name].shape[1:]))
            own[: len(arrays[name])] = arrays[name]
            setattr(self, name, own)

    def dumped(self) -> bytes:
        """What the copies have learned."""
        slots = sorted(self.copies)
        texts = [copy.dump() for slot in slots for copy in self.copies[slot]]
        head = json.dumps([slots, [len(text) for text in texts]]).encode()
        return b"\n".join([head, b"".join(texts)])

    def load(self, data: bytes) -> None:
        """Take over what was `dumped`."""
        head, _, body = data.partition(b"\n")
        k = len(self.oracle.signs)
        try:
            slots, lengths = json.loads(head)
            ends = np.cumsum([0, *lengths]).tolist()
            if len(lengths) != k * len(slots) or ends[-1] != len(body) or min(lengths, default=0) < 0:
                raise ValueError("their number or length is another")
            copies = [Taught.load(self.oracle.learner, body[a:b]) for a, b in pairwise(ends)]
            self.copies = {int(slot): copies[k * i : k * (i + 1)] for i, slot in enumerate(slots)}
        except (TypeError, ValueError, KeyError) as error:
            raise StateFileError(f"the states of {self.oracle.learner!r} cannot be read: {error}") from error


# Arrays of the evidence besides those of its columns.
_OWN = ("answers", "largest", "squares", "taught", "excess")


def _missed(regret: Callable[[Float64Array], Float64Array], tally: Tally, r: float) -> float:
    """The largest that the sum over values of psi(n_i) can be, psi(n) = n min(1, Reg(n) / n)^r, ahead of a run.

    For every slope a >= 0, sum_i psi(n_i) <= a T + N max_n (psi(n) - a n); a few dozen slopes come close to the
    smallest concave function above psi, at T / N. Between steps n_k and n_k+1, psi is at most n_k+1 and, as Reg is
    nondecreasing, at most n_k (Reg(n_k+1) / n_k)^r. Steps and slopes do not depend on T, so that more rounds never have
    a smaller bound.
    """
    n_steps = math.ceil(math.log(max(tally.n_rounds, 1)) / math.log(_STEP)) + 2
    steps: Float64Array = np.power(_STEP, np.arange(n_steps, dtype=np.float64))
    before, after = steps[:-1], steps[1:]
    psi = np.minimum(before * (np.minimum(regret(after), after) / before) ** r, after)
    slopes = np.concatenate([[0.0], 0.5 ** np.arange(50)])
    peaks = np.max(psi - slopes[:, None] * before, axis=1)
    return float(np.min(slopes * tally.n_rounds + tally.n_values * np.maximum(peaks, 0.0)))


def _regret(learner: Any, n: Float64Array) -> Float64Array:
    regret = np.asarray(learner.regret(n), dtype=np.float64)
    if regret.shape != n.shape or not (regret >= 0.0).all():
        raise InvalidInput(
            f"the learner {learner!r} declares a regret of {regret!r}; it needs one number >= 0 for each n"
        )
    return regret
