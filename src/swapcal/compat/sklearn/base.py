"""What the estimators share: the model, its forecasts, contexts from columns, weights, routing."""

import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, validation
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d, has_fit_parameter, validate_data

from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Groups
from swapcal.inputs import other_units
from swapcal.intervals import Interval
from swapcal.protocols import Rows
from swapcal.sparse import CompressedRows
from swapcal.tables.sources import package
from swapcal.typing import Float64Array


def targets(y: Any, X: Any, *, classes: bool) -> Any:
    """Classes or finite numbers, one for each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if classes and type_of_target(y) in ("continuous", "continuous-multioutput"):
        raise ValueError(f"Unknown label type: {type_of_target(y)}; a classifier needs classes, a regressor numbers")
    y = y if classes else np.asarray(y, dtype=np.float64)
    if not classes and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity")
    if len(y) != _num_samples(X):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(y)}; they must be equally many")
    return y


def range_of(y: Float64Array) -> tuple[float, float]:
    """Smallest and largest outcome, apart also where all are equal."""
    low, high = float(y.min()), float(y.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def named(groups: Any) -> Any:
    """Numbers of columns as the names x0, x1, ... that scikit-learn gives them."""
    if not isinstance(groups, (list, tuple)):
        return groups
    name = lambda part: f"x{part}" if isinstance(part, (int, np.integer)) else part  # noqa: E731
    return [tuple(map(name, each)) if isinstance(each, tuple) else name(each) for each in groups]


def columns_of(X: Any, names: Any) -> Any:
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


def learn(model: Forecaster | Interval, X: CompressedRows, y: Float64Array, hints: Float64Array | None) -> None:
    """Forecast rows and learn their outcomes in order; of what shows a share, each a tenth of the rows late.

    What is fitted once is used long after its last lesson. So corrections are judged on rows that were forecast long
    after theirs, and what helps the next row only is not shown. Intervals around one number have no shares.
    """
    n, first = len(y), model.rounds.issued
    if isinstance(model, Forecaster) and hints is not None and n >= 20:  # fewer say nothing about units
        problem = other_units(hints, *model.property.domain, "of the model", "y")
        if problem is not None:
            raise InvalidInput(problem)
    late = n // 10 if isinstance(model, Forecaster) else 0
    waits = np.arange(n) >= n - late
    labels, known = np.where(waits, np.nan, y), np.arange(n) + late
    model.run(X, labels, None if hints is None else steady(hints), missing="skip", known=known, waits=waits)
    model.fill_in(first + np.flatnonzero(waits), y[waits])


def steady(hints: Float64Array) -> Float64Array:
    """The hints with 30 bits: a model's last ones differ from batch to batch, and the answer should not.

    Examples
    --------
    >>> float(steady(np.array([0.1 + 0.2]))[0]) == float(steady(np.array([0.3]))[0])
    True
    """
    fractions, exponents = np.frexp(hints)
    rounded: Float64Array = np.ldexp(np.round(fractions * 2.0**30) / 2.0**30, exponents)
    return rounded


class AroundEstimator(MetaEstimatorMixin, BaseEstimator):
    """What the three share: the model, its forecasts, contexts from columns, weights, routing."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        groups: Any = None,
        cv: Any = 5,
        protect: str = "loss",
        budget: float | None = None,
        max_groups: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.groups = groups
        self.cv = cv
        self.protect = protect
        self.budget = budget
        self.max_groups = max_groups
        self.random_state = random_state

    estimator_: Any

    __metadata_request__fit: ClassVar = {"sample_weight": None}
    __metadata_request__partial_fit: ClassVar = {"sample_weight": None}

    def get_metadata_routing(self) -> Any:
        """Who gets which metadata: this estimator and the model, in `fit` and `partial_fit`."""
        fits = MethodMapping().add(caller="fit", callee="fit").add(caller="partial_fit", callee="partial_fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._model(), method_mapping=fits)

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the model, and calibrate it in one pass over the rows in order.

        Parameters
        ----------
        X : array or frame
            Features; group columns are among them.
        y : array
            Classes, or outcomes.
        **params
            `sample_weight`, and whatever the model's `fit` takes.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = self._validated(X, reset=True), targets(y, X, classes=is_classifier(self))
        weights = self._weights(X, params)
        self._start(X)
        if self._has_a_question(y if weights is None else y[weights > 0.0]):
            hints = self._fit_model(X, y, params)
            self._begin(y, hints, len(y))
            rows = self._contexts(X, weights, learn=True)
            self._learn(rows, y, hints)
            self._settle(rows, y, hints)
        return self

    def _has_a_question(self, y: Any) -> bool:
        """Whether these outcomes leave anything to forecast."""
        return True

    def _begin(self, y: Any, hints: Float64Array | None, horizon: int | None) -> None:
        """Make what forecasts."""
        raise NotImplementedError

    def _settings(self, horizon: int | None) -> dict[str, Any]:
        """Of whatever forecasts."""
        return {"horizon": horizon, "protect": self.protect, "budget": self.budget}

    def _learn(self, rows: CompressedRows, y: Any, hints: Float64Array | None) -> None:
        """Play the rows in order."""
        raise NotImplementedError

    def _settle(self, rows: CompressedRows, y: Any, hints: Float64Array) -> None:
        """What is left to do once all rows of `fit` are learned."""

    def _default(self) -> Any:
        raise NotImplementedError

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        raise NotImplementedError

    def _hints(self, X: Any) -> Float64Array | None:
        """The model's forecasts of rows, if there is a model yet."""
        return None if self.estimator_ is None else self._forecasts(self.estimator_, X)

    def _teach(self, X: Any, y: Any, params: dict[str, Any], **known: Any) -> None:
        """Let the model learn rows, where it can; `known` goes to its `partial_fit`."""
        if self._frozen():
            return
        model = clone(self._model()) if self.estimator_ is None else self.estimator_
        if hasattr(model, "partial_fit"):
            self.estimator_ = model.partial_fit(X, y, **known, **self._routed("partial_fit", params))
        elif self.estimator_ is None and (not known or len(np.unique(y)) > 1):
            self.estimator_ = model.fit(X, y, **self._routed("fit", params))

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
        out = np.asarray(self._forecasts(self.estimator_, X))
        for train, test in self._splits(X, y):
            part = validation._check_method_params(X, routed, indices=train)
            model = clone(self._model()).fit(_safe_indexing(X, train), y[train], **part)
            out[test] = self._forecasts(model, _safe_indexing(X, test))
        return out

    def _splits(self, X: Any, y: Any) -> Any:
        """Who forecasts whom: nobody without `cv`, or where there are too few rows to leave some out."""
        cv, classifier = self.cv, is_classifier(self)
        if isinstance(cv, int):
            most = int(np.unique(y, return_counts=True)[1].min()) if classifier else len(y) // 2
            cv = min(cv, most)
        if cv is None or (isinstance(cv, int) and cv < 2):
            return ()
        return check_cv(cv, y, classifier=classifier).split(X, y)

    def _start(self, X: Any) -> None:
        """Contexts: all rows, and the groups that were asked for, with bands and values from these rows."""
        self.estimator_ = self.estimator if self._frozen() else None
        self.groups_ = None
        if self.groups is not None:
            self.groups_ = Groups(named(self.groups), limit=self.max_groups)
            self.groups_.fit(columns_of(X, self.groups_.columns))
        self.n_functions_ = 1 if self.groups_ is None else self.groups_.n

    def _contexts(self, X: Any, weights: Float64Array | None = None, *, learn: bool = False) -> CompressedRows:
        n = _num_samples(X)
        if self.groups_ is None:
            rows = Rows(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n))
        else:
            groups = self.groups_ if learn else copy.deepcopy(self.groups_)
            rows = groups.rows(columns_of(X, groups.columns), n)
        share = 1.0 if weights is None else np.repeat(weights / weights.max(), np.diff(rows.indptr))
        return CompressedRows(rows.indptr, rows.indices, rows.values * share, (n, self.n_functions_))

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


class AroundRegressor(RegressorMixin, AroundEstimator):
    """What regressors and intervals share; `_machine` is the attribute that holds what forecasts."""

    _machine: ClassVar[str]

    def _default(self) -> Any:
        return LinearRegression()

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)

    def partial_fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Forecast these rows, learn their outcomes in order, then let the model learn them; before or after `fit`."""
        first = not hasattr(self, self._machine)
        X, y = self._validated(X, reset=first), targets(y, X, classes=False)
        weights = self._weights(X, params)
        if first:
            self._start(X)
            self._begin(y, None, None)
        self._learn(self._contexts(X, weights, learn=True), y, self._hints(X))
        self._teach(X, y, params)
        return self
