"""Sets of classes that contain the outcome with a given probability, for every group."""

import secrets
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swapcal import bundle, checked, hypotheses
from swapcal.engine.randomness import seed_for
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.properties import Quantile
from swapcal.roles import Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["ClassSet", "ClassSetForecast"]

_DENSITY = 3.0
"""Largest density of a uniform score after `_spread`."""


def _spread(score: Float64Array | float) -> Any:
    """Scores spread out near 1, where thresholds lie and where those of overconfident models crowd; increasing."""
    return 1.0 - np.cbrt(1.0 - score)


@dataclass(frozen=True, slots=True)
class ClassSetForecast:
    """A set of classes: `members[k]` says whether class k is in it; `scores` are compared with the threshold."""

    members: tuple[bool, ...]
    scores: tuple[float, ...]
    threshold: Forecast

    def __contains__(self, k: object) -> bool:
        return isinstance(k, int) and 0 <= k < len(self.members) and self.members[k]

    def __len__(self) -> int:
        return sum(self.members)


class ClassSet:
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

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> from swapcal.classes import ClassSet
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    >>> sets = ClassSet(0.9, 3, sc.Finite(1), horizon=3000, seed=1)
    >>> inside = sets.run(np.ones((3000, 1)), y, np.tile([0.5, 0.3, 0.2], (3000, 1)))
    >>> round(float(inside[np.arange(3000), y].mean()), 2), round(float(inside.sum(axis=1).mean()), 1)
    (0.9, 2.5)
    """

    def __init__(
        self,
        coverage: float,
        n_classes: int,
        hypotheses: Hypotheses,
        *,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        max_pending: int = 65_536,
    ) -> None:
        self.coverage, self.n_classes = checked.level(coverage), checked.whole(n_classes, "n_classes", 2)
        self.seed = secrets.randbits(63) if seed is None else checked.whole(seed, "seed", 0)
        self.threshold = Forecaster(
            Quantile(self.coverage, density=_DENSITY),
            hypotheses,
            horizon=horizon,
            seed=seed_for(self.seed, "threshold"),
            hint=OnlineRegression() if learn else None,
            max_pending=max_pending,
            stand_back=False,  # the hint is a guess of ours
        )
        self._made = 0

    def __repr__(self) -> str:
        return f"ClassSet({self.coverage:g}, {self.n_classes}, {self.threshold.hypotheses!r}): {self.n_rounds} rounds"

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
        chance = np.random.Generator(np.random.Philox(key=[self.seed, self._made])).random()
        self._made += 1
        order = np.argsort(-p, kind="stable")
        above = np.cumsum(p[order]) - p[order]
        scores = np.empty(self.n_classes)
        scores[order] = _spread(np.clip(above + chance * p[order], 0.0, 1.0))
        inside = scores <= threshold.value
        if not inside.any():
            inside[order[0]] = True
        return ClassSetForecast(tuple(inside.tolist()), tuple(scores.tolist()), threshold)

    def update(self, forecast: ClassSetForecast, y: int) -> None:
        """Learn the class `y` that came up, a number from 0 to K - 1: in any order, once each."""
        if not isinstance(forecast, ClassSetForecast) or len(forecast.scores) != self.n_classes:
            raise UnknownForecast(f"update takes what predict returned; got {checked.shown(forecast)}")
        label = checked.whole(y, "y", 0)
        if label >= self.n_classes:
            raise InvalidInput(f"y must be a class from 0 to {self.n_classes - 1}; got {label}")
        self.threshold.update(forecast.threshold, forecast.scores[label])

    def run(self, X: Any, y: Any, probabilities: Any) -> npt.NDArray[np.bool_]:
        """Forecast and update a whole recorded stream; one row of K truth values for each round."""
        labels = np.asarray(y)
        rows = self.threshold.hypotheses.rows(X, len(labels))
        out = np.empty((len(labels), self.n_classes), dtype=bool)
        for t, label in enumerate(labels.tolist()):
            inside = slice(rows.indptr[t], rows.indptr[t + 1])
            forecast = self.predict(Row(rows.indices[inside], rows.values[inside]), probabilities[t])
            out[t] = forecast.members
            self.update(forecast, int(label))
        return out

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the whole state to a file or binary stream: plain data, no pickle."""
        names = ("coverage", "n_classes", "seed")
        plain = {**{name: getattr(self, name) for name in names}, "made": self._made}
        bundle.write(path, "ClassSet", plain, {"threshold": self.threshold})

    @classmethod
    def load(cls, path: str | PathLike[str] | BinaryIO) -> "ClassSet":
        """What `save` wrote; it continues bit for bit."""
        plain, parts = bundle.read(path, "ClassSet")
        loaded = cls(plain["coverage"], plain["n_classes"], hypotheses.Finite(1), seed=plain["seed"], horizon=1)
        loaded.threshold, loaded._made = parts["threshold"], int(plain["made"])
        return loaded

    def _checked(self, probabilities: Any) -> Float64Array:
        p = checked.vector(probabilities, "probabilities", self.n_classes)
        total = float(p.sum())
        if p.min() < 0.0 or not total > 0.0:
            raise InvalidInput(f"probabilities must be {self.n_classes} numbers, none below 0, not all 0; got {p!r}")
        return p / total
