"""A classifier around any other, calibrated for every group."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from swapcal.classes import shared_out
from swapcal.compat.batch import FixedPredictor, fitted
from swapcal.compat.sklearn.base import AroundEstimator, targets
from swapcal.engine.kernels import seed_for
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.properties import Probability
from swapcal.protocols import Rows
from swapcal.typing import Float64Array


class MulticalibratedClassifier(ClassifierMixin, AroundEstimator):
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

    def _default(self) -> Any:
        return LogisticRegression()

    def _has_a_question(self, y: Any) -> bool:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        self.forecasters_, self.mixtures_ = list[Forecaster](), list[FixedPredictor]()
        return len(self.classes_) > 1

    def _begin(self, y: Any, hints: Float64Array | None, horizon: int | None) -> None:
        settings: dict[str, Any] = {"horizon": horizon, "outside": "clip"}
        seeds = [seed_for(self.random_state, k) for k in range(1 if len(self.classes_) == 2 else len(self.classes_))]
        self.forecasters_ = [
            Forecaster(Probability(), self._functions(), seed=seed, protect="nothing", **settings) for seed in seeds
        ]

    def _learn(self, rows: Rows, y: Any, hints: Float64Array | None, *, states: int) -> None:
        self.mixtures_ = []
        for k, forecaster in enumerate(self.forecasters_):
            label = np.asarray(y == self.classes_[1 if len(self.classes_) == 2 else k], dtype=np.float64)
            seed = seed_for(self.random_state, "states", k) if states else k
            own = None if hints is None else hints[:, k]
            self.mixtures_.append(fitted(forecaster, rows, label, own, states=states, seed=seed))

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
        X, y = self._validated(X, reset=first), targets(y, X, classes=True)
        weights = self._weights(X, params)
        if first:
            known = np.unique(y if classes is None else classes)
            if len(known) < 2:
                raise InvalidInput("the first partial_fit needs classes=[...], all that can come, or two of them in y")
            self._has_a_question(known)
            self._start(X)
            self._begin(y, None, None)
        elif not self.forecasters_:
            raise InvalidInput("fit has seen one class only, which leaves nothing to forecast; start anew")
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InvalidInput(f"y has the class {y[unknown][0]!r}, and the classes are {self.classes_.tolist()!r}")
        self._learn(self._contexts(X, weights, learn=True), y, self._hints(X), states=0)
        self._teach(X, y, params, classes=self.classes_)
        return self

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
        hints, rows = self._hints(X), self._contexts(X)
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

    def _forecasts(self, model: Any, X: Any) -> Float64Array:
        """The model's probabilities: of the second of two classes, or of all."""
        if hasattr(model, "predict_proba"):
            known = np.asarray(model.predict_proba(X), dtype=np.float64)
            p = np.zeros((len(known), len(self.classes_)))
            p[:, np.searchsorted(self.classes_, model.classes_)] = known
        else:
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
            scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        return p[:, 1:] if len(self.classes_) == 2 else p

    def _columns_out(self, X: Any) -> dict[str, Any]:
        p = self.predict_proba(X)
        return {"forecast": self.predict(X), **{f"p_{c}": p[:, k] for k, c in enumerate(self.classes_.tolist())}}
