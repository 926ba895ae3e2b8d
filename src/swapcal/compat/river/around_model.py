"""What the wrappers share: the model, contexts from features by name, rows of frames."""

import math
from collections.abc import Iterator
from typing import Any

from river import base, linear_model, preprocessing

from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Groups
from swapcal.roles import Hypotheses
from swapcal.tables.extras import package

__all__ = ["AroundModel", "AroundRiverRegressor", "mean_of_two", "number_or_none", "records_of", "share_of"]


class AroundModel(base.Wrapper[Any]):
    """What the three share: the model, and contexts from features by name."""

    model: Any
    groups: Any
    max_groups: int

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    def _start(self) -> None:
        self._hypotheses: Hypotheses = Finite(1) if self.groups is None else Groups(self.groups, limit=self.max_groups)
        extended: Any = getattr(self._hypotheses, "extended", None)
        self._functions: Hypotheses = extended(0)

    def _context(self, x: dict[Any, Any], *, learn: bool) -> Any:
        if isinstance(self._hypotheses, Groups):
            return self._hypotheses.row(x) if learn else self._hypotheses.peek(x)
        return [1.0]


class AroundRiverRegressor(AroundModel, base.MiniBatchRegressor):
    """What regressors and intervals share."""

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Forecasts of many rows of a pandas frame; changes nothing."""
        pandas = package("pandas", "mini-batches", extra="river")
        return pandas.Series([self.predict_one(x, **kwargs) for x in records_of(X)], index=X.index, dtype=float)

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn the rows of a pandas frame, one after the other."""
        for x, label in zip(records_of(X), y, strict=True):
            self.learn_one(x, label, **kwargs)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)}
        yield {"model": preprocessing.StandardScaler() | linear_model.PARegressor()}


def mean_of_two(forecaster: Forecaster, context: Any, hint: float | None) -> float:
    """The mean of the two values that a forecast would be drawn from."""
    return float(sum(value * p for value, p in forecaster.distribution(context, hint=hint).items()))


def number_or_none(value: Any) -> float | None:
    """The model's prediction as a hint; None where there is none."""
    return float(value) if value is not None and math.isfinite(value) else None


def share_of(p: dict[Any, float], label: Any) -> float | None:
    """The model's probability of a class, as a hint; None where it has none to offer."""
    return number_or_none(p.get(label)) if p else None


def records_of(X: Any) -> list[dict[Any, Any]]:
    """The rows of a pandas frame, as river has cases."""
    records: list[dict[Any, Any]] = X.to_dict(orient="records")
    return records
