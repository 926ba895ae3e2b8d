"""Probabilities of K classes, calibrated class by class, and the confidence in the likeliest."""

import json
import secrets
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from swapcal import bundle, checked, hypotheses
from swapcal.classes.simplex import shared_out
from swapcal.engine.randomness import seed_for
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.properties import Probability
from swapcal.roles import Hypotheses, LearningHint, Row
from swapcal.typing import Float64Array

__all__ = ["Classes", "ClassesForecast"]


@dataclass(frozen=True, slots=True)
class ClassesForecast:
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
        One for each class: the raw numbers, each calibrated for its class.
    sure : Forecast
        The forecast behind `confidence`.
    """

    probabilities: tuple[float, ...]
    top: int
    confidence: float
    parts: tuple[Forecast, ...]
    sure: Forecast

    def to_json(self) -> str:
        """One line of JSON."""
        plain = {"probabilities": self.probabilities, "top": self.top, "confidence": self.confidence}
        return json.dumps({**plain, "parts": [p.to_dict() for p in self.parts], "sure": self.sure.to_dict()})

    @classmethod
    def from_json(cls, text: str | bytes) -> "ClassesForecast":
        """The forecast that `to_json` wrote down."""
        try:
            data = json.loads(text)
            parts = tuple(Forecast.from_dict(part) for part in data["parts"])
            probabilities = tuple(float(p) for p in data["probabilities"])
            sure = Forecast.from_dict(data["sure"])
            return cls(probabilities, int(data["top"]), float(data["confidence"]), parts, sure)
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownForecast(f"this is not a stored forecast of classes ({error})") from None


class Classes:
    r"""Probabilities of K classes: one forecaster per class, and one for the confidence in the likeliest.

    What is guaranteed, and of which numbers:

    1. The raw number of each class is swap multicalibrated by itself, with its own `guarantee()`: among the rounds in
       which class k was given p_k, and in every group, it comes up in a share p_k.
    2. `probabilities` are the raw numbers with what they lack to 1 shared out (`simplex.shared_out`). While no number
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
        For whom: a finite class or groups.
    horizon, max_pending
        As for `Forecaster`.
    seed : int, optional
        Of the draws; None draws one from the system.
    hint : LearningHint, optional
        A model that learns beside each forecaster.

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
    >>> p.sum(axis=1).round(9).min(), p.mean(axis=0).round(1)
    (np.float64(1.0), array([0.6, 0.3, 0.1]))
    """

    def __init__(
        self,
        n_classes: int,
        hypotheses: Hypotheses,
        *,
        horizon: int | None = None,
        seed: int | None = None,
        hint: LearningHint | None = None,
        max_pending: int = 65_536,
    ) -> None:
        self.n_classes, self.hypotheses = checked.whole(n_classes, "n_classes", 2), hypotheses
        extended = getattr(hypotheses, "extended", None)
        if extended is None:
            raise InvalidInput(
                f"Classes needs a finite class or groups, to which the top class joins; got {hypotheses!r}"
            )
        self.seed = secrets.randbits(63) if seed is None else checked.whole(seed, "seed", 0)

        def forecaster(functions: Hypotheses, name: object) -> Forecaster:
            part = seed_for(self.seed, name)
            settings: dict[str, Any] = {"horizon": horizon, "hint": hint, "max_pending": max_pending}
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
        given = self._given(hints)
        row = self.hypotheses.row(x)
        parts = tuple(f.predict(row, hint=h) for f, h in zip(self.forecasters, given, strict=True))
        probabilities = shared_out([part.value for part in parts])
        top = int(np.argmax(probabilities))
        sure = self.sure.predict(self._with_top(row, top), hint=float(probabilities[top]))
        return ClassesForecast(tuple(probabilities.tolist()), top, sure.value, parts, sure)

    def expected(self, x: Any, hints: Any = None) -> Float64Array:
        """The probabilities from the means of what the forecasters would draw from. Changes nothing."""
        row = getattr(self.hypotheses, "peek", self.hypotheses.row)(x)
        pairs = zip(self.forecasters, self._given(hints), strict=True)
        return shared_out([sum(v * p for v, p in f.distribution(row, hint=h).items()) for f, h in pairs])

    def update(self, forecast: ClassesForecast, y: int) -> None:
        """Learn the class `y` that came up, a number from 0 to K - 1: in any order, once each."""
        if not isinstance(forecast, ClassesForecast) or len(forecast.parts) != self.n_classes:
            raise UnknownForecast(f"update takes what predict returned; got {checked.shown(forecast)}")
        label = checked.whole(y, "y", 0)
        if label >= self.n_classes:
            raise InvalidInput(f"y must be a class from 0 to {self.n_classes - 1}; got {label}")
        for k, (forecaster, part) in enumerate(zip(self.forecasters, forecast.parts, strict=True)):
            forecaster.update(part, float(label == k))
        self.sure.update(forecast.sure, float(label == forecast.top))

    def forget(self, forecast: ClassesForecast) -> None:
        """Say that the outcome of a forecast will not come: it is closed, and nothing is learned from it."""
        if not isinstance(forecast, ClassesForecast) or len(forecast.parts) != self.n_classes:
            raise UnknownForecast(f"forget takes what predict returned; got {checked.shown(forecast)}")
        for forecaster, part in zip((*self.forecasters, self.sure), (*forecast.parts, forecast.sure), strict=True):
            forecaster.forget(part)

    def run(self, X: Any, y: Any, hints: Any = None) -> Float64Array:
        """Forecast and update a whole recorded stream; one row of probabilities for each round."""
        labels = np.asarray(y)
        rows = self.hypotheses.rows(X, len(labels))
        out = np.empty((len(labels), self.n_classes))
        for t, label in enumerate(labels.tolist()):
            inside = slice(rows.indptr[t], rows.indptr[t + 1])
            row = Row(rows.indices[inside], rows.values[inside])
            forecast = self.predict(row, None if hints is None else hints[t])
            out[t] = forecast.probabilities
            self.update(forecast, int(label))
        return out

    def guarantee(self, delta: float = 0.05) -> tuple[float, ...]:
        """Bounds on the swap errors of the K raw numbers and, last, of the confidence; together with 1 - delta."""
        share = delta / (self.n_classes + 1)
        return tuple(float(f.guarantee(share)) for f in (*self.forecasters, self.sure))

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the whole state to a file or binary stream: plain data, no pickle."""
        plain = {"n_classes": self.n_classes, "seed": self.seed, "hypotheses": dict(self.hypotheses.spec())}
        parts = {f"class-{k}": f for k, f in enumerate(self.forecasters)}
        bundle.write(path, "Classes", plain, {**parts, "sure": self.sure})

    @classmethod
    def load(cls, path: str | PathLike[str] | BinaryIO) -> "Classes":
        """What `save` wrote; it continues bit for bit."""
        plain, parts = bundle.read(path, "Classes")
        own = hypotheses.from_spec(plain["hypotheses"])
        classes = cls(plain["n_classes"], own, seed=plain["seed"], horizon=1)
        classes.forecasters = [parts[f"class-{k}"] for k in range(classes.n_classes)]
        classes.sure = parts["sure"]
        return classes

    def _given(self, hints: Any) -> list[float | None]:
        if hints is None:
            return [None] * self.n_classes
        given = checked.vector(hints, "hints", self.n_classes)
        return [float(h) for h in given]

    def _with_top(self, row: Row, top: int) -> Row:
        return Row(np.append(row.indices, self.hypotheses.n + top), np.append(row.values, 1.0))
