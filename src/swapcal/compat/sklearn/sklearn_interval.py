"""Intervals around any regressor, that cover what they say in every group."""

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import (
    check_is_fitted,
)

from swapcal.compat.online_to_batch import chosen, rows_of, steady
from swapcal.compat.sklearn.around_estimator import AroundRegressor
from swapcal.compat.sklearn.given_columns import numbers
from swapcal.engine.randomness import seed_for
from swapcal.intervals import Interval
from swapcal.typing import Float64Array

__all__ = ["MulticalibratedInterval"]


class MulticalibratedInterval(AroundRegressor):
    """A regressor with intervals that cover a given share of outcomes in every group.

    Guarantee: that of `swapcal.intervals.Interval` for the rows of `fit` and `partial_fit`, forecast as a stream.
    `predict_interval` takes the mean of several states of the second half of `fit` (after `partial_fit`: of the last
    state alone), and of what each end would be drawn from.

    Parameters
    ----------
    estimator : estimator, optional
        The model of the middle; default `LinearRegression()`. A `FrozenEstimator` is used as it is.
    coverage : float
        The share of outcomes to cover.
    groups, cv, states, max_groups, random_state
        As for `MulticalibratedClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1 + 0.4 * (X[:, 1] > 0.5))
    >>> model = MulticalibratedInterval(groups=["x1 > 0.5"], random_state=1).fit(X, y)
    >>> lower, upper = model.predict_interval(X).T
    >>> bool(abs(((lower <= y) & (y <= upper))[X[:, 1] > 0.5].mean() - 0.9) < 0.05)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        coverage: float = 0.9,
        groups: Any = None,
        cv: Any = 5,
        states: int = 4,
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.groups = groups
        self.cv = cv
        self.states = states
        self.max_groups = max_groups
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedInterval":
        """Fit the model, and calibrate intervals around it in one pass over the rows in order."""
        X, y = self._validated(X, reset=True), numbers(y, X)
        weights = self._weights(X, params)
        self._start(X)
        hints = self._fit_model(X, y, params)
        self.interval_ = self._interval(np.abs(y - hints), len(y))
        self.states_ = self._learn(X, y, hints, weights, chosen(len(y), self.states, self._seed("states")))
        return self

    def partial_fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedInterval":
        """Forecast these rows, learn their outcomes in order, then let the model learn them; before or after `fit`."""
        first = not hasattr(self, "interval_")
        X, y = self._validated(X, reset=first), numbers(y, X)
        weights = self._weights(X, params)
        if first:
            self._start(X)
            self.estimator_ = self.estimator if self._frozen() else None
            self.interval_ = self._interval(np.abs(y - np.median(y)), None)
        hints = None if self.estimator_ is None else self._forecasts(self.estimator_, X)
        self._learn(X, y, hints, weights, [])
        self.states_ = [copy.deepcopy(self.interval_)]
        self._teach(X, y, params)
        return self

    def _seed(self, name: str) -> int:
        return seed_for(self.random_state, name)

    def _interval(self, distances: Float64Array, horizon: int | None) -> Interval:
        spread = max(1.5 * float(np.median(distances)), 1e-9 * max(1.0, float(distances.max())))
        return Interval(self.coverage, self._functions(), spread=spread, seed=self._seed("interval"), horizon=horizon)

    def _learn(
        self, X: Any, y: Float64Array, hints: Float64Array | None, weights: Float64Array | None, keep: list[int]
    ) -> list[Interval]:
        """Play the rows in order; copies of the state before the rounds in `keep`."""
        guides = [None] * len(y) if hints is None else steady(hints).tolist()
        rows, kept = rows_of(self._contexts(X, weights, learn=True)), []
        for t, (row, label, hint) in enumerate(zip(rows, y.tolist(), guides, strict=True)):
            if t in keep:
                kept.append(copy.deepcopy(self.interval_))
            self.interval_.update(self.interval_.predict(row, hint), label)
        return kept

    def predict(self, X: Any) -> Float64Array:
        """The model's own forecasts."""
        check_is_fitted(self, "interval_")
        X = self._validated(X, reset=False)
        return self._forecasts(self.estimator_, X)

    def predict_interval(self, X: Any) -> Float64Array:
        """The ends of the interval of each row; learns nothing.

        Parameters
        ----------
        X : array or frame
            Features.

        Returns
        -------
        array, rows by 2
            Lower and upper ends.
        """
        hints = self.predict(X)
        rows = rows_of(self._contexts(self._validated(X, reset=False)))
        given = list(zip(rows, steady(hints).tolist(), strict=True))
        ends = np.array([[state.expected(row, hint) for row, hint in given] for state in self.states_])
        middle: Float64Array = ends.mean(axis=0)
        return middle

    def _columns_out(self, X: Any) -> dict[str, Any]:
        ends = self.predict_interval(X)
        return {"model": self.predict(X), "lower": ends[:, 0], "upper": ends[:, 1]}
