"""river models around any river model, whose prediction is the hint and which keeps learning; and metrics.

`predict_one` is pure, as river asks, and gives the mean of the two values that a forecast would be drawn from;
`learn_one` plays the round. What that keeps is in docs/deterministic.md: calibration for every group, smooth in the
forecast, against any adversary. Where an outcome comes late, `forecast_one` plays the round when the forecast is
needed, and `learn_one(x, y, forecast=...)` learns of it: so corrections are judged on what was known then.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from river import base, conf, linear_model, metrics, preprocessing

from swapcal.audits import Audit
from swapcal.classes import shared_out
from swapcal.deterministic import expected
from swapcal.engine.kernels import seed_for
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Groups
from swapcal.intervals import Interval
from swapcal.properties import Expectile, Mean, Probability, Quantile
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.tables.sources import package


class AroundModel(base.Wrapper[Any]):
    """What the three share: the model, and contexts from features by name."""

    predict_one: Any
    learn_one: Any
    _dtype: type | None = None

    def __init__(
        self, model: Any, groups: Any, max_groups: int, seed: int, protect: str = "loss", budget: float | None = None
    ) -> None:
        self.model = model
        self.groups = groups
        self.max_groups = max_groups
        self.seed = seed
        self.protect = protect
        self.budget = budget
        self._hypotheses: Any = Finite(1) if groups is None else Groups(groups, limit=max_groups, absent="missing")
        self._functions: Hypotheses = self._hypotheses.extended(0)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    def _learning(self, property: Elicitable, seed: int, outside: str) -> Forecaster:
        settings: dict[str, Any] = {"protect": self.protect, "budget": self.budget, "outside": outside}
        return Forecaster(property, self._functions, seed=seed, hint=OnlineRegression(), **settings)

    def _context(self, x: dict[Any, Any], *, learn: bool) -> Any:
        if self.groups is None:
            return [1.0]
        return self._hypotheses.row(x) if learn else self._hypotheses.peek(x)

    def forecast_one(self, x: dict[Any, Any]) -> Any:
        """Open the round of a case whose outcome comes after other forecasts: `learn_one` takes what this returns."""
        raise NotImplementedError

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Forecasts of many rows of a pandas frame; changes nothing."""
        forecasts = [self.predict_one(x, **kwargs) for x in records_of(X)]
        return _pandas().Series(forecasts, index=X.index, dtype=self._dtype)

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn the rows of a pandas frame, one after the other."""
        for x, label in zip(records_of(X), y, strict=True):
            self.learn_one(x, label, **kwargs)


class AroundRiverRegressor(AroundModel, base.MiniBatchRegressor):
    """What regressors and intervals share."""

    _dtype = float

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)}
        yield {"model": preprocessing.StandardScaler() | linear_model.PARegressor()}


def _pandas() -> Any:
    return package("pandas", "mini-batches", extra="river")


def number_or_none(value: Any) -> float | None:
    """The model's prediction as a hint; None where there is none."""
    return float(value) if value is not None and math.isfinite(value) else None


def records_of(X: Any) -> list[dict[Any, Any]]:
    """The rows of a pandas frame, as river has cases."""
    records: list[dict[Any, Any]] = X.to_dict(orient="records")
    return records


class MulticalibratedClassifier(AroundModel, base.MiniBatchClassifier):
    """A classifier whose probabilities are calibrated for every group, on top of any classifier.

    Two truth values have one forecaster; other classes have one each, from when they are first seen, and the
    probabilities are the nearest probability vector (see `swapcal.classes.Classes` for what that keeps).

    Parameters
    ----------
    model
        A classifier or pipeline; it keeps learning.
    groups
        For whom: names of features, tuples of names, comparisons, as `swapcal.Groups` takes them; None: all rows.
    max_groups
        Largest number of groups.
    seed
        Of the draws.
    protect, budget
        How much of the correction is shown, and what it may cost, as for `swapcal.Forecaster`.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = MulticalibratedClassifier(model, groups=["anchor_from_other_domain"], seed=1)
    >>> bool(evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC(), delay=10).get() > 0.9)
    True
    """

    def __init__(
        self,
        model: base.Classifier,
        groups: Any = None,
        max_groups: int = 1000,
        seed: int = 0,
        protect: str = "loss",
        budget: float | None = None,
    ) -> None:
        super().__init__(model, groups, max_groups, seed, protect, budget)
        self._forecasters: dict[Any, Forecaster] = {}
        self._seen: list[Any] = []

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"model": preprocessing.StandardScaler() | linear_model.SoftmaxRegression()}

    @property
    def _multiclass(self) -> bool:
        return bool(getattr(self.model, "_multiclass", False))

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Calibrated probabilities of the classes seen so far; changes nothing."""
        own = self.model.predict_proba_one(x, **kwargs)
        if not self._forecasters:
            return dict(own)
        context = self._context(x, learn=False)
        p = {label: expected(f, context, number_or_none(own.get(label))) for label, f in self._forecasters.items()}
        if set(self._forecasters) == {True} and isinstance(next(iter(self._forecasters)), bool):
            return {False: 1.0 - p[True], True: p[True]}
        return dict(zip(p, shared_out(list(p.values())).tolist(), strict=True))

    def forecast_one(self, x: dict[Any, Any]) -> dict[Any, Forecast]:
        """A forecast for each class seen so far; the numbers to act on are those of `predict_proba_one`.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        dict
            For `learn_one(x, y, forecast=...)` when the class is known.
        """
        own, context = self.model.predict_proba_one(x), self._context(x, learn=True)
        return {k: f.predict(context, hint=number_or_none(own.get(k))) for k, f in self._forecasters.items()}

    def learn_one(self, x: dict[Any, Any], y: Any, forecast: Any = None, **kwargs: Any) -> None:
        """Learn the class of a case, which is forecast now where it has no `forecast`, and let the model learn it."""
        label = bool(y) if isinstance(y, (bool, np.bool_)) else y
        truth = isinstance(label, bool) and all(isinstance(each, bool) for each in self._seen)
        if label not in self._seen:
            self._seen.append(label)
        for each in [True] if truth else self._seen:
            if each not in self._forecasters:
                seed = seed_for(self.seed, len(self._forecasters))
                self._forecasters[each] = self._learning(Probability(), seed, "clip")
        # Classes that came up after the forecast have none.
        for each, part in (self.forecast_one(x) if forecast is None else forecast).items():
            self._forecasters[each].update(part, float(label == each))
        self.model.learn_one(x, y, **kwargs)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Probabilities of many rows of a pandas frame; changes nothing."""
        return _pandas().DataFrame([self.predict_proba_one(x, **kwargs) for x in records_of(X)], index=X.index)


# So many outcomes settle the range where none is given.
_WARM = 20


class MulticalibratedRegressor(AroundRiverRegressor):
    """Forecasts of a mean, quantile, expectile or other property, calibrated for every group, on top of any regressor.

    Parameters
    ----------
    model
        A regressor or pipeline; it keeps learning.
    property
        What is forecast, with its range, `Quantile(0.9, high=60)`. None: the mean, over the range of the first 20
        outcomes and as much again on either side, which follows later ones; until then the model's own predictions are
        given.
    groups
        For whom, as for `MulticalibratedClassifier`.
    max_groups
        Largest number of groups.
    seed
        Of the draws.
    protect, budget
        How much of the correction is shown, and what it may cost, as for `swapcal.Forecaster`.

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
        protect: str = "loss",
        budget: float | None = None,
    ) -> None:
        super().__init__(model, groups, max_groups, seed, protect, budget)
        self.property = property
        self._first: list[float] = []
        self._forecaster = None if property is None else self._make(property, "clip")

    def _make(self, property: Elicitable, outside: str) -> Forecaster:
        seed = seed_for(self.seed, "regressor")
        return self._learning(property, seed, outside)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> float:
        """The calibrated forecast; changes nothing."""
        own = self.model.predict_one(x, **kwargs)
        if self._forecaster is None:
            return float(own)
        return expected(self._forecaster, self._context(x, learn=False), number_or_none(own))

    def forecast_one(self, x: dict[Any, Any]) -> Forecast | None:
        """A forecast for `learn_one(x, y, forecast=...)`; None while outcomes have not settled the range."""
        if self._forecaster is None:
            return None
        return self._forecaster.predict(self._context(x, learn=True), hint=number_or_none(self.model.predict_one(x)))

    def learn_one(self, x: dict[Any, Any], y: float, forecast: Any = None, **kwargs: Any) -> None:
        """Learn the outcome of a case, which is forecast now where it has no `forecast`, and let the model learn it."""
        forecast = self.forecast_one(x) if forecast is None else forecast
        if self._forecaster is None:
            self._first.append(float(y))
            if len(self._first) == _WARM:
                low, high = min(self._first), max(self._first)
                margin = (high - low) or max(abs(high), 1.0)
                self._forecaster = self._make(Mean(low=low - margin, high=high + margin), "follow")
        else:
            self._forecaster.update(forecast, float(y))
        self.model.learn_one(x, y, **kwargs)


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
        super().__init__(model, groups, max_groups, seed)
        self.coverage = coverage
        self._interval = Interval(coverage, self._functions, seed=seed_for(seed, "interval"))

    def predict_one(self, x: dict[Any, Any], with_interval: bool = False, **kwargs: Any) -> Any:
        """The model's own prediction, or with `with_interval` a `river.conf.Interval`; changes nothing."""
        own = self.model.predict_one(x, **kwargs)
        if not with_interval:
            return own
        lower, upper = self._interval.expected(self._context(x, learn=False), number_or_none(own)).tolist()
        return conf.Interval(lower=lower, upper=upper)

    def forecast_one(self, x: dict[Any, Any]) -> Any:
        """An interval for `learn_one(x, y, forecast=...)`."""
        return self._interval.predict(self._context(x, learn=True), number_or_none(self.model.predict_one(x)))

    def learn_one(self, x: dict[Any, Any], y: float, forecast: Any = None, **kwargs: Any) -> None:
        """Learn the outcome of a case, which is forecast now where it has no `forecast`, and let the model learn it."""
        self._interval.update(self.forecast_one(x) if forecast is None else forecast, float(y))
        self.model.learn_one(x, y, **kwargs)


class _PropertyLoss(metrics.base.MeanMetric, metrics.base.RegressionMetric):
    """Mean loss of forecasts of a property that has a level."""

    _property: type[Quantile | Expectile]

    def __init__(self, level: float = 0.5) -> None:
        super().__init__()
        self.level = level

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        return float(self._property(self.level).loss(float(y_pred), float(y_true)))


class PinballLoss(_PropertyLoss):
    """Mean pinball loss of forecasts of a quantile.

    Parameters
    ----------
    level
        Of the quantile.

    Examples
    --------
    >>> metric = PinballLoss(0.9)
    >>> for y, p in [(1.0, 2.0), (4.0, 2.0)]:
    ...     metric.update(y, p)
    >>> metric
    PinballLoss: 0.95
    """

    _property = Quantile


class ExpectileLoss(_PropertyLoss):
    """Mean asymmetric squared loss of forecasts of an expectile.

    Parameters
    ----------
    level
        Of the expectile.

    Examples
    --------
    >>> metric = ExpectileLoss(0.8)
    >>> for y, p in [(1.0, 2.0), (4.0, 2.0)]:
    ...     metric.update(y, p)
    >>> metric
    ExpectileLoss: 1.7
    """

    _property = Expectile


class _GroupMetric(metrics.base.RegressionMetric):
    """An error over groups: it takes no weights, and no round back."""

    _what: str

    @property
    def works_with_weights(self) -> bool:
        """False."""
        return False

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Not possible: an error over groups cannot forget."""
        raise NotImplementedError(f"{self._what} cannot take a round back; start a new metric")


class SwapError(_GroupMetric):
    """The swap multicalibration error of forecasts so far, a total over the rounds.

    Groups are functions of the features, which river's `evaluate` does not pass on: there they are all rows. In a loop
    of your own give them, `metric.update(y, p, x=x)`.

    Parameters
    ----------
    property
        What was forecast, with its range; default the probability.
    groups
        For whom, as for `MulticalibratedClassifier`.
    bins
        Forecasts are rounded to the mid-points of so many bins.

    Examples
    --------
    >>> metric = SwapError(groups=["old"], bins=10)
    >>> for old, y in [(True, 1), (True, 1), (False, 0), (False, 1)]:
    ...     metric.update(y, 0.45, x={"old": old})
    >>> metric
    SwapError: 0.36
    """

    _what = "a swap error"

    def __init__(self, property: Elicitable | None = None, groups: Any = None, bins: int = 20) -> None:
        self.property = property
        self.groups = groups
        self.bins = bins
        functions = None if groups is None else Groups(groups, absent="missing")
        self._audit = Audit(Probability() if property is None else property, functions, bins=bins)

    def works_with(self, model: Any) -> bool:
        """For every model that forecasts numbers or probabilities of truth values."""
        return isinstance(model, (base.Regressor, base.Classifier))

    @property
    def requires_labels(self) -> bool:
        """False: it is given probabilities."""
        return False

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0, x: Any = None) -> None:
        """Add a round; probabilities may be those of `predict_proba_one`."""
        if isinstance(y_pred, dict):
            y_pred = y_pred.get(True, 0.0)
        if self.groups is None:
            self._audit.update(float(y_true), float(y_pred))
        else:
            self._audit.update(float(y_true), float(y_pred), {} if x is None else x)

    def get(self) -> float:
        """The error so far."""
        return self._audit.swap_multicalibration()


class GroupCoverage(_GroupMetric):
    """How far the worst group's coverage is from what was asked for.

    Parameters
    ----------
    coverage
        The share of outcomes that intervals are to cover.
    groups
        For whom, as for `MulticalibratedClassifier`; features are given as `metric.update(y, interval, x=x)`.
    at_least
        Groups with fewer rounds are left out.

    Examples
    --------
    >>> from river import conf
    >>> metric = GroupCoverage(0.9, groups=["old"])
    >>> for old, y in [(True, 1.0), (True, 3.0), (False, 1.5), (False, 1.7)]:
    ...     metric.update(y, conf.Interval(0.0, 2.0), x={"old": old})
    >>> metric, metric.groups_covered()
    (GroupCoverage: 0.4, {'all': 0.75, 'old=True': 0.5, 'old=False': 1.0})
    """

    _what = "a coverage over groups"

    def __init__(self, coverage: float = 0.9, groups: Any = None, at_least: int = 1) -> None:
        self.coverage = coverage
        self.groups = groups
        self.at_least = at_least
        self._functions = Groups([] if groups is None else groups, absent="missing")
        self._counts: dict[int, list[float]] = {}

    def update(self, y_true: float, y_pred: Any, w: float = 1.0, x: Any = None) -> None:
        """Add a round: an outcome and a `river.conf.Interval`, or anything with `lower` and `upper`."""
        if not hasattr(y_pred, "lower"):
            raise InvalidInput("GroupCoverage takes intervals: predict_one(x, with_interval=True)")
        covered = float(y_pred.lower <= y_true <= y_pred.upper)
        for j in self._functions.row({} if x is None else x).indices.tolist():
            tally = self._counts.setdefault(j, [0.0, 0.0])
            tally[0], tally[1] = tally[0] + covered, tally[1] + 1.0

    def groups_covered(self) -> dict[str, float]:
        """The coverage of every group that is large enough."""
        names = self._functions.names
        return {names[j]: hits / n for j, (hits, n) in sorted(self._counts.items()) if n >= self.at_least}

    def get(self) -> float:
        """The largest distance from the coverage asked for."""
        return max((abs(share - self.coverage) for share in self.groups_covered().values()), default=0.0)
