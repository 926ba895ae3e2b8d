"""A classifier around any other, calibrated for every group."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from swapcal.classes import shared_out
from swapcal.compat.sklearn.base import AroundEstimator, learn, steady, targets
from swapcal.engine.kernels import seed_for
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.properties import Probability
from swapcal.sparse import CompressedRows
from swapcal.typing import Float64Array


class MulticalibratedClassifier(ClassifierMixin, AroundEstimator):
    """A classifier whose probabilities are calibrated given themselves and for every group.

    Guarantee: that of `Forecaster` for the rows of `fit` and `partial_fit`, forecast as a stream; for two classes by
    one forecaster, for more by one per class, moved to the nearest probability vector (see `swapcal.classes.Classes`
    for what that keeps). `predict_proba` gives the mean of what the last state would draw from, and learns nothing: of
    this there is a measurement, docs/wrapper.md, and no theorem.

    Parameters
    ----------
    estimator : estimator, optional
        The model; default `LogisticRegression()`. A `FrozenEstimator` is used as it is.
    groups : sequence, optional
        For whom: names of columns, tuples of names, comparisons, as `swapcal.Groups` takes them; for arrays, the
        numbers of columns. None: all rows. Ten level sets of the model's forecast always join.
    cv : int, splitter or None
        How forecasts of rows that the model has not seen are made; None: the model's forecasts of its own training
        rows. Not used with a `FrozenEstimator`.
    protect : {"loss", "calibration", "nothing"}
    budget : float, optional
        How much of the correction is shown, and what it may cost, as for `Forecaster`.
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
        self.forecasters_ = list[Forecaster]()
        return len(self.classes_) > 1

    def _begin(self, y: Any, hints: Float64Array | None, horizon: int | None) -> None:
        settings = {"outside": "clip", **self._settings(horizon)}
        seeds = [seed_for(self.random_state, k) for k in range(1 if len(self.classes_) == 2 else len(self.classes_))]
        self.forecasters_ = [
            Forecaster(Probability(), self._functions(), seed=seed, hint=OnlineRegression(), **settings)
            for seed in seeds
        ]

    def _learn(self, rows: CompressedRows, y: Any, hints: Float64Array | None) -> None:
        for k, forecaster in enumerate(self.forecasters_):
            label = np.asarray(y == self.classes_[1 if len(self.classes_) == 2 else k], dtype=np.float64)
            learn(forecaster, rows, label, None if hints is None else hints[:, k])

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
            The estimator.
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
        self._learn(self._contexts(X, weights, learn=True), y, self._hints(X))
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
        check_is_fitted(self, "forecasters_")
        X = self._validated(X, reset=False)
        if len(self.classes_) == 1:
            return np.ones((_num_samples(X), 1))
        hints, rows = self._hints(X), self._contexts(X)
        columns = [
            forecaster.expected(rows, None if hints is None else steady(hints[:, k]))
            for k, forecaster in enumerate(self.forecasters_)
        ]
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        return np.array([shared_out(row) for row in np.column_stack(columns)])

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        check_is_fitted(self, "forecasters_")
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
