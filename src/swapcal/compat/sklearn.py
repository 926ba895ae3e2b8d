"""scikit-learn estimators around any model: calibrated classifiers, regressors and intervals.

`fit` is one pass over the rows in their order, on top of the model's forecasts for rows that it was not fitted on;
`predict` uses the fixed predictor that this run implies (see `online_to_batch`: what is guaranteed for a population
that does not change). `partial_fit` goes on with a stream, for which `Forecaster` states the guarantee.
"""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from swapcal.classes import shared_out
from swapcal.compat.online_to_batch import FixedPredictor, chosen, fitted, play, rows_of, steady
from swapcal.engine.randomness import seed_for
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Groups
from swapcal.intervals import Interval
from swapcal.properties import Mean, Probability
from swapcal.roles import Elicitable, Rows
from swapcal.tables.extras import package
from swapcal.typing import Float64Array

__all__ = ["MulticalibratedClassifier", "MulticalibratedInterval", "MulticalibratedRegressor"]


class _Multicalibrated(MetaEstimatorMixin, BaseEstimator):
    """What the three share: the model, its forecasts, contexts from columns, weights, routing."""

    __metadata_request__fit: ClassVar = {"sample_weight": None}
    __metadata_request__partial_fit: ClassVar = {"sample_weight": None}

    def get_metadata_routing(self) -> Any:
        """Who gets which metadata: this estimator and the model, in `fit` and `partial_fit`."""
        fits = MethodMapping().add(caller="fit", callee="fit").add(caller="partial_fit", callee="partial_fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._model(), method_mapping=fits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags

    def _default(self) -> Any:
        raise NotImplementedError

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        raise NotImplementedError

    def _model(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Numbers as an array; a frame stays one, as its columns may be text that the model knows how to read."""
        if hasattr(X, "columns") and not hasattr(X, "toarray"):
            validate_data(self, X, skip_check_array=True, reset=reset)
            if not _num_samples(X):
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X
        return validate_data(self, X, reset=reset, ensure_2d=True)

    def _weights(self, X: Any, params: dict[str, Any]) -> Float64Array | None:
        weights = params.get("sample_weight")
        if weights is None:
            return None
        checked: Float64Array = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
        if not checked.max() > 0.0:
            raise ValueError("sample_weight must have at least one entry above 0; all are 0")
        return checked

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """What of `params` goes to the model."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed: dict[str, Any] = getattr(process_routing(self, method, **params).estimator, method)
            return routed
        takes = has_fit_parameter(self._model(), "sample_weight")
        return {name: v for name, v in params.items() if v is not None and (name != "sample_weight" or takes)}

    def _frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _fit_model(self, X: Any, y: Any, params: dict[str, Any]) -> Float64Array:
        """Fit the model to all rows; its forecasts of each row, made without that row where there is a way."""
        routed = self._routed("fit", params)
        if self._frozen():
            self.estimator_ = self.estimator
            return self._forecasts(self.estimator_, X)
        self.estimator_ = clone(self._model()).fit(X, y, **routed)
        splits = self._splits(X, y)
        if splits is None:
            return self._forecasts(self.estimator_, X)
        out = np.asarray(self._forecasts(self.estimator_, X))
        for train, test in splits:
            part = {name: _taken(v, train, _num_samples(X)) for name, v in routed.items()}
            model = clone(self._model()).fit(_taken(X, train), y[train], **part)
            out[test] = self._forecasts(model, _taken(X, test))
        return out

    def _splits(self, X: Any, y: Any) -> Any:
        if self.cv is None:
            return None
        classifier = is_classifier(self)
        cv = self.cv
        if isinstance(cv, int):
            most = int(np.unique(y, return_counts=True)[1].min()) if classifier else len(y) // 2
            cv = min(cv, most)
            if cv < 2:
                return None  # too few rows to leave some out
        return check_cv(cv, y, classifier=classifier).split(X, y)

    def _start(self, X: Any) -> None:
        """Contexts: everybody, and the groups that were asked for, with bands and values from these rows."""
        self.groups_ = None
        if self.groups is not None:
            self.groups_ = Groups(_named(self.groups), limit=self.max_groups)
            self.groups_.fit(_columns(X, self.groups_.columns))
        self.n_functions_ = 1 if self.groups_ is None else self.groups_.n

    def _contexts(self, X: Any, weights: Float64Array | None = None, *, learn: bool = False) -> Rows:
        n = _num_samples(X)
        if self.groups_ is None:
            rows = Rows(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n))
        else:
            groups = self.groups_ if learn else copy.deepcopy(self.groups_)
            rows = groups.rows(_columns(X, groups.columns), n)
        if weights is None:
            return rows
        share = np.repeat(weights / weights.max(), np.diff(rows.indptr))
        return Rows(rows.indptr, rows.indices, rows.values * share)

    def _functions(self) -> Finite:
        return Finite(1) if self.groups_ is None else self.groups_.extended(0)

    def frame(self, X: Any) -> Any:
        """The model's forecasts and ours, as a frame of the kind that `X` is: pandas (with its index) or polars.

        Parameters
        ----------
        X : frame
            The rows to forecast.

        Returns
        -------
        frame
            One row for each, with the columns that `_columns_out` names.
        """
        columns = self._columns_out(X)
        kind = type(X).__module__.partition(".")[0]
        if kind == "polars":
            return package("polars", "a polars frame").DataFrame(columns)
        return package("pandas", "a pandas frame").DataFrame(columns, index=getattr(X, "index", None))


class MulticalibratedClassifier(ClassifierMixin, _Multicalibrated):
    """A classifier whose probabilities are calibrated given themselves and for every group.

    Guarantee: for rows that are drawn independently from one population, that of the module `online_to_batch`; for two
    classes by one forecaster, for more by one per class, moved to the nearest probability vector (see
    `swapcal.classes.Classes` for what that keeps).

    Parameters
    ----------
    estimator : estimator, optional
        The model; default `LogisticRegression()`. A `FrozenEstimator` is used as it is.
    groups : sequence, optional
        For whom: names of columns, tuples of names, comparisons, as `swapcal.Groups` takes them; for arrays, the
        numbers of columns. None: everybody. Ten level sets of the model's forecast always join.
    cv : int, splitter or None
        How forecasts of rows that the model has not seen are made; None: the model's forecasts of its own training
        rows. Not used with a `FrozenEstimator`.
    states : int
        How many states of the run the fixed predictor keeps.
    how : {"mean", "hash"}
        The mean of these states' forecasts, or a draw by a hash of the row, which keeps calibration given the forecast.
    max_groups : int
        Largest number of groups.
    random_state : int
        Seed of the draws.

    Notes
    -----
    `sample_weight` counts a row by its weight over the largest, in the model (where it takes weights) and in the
    evidence. A pass in order is not the same for rows in another order, so a weight of 2 is not the same as a row
    given twice, and weights are taken as metadata (`fit(X, y, sample_weight=...)`, or routed).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(600, random_state=0)
    >>> model = MulticalibratedClassifier(groups=[0], random_state=1).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, bool(model.score(X, y) > 0.8)
    ((2, 2), True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        groups: Any = None,
        cv: Any = 5,
        states: int = 8,
        how: str = "mean",
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.groups = groups
        self.cv = cv
        self.states = states
        self.how = how
        self.max_groups = max_groups
        self.random_state = random_state

    def _default(self) -> Any:
        return LogisticRegression()

    def fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedClassifier":
        """Fit the model, and calibrate it in one pass over the rows in order.

        Parameters
        ----------
        X : array or frame
            Features; group columns are among them.
        y : array
            Classes.
        **params
            `sample_weight`, and whatever the model's `fit` takes.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = self._validated(X, reset=True), _targets(y, X)
        weights = self._weights(X, params)
        kept = slice(None) if weights is None else weights > 0.0
        check_classification_targets(y)
        self.classes_ = np.unique(y[kept])
        self._start(X)
        if len(self.classes_) == 1:
            self.estimator_, self.forecasters_, self.mixtures_ = None, [], list[FixedPredictor]()
            return self
        hints = self._fit_model(X, y, params)
        self.forecasters_ = [self._forecaster(k, len(y)) for k in range(self._parts())]
        self.mixtures_ = []
        rows = self._contexts(X, weights, learn=True)
        for k, forecaster in enumerate(self.forecasters_):
            label, seed = self._label(y, k), seed_for(self.random_state, "states", k)
            self.mixtures_.append(fitted(forecaster, rows, label, hints[:, k], states=self.states, seed=seed))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, **params: Any) -> "MulticalibratedClassifier":
        """Forecast these rows, learn their outcomes in order, then let the model learn them; before or after `fit`.

        Parameters
        ----------
        X : array or frame
            Features.
        y : array
            Classes.
        classes : array, optional
            All classes, in the first call; default those in `y`.
        **params
            `sample_weight`, and whatever the model's `partial_fit` takes.

        Returns
        -------
        self
            The estimator, with one state: that after these rows.
        """
        first = not hasattr(self, "forecasters_")
        X, y = self._validated(X, reset=first), _targets(y, X)
        weights = self._weights(X, params)
        if first:
            check_classification_targets(y)
            self.classes_ = np.unique(y if classes is None else classes)
            if len(self.classes_) < 2:
                raise InvalidInput("the first partial_fit needs classes=[...], all that can come, or two of them in y")
            self._start(X)
            self.estimator_ = self.estimator if self._frozen() else None
            self.forecasters_ = [self._forecaster(k, None) for k in range(self._parts())]
        elif not self.forecasters_:
            raise InvalidInput("fit has seen one class only, which leaves nothing to forecast; start anew")
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InvalidInput(f"y has the class {y[unknown][0]!r}, and the classes are {self.classes_.tolist()!r}")
        hints = None if self.estimator_ is None else self._forecasts(self.estimator_, X)
        rows = self._contexts(X, weights, learn=True)
        for k, forecaster in enumerate(self.forecasters_):
            play(forecaster, rows, self._label(y, k), None if hints is None else hints[:, k])
        self.mixtures_ = [FixedPredictor([copy.deepcopy(f)], k) for k, f in enumerate(self.forecasters_)]
        self._teach(X, y, params)
        return self

    def _teach(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        if self._frozen():
            return
        model = clone(self._model()) if self.estimator_ is None else self.estimator_
        if hasattr(model, "partial_fit"):
            routed = self._routed("partial_fit", params)
            self.estimator_ = model.partial_fit(X, y, classes=self.classes_, **routed)
        elif self.estimator_ is None and len(np.unique(y)) > 1:
            self.estimator_ = model.fit(X, y, **self._routed("fit", params))

    def predict_proba(self, X: Any) -> Float64Array:
        """Calibrated probabilities of the classes; learns nothing.

        Parameters
        ----------
        X : array or frame
            Features.

        Returns
        -------
        array, rows by classes
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "mixtures_")
        X = self._validated(X, reset=False)
        if len(self.classes_) == 1:
            return np.ones((_num_samples(X), 1))
        hints = None if self.estimator_ is None else self._forecasts(self.estimator_, X)
        rows = self._contexts(X)
        columns = [
            mixture.predict(rows, None if hints is None else hints[:, k], how=self.how)
            for k, mixture in enumerate(self.mixtures_)
        ]
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        return np.array([shared_out(row) for row in np.column_stack(columns)])

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        check_is_fitted(self, "mixtures_")
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def _parts(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _label(self, y: Any, k: int) -> Float64Array:
        return np.asarray(y == self.classes_[1 if len(self.classes_) == 2 else k], dtype=np.float64)

    def _forecaster(self, k: int, horizon: int | None) -> Forecaster:
        seed = seed_for(self.random_state, k)
        return Forecaster(Probability(), self._functions(), seed=seed, horizon=horizon, outside="clip")

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        """The model's probabilities: of the second of two classes, or of all."""
        if hasattr(model, "predict_proba"):
            given = np.asarray(model.predict_proba(X), dtype=np.float64)
            p = np.zeros((len(given), len(self.classes_)))
            p[:, np.searchsorted(self.classes_, model.classes_)] = given
        else:
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
            scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        return p[:, 1:] if len(self.classes_) == 2 else p

    def _columns_out(self, X: Any) -> dict[str, Any]:
        p = self.predict_proba(X)
        return {"forecast": self.predict(X), **{f"p_{c}": p[:, k] for k, c in enumerate(self.classes_.tolist())}}


class _Numbers(RegressorMixin, _Multicalibrated):
    """What regressors and intervals share."""

    def _default(self) -> Any:
        return LinearRegression()

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)

    def _teach(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        if self._frozen():
            return
        model = clone(self._model()) if self.estimator_ is None else self.estimator_
        if hasattr(model, "partial_fit"):
            self.estimator_ = model.partial_fit(X, y, **self._routed("partial_fit", params))
        elif self.estimator_ is None:
            self.estimator_ = model.fit(X, y, **self._routed("fit", params))


class MulticalibratedRegressor(_Numbers):
    """A regressor whose forecasts of a mean, quantile, expectile or other property are calibrated for every group.

    Guarantee: for rows that are drawn independently from one population, that of the module `online_to_batch`.

    Parameters
    ----------
    estimator : estimator, optional
        The model; default `LinearRegression()`. A `FrozenEstimator` is used as it is.
    property : Elicitable or callable, optional
        What is forecast: an object with a range of its own, `Quantile(0.9, high=60)`, or something that makes one from
        a range, `functools.partial(Quantile, 0.9)`, which gets that of the training outcomes. Default: the mean.
    bins : int, optional
        Number of values that can be forecast, for outcomes that lie close together within their range.
    groups, cv, states, how, max_groups, random_state
        As for `MulticalibratedClassifier`.

    Notes
    -----
    Whatever is not a mean is forecast with an `OnlineRegression` on the model's forecast and the groups. Outcomes
    outside the range count as its nearer end. For a quantile `how="mean"` covers a little more than its level (less,
    below the median), as the mean of several quantiles does; `how="hash"` does not. `sample_weight` as for
    `MulticalibratedClassifier`.

    Examples
    --------
    >>> from functools import partial
    >>> import swapcal as sc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1 + 0.4 * (X[:, 1] > 0.5))
    >>> model = MulticalibratedRegressor(property=partial(sc.Quantile, 0.9), groups=["x1 > 0.5"], random_state=1)
    >>> below = y <= model.fit(X, y).predict(X)
    >>> bool(abs(below[X[:, 1] > 0.5].mean() - 0.9) < 0.05)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        property: Elicitable | Callable[..., Elicitable] | None = None,
        bins: int | None = None,
        groups: Any = None,
        cv: Any = 5,
        states: int = 8,
        how: str = "mean",
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.property = property
        self.bins = bins
        self.groups = groups
        self.cv = cv
        self.states = states
        self.how = how
        self.max_groups = max_groups
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedRegressor":
        """Fit the model, and calibrate it in one pass over the rows in order; as for `MulticalibratedClassifier`."""
        X, y = self._validated(X, reset=True), _numbers(y, X)
        weights = self._weights(X, params)
        self._start(X)
        hints = self._fit_model(X, y, params)
        self.forecaster_ = self._forecaster(y, len(y))
        rows, seed = self._contexts(X, weights, learn=True), seed_for(self.random_state, "states")
        self.mixture_ = fitted(self.forecaster_, rows, y, hints, states=self.states, seed=seed)
        return self

    def partial_fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedRegressor":
        """Forecast these rows, learn their outcomes in order, then let the model learn them; before or after `fit`."""
        first = not hasattr(self, "forecaster_")
        X, y = self._validated(X, reset=first), _numbers(y, X)
        weights = self._weights(X, params)
        if first:
            self._start(X)
            self.estimator_ = self.estimator if self._frozen() else None
            self.forecaster_ = self._forecaster(y, None)
        hints = None if self.estimator_ is None else self._forecasts(self.estimator_, X)
        play(self.forecaster_, self._contexts(X, weights, learn=True), y, hints)
        self.mixture_ = FixedPredictor([copy.deepcopy(self.forecaster_)], self.random_state)
        self._teach(X, y, params)
        return self

    def predict(self, X: Any) -> Float64Array:
        """Calibrated forecasts; learns nothing."""
        check_is_fitted(self, "mixture_")
        X = self._validated(X, reset=False)
        hints = None if self.estimator_ is None else self._forecasts(self.estimator_, X)
        return self.mixture_.predict(self._contexts(X), hints, how=self.how)

    def _forecaster(self, y: Float64Array, horizon: int | None) -> Forecaster:
        low, high = _range(y)
        make = Mean if self.property is None else self.property
        made = make(low=low, high=high) if callable(make) else make
        # A model usually forecasts a mean; what else is asked for is learned from it.
        guide = None if isinstance(made, Mean) else OnlineRegression()
        settings: dict[str, Any] = {"horizon": horizon, "bins": self.bins, "outside": "clip", "hint": guide}
        return Forecaster(made, self._functions(), seed=seed_for(self.random_state, "forecaster"), **settings)

    def _columns_out(self, X: Any) -> dict[str, Any]:
        return {"model": self._forecasts(self.estimator_, X), "forecast": self.predict(X)}


class MulticalibratedInterval(_Numbers):
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
        X, y = self._validated(X, reset=True), _numbers(y, X)
        weights = self._weights(X, params)
        self._start(X)
        hints = self._fit_model(X, y, params)
        self.interval_ = self._interval(np.abs(y - hints), len(y))
        self.states_ = self._learn(X, y, hints, weights, chosen(len(y), self.states, self._seed("states")))
        return self

    def partial_fit(self, X: Any, y: Any, **params: Any) -> "MulticalibratedInterval":
        """Forecast these rows, learn their outcomes in order, then let the model learn them; before or after `fit`."""
        first = not hasattr(self, "interval_")
        X, y = self._validated(X, reset=first), _numbers(y, X)
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


def _targets(y: Any, X: Any) -> Any:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if type_of_target(y) in ("continuous", "continuous-multioutput"):
        raise ValueError(f"Unknown label type: {type_of_target(y)}; a classifier needs classes, a regressor numbers")
    _same_length(y, X)
    return y


def _numbers(y: Any, X: Any) -> Float64Array:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity")
    _same_length(numbers, X)
    return numbers


def _same_length(y: Any, X: Any) -> None:
    if len(y) != _num_samples(X):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(y)}; they must be equally many")


def _range(y: Float64Array) -> tuple[float, float]:
    low, high = float(y.min()), float(y.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _taken(values: Any, rows: Any, of: int | None = None) -> Any:
    """Some rows of an array, frame or list; what has another length goes on as it is."""
    if of is not None and (not hasattr(values, "__len__") or len(values) != of):
        return values
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[i] for i in rows]


def _named(groups: Any) -> Any:
    """Numbers of columns as the names x0, x1, ... that scikit-learn gives them."""
    if not isinstance(groups, (list, tuple)):
        return groups
    name = lambda part: f"x{part}" if isinstance(part, (int, np.integer)) else part  # noqa: E731
    return [tuple(map(name, each)) if isinstance(each, tuple) else name(each) for each in groups]


def _columns(X: Any, names: Any) -> Any:
    """The columns that groups are made from: of a frame by name, or by number where it has no such name."""
    if hasattr(X, "columns"):
        own = [str(name) for name in X.columns]
        if all(name in own for name in names):
            return X
        X = {f"x{j}": X[name] for j, name in enumerate(X.columns)} | {str(name): X[name] for name in X.columns}
    else:
        X = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    missing = [name for name in names if name not in X]
    if missing:
        raise InvalidInput(f"there is no column {missing[0]!r} for a group; there are {', '.join(map(repr, X))}")
    return {name: np.asarray(X[name]) for name in names}
