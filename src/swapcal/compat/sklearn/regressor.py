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
from swapcal.sparse import CompressedRows, each, taken
from swapcal.typing import Float64Array

# Rows that are looked at once more at the end of `fit`, at most, and how often each group has its turn.
_MOST_ROWS, _TURNS = 10_000, 5


def moves(ends: Float64Array, y: Float64Array, rows: Rows, n: int, level: float) -> Float64Array:
    """By how many half-widths each end must go outward for each of `n` groups, added up over those of a row.

    Group by group an end goes to the conformal quantile of its members' outcomes, and that five times over: a descent
    along coordinates to the quantile regression on groups, which covers in each of them. Groups that are too small for
    the quantile move nothing.

    Parameters
    ----------
    ends : array, rows by 2
        Lower and upper ends; rows where one is infinite are passed over.
    y : array
        Outcomes.
    rows : Rows
        The groups of each row, and its weight.
    n : int
        How many groups there are.
    level : float
        The share of outcomes on the inner side of an end.

    Returns
    -------
    array, 2 by groups
        For the lower and the upper end.

    References
    ----------
    Gibbs, Cherian, Candes (2023), Conformal prediction with conditional guarantees, arXiv:2305.12616.

    Examples
    --------
    >>> rows = Rows(np.arange(100), np.zeros(99, dtype=np.int64), np.ones(99))
    >>> moves(np.tile([-1.0, 1.0], (99, 1)), np.linspace(-1.96, 1.96, 99), rows, 1, 0.95).round(2)
    array([[0.8],
           [0.8]])
    """
    (middle, halves, there), numbers = _parts(ends), rows.numbers
    found, members = np.zeros((2, n)), []
    for group in range(n):
        entries = np.flatnonzero((rows.indices == group) & there[numbers] & (rows.values > 0.0))
        if len(entries) * (1.0 - level) >= level:
            members.append((group, numbers[entries], rows.values[entries]))
    for side, sign in enumerate((-1.0, 1.0)):
        outside = np.divide(sign * (y - middle), halves, out=np.zeros(len(y)), where=there) - 1.0
        for group, own, weights in members * _TURNS:
            order = np.argsort(outside[own])
            total = np.cumsum(weights[order])
            at = np.searchsorted(total, level * (1.0 + 1.0 / len(own)) * total[-1])
            move = outside[own[order[min(at, len(own) - 1)]]]
            found[side, group] += move
            outside[own] -= move
    return found


def _parts(ends: Float64Array) -> tuple[Float64Array, Float64Array, Any]:
    """Middles and half-widths, and where both are numbers."""
    there = np.isfinite(ends).all(axis=1) & (ends[:, 0] < ends[:, 1])
    lower, upper = np.where(there, ends.T, 0.0)
    return 0.5 * (lower + upper), 0.5 * (upper - lower), there


class MulticalibratedInterval(AroundRegressor):
    """A regressor with intervals that cover a given share of outcomes in every group.

    Guarantee: that of `swapcal.intervals.Interval` for the rows of `fit` and `partial_fit`, forecast as a stream.
    `predict_interval` gives the mean of what each end would be drawn from in the last state. That state is one of many
    around the right one: without more it covered 0.79 to 0.95 after 1,000 rows. So `fit` ends with a look at up to
    10,000 of its rows, and moves each end, by one number for each group in half-widths, until it covers what it must
    in every group. Coverage is then that of a conformal quantile for rows like those of `fit`. `partial_fit` goes on
    from the state, without that.

    Parameters
    ----------
    estimator : estimator, optional
        The model of the middle; default `LinearRegression()`. A `FrozenEstimator` is used as it is.
    coverage : float
        The share of outcomes to cover.
    groups, cv, protect, budget, max_groups, random_state
        As for `MulticalibratedClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((6000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1 + 0.4 * (X[:, 1] > 0.5))
    >>> model = MulticalibratedInterval(groups=["x1 > 0.5"], random_state=1).fit(X[:3000], y[:3000])
    >>> lower, upper = model.predict_interval(X[3000:]).T
    >>> bool(abs(((lower <= y[3000:]) & (y[3000:] <= upper))[X[3000:, 1] > 0.5].mean() - 0.9) < 0.03)
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
        budget: float | None = None,
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        shared = {"groups": groups, "cv": cv, "max_groups": max_groups, "random_state": random_state}
        super().__init__(estimator, protect=protect, budget=budget, **shared)
        self.coverage = coverage

    def _begin(self, y: Float64Array, hints: Float64Array | None, horizon: int | None) -> None:
        distances = np.abs(y - (np.median(y) if hints is None else hints))
        spread = max(1.5 * float(np.median(distances)), 1e-9 * max(1.0, float(distances.max())))
        seed = seed_for(self.random_state, "interval")
        settings = {"spread": spread, "seed": seed, **self._settings(horizon)}
        self.interval_ = Interval(self.coverage, self._functions(), **settings)

    def _learn(self, rows: CompressedRows, y: Float64Array, hints: Float64Array | None) -> None:
        learn(self.interval_, rows, y, hints)
        self.moves_ = np.zeros((2, self.n_functions_))

    def _settle(self, rows: CompressedRows, y: Float64Array, hints: Float64Array) -> None:
        some = np.arange(0, len(y), -(-len(y) // _MOST_ROWS))
        chosen = taken(Rows(*rows[:3]), some)
        # As new rows are asked for; how much a row weighs is for its outcome alone.
        ends = self._ends(chosen._replace(values=np.ones(len(chosen.values))), hints[some])
        self.moves_ = moves(ends, y[some], chosen, self.n_functions_, 0.5 + 0.5 * self.coverage)

    def _ends(self, rows: Rows, hints: Float64Array) -> Float64Array:
        """Of the last state."""
        return np.array(
            [self.interval_.expected(*case) for case in zip(each(rows), steady(hints).tolist(), strict=True)]
        )

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
        rows, hints = Rows(*self._contexts(self._validated(X, reset=False))[:3]), self.predict(X)
        ends = self._ends(rows, hints)
        middle, halves, there = _parts(ends)
        for side, sign in enumerate((-1.0, 1.0)):
            share = 1.0 + np.bincount(rows.numbers, self.moves_[side][rows.indices], len(ends))
            ends[there, side] = (middle + sign * np.maximum(share, 0.0) * halves)[there]
        return ends

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
    groups, cv, protect, budget, max_groups, random_state
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
        budget: float | None = None,
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        shared = {"groups": groups, "cv": cv, "max_groups": max_groups, "random_state": random_state}
        super().__init__(estimator, protect=protect, budget=budget, **shared)
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
        settings = {"bins": self.bins, "outside": "clip", **self._settings(horizon)}
        seed = seed_for(self.random_state, "forecaster")
        self.forecaster_ = Forecaster(target, self._functions(), seed=seed, hint=OnlineRegression(), **settings)

    def _columns_out(self, X: Any) -> dict[str, Any]:
        return {"model": self._forecasts(self.estimator_, X), "forecast": self.predict(X)}
