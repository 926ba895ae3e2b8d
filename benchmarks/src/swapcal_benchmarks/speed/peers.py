"""Other packages that learn from one event at a time, on the same stream."""

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.properties import Probability
from swapcal.typing import Float64Array
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.events import forecasting
from swapcal_benchmarks.speed.ratio import Side, compare
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["measure"]

_FIRST = 100
"""Events that the conformal regressor is given at its start, untimed: fewer would not do for its intervals."""


@dataclass(frozen=True, slots=True)
class _Peer:
    name: str
    module: str
    distribution: str
    side: Callable[[Float64Array, Float64Array], Side]
    untimed: int = 0
    share: int = 1  # it plays one in `share` of the slow events


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Logistic regression of river and ridge regression of online-cp, over our events one by one and over `run`."""
    X, y = timed_streams.groups(sizes.events, 20)
    ours = (("predict + update", forecasting(Finite(20), list(X), y.tolist())), ("run", _run(X, y)))
    rows = []
    for peer in _PEERS:
        if find_spec(peer.module) is None:
            note = f"{peer.distribution} is not installed"
            rows.append(
                TargetRow(section="peers", what=peer.name, against="swapcal", target=10.0, least=True, note=note)
            )
            continue
        timed = sizes.slow_events // peer.share
        stop = timed + peer.untimed
        theirs = peer.side(X[:stop], y[:stop])
        what = f"{peer.name}, {peer.distribution} {version(peer.distribution)}"
        for against, side in ours:
            ratio = compare(theirs, side, max(sizes.repeats // 3, 3), scale=len(X) / timed)
            rows.append(ratio.row("peers", what, against, 10.0, least=True))
    return rows


def _run(X: Float64Array, y: Float64Array) -> Side:
    def ready() -> Any:
        forecaster = Forecaster(Probability(), Finite(20), horizon=100_000, seed=1)
        return lambda: forecaster.run(X, y)

    return ready


def _river(X: Float64Array, y: Float64Array, *, everything: bool) -> Side:
    linear_model = importlib.import_module("river.linear_model")
    cases = [{j: value for j, value in enumerate(row) if value or everything} for row in X.tolist()]
    labels = [bool(label) for label in y]

    def ready() -> Callable[[], None]:
        model = linear_model.LogisticRegression()

        def work() -> None:
            for case, label in zip(cases, labels, strict=True):
                model.predict_proba_one(case)
                model.learn_one(case, label)

        return work

    return ready


def _river_all(X: Float64Array, y: Float64Array) -> Side:
    return _river(X, y, everything=True)


def _river_active(X: Float64Array, y: Float64Array) -> Side:
    return _river(X, y, everything=False)


def _online_cp(X: Float64Array, y: Float64Array) -> Side:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = importlib.import_module("online_cp")
    cases, labels = list(X), y.tolist()

    def ready() -> Callable[[], None]:
        model = package.ConformalRidgeRegressor(a=1.0, epsilon=0.1)
        model.learn_initial_training_set(X[:_FIRST], y[:_FIRST])

        def work() -> None:
            for case, label in zip(cases[_FIRST:], labels[_FIRST:], strict=True):
                model.predict(case)
                model.learn_one(case, label)

        return work

    return ready


_PEERS = (
    _Peer("LogisticRegression on all entries", "river", "river", _river_all),
    _Peer("LogisticRegression on the active entries only", "river", "river", _river_active),
    # Its cost grows with the events that it has seen: a small part of the stream is a favor to it.
    _Peer("ConformalRidgeRegressor", "online_cp", "online-cp", _online_cp, untimed=_FIRST, share=4),
)
