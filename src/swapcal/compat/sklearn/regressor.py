"""Around any regressor: forecasts of any property, and intervals, calibrated for every group."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from swapcal.compat.sklearn.base import AroundRegressor, learn, range_of, steady
from swapcal.engine.kernels import seed_for
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.intervals import Interval
from swapcal.properties import Mean
from swapcal.protocols import Elicitable, Rows
from swapcal.sparse import CompressedRows, each
from swapcal.typing import Float64Array


class MulticalibratedInterval(AroundRegressor):
    """A regressor with intervals that cover a given share of outcomes in every group.

    Guarantee: that of `swapcal.intervals.Interval` for the rows of `fit` and `partial_fit`, forecast as a stream.
    `predict_interval` gives the mean of what each end would be drawn from in the last state.

    Parameters
    ----------
    estimator : estimator, optional
        The model of the middle; default `LinearRegression()`. A `FrozenEstimator` is used as it is.
    coverage : float
        The share of outcomes to cover.
    groups, cv, protect, max_groups, random_state
        As for `MulticalibratedClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((6000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1 + 0.4 * (X[:, 1] > 0.5))
    >>> model = MulticalibratedInterval(groups=["x1 > 0.5"], random_state=1).fit(X, y)
    >>> lower, upper = model.predict_interval(X).T
    >>> bool(abs(((lower <= y) & (y <= upper))[X[:, 1] > 0.5].mean() - 0.9) < 0.05)
    True
    """

    _machine: ClassVar[str] = "interval_"

    def __init__(
        self,
        estimator: Any = None,
        *,
        coverage: float = 0.9,
        groups: Any = None,
        cv: Any = 5,
        protect: str = "calibration",
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        shared = {"groups": groups, "cv": cv, "protect": protect, "max_groups": max_groups}
        super().__init__(estimator, random_state=random_state, **shared)
        self.coverage = coverage

    def _begin(self, y: Float64Array, hints: Float64Array | None, horizon: int | None) -> None:
        distances = np.abs(y - (np.median(y) if hints is None else hints))
        spread = max(1.5 * float(np.median(distances)), 1e-9 * max(1.0, float(distances.max())))
        seed = seed_for(self.random_state, "interval")
        self.interval_ = Interval(
            self.coverage, self._functions(), spread=spread, seed=seed, horizon=horizon, protect=self.protect
        )

    def _learn(self, rows: CompressedRows, y: Float64Array, hints: Float64Array | None) -> None:
        learn(self.interval_, rows, y, hints)

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
        indptr, indices, values, _ = self._contexts(self._validated(X, reset=False))
        cases = zip(each(Rows(indptr, indices, values)), steady(hints).tolist(), strict=True)
        return np.array([self.interval_.expected(row, hint) for row, hint in cases])

    def _columns_out(self, X: Any) -> dict[str, Any]:
        ends = self.predict_interval(X)
        return {"model": self.predict(X), "lower": ends[:, 0], "upper": ends[:, 1]}


class MulticalibratedRegressor(AroundRegressor):
    """A regressor whose forecasts of a mean, quantile, expectile or other property are calibrated for every group.

    Guarantee: that of `Forecaster` for the rows of `fit` and `partial_fit`, forecast as a stream; `predict` gives the
    mean of what the last state would draw from.

    Parameters
    ----------
    estimator : estimator, optional
        The model; default `LinearRegression()`. A `FrozenEstimator` is used as it is.
    property : Elicitable or callable, optional
        What is forecast: an object with a range of its own, `Quantile(0.9, high=60)`, or something that makes one from
        a range, `functools.partial(Quantile, 0.9)`, which gets that of the training outcomes. Default: the mean.
    bins : int, optional
        Number of values that can be forecast, for outcomes that lie close together within their range.
    groups, cv, protect, max_groups, random_state
        As for `MulticalibratedClassifier`.

    Notes
    -----
    Outcomes outside the range count as its nearer end. `sample_weight` as for `MulticalibratedClassifier`.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import swapcal as sc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1 + 0.4 * (X[:, 1] > 0.5))
    >>> model = MulticalibratedRegressor(property=partial(sc.Quantile, 0.9), groups=["x1 > 0.5"], random_state=1)
    >>> below = y <= model.fit(X, y).predict(X)
    >>> bool(abs(below[X[:, 1] > 0.5].mean() - 0.9) < 0.06)
    True
    """

    _machine: ClassVar[str] = "forecaster_"

    def __init__(
        self,
        estimator: Any = None,
        *,
        property: Elicitable | Callable[..., Elicitable] | None = None,
        bins: int | None = None,
        groups: Any = None,
        cv: Any = 5,
        protect: str = "loss",
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        shared = {"groups": groups, "cv": cv, "protect": protect, "max_groups": max_groups}
        super().__init__(estimator, random_state=random_state, **shared)
        self.property = property
        self.bins = bins

    def _learn(self, rows: CompressedRows, y: Float64Array, hints: Float64Array | None) -> None:
        learn(self.forecaster_, rows, y, hints)

    def predict(self, X: Any) -> Float64Array:
        """Calibrated forecasts; learns nothing."""
        check_is_fitted(self, "forecaster_")
        X, hints = self._validated(X, reset=False), self._hints(X)
        return self.forecaster_.expected(self._contexts(X), None if hints is None else steady(hints))

    def _begin(self, y: Float64Array, hints: Float64Array | None, horizon: int | None) -> None:
        low, high = range_of(y)
        make = Mean if self.property is None else self.property
        target = make(low=low, high=high) if callable(make) else make
        settings: dict[str, Any] = {"horizon": horizon, "bins": self.bins, "outside": "clip", "protect": self.protect}
        seed = seed_for(self.random_state, "forecaster")
        self.forecaster_ = Forecaster(target, self._functions(), seed=seed, hint=OnlineRegression(), **settings)

    def _columns_out(self, X: Any) -> dict[str, Any]:
        return {"model": self._forecasts(self.estimator_, X), "forecast": self.predict(X)}
