"""More than two outcomes: probabilities of classes, the confidence in the likeliest, and sets of classes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from swapcal import hypotheses, inputs, sparse
from swapcal.engine.composite import Composite, CompositeForecast, several
from swapcal.engine.kernels import seed_for
from swapcal.engine.pending import Asked
from swapcal.errors import InvalidInput, StateFileError
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses.groups import for_whom
from swapcal.properties import Probability, Quantile
from swapcal.protocols import Hypotheses, LearningHint, Row
from swapcal.state import Packed, Saved
from swapcal.typing import Float64Array

# --------
# Numbers that nearly add up to 1 as a probability vector.


def projected(p: Any) -> Float64Array:
    """The probability vector nearest to `p`: every entry moves by the same amount, and what falls below 0 becomes 0.

    No outcome is further away afterwards: for every probability vector y, |projected(p) - y| <= |p - y|, as the simplex
    is convex; so the Brier score of every single round is at most that of the raw numbers. Cost: O(K log K).

    Examples
    --------
    >>> projected([0.5, 0.4, 0.4]).round(3), projected([0.9, 0.3, -0.4])
    (array([0.4, 0.3, 0.3]), array([0.8, 0.2, 0. ]))
    """
    raw = np.asarray(p, dtype=np.float64)
    descending = np.sort(raw)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(raw) + 1)
    last = int(np.flatnonzero(descending > excess)[-1])
    nearest: Float64Array = np.maximum(raw - excess[last], 0.0)
    return nearest


def shared_out(p: Any) -> Float64Array:
    """Numbers in [0, 1], with what they lack to 1, or have beyond it, shared out among them.

    In equal shares where that moves no number by more than half of itself: then it is `projected`. Otherwise in
    proportion to p (1 - p), what is uncertain about each, so that a rare class keeps about its probability, and none
    that may come up gets 0. Where even that would leave one below 0, all are divided by their sum.

    Examples
    --------
    >>> shared_out([0.5, 0.3, 0.3]).round(3), shared_out([0.6, 0.5, 0.001]).round(4)
    (array([0.467, 0.267, 0.267]), array([0.5506, 0.4486, 0.0008]))
    >>> shared_out([1.0, 1.0, 0.0]), shared_out([0.0, 0.0])
    (array([0.5, 0.5, 0. ]), array([0.5, 0.5]))
    """
    raw = np.asarray(p, dtype=np.float64)
    total = float(raw.sum())
    even = (1.0 - total) / len(raw)
    if abs(even) <= 0.5 * float(raw.min()):
        return np.asarray(raw + even)
    spread = raw * (1.0 - raw)
    if spread.any():
        moved = raw + (1.0 - total) * spread / spread.sum()
        if moved.min() >= 0.0:
            return np.asarray(moved)
    return raw / total if total > 0.0 else np.full(len(raw), 1.0 / len(raw))


# --------
# Probabilities of K classes, calibrated class by class, and the confidence in the likeliest.


@dataclass(frozen=True, slots=True)
class ClassesForecast(CompositeForecast):
    """Probabilities of the classes.

    Attributes
    ----------
    probabilities : tuple of float
        A probability vector near to the raw numbers.
    top : int
        The likeliest class.
    confidence : float
        The probability that the outcome is `top`, calibrated given itself, the groups and `top`.
    parts : tuple of Forecast
        One for each class: the raw numbers, and what the engine said of each, calibrated for its class.
    sure : Forecast
        The forecast behind `confidence`.
    round : int
        Its number among all that were forecast, from 0.
    """

    stored: ClassVar = {
        "probabilities": several(float),
        "top": int,
        "confidence": float,
        "parts": several(Forecast.from_dict),
        "sure": Forecast.from_dict,
        "round": int,
    }

    probabilities: tuple[float, ...]
    top: int
    confidence: float
    parts: tuple[Forecast, ...]
    sure: Forecast
    round: int = -1


F = TypeVar("F", ClassesForecast, "ClassSetForecast")


class _OfClasses(Composite[F]):
    """What outcomes, forecasts and a model's probabilities of `n_classes` classes must be.

    per_class: a field of a forecast that has an entry for each class. given: how the model's probabilities are called.
    """

    n_classes: int
    per_class: ClassVar[str]
    given: ClassVar[str]

    def label(self, y: Any) -> int:
        """A class, from 0 to K - 1."""
        label = inputs.integer(int(y) if isinstance(y, float) and y.is_integer() else y, "y", 0)
        if label >= self.n_classes:
            raise InvalidInput(f"y must be a class from 0 to {self.n_classes - 1}; got {label}")
        return label

    def _check(self, forecast: Any, verb: str) -> None:
        super()._check(forecast if len(getattr(forecast, self.per_class, ())) == self.n_classes else None, verb)

    def _given(self, n: int, hints: Any, features: Any) -> tuple[Any, Any]:
        """A row of numbers for each of `n` cases; one with a NaN is none."""
        if hints is None:
            return None, None
        return inputs.table(hints, self.given, n, self.n_classes, "a row of probabilities for each round"), None


class Classes(_OfClasses[ClassesForecast]):
    r"""Probabilities of K classes: one forecaster per class, and one for the confidence in the likeliest.

    Hints are your model's probabilities. The forecaster of each class corrects its probability, and shows the share of
    the correction that the outcomes so far speak for (`protect`), so a right model is left as it is. What is
    guaranteed, and of which numbers:

    1. The raw number of each class, as it is shown, is swap multicalibrated by itself, with its own `guarantee()`:
       among the rounds in which class k was given p_k, and in every group, it comes up in a share p_k.
    2. `probabilities` are the raw numbers with what they lack to 1 shared out (`shared_out`). While no number
       is small beside its share, each moves by the same (1 - sum p)/K, whose sum over a group is at most the classes'
       errors of bias in the group added up and divided by K. So the probabilities keep the right mean in every group:
       :math:`|\sum_g (\hat p_k - y_k)| \le e_k(g) + \frac1K \sum_j e_j(g)`, with e_j the raw numbers' errors; and
       the Brier score of such a round is at most the raw one. Where a class is rare it takes a smaller share, by what
       is uncertain about it: equal ones would lift it to many times its rate, or cut it to 0 where it does come up.
       That, and how far the probabilities are calibrated given their own value, is measured, not proved.
    3. `confidence` is swap multicalibrated as the probability that the outcome is `top`, with `top` among the groups:
       top-label calibration in the sense of Gupta and Ramdas (2022), for every group. `Classes.guarantee` is its bound
       and those of the classes.

    Nothing is claimed about calibration given the whole vector, which would need exponentially many cells in K.

    Parameters
    ----------
    n_classes : int
        K, 2 or more.
    hypotheses : Hypotheses
        For whom; a linear class or one of a learner, too.
    horizon, max_pending
        As for `Forecaster`.
    seed : int, optional
        Of the draws; None draws one from the system.
    hint : LearningHint, optional
        A model that learns beside each forecaster.
    protect, budget
        As for `Forecaster`.

    Notes
    -----
    Cost: K + 1 rounds of a forecaster.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> from swapcal.classes import Classes
    >>> rng = np.random.default_rng(0)
    >>> classes = Classes(3, sc.Finite(1), horizon=3000, seed=1)
    >>> y = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    >>> p = classes.run(np.ones((3000, 1)), y, np.full((3000, 3), 1 / 3))
    >>> p.sum(axis=1).round(9).min(), p[2000:].mean(axis=0).round(1)
    (np.float64(1.0), array([0.6, 0.3, 0.1]))
    """

    kind = "classes"
    forecast_type, per_class, given = ClassesForecast, "parts", "hints"

    def __init__(
        self,
        n_classes: int,
        hypotheses: Hypotheses | str | Sequence[Any],
        *,
        horizon: int | None = None,
        seed: int | None = None,
        hint: LearningHint | None = None,
        max_pending: int = 65_536,
        protect: str = "loss",
        budget: float | None = None,
    ) -> None:
        super().__init__(max_pending)
        self.n_classes, self.hypotheses = inputs.integer(n_classes, "n_classes", 2), for_whom(hypotheses)
        extended = getattr(self.hypotheses, "extended", None)
        if extended is None or extended(self.n_classes) is self.hypotheses:
            raise InvalidInput(f"Classes needs a class of functions that the top class can join; got {hypotheses!r}")
        self.seed = secrets.randbits(63) if seed is None else inputs.integer(seed, "seed", 0)

        def forecaster(functions: Hypotheses, name: object) -> Forecaster:
            part = seed_for(self.seed, name)
            settings: dict[str, Any] = {"horizon": horizon, "hint": hint, "max_pending": max_pending}
            settings |= {"protect": protect, "budget": budget}
            return Forecaster(Probability(), functions, seed=part, outside="clip", **settings)

        self.forecasters = [forecaster(extended(0), k) for k in range(self.n_classes)]
        self.sure = forecaster(extended(self.n_classes), "sure")

    def __repr__(self) -> str:
        return f"Classes({self.n_classes}, {self.hypotheses!r}): {self.n_rounds} rounds"

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self.sure.n_rounds

    def predict(self, x: Any, hints: Any = None) -> ClassesForecast:
        """Forecast the classes for context `x`; opens a round, learns nothing.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context.
        hints : sequence of K floats, optional
            Your own model's probabilities.

        Returns
        -------
        ClassesForecast
            `probabilities`, `top` and `confidence`.
        """
        guides = self._hints(hints)
        row = self.hypotheses.row(x)
        parts = tuple(f.predict(row, hint=h) for f, h in zip(self.forecasters, guides, strict=True))
        probabilities = shared_out([part.value for part in parts])
        top = int(np.argmax(probabilities))
        sure = self.sure.predict(self._with_top(row, top), hint=float(probabilities[top]))
        return ClassesForecast(tuple(probabilities.tolist()), top, sure.value, parts, sure, self._open())

    def expected(self, x: Any, hints: Any = None) -> Float64Array:
        """The probabilities from the means of what the forecasters would draw from. Changes nothing."""
        row = getattr(self.hypotheses, "peek", self.hypotheses.row)(x)
        pairs = zip(self.forecasters, self._hints(hints), strict=True)
        return shared_out([sum(v * p for v, p in f.distribution(row, hint=h).items()) for f, h in pairs])

    @property
    def n_outputs(self) -> int:
        """The probabilities, the likeliest class, and the confidence in it."""
        return self.n_classes + 2

    def outputs(self, forecast: ClassesForecast) -> Sequence[float]:
        """These numbers."""
        return (*forecast.probabilities, forecast.top, forecast.confidence)

    def forecasters_by_name(self) -> dict[str, Forecaster]:
        """Of the likeliest class, and of each."""
        return {"the likeliest": self.sure, **{f"class {k}": each for k, each in enumerate(self.forecasters)}}

    def _learn(self, forecast: ClassesForecast, y: float) -> None:
        for k, (forecaster, part) in enumerate(zip(self.forecasters, forecast.parts, strict=True)):
            forecaster.update(part, float(y == k))
        self.sure.update(forecast.sure, float(y == forecast.top))

    def _forget(self, forecast: ClassesForecast) -> None:
        for forecaster, part in zip((*self.forecasters, self.sure), (*forecast.parts, forecast.sure), strict=True):
            forecaster.forget(part)

    def run(self, X: Any, y: Any, hints: Any = None, **late: Any) -> Float64Array:
        """Forecast and update a whole recorded stream; one row of probabilities for each round.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each round.
        y : array
            Classes, from 0 to K - 1; where one is NaN the round is forecast and not learned from.
        hints : array, rounds by classes, optional
            Your own model's probabilities; a row with a NaN is none.
        **late
            `weights`, `known`, `times`, `order`, `settle` and `waits`, as for `Forecaster.run`.

        Returns
        -------
        array, rounds by classes
            The probabilities.
        """
        return self.run_in_full(X, y, hints, **late)[:, : self.n_classes]

    def run_in_full(self, X: Any, y: Any, hints: Any = None, **late: Any) -> Float64Array:
        """`run` with two columns more: the likeliest class, and the confidence in it."""
        return self._run(X, y, hints, **late)

    def _case(self, asked: Asked, t: int) -> ClassesForecast:
        hints = None if asked.hints is None or np.isnan(asked.hints[t]).any() else asked.hints[t]
        return self.predict(sparse.row(asked.rows, t), hints)

    def guarantee(self, delta: float = 0.05) -> tuple[float, ...]:
        """Bounds on the swap errors of the K raw numbers and, last, of the confidence; together with 1 - delta."""
        share = delta / (self.n_classes + 1)
        return tuple(float(f.guarantee(share)) for f in (*self.forecasters, self.sure))

    def to_state(self) -> Saved:
        """What it is made of: the forecasters are parts."""
        plain = {"n_classes": self.n_classes, "seed": self.seed, "hypotheses": dict(self.hypotheses.spec())}
        plain["rounds"] = self.rounds_plain()
        parts = {str(k): forecaster.to_bytes() for k, forecaster in enumerate(self.forecasters)}
        return Saved(plain, {}, {**parts, "sure": self.sure.to_bytes()})

    @classmethod
    def from_state(cls, packed: Packed, *_: Any) -> "Classes":
        """Make it again; see `from_bytes`."""
        plain, parts = packed.plain, {name: Forecaster.from_bytes(data) for name, data in packed.parts.items()}
        if plain["n_classes"] != len(parts) - 1:
            raise StateFileError(f"these are {len(parts)} forecasters, not those of {plain['n_classes']!r} classes")
        classes = cls(plain["n_classes"], hypotheses.from_spec(plain["hypotheses"]), seed=plain["seed"], horizon=1)
        classes.forecasters = [parts[str(k)] for k in range(classes.n_classes)]
        classes.sure = parts["sure"]
        classes.restore_rounds(plain["rounds"], classes.sure.rules.max_pending)
        return classes

    def _hints(self, hints: Any) -> list[float | None]:
        if hints is None:
            return [None] * self.n_classes
        guides = inputs.vector(hints, "hints", self.n_classes)
        return [float(h) for h in guides]

    def _with_top(self, row: Row, top: int) -> Row:
        return Row(np.append(row.indices, self.hypotheses.n + top), np.append(row.values, 1.0))


# --------
# Sets of classes that contain the outcome with a given probability, for every group.

# Largest density of a uniform score after `_spread`.
_DENSITY = 3.0


def _spread(score: Float64Array | float) -> Any:
    """Scores spread out near 1, where thresholds lie and where those of overconfident models crowd; increasing."""
    return 1.0 - np.cbrt(1.0 - score)


@dataclass(frozen=True, slots=True)
class ClassSetForecast(CompositeForecast):
    """A set of classes: `members[k]` says whether class k is in it; `scores` are compared with the threshold."""

    stored: ClassVar = {
        "members": several(bool),
        "scores": several(float),
        "threshold": Forecast.from_dict,
        "round": int,
    }

    members: tuple[bool, ...]
    scores: tuple[float, ...]
    threshold: Forecast
    round: int = -1

    def __contains__(self, k: object) -> bool:
        return isinstance(k, int) and 0 <= k < len(self.members) and self.members[k]

    def __len__(self) -> int:
        return sum(self.members)


class PredictionSet(_OfClasses[ClassSetForecast]):
    r"""Sets of classes that contain the outcome in a share `coverage` of the rounds, in every group.

    The score of a class is the probability of all classes that your model holds for likelier, plus a uniform share of
    its own (the adaptive prediction sets of Romano, Sesia and Candes 2020). If the model is right the score of the
    outcome is uniform on [0, 1]. The threshold is a `Forecaster(Quantile(coverage))` of that score, spread out near 1
    by a fixed map; a class is in the set if its score is at most the threshold.

    Guarantee: whatever the outcomes do, the threshold's `guarantee()` bounds the swap error of "the outcome is in the
    set", given the threshold and given every group; the number of covered rounds in a group differs from coverage times
    its rounds by at most the root of rounds times guarantee. An empty set becomes the likeliest class, which can only
    raise coverage.

    Parameters
    ----------
    coverage : float
        The share of rounds in which the set is to contain the outcome.
    n_classes : int
        K, 2 or more. With two classes the set is an interval for an outcome of 0 or 1.
    hypotheses : Hypotheses
        For whom.
    horizon, max_pending
        As for `Forecaster`.
    seed : int, optional
        Of the draws; None draws one from the system.
    learn : bool
        Whether an `OnlineRegression` on the context guides the threshold.
    protect, budget
        How much of the threshold's correction is shown, as for `Forecaster`; the model's own threshold is the coverage.
        All of it by default: who asks for sets asks for coverage.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> from swapcal.classes import PredictionSet
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    >>> sets = PredictionSet(0.9, 3, sc.Finite(1), horizon=3000, seed=1)
    >>> inside = sets.run(np.ones((3000, 1)), y, np.tile([0.5, 0.3, 0.2], (3000, 1)))
    >>> round(float(inside[np.arange(3000), y].mean()), 2), round(float(inside.sum(axis=1).mean()), 1)
    (0.9, 2.5)
    """

    kind = "prediction set"
    forecast_type, per_class, given = ClassSetForecast, "scores", "probabilities"

    def __init__(
        self,
        coverage: float,
        n_classes: int,
        hypotheses: Hypotheses | str | Sequence[Any],
        *,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        max_pending: int = 65_536,
        protect: str = "nothing",
        budget: float | None = None,
    ) -> None:
        super().__init__(max_pending)
        self.coverage, self.n_classes = inputs.level(coverage), inputs.integer(n_classes, "n_classes", 2)
        self.seed = secrets.randbits(63) if seed is None else inputs.integer(seed, "seed", 0)
        self.threshold = Forecaster(
            Quantile(self.coverage, density=_DENSITY),
            hypotheses,
            horizon=horizon,
            seed=seed_for(self.seed, "threshold"),
            hint=OnlineRegression() if learn else None,
            max_pending=max_pending,
            protect=protect,
            budget=budget,
        )

    def __repr__(self) -> str:
        return (
            f"PredictionSet({self.coverage:g}, {self.n_classes}, {self.threshold.hypotheses!r}): {self.n_rounds} rounds"
        )

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return self.threshold.n_rounds

    def predict(self, x: Any, probabilities: Any) -> ClassSetForecast:
        """The set for context `x`, from your own model's probabilities; opens a round, learns nothing.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context.
        probabilities : sequence of K floats
            Your model's; any nonnegative numbers, divided by their sum.

        Returns
        -------
        ClassSetForecast
            `members`, and `k in forecast`.
        """
        p = self._checked(probabilities)
        threshold = self.threshold.predict(x, hint=float(_spread(self.coverage)))
        number = self._open()
        chance = np.random.Generator(np.random.Philox(key=[self.seed, number])).random()
        order = np.argsort(-p, kind="stable")
        above = np.cumsum(p[order]) - p[order]
        scores = np.empty(self.n_classes)
        scores[order] = _spread(np.clip(above + chance * p[order], 0.0, 1.0))
        inside = scores <= threshold.value
        if not inside.any():
            inside[order[0]] = True
        return ClassSetForecast(tuple(inside.tolist()), tuple(scores.tolist()), threshold, number)

    @property
    def hypotheses(self) -> Hypotheses:  # type: ignore[override]
        """For whom sets contain the outcome."""
        return self.threshold.hypotheses

    @property
    def n_outputs(self) -> int:
        """A truth value for each class."""
        return self.n_classes

    def outputs(self, forecast: ClassSetForecast) -> Sequence[float]:
        """These."""
        return forecast.members

    def forecasters_by_name(self) -> dict[str, Forecaster]:
        """Of the threshold."""
        return {"threshold": self.threshold}

    def _learn(self, forecast: ClassSetForecast, y: float) -> None:
        self.threshold.update(forecast.threshold, forecast.scores[int(y)])

    def _forget(self, forecast: ClassSetForecast) -> None:
        self.threshold.forget(forecast.threshold)

    def run(self, X: Any, y: Any, probabilities: Any, **late: Any) -> npt.NDArray[np.bool_]:
        """Forecast and update a whole recorded stream; one row of K truth values for each round.

        Parameters
        ----------
        X, y, **late
            As for `Classes.run`.
        probabilities : array, rounds by classes
            Your own model's.

        Returns
        -------
        array of bool, rounds by classes
            Who is in each set.
        """
        return self._run(X, y, probabilities, **late).astype(np.bool_)

    def _case(self, asked: Asked, t: int) -> ClassSetForecast:
        return self.predict(sparse.row(asked.rows, t), asked.hints[t])

    def to_state(self) -> Saved:
        """What it is made of: the forecaster of the threshold is a part."""
        plain = {name: getattr(self, name) for name in ("coverage", "n_classes", "seed")}
        return Saved({**plain, "rounds": self.rounds_plain()}, {}, {"threshold": self.threshold.to_bytes()})

    @classmethod
    def from_state(cls, packed: Packed, *_: Any) -> "PredictionSet":
        """Make it again; see `from_bytes`."""
        plain = packed.plain
        sets = cls(plain["coverage"], plain["n_classes"], hypotheses.Finite(1), seed=plain["seed"], horizon=1)
        sets.threshold = Forecaster.from_bytes(packed.parts["threshold"])
        sets.restore_rounds(plain["rounds"], sets.threshold.rules.max_pending)
        return sets

    def _checked(self, probabilities: Any) -> Float64Array:
        p = inputs.vector(probabilities, "probabilities", self.n_classes)
        total = float(p.sum())
        if p.min() < 0.0 or not total > 0.0:
            raise InvalidInput(f"probabilities must be {self.n_classes} numbers, none below 0, not all 0; got {p!r}")
        return p / total
