"""Online agnostic learners: what `Oracle` asks for a function that correlates with the errors of a bin."""

import copy
import json
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from swapcal import inputs
from swapcal.engine.kernels import safe_exp
from swapcal.errors import InvalidInput
from swapcal.protocols import Row
from swapcal.sparse import expect_signed_shares, into_ball, read_row
from swapcal.state import Described, rebuilt
from swapcal.typing import Float64Array, Spec


def dumped(state: Float64Array) -> bytes:
    """A state that is a flat array, as bytes."""
    return state.astype("<f8").tobytes()


def loaded(data: bytes) -> Float64Array:
    """What was `dumped`."""
    state = np.frombuffer(data, dtype="<f8").astype(np.float64)
    if not np.isfinite(state).all():
        raise ValueError("it holds something other than finite numbers")
    return state


# --------
# The paper's learner for the linear class: online gradient descent in the unit ball.


@dataclass(frozen=True, slots=True)
class GradientDescent(Described):
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
    State: the clock t, then theta, then the sum of kappa x, 2 n + 1 numbers. A prediction costs O(active entries), an
    update O(n). Odd: with -kappa throughout, theta is minus what it was, to the last bit.

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

    odd: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", inputs.integer(self.n, "n", 1))

    def row(self, x: Any) -> Row:
        """A vector, shrunk to length 1 where it is longer."""
        row = read_row(x, self.n)
        return Row(row.indices, into_ball(row.values, 1.0))

    def start(self) -> Float64Array:
        """No rounds, theta = 0."""
        return np.zeros(2 * self.n + 1)

    def predict(self, state: Float64Array, row: Row) -> float:
        """<theta, x>, added up in the order of the positions."""
        if not row.indices.size:
            return 0.0
        return float((state[1 : self.n + 1].take(row.indices) * row.values).cumsum()[-1])

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """A step along kappa x, and back into the ball."""
        theta = state[1 : self.n + 1]
        state[0] += 1.0
        state[1 + self.n + row.indices] += kappa * row.values
        theta[row.indices] += 2.0 / math.sqrt(float(state[0])) * kappa * row.values
        length = math.sqrt(float(np.square(theta).cumsum()[-1]))
        if length > 1.0:
            theta /= length

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """3 sqrt(n_rounds) - 7/4, and 0 for no rounds."""
        return np.asarray(np.maximum(3.0 * np.sqrt(n_rounds) - 1.75, 0.0))

    def supremum(self, state: Float64Array) -> float:
        """The length of the sum of kappa x."""
        return math.sqrt(float(np.square(state[self.n + 1 :]).cumsum()[-1]))

    dump, load = staticmethod(dumped), staticmethod(loaded)


# --------
# The role of an online agnostic learner (Definition 1 of the paper), and how one is rebuilt from plain data.


class Learner(Protocol):
    """Predicts numbers kappa_1, kappa_2, ... in [-1, 1] from contexts, as well as the best function of a class F.

    In each round it sees a context x_t, answers q_t in [-1, 1], and is then told kappa_t. Whatever the contexts and
    numbers are, and however they depend on its answers, after every number n of rounds

        sup over f in F of sum_t f(x_t) kappa_t  <=  sum_t q_t kappa_t + Reg(n),   Reg(n) = `regret(n)`.

    `Oracle` keeps copies for each value that is forecast, so a learner describes and its state, any object, remembers.
    Besides the members below a learner may have:

    - `regret(n)`: the bound Reg for each entry of an array, nondecreasing. Without it nothing is known of a class, and
      what is promised is about the answers.
    - `supremum(state)`: the exact sup_f of sum f(x) kappa over what the state was taught; then errors are exact.
    - `odd = True`: -kappa in every round gives exactly -q in every round, so that one copy of a value is enough.
    - `contract = "squares"`: instead sum (q - kappa)^2 <= sum (a f(x) - kappa)^2 + Reg(n) for all f and |a| <= 1.
    - `edge`: g of a weak learner, whose sum of q kappa is at least g times the best less Reg(n).
    - `row(x)`: its own reading of a context; `n`, if that is a vector of n numbers, which it then sees as a `Row`. Any
      other must be plain JSON, or `encode(row)` and `decode(data)` make bytes of it and back.
    - `dump(state)` and `load(data)`: bytes for files; without them a state must be plain JSON.
    - `at(row, value)`: the row with the value that is forecast, for a learner that `Oracle(..., shared=True)` shares.

    `swapcal.checks.check_learner` tests all of this on your own. An update that fails is taken back.

    Examples
    --------
    A learner of your own takes ten lines. This one reads texts: it follows the regularized leader over words, theta = S
    / max(||S||, sqrt(t)) for the sum S of kappa x in t rounds; its regret is at most (1 / 2 eta_n) + sum_t eta_t / 2
    with the rates eta_t = 1 / sqrt(t), that is 1.5 sqrt(n).

    >>> import numpy as np
    >>> class Words:
    ...     odd = True
    ...     def row(self, x):
    ...         return sorted(set(x["text"].lower().split()))[:64]
    ...     def start(self):
    ...         return {"n": 0, "sums": {}}
    ...     def predict(self, state, row):
    ...         length = max(self.supremum(state), np.sqrt(state["n"]), 1.0)
    ...         return sum(state["sums"].get(w, 0.0) for w in row) / max(len(row), 1) ** 0.5 / length
    ...     def update(self, state, row, kappa):
    ...         state["n"] += 1
    ...         for w in row:
    ...             state["sums"][w] = state["sums"].get(w, 0.0) + kappa / len(row) ** 0.5
    ...     def regret(self, n):
    ...         return 1.5 * np.sqrt(n)
    ...     def supremum(self, state):
    ...         return sum(s * s for s in state["sums"].values()) ** 0.5
    ...     def spec(self):
    ...         return {"kind": "Words"}

    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Probability(), sc.Oracle(Words()), seed=1)
    >>> for t in range(500):
    ...     forecast = forecaster.predict({"text": "please refund" if t % 3 else "many thanks"})
    ...     forecaster.update(forecast, float(t % 3 > 0))
    >>> error = forecaster.error()
    >>> error.kind, bool(error < forecaster.guarantee(0.05) < 500)
    ('exact', True)

    References
    ----------
    Ben-David, Pal, Shalev-Shwartz (2009), Agnostic online learning; Beygelzimer, Kale, Luo (2015), Optimal and adaptive
    algorithms for online boosting; Definition 1 of Hu, Luo, Senapati, Sharan, Efficient Swap Multicalibration of
    Elicitable Properties.
    """

    def start(self) -> Any:
        """The state of a copy that has seen nothing: a new object."""

    def predict(self, state: Any, row: Any) -> float:
        """The answer in [-1, 1], but for rounding; changes nothing."""

    def update(self, state: Any, row: Any, kappa: float) -> None:
        """Learn in place that `kappa` in [-1, 1] came with this context."""

    def spec(self) -> Spec:
        """Plain data that tells learners apart."""


def from_spec(spec: Spec) -> Learner:
    """Rebuild a learner of this package from its `spec()`; code of your own is never in a state file.

    Parameters
    ----------
    spec : dict
        What `learner.spec()` gave.

    Returns
    -------
    Learner
        Equal to the one that was described.

    Examples
    --------
    >>> from swapcal.learners import GradientDescent
    >>> from_spec(GradientDescent(3).spec())
    GradientDescent(n=3)
    """
    kinds = {kind.__name__: kind for kind in (GradientDescent, MultiplicativeWeights)}
    learner: Learner = rebuilt(spec, kinds, "learner", "hypotheses=Oracle(your learner)")
    return learner


# --------
# The paper's learner for a finite class: multiplicative weights.


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights(Described):
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

    odd: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", inputs.integer(self.n, "n", 1))

    def row(self, x: Any) -> Row:
        """The values of the functions, in [-1, 1]."""
        row = read_row(x, self.n)
        expect_signed_shares(row.values)
        return row

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

    def supremum(self, state: Float64Array) -> float:
        """The largest gain of a function."""
        return float(state[1 : self.n + 1].max())

    dump, load = staticmethod(dumped), staticmethod(loaded)


# --------
# A learner's state, which an update that fails leaves as it was.


class Taught:
    """One copy of a learner: its state, and how to take the latest update back.

    The state is copied before an update. Where that is dear, a learner says `replays = k`: it is copied at every k-th,
    and what was taught since is taught again.
    """

    __slots__ = ("_copied", "_since", "learner", "n", "state")

    def __init__(self, learner: Any, state: Any = None) -> None:
        self.learner, self.n = learner, 0
        self.state = learner.start() if state is None else state
        self._copied: Any = None
        self._since: list[tuple[Any, float]] = []

    def update(self, row: Any, kappa: float) -> None:
        """Teach it; what fails leaves it as it was."""
        if self._copied is None or len(self._since) >= getattr(self.learner, "replays", 1):
            self._copied, self._since = copy.deepcopy(self.state), []
        self._since.append((row, kappa))
        self.n += 1
        try:
            self.learner.update(self.state, row, kappa)
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Take the latest update back."""
        self._since.pop()
        self.n -= 1
        self.state = copy.deepcopy(self._copied)
        for row, kappa in self._since:
            self.learner.update(self.state, row, kappa)

    def keep(self) -> None:
        """The latest update stays, so a copy that serves no later one is let go."""
        if getattr(self.learner, "replays", 1) <= 1:
            self._copied, self._since = None, []

    def dump(self) -> bytes:
        """The state as bytes: by the learner's own `dump`, else as JSON."""
        dump = getattr(self.learner, "dump", None)
        if dump is not None:
            return bytes(dump(self.state))
        try:
            text = json.dumps(self.state).encode()
            if json.loads(text) == self.state:
                return text
            why = "it comes back as something else"
        except (TypeError, ValueError) as error:
            why = str(error)
        raise InvalidInput(f"a learner's state cannot be saved as JSON ({why}); give the learner `dump` and `load`")

    @classmethod
    def load(cls, learner: Any, data: bytes) -> "Taught":
        """What was dumped."""
        return cls(learner, getattr(learner, "load", json.loads)(data))


# --------
# Any model that learns one case after the other, of river or scikit-learn.


class Model:
    """A model as a learner of which nothing is known; `model` makes one."""

    replays = 64

    def __init__(self, model: Any, columns: int | Sequence[str] | None = None, *, pickled: bool = False) -> None:
        self.model, self.columns, self.pickled = model, columns, pickled
        if columns is not None:
            self.n = inputs.integer(columns if isinstance(columns, int) else len(columns), "the number of columns", 1)
        self.one_by_one = hasattr(model, "learn_one") and hasattr(model, "predict_one")
        if not self.one_by_one and not (hasattr(model, "partial_fit") and hasattr(model, "predict")):
            raise InvalidInput(f"a model needs learn_one and predict_one, or partial_fit and predict; got {model!r}")

    def __repr__(self) -> str:
        return f"model({type(self.model).__name__})"

    def row(self, x: Any) -> Any:
        """The numbers of a record, a vector, or a whole record as it is."""
        if self.columns is None:
            return dict(x) if isinstance(x, Mapping) else [float(each) for each in x]
        return x if isinstance(self.columns, int) else [float(x[name]) for name in self.columns]

    def at(self, row: Any, value: float) -> Any:
        """A row with the value that is forecast, for a model that serves all values."""
        return (row, value)

    def start(self) -> list[Any]:
        """How many cases it has learned, the model, and how many positions of a vector have been there."""
        return [0, copy.deepcopy(self.model), 0]

    def _features(self, row: Any, used: int) -> Any:
        if isinstance(row, tuple) and not isinstance(row, Row):
            x, value = self._features(row[0], used), row[1]
            return {**x, "forecast": value} if self.one_by_one else np.append(x, value)[None, :]
        if isinstance(row, Row):
            x = np.zeros(self.n)
            x[row.indices] = row.values
            names: Any = self.columns
            if isinstance(names, int):
                names = range(min(max([used, *(row.indices[-1:] + 1).tolist()]), self.n))
            x = x[: len(names)] if self.one_by_one else x
        else:
            x, names = row, range(len(row))
        if not self.one_by_one:
            return np.asarray(list(x.values()) if isinstance(x, dict) else x, dtype=np.float64)[None, :]
        return x if isinstance(x, dict) else dict(zip(names, map(float, x), strict=True))

    def predict(self, state: list[Any], row: Any) -> float:
        """What it predicts, cut to [-1, 1]; 0 before it has learned anything."""
        if not state[0]:
            return 0.0
        x = self._features(row, state[2])
        said = float(state[1].predict_one(x) if self.one_by_one else np.ravel(state[1].predict(x))[0])
        if math.isnan(said):
            raise InvalidInput(f"{self!r} predicts {said!r}")
        return min(max(said, -1.0), 1.0)

    def update(self, state: list[Any], row: Any, kappa: float) -> None:
        """Learn one case."""
        if isinstance(row, Row) and row.indices.size:
            state[2] = max(state[2], int(row.indices[-1]) + 1)
        x = self._features(row, state[2])
        if self.one_by_one:
            state[1].learn_one(x, kappa)
        else:
            state[1].partial_fit(x, [kappa])
        state[0] += 1

    def dump(self, state: list[Any]) -> bytes:
        """Pickled, where that was asked for."""
        self._consent()
        return pickle.dumps(state)

    def load(self, data: bytes) -> list[Any]:
        """Unpickled, where that was asked for."""
        self._consent()
        state: list[Any] = pickle.loads(data)
        return state

    def _consent(self) -> None:
        if not self.pickled:
            raise InvalidInput(
                "a model is saved as a pickle, and reading one runs what is in it; pass pickled=True to model() if "
                "you trust your files"
            )

    def spec(self) -> Spec:
        """Its type and columns; the model itself is passed to `load` again."""
        columns = list(self.columns) if isinstance(self.columns, (list, tuple)) else self.columns
        return {"kind": "Model", "type": type(self.model).__qualname__, "columns": columns}


def model(model: Any, columns: int | Sequence[str] | None = None, *, pickled: bool = False) -> Model:
    """A model of river or scikit-learn, for `Oracle`: what it could have said of the next error is gone.

    Parameters
    ----------
    model : object
        With `learn_one` and `predict_one`, or `partial_fit` and `predict`: a regressor.
    columns : int or list of str, optional
        Length of the contexts, or the names of the numbers in a record; by default it is given whole records.
    pickled : bool
        Whether states may be saved and read as pickles.

    Returns
    -------
    Model
        A learner without a regret: guarantee and error are over its answers.

    Examples
    --------
    >>> import swapcal as sc
    >>> from sklearn.linear_model import SGDRegressor
    >>> residuals = sc.Oracle(sc.model(SGDRegressor(random_state=0), ["age", "income"]))
    >>> forecaster = sc.Forecaster("probability", residuals, seed=1)
    >>> forecaster.update(forecaster.predict({"age": 0.3, "income": 0.1}, hint=0.2), 1)
    """
    return Model(model, columns, pickled=pickled)
