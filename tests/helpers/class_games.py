"""Games about what is promised over unions, products, boxes, learners and models, and of joint forecasts."""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.potentials import Exponential
from swapcal.protocols import Row
from swapcal.simulate.adversaries import Arena, Far, Greedy, GroupTargeted, Sweep, ball, groups, rounds
from swapcal.typing import Float64Array

DELTA = 0.05
Play = Callable[[int, int], list[tuple[float, float]]]


class Late:
    """A forecaster that is told outcomes `delay` rounds late; one in ten of them never."""

    def __init__(self, forecaster: Forecaster, delay: int, known: Any = None) -> None:
        self.forecaster, self.delay = forecaster, delay
        self.property, self.hypotheses = forecaster.property, forecaster.hypotheses if known is None else known
        self.waiting: list[tuple[Forecast, float]] = []
        # What an adversary looks at.
        self.state, self.distribution = forecaster.state, forecaster.distribution
        # Value, context and outcome of the rounds that count.
        self.contexts: dict[int, Any] = {}
        self.told: list[tuple[float, Any, float]] = []

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        forecast = self.forecaster.predict(x, hint)
        self.contexts[forecast.round] = x
        return forecast

    def update(self, forecast: Forecast, y: float) -> None:
        if self.delay == 0 or forecast.round % 10 != 7:
            self.waiting.append((forecast, y))
        if len(self.waiting) > self.delay:
            first, label = self.waiting.pop(0)
            self.forecaster.update(first, label)
            self.told.append((first.value, self.contexts[first.round], label))

    def error(self, r: float) -> float:
        """The swap error of what was told over the known class, by a loop."""
        values, total = np.array([value for value, _, _ in self.told]), 0.0
        X, y = np.array([x for _, x, _ in self.told]), np.array([y for _, _, y in self.told])
        for value in np.unique(values):
            at = values == value
            n, sums = int(at.sum()), (value - y[at]) @ X[at]
            total += n * (float(self.hypotheses.supremum(sums)) / n) ** r
        return total


class Boxed(Late):
    """The same of boxes: contexts are records."""

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        return self.forecaster.predict({"a": float(x[0]), "b": float(x[1])}, hint)

    def update(self, forecast: Forecast, y: float) -> None:
        self.contexts[forecast.round] = None
        super().update(forecast, y)


class Hidden:
    """A learner that cannot tell its supremum, so that the error is known to be at most so much."""

    def __init__(self, learner: Any) -> None:
        self.n, self.odd, self.row = learner.n, learner.odd, learner.row
        self.start, self.predict, self.update = learner.start, learner.predict, learner.update
        self.regret, self.dump, self.load = learner.regret, learner.dump, learner.load

    def spec(self) -> Any:
        return {"kind": "Hidden", "n": self.n, "odd": self.odd}


class Forward:
    """The forward algorithm of Vovk, Azoury and Warmuth: squares, as good as any <theta, x> with ||theta|| <= 1."""

    contract = "squares"

    def __init__(self, n: int) -> None:
        self.n = n

    def start(self) -> Any:
        return {"A": np.eye(self.n), "b": np.zeros(self.n)}

    def dense(self, row: Row) -> Float64Array:
        x = np.zeros(self.n)
        x[row.indices] = row.values
        return x

    def predict(self, state: Any, row: Row) -> float:
        x = self.dense(row)
        return float(np.clip(x @ np.linalg.solve(state["A"] + np.outer(x, x), state["b"]), -1.0, 1.0))

    def update(self, state: Any, row: Row, kappa: float) -> None:
        x = self.dense(row)
        state["A"], state["b"] = state["A"] + np.outer(x, x), state["b"] + kappa * x

    def regret(self, n: Any) -> Any:
        return 1.0 + self.n * np.log1p(n / self.n)

    def spec(self) -> Any:
        return {"kind": "Forward", "n": self.n}


class Stubborn:
    """Nothing is known of it: it repeats half of the last error, with the sign of a feature, and at times all of it."""

    n = 4

    def start(self) -> Any:
        return {"last": 0.0, "n": 0}

    def predict(self, state: Any, row: Row) -> float:
        loud = 1.0 if state["n"] % 7 == 3 else 0.5
        return float(loud * state["last"] * (1.0 if row.values.sum() > 0.5 else -1.0))

    def update(self, state: Any, row: Row, kappa: float) -> None:
        state["last"], state["n"] = kappa, state["n"] + 1

    def spec(self) -> Any:
        return {"kind": "Stubborn"}


def _trees(seed: int) -> Any:
    trees = sc.Trees(["a", "b"], depth=1 + seed % 2, bins=4)
    trees.fit({name: np.random.default_rng(k).random(200) for k, name in enumerate("ab")})
    return trees


_GROUPS, _BALL = groups(4, seed=1), ball(4, seed=1)
_LEARNERS = (
    (GradientDescent(4), sc.Linear(4), _BALL),
    (MultiplicativeWeights(4), sc.Finite(4), _GROUPS),
)
# The second is of the kind for which there is a number ahead of a run.
SQUARES = (sc.Oracle(Forward(4)), sc.Oracle(Forward(4), scaled=False, potential=Exponential()))
# Of a seed: the class, the class of which the adversary keeps books, and its contexts.
KINDS: dict[str, Callable[[int], tuple[Any, Any, Float64Array]]] = {
    "unions and products": lambda seed: (
        (sc.Finite(4) | sc.Linear(4), sc.Finite(4) * sc.Linear(4))[seed % 2],
        (sc.Linear(4), sc.Finite(4))[seed // 2 % 2],
        _BALL,
    ),
    "boxes": lambda seed: (_trees(seed), sc.Finite(2), np.random.default_rng(seed).random((200, 2))),
    "a learner": lambda seed: (sc.Oracle(_LEARNERS[seed % 2][0]), *_LEARNERS[seed % 2][1:]),
    "a learner, at most": lambda seed: (sc.Oracle(Hidden(_LEARNERS[seed % 2][0])), *_LEARNERS[seed % 2][1:]),
    "a learner of squares": lambda seed: (SQUARES[seed % 2], sc.Linear(4), _BALL),
    "answers of a model": lambda seed: (sc.Oracle(Stubborn(), shared=seed % 2 == 0), sc.Linear(4), _BALL),
}
_R = (2.0, 1.0, 3.0, 1.5)


def _opponent(kind: str, seed: int, n_rounds: int, delay: int, **settings: Any) -> tuple[Late, Any]:
    functions, known, pool = KINDS[kind](seed)
    hinted = seed % 3 == 1 and "bins" not in settings
    arena = Arena(pool, hints="random" if hinted else None, seed=seed + 1000)
    forecaster = Forecaster(
        (sc.Mean(), sc.Probability())[seed // 2 % 2], functions, seed=seed, protect="nothing", levels=0, **settings
    )
    strategies: list[Any] = [Greedy, Far, GroupTargeted, partial(Sweep, period=n_rounds / 10)]
    opponent = (Boxed if kind == "boxes" else Late)(forecaster, delay, known)
    return opponent, strategies[seed // len(_LEARNERS) % len(strategies)](arena)


def _seen(kind: str, opponent: Late, bound: float) -> list[tuple[float, float]]:
    """The error beside what was promised of it; of learners also the class's own error beside what is said of it."""
    error = opponent.forecaster.error()
    if not kind.startswith("a learner"):
        return [(float(error), bound)]
    true = opponent.error(opponent.forecaster.rules.r)
    if error.kind == "exact":
        return [(true, bound), (abs(float(error) - true), 1e-9 * (1.0 + true))]
    return [(true, bound), (true, error.at_most + 1e-9), (error.at_least, true + 1e-9)]


def _game(kind: str, delay: int, seed: int, n_rounds: int) -> list[tuple[float, float]]:
    opponent, adversary = _opponent(kind, seed, n_rounds, delay, r=_R[seed % 4], bins=(None, 3, 8)[seed % 3])
    for _ in rounds(opponent, adversary, n_rounds):
        pass
    return _seen(kind, opponent, float(opponent.forecaster.guarantee(DELTA)))


def _ahead(seed: int, n_rounds: int) -> list[tuple[float, float]]:
    kind = list(KINDS)[seed % len(KINDS)]
    opponent, adversary = _opponent(kind, seed, n_rounds, 0, r=_R[seed % 4], bins=2 + seed % 9)
    promised = float(opponent.forecaster.guarantee(DELTA, n_rounds=n_rounds))
    for _ in rounds(opponent, adversary, n_rounds):
        pass
    return _seen(kind, opponent, promised)[:1]


def _joint(kind: str, seed: int, n_rounds: int) -> list[tuple[float, float]]:
    """Whoever sees the first draw before choosing the outcome; in every other game nobody does."""
    rng, seen = np.random.default_rng(seed), seed % 2 == 0
    functions: Any = (sc.Finite(3), sc.Linear(3))[seed // 2 % 2]
    model: Any = sc.TailMean(0.8, functions, seed=seed) if kind == "TailMean" else sc.MeanVariance(functions, seed=seed)
    for t in range(n_rounds):
        forecast = model.predict([0.5, 0.5 * (t % 2), 0.5 * float(rng.random() < 0.5)])
        z = forecast.first.value
        far = float(z < 0.5) if rng.random() < 0.7 else min(z + 0.01, 1.0)
        with warnings.catch_warnings():
            # Whoever has seen the draw voids the first promise anyway, with atoms or without.
            warnings.simplefilter("ignore", sc.AtomsWarning)
            model.update(forecast, far if seen else float(rng.random() ** (1.0 + 3.0 * (t % 2))))
    pairs = [(float(e), float(g)) for e, g in zip(model.error(), model.guarantee(DELTA), strict=True)]
    return pairs[1:] if seen else pairs


def promises() -> dict[str, Play]:
    """From the name of a promise to a game about it, of a seed and so many rounds."""
    cells: dict[str, Play] = {}
    for kind, (delay, when) in product(KINDS, ((0, "at once"), (20, "20 late, some never"))):
        cells[f"`guarantee()`, {kind}, {when}"] = partial(_game, kind, delay)
    cells["`guarantee(n_rounds=)`, unions, boxes, learners"] = _ahead
    return cells | {
        f"`{kind}.guarantee`, first draw seen": partial(_joint, kind) for kind in ("TailMean", "MeanVariance")
    }
