"""Intervals around any river regressor, that cover what they say in every group."""

from typing import Any

from river import base, conf

from swapcal.compat.river.around_model import (
    AroundRiverRegressor,
    number_or_none,
)
from swapcal.engine.randomness import seed_for
from swapcal.intervals import Interval

__all__ = ["MulticalibratedInterval"]


class MulticalibratedInterval(AroundRiverRegressor):
    """Intervals that cover a given share of outcomes in every group, on top of any regressor.

    Parameters
    ----------
    model
        A regressor or pipeline; it keeps learning.
    coverage
        The share of outcomes to cover.
    groups
        For whom, as for `MulticalibratedClassifier`.
    max_groups
        Largest number of groups.
    seed
        Of the draws.

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing
    >>> from swapcal.compat.river import GroupCoverage
    >>> model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model, coverage = MulticalibratedInterval(model, coverage=0.8, seed=1), GroupCoverage(0.8)
    >>> for x, y in datasets.TrumpApproval():
    ...     coverage.update(y, model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> bool(coverage.get() < 0.05)
    True
    """

    def __init__(
        self,
        model: base.Regressor,
        coverage: float = 0.9,
        groups: Any = None,
        max_groups: int = 1000,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.coverage = coverage
        self.groups = groups
        self.max_groups = max_groups
        self.seed = seed
        self._start()
        self._interval = Interval(coverage, self._functions, seed=seed_for(seed, "interval"))

    def predict_one(self, x: dict[Any, Any], with_interval: bool = False, **kwargs: Any) -> Any:
        """The model's own prediction, or with `with_interval` a `river.conf.Interval`; changes nothing."""
        own = self.model.predict_one(x, **kwargs)
        if not with_interval:
            return own
        lower, upper = self._interval.expected(self._context(x, learn=False), number_or_none(own)).tolist()
        return conf.Interval(lower=lower, upper=upper)

    def learn_one(self, x: dict[Any, Any], y: float, **kwargs: Any) -> None:
        """Forecast, learn the outcome, and let the model learn it."""
        own = number_or_none(self.model.predict_one(x))
        self._interval.update(self._interval.predict(self._context(x, learn=True), own), float(y))
        self.model.learn_one(x, y, **kwargs)
