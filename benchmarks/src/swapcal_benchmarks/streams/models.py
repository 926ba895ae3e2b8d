"""The frozen models: gradient boosting as scikit-learn has it, with its defaults, trained on the first fifth."""

from typing import Any

import numpy as np

from swapcal.properties import Expectile, Quantile
from swapcal.protocols import Elicitable
from swapcal.tables.sources import package
from swapcal.typing import Float64Array
from swapcal_benchmarks.streams.recorded import RecordedStream

__all__ = ["frozen", "with_past"]

_EXPECTILE_STEPS = 5


def frozen(stream: RecordedStream, property: Elicitable, *, past: bool) -> Float64Array:
    """The model's forecast for every round: what was published, or boosted trees that saw the first fifth only.

    There is no expectile among scikit-learn's losses; the expectile is the mean under weights that depend on which side
    of it a label lies, so the trees are fitted anew to the weights of the last fit, five times.
    """
    if stream.forecast is not None:
        return stream.forecast
    ensemble = package("sklearn.ensemble", "training the models", extra="bench")
    limits = package("threadpoolctl", "training the models", extra="bench").threadpool_limits
    features = with_past(stream) if past else stream.features
    categorical = np.array([*stream.categorical, *[False] * (features.shape[1] - stream.features.shape[1])])
    seen = np.flatnonzero(~np.isnan(stream.y[: stream.start]))
    X, y = features[seen], stream.y[seen]
    common = {"random_state": 0, "categorical_features": categorical if categorical.any() else None}
    # These fits are small: on a busy machine, threads that wait for each other take 30 times as long as one.
    with limits(1):
        if not stream.real:
            return _floats(ensemble.HistGradientBoostingClassifier(**common).fit(X, y).predict_proba(features)[:, 1])
        trees = ensemble.HistGradientBoostingRegressor
        if isinstance(property, Quantile):
            return _floats(trees(loss="quantile", quantile=property.level, **common).fit(X, y).predict(features))
        model = trees(**common).fit(X, y)
        if isinstance(property, Expectile):
            for _ in range(_EXPECTILE_STEPS):
                weights = np.where(y <= model.predict(X), 1.0 - property.level, property.level)
                model = trees(**common).fit(X, y, sample_weight=weights)
        return _floats(model.predict(features))


def with_past(stream: RecordedStream) -> Float64Array:
    """The features, and two that are known in time: the last outcome, and that of a day ago; NaN before there is one.

    A missing outcome counts as the one before it.
    """
    if stream.day is None:
        return stream.features
    known = np.maximum.accumulate(np.where(np.isnan(stream.y), -1, np.arange(len(stream.y))))
    filled = np.where(known < 0, np.nan, stream.y[known])
    lagged = [np.concatenate([np.full(lag, np.nan), filled[:-lag]]) for lag in (1, stream.day)]
    return np.column_stack([stream.features, *lagged])


def _floats(values: Any) -> Float64Array:
    return np.asarray(values, dtype=np.float64)
