"""A classifier around any river classifier, calibrated for every group."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import base, linear_model, preprocessing

from swapcal.classes import shared_out
from swapcal.compat.river.around_model import AroundModel, mean_of_two, records_of, share_of
from swapcal.engine.randomness import seed_for
from swapcal.forecaster import Forecaster
from swapcal.properties import Probability
from swapcal.tables.extras import package

__all__ = ["MulticalibratedClassifier"]


class MulticalibratedClassifier(AroundModel, base.MiniBatchClassifier):
    """A classifier whose probabilities are calibrated for every group, on top of any classifier.

    Two truth values have one forecaster; other classes have one each, from when they are first seen, and the
    probabilities are the nearest probability vector (see `swapcal.classes.Classes` for what that keeps).

    Parameters
    ----------
    model
        A classifier or pipeline; it keeps learning.
    groups
        For whom: names of features, tuples of names, comparisons, as `swapcal.Groups` takes them; None: everybody.
    max_groups
        Largest number of groups.
    seed
        Of the draws.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = MulticalibratedClassifier(model, groups=["anchor_from_other_domain"], seed=1)
    >>> bool(evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC(), delay=10).get() > 0.9)
    True
    """

    def __init__(self, model: base.Classifier, groups: Any = None, max_groups: int = 1000, seed: int = 0) -> None:
        self.model = model
        self.groups = groups
        self.max_groups = max_groups
        self.seed = seed
        self._start()
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
        p = {label: mean_of_two(f, context, share_of(own, label)) for label, f in self._forecasters.items()}
        if set(self._forecasters) == {True} and isinstance(next(iter(self._forecasters)), bool):
            return {False: 1.0 - p[True], True: p[True]}
        return dict(zip(p, shared_out(list(p.values())).tolist(), strict=True))

    def learn_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> None:
        """Forecast, learn the class, and let the model learn it."""
        label = bool(y) if isinstance(y, (bool, np.bool_)) else y
        own = self.model.predict_proba_one(x)
        truth = isinstance(label, bool) and all(isinstance(each, bool) for each in self._seen)
        if label not in self._seen:
            self._seen.append(label)
        for each in [True] if truth else self._seen:
            if each not in self._forecasters:
                seed = seed_for(self.seed, len(self._forecasters))
                self._forecasters[each] = Forecaster(Probability(), self._functions, seed=seed, outside="clip")
        context = self._context(x, learn=True)
        for each, forecaster in self._forecasters.items():
            forecaster.update(forecaster.predict(context, hint=share_of(own, each)), float(label == each))
        self.model.learn_one(x, y, **kwargs)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Probabilities of many rows of a pandas frame; changes nothing."""
        pandas = package("pandas", "mini-batches", extra="river")
        return pandas.DataFrame([self.predict_proba_one(x, **kwargs) for x in records_of(X)], index=X.index)

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """The likeliest class of many rows of a pandas frame."""
        pandas = package("pandas", "mini-batches", extra="river")
        return pandas.Series([self.predict_one(x, **kwargs) for x in records_of(X)], index=X.index)

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn the rows of a pandas frame, one after the other."""
        for x, label in zip(records_of(X), y, strict=True):
            self.learn_one(x, label, **kwargs)
