"""The outer protocol that every published method shares: predict, update, run."""

import copy
import secrets
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swapcal import inputs
from swapcal.engine.kernels import uniform
from swapcal.errors import AlreadyUpdated, ExpiredForecast, InvalidInput, UnknownForecast
from swapcal.forecast import Forecast
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.sparse import each
from swapcal.typing import Float64Array

_MAX_PENDING = 1024


class Plan(NamedTuple):
    """What a method decides before its draw: possible forecasts, their probabilities, and notes for its own use."""

    values: tuple[float, ...]
    probabilities: tuple[float, ...]
    notes: Any = None


class _Open(NamedTuple):
    row: Row
    plan: Plan
    drawn: int


class PublishedMethod(ABC):
    """A method says what it would play (`plan`) and how it learns (`learn`); the rest of a round is the same for all.

    Concrete methods are final. A forecast waits for its outcome inside the method that made it: the last 1,024 can be
    updated, in any order, once each.
    """

    check_exceptions: ClassVar[dict[str, str]] = {
        "saving_is_exact": "published methods are for comparison, in one process; only Forecaster has a state file"
    }

    def __init__(self, property: Elicitable, hypotheses: Hypotheses, *, seed: int) -> None:
        self.property = inputs.role(property, ("identification", "domain"), "property", "sc.Mean()")
        self.hypotheses = inputs.role(hypotheses, ("row", "rows", "n"), "hypotheses", "sc.Finite(20)")
        self.seed = inputs.integer(seed, "seed", 0)
        self._identity = secrets.token_hex(8)
        self._issued = 0
        self._open: dict[int, _Open] = {}

    @abstractmethod
    def plan(self, row: Row, hint: float | None) -> Plan:
        """What to play for this context; changes nothing."""

    @abstractmethod
    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Take the outcome of a round in which `plan.values[drawn]` was forecast."""

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """The forecast for context `x`; opens a round and learns nothing."""
        row = self.hypotheses.row(x)
        guide = self._hint(hint)
        plan = self.plan(row, guide)
        t, drawn = self._draw(row, plan)
        others = [v for k, v in enumerate(plan.values) if k != drawn and plan.probabilities[k] > 0.0]
        return Forecast(
            value=plan.values[drawn],
            round=t,
            forecaster=self._identity,
            other=others[0] if others else plan.values[drawn],
            probability=plan.probabilities[drawn],
            evidence_at=plan.values[drawn],
            context=Forecast.packed(*row),
            hint=guide,
        )

    def distribution(self, x: Any, hint: float | None = None) -> dict[float, float]:
        """The forecasts that `predict` would draw from, with their probabilities. Changes nothing."""
        plan = self.plan(self.hypotheses.row(x), self._hint(hint))
        odds: dict[float, float] = {}
        for value, probability in zip(plan.values, plan.probabilities, strict=True):
            if probability > 0.0:
                odds[value] = odds.get(value, 0.0) + probability
        return odds

    def update(self, forecast: Forecast, y: float) -> None:
        """Learn the outcome `y` of a forecast: in any order, once each."""
        if not isinstance(forecast, Forecast) or forecast.forecaster != self._identity:
            raise UnknownForecast(f"update takes what this method's own predict returned; got {forecast!r}")
        if forecast.round not in self._open:
            if not 0 <= forecast.round < self._issued:
                raise UnknownForecast(f"round {forecast.round} was never forecast here")
            if forecast.round < self._issued - _MAX_PENDING:
                raise ExpiredForecast(f"the forecast of round {forecast.round} has waited for too long and has expired")
            raise AlreadyUpdated(f"the forecast of round {forecast.round} has had its outcome")
        label = inputs.real(y, "label")
        self._check(label)
        case = self._open[forecast.round]
        self.learn(case.row, case.plan, case.drawn, label)
        del self._open[forecast.round]

    def run(self, X: Any, y: Any, hints: Any = None) -> Float64Array:
        """Forecast and update a whole recorded stream: the loop's numbers, and all of them or, on an error, none."""
        labels = inputs.vector(y, "y")
        self._check(labels)
        rows = self.hypotheses.rows(X, len(labels))
        guides = [None] * len(labels) if hints is None else inputs.vector(hints, "hints", len(labels)).tolist()
        forecasts = np.empty(len(labels))
        before = copy.deepcopy(self.__dict__)
        try:
            for t, (row, hint, label) in enumerate(zip(each(rows), guides, labels.tolist(), strict=True)):
                plan = self.plan(row, self._hint(hint))
                opened, drawn = self._draw(row, plan)
                forecasts[t] = plan.values[drawn]
                self.learn(row, plan, drawn, label)
                del self._open[opened]
        except BaseException:
            self.__dict__.update(before)
            raise
        return forecasts

    def _draw(self, row: Row, plan: Plan) -> tuple[int, int]:
        """The number of a new round, and which of the plan's values it plays."""
        t = self._issued
        u, drawn = uniform(self.seed, t), 0
        while u >= plan.probabilities[drawn] and drawn < len(plan.values) - 1:
            u -= plan.probabilities[drawn]
            drawn += 1
        self._issued = t + 1
        self._open[t] = _Open(row, plan, drawn)
        if len(self._open) > _MAX_PENDING:
            del self._open[next(iter(self._open))]
        return t, drawn

    def _hint(self, hint: Any) -> float | None:
        if hint is None:
            return None
        value = inputs.real(hint, "hint")
        low, high = self.property.domain
        if not low <= value <= high:
            raise InvalidInput(f"hint {value:g} is outside [{low:g}, {high:g}]")
        return value

    def _check(self, labels: Any) -> None:
        why = self.property.invalid_labels(labels)
        if why is not None:
            raise InvalidInput(f"{why}; set low= and high= of the property to fit the labels")
