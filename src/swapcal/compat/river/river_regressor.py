"""A regressor around any river regressor: any property, calibrated for every group."""

from typing import Any

from river import base

from swapcal.compat.river.around_model import AroundRiverRegressor, mean_of_two, number_or_none
from swapcal.engine.randomness import seed_for
from swapcal.forecaster import Forecaster
from swapcal.properties import Mean
from swapcal.roles import Elicitable

__all__ = ["MulticalibratedRegressor"]

_WARM = 20
"""So many outcomes settle the range where none is given."""


class MulticalibratedRegressor(AroundRiverRegressor):
    """Forecasts of a mean, quantile, expectile or other property, calibrated for every group, on top of any regressor.

    Parameters
    ----------
    model
        A regressor or pipeline; it keeps learning.
    property
        What is forecast, with its range, `Quantile(0.9, high=60)`. None: the mean, over the range of the first 20
        outcomes and as much again on either side; until then the model's own predictions are given.
    groups
        For whom, as for `MulticalibratedClassifier`.
    max_groups
        Largest number of groups.
    seed
        Of the draws.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> import swapcal as sc
    >>> from swapcal.compat.river import PinballLoss
    >>> model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = MulticalibratedRegressor(model, sc.Quantile(0.9, low=30.0, high=50.0), groups=["gallup > 43"], seed=1)
    >>> bool(evaluate.progressive_val_score(datasets.TrumpApproval(), model, PinballLoss(0.9)).get() < 0.5)
    True
    """

    def __init__(
        self,
        model: base.Regressor,
        property: Elicitable | None = None,
        groups: Any = None,
        max_groups: int = 1000,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.property = property
        self.groups = groups
        self.max_groups = max_groups
        self.seed = seed
        self._start()
        self._first: list[float] = []
        self._forecaster = None if property is None else self._make(property)

    def _make(self, property: Elicitable) -> Forecaster:
        return Forecaster(property, self._functions, seed=seed_for(self.seed, "regressor"), outside="clip")

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> float:
        """The calibrated forecast; changes nothing."""
        own = self.model.predict_one(x, **kwargs)
        if self._forecaster is None:
            return float(own)
        return mean_of_two(self._forecaster, self._context(x, learn=False), number_or_none(own))

    def learn_one(self, x: dict[Any, Any], y: float, **kwargs: Any) -> None:
        """Forecast, learn the outcome, and let the model learn it."""
        own = number_or_none(self.model.predict_one(x))
        if self._forecaster is None:
            self._first.append(float(y))
            if len(self._first) == _WARM:
                low, high = min(self._first), max(self._first)
                margin = (high - low) or max(abs(high), 1.0)
                self._forecaster = self._make(Mean(low=low - margin, high=high + margin))
        else:
            forecast = self._forecaster.predict(self._context(x, learn=True), hint=own)
            self._forecaster.update(forecast, float(y))
        self.model.learn_one(x, y, **kwargs)
