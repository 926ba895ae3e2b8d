"""The methods: ours, adaptive conformal inference, its version for groups, MVP, and two of MAPIE."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.classes import PredictionSet
from swapcal.intervals import Interval
from swapcal.rivals import MVP, AdaptiveConformal, GroupConformal
from swapcal.tables.sources import package
from swapcal.typing import Float64Array
from swapcal_benchmarks.intervals.interval_streams import IntervalStream

__all__ = ["METHODS"]

Ends = tuple[Float64Array, Float64Array]


def ours(stream: IntervalStream, coverage: float, seed: int) -> Ends:
    """`Interval` around the model, or for two outcomes `ClassSet` with the model's probabilities."""
    X, n = stream.members, len(stream.y)
    if stream.binary:
        sets = PredictionSet(coverage, 2, sc.Finite(X.shape[1]), horizon=n, seed=seed)
        inside = sets.run(X, stream.y.astype(int), np.column_stack([1.0 - stream.hints, stream.hints]))
        return np.where(inside[:, 0], 0.0, 1.0), np.where(inside[:, 1], 1.0, 0.0)
    spread = 1.5 * float(np.median(np.abs(stream.earlier[0] - stream.earlier[1])))
    interval = Interval(coverage, sc.Finite(X.shape[1]), horizon=n, seed=seed, spread=spread, low=0.0)
    ends = interval.run(X, stream.y, stream.hints)
    return ends[:, 0], ends[:, 1]


def _by_distance(rival: Callable[..., Any]) -> Callable[[IntervalStream, float, int], Ends]:
    """A rival's threshold of the distance to the model: symmetric intervals."""

    def method(stream: IntervalStream, coverage: float, seed: int) -> Ends:
        distance = np.abs(stream.y - stream.hints)
        most = 1.001 * float(distance.max())  # a gift to the rivals, who need a range: ours is given none
        X = stream.members
        thresholds = rival(sc.Quantile(coverage, high=most), sc.Finite(X.shape[1]), horizon=len(X), seed=seed)
        radius = thresholds.run(X, distance, np.zeros(len(X)))
        return _cut(stream, stream.hints - radius, stream.hints + radius)

    return method


class _Given:
    """A fitted regressor, for MAPIE, whose one feature is the model's forecast."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return package("sklearn.base", "MAPIE", extra="bench").RegressorMixin.__sklearn_tags__(self)

    def fit(self, X: Any, y: Any) -> "_Given":
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def mapie_split(stream: IntervalStream, coverage: float, seed: int) -> Ends:
    """MAPIE's split conformal intervals: conformalized on rows before the stream, then frozen."""
    regression = package("mapie.regression", "MAPIE", extra="bench")
    y, hints = stream.earlier
    model = regression.SplitConformalRegressor(_Given(), confidence_level=coverage, prefit=True)
    ends = model.conformalize(hints[:, None], y).predict_interval(stream.hints[:, None])[1]
    return _cut(stream, ends[:, 0, 0], ends[:, 1, 0])


def mapie_adaptive(stream: IntervalStream, coverage: float, seed: int) -> Ends:
    """MAPIE's adaptive conformal inference for time series, with a day of rows between its updates."""
    regression = package("mapie.regression", "MAPIE", extra="bench")
    resampling = package("mapie.subsample", "MAPIE", extra="bench")
    y, hints = stream.earlier
    cv = resampling.BlockBootstrap(n_resamplings=10, length=48, random_state=seed)
    model = regression.TimeSeriesRegressor(_Given(), method="aci", cv=cv, agg_function="mean")
    model.fit(hints[:, None], y)
    lower, upper, step = np.empty(len(stream.y)), np.empty(len(stream.y)), 24
    for start in range(0, len(stream.y), step):
        part = slice(start, start + step)
        X = stream.hints[part][:, None]
        ends = model.predict(X, confidence_level=coverage, optimize_beta=False, allow_infinite_bounds=True)[1]
        lower[part], upper[part] = ends[:, 0, 0], ends[:, 1, 0]
        model.adapt_conformal_inference(X, stream.y[part], gamma=0.005, confidence_level=coverage)
        model.update(X, stream.y[part])
    most = float(max(y.max(), stream.y.max()))
    return _cut(stream, np.maximum(lower, -most), np.minimum(upper, 2.0 * most))


def _cut(stream: IntervalStream, lower: Float64Array, upper: Float64Array) -> Ends:
    """All outcomes here are 0 or more; of two outcomes, an interval counts as the hull of those that it contains."""
    if not stream.binary:
        return np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    zero, one, likely = lower <= 0.0, upper >= 1.0, np.round(stream.hints)
    return np.where(zero, 0.0, np.where(one, 1.0, likely)), np.where(one, 1.0, np.where(zero, 0.0, likely))


def quietly(method: Callable[[IntervalStream, float, int], Ends]) -> Callable[[IntervalStream, float, int], Ends]:
    """Without the warnings of other packages."""

    def run(stream: IntervalStream, coverage: float, seed: int) -> Ends:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return method(stream, coverage, seed)

    return run


METHODS: dict[str, Callable[[IntervalStream, float, int], Ends]] = {
    "swapcal": quietly(ours),
    "adaptive conformal": quietly(_by_distance(AdaptiveConformal)),
    "group conformal": quietly(_by_distance(GroupConformal)),
    "MVP": quietly(_by_distance(MVP)),
    "MAPIE, split": quietly(mapie_split),
    "MAPIE, adaptive": quietly(mapie_adaptive),
}
