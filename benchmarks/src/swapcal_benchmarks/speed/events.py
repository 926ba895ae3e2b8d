"""`predict` and `update` from Python, one event at a time."""

import copy
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.engine import kernels
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Groups, Linear
from swapcal.properties import Probability
from swapcal.typing import Float64Array
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.ratio import Side, compare
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow
from swapcal_benchmarks.speed.yardsticks import compiled

__all__ = ["measure"]

_EMPTY = "two empty calls of the same signatures"


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Groups and a linear class, against calls that do nothing and against the Python twin."""
    return [
        *_class("Finite(20), a third of the groups active", Finite(20), *timed_streams.groups(sizes.events, 20), sizes),
        *_class("Linear(10)", Linear(10), *timed_streams.dense(sizes.events, 10), sizes),
        *_forms(sizes),
    ]


def _forms(sizes: SpeedSizes) -> list[TargetRow]:
    """Contexts, labels and hints in the forms that people have, over float64 arrays and plain floats."""
    X, y = timed_streams.groups(sizes.events, 20)
    hints = np.random.default_rng(1).random(len(y))
    finite, groups = Finite(20), Groups(["team", "sex", ("team", "sex"), "age >= 24"])
    records = [{"team": "abcdef"[t % 6], "sex": "fm"[t % 2], "age": 20 + t % 7} for t in range(len(y))]
    case = namedtuple("case", ["team", "sex", "age"])
    plain = y.tolist(), hints.tolist()
    forms: dict[str, tuple[Finite | Groups, list[Any], list[Any], list[Any]]] = {
        "a list of 20 numbers": (finite, X.tolist(), *plain),
        "labels and hints of np.float64": (finite, list(X), list(y), list(hints)),
        "a mapping {position: value}": (finite, [dict.fromkeys(np.flatnonzero(x).tolist(), 1.0) for x in X], *plain),
        "a record of 3 columns, as a mapping": (groups, records, *plain),
        "a row of pandas' itertuples": (groups, [case(**record) for record in records], *plain),
    }
    usual = _hinted(finite, list(X), *plain)
    found = [(name, compare(_hinted(*form), usual, sizes.repeats)) for name, form in forms.items()]
    return [one.row("events", name, "a float64 array and plain floats", 3.0) for name, one in found]


def _hinted(hypotheses: Finite | Groups, contexts: list[Any], labels: list[Any], hints: list[Any]) -> Side:
    def ready() -> Callable[[], None]:
        forecaster = Forecaster(Probability(), copy.deepcopy(hypotheses), seed=1)
        predict, update = forecaster.predict, forecaster.update

        def work() -> None:
            for x, label, hint in zip(contexts, labels, hints, strict=True):
                update(predict(x, hint), label)

        return work

    return ready


def _class(
    name: str, hypotheses: Finite | Linear, X: Float64Array, y: Float64Array, sizes: SpeedSizes
) -> list[TargetRow]:
    contexts, labels = list(X), y.tolist()
    n_slow = sizes.slow_events
    parts = contexts[:n_slow], labels[:n_slow]
    empty = compare(forecasting(hypotheses, contexts, labels), _nothing(contexts, labels), sizes.repeats)
    twin = compare(
        forecasting(hypotheses, *parts, backend="python"),
        forecasting(hypotheses, contexts, labels),
        max(sizes.repeats // 3, 3),
        scale=len(contexts) / n_slow,
    )
    return [
        empty.row("events", name, _EMPTY, 12.0),
        twin.row("events", f"the Python twin, {name}", "predict + update", 20.0, least=True),
    ]


def forecasting(
    hypotheses: Finite | Linear, contexts: list[Float64Array], labels: list[float], *, backend: str = "native"
) -> Side:
    """A fresh forecaster that is asked for every event and told its outcome."""

    def ready() -> Callable[[], None]:
        with kernels.using(backend):
            forecaster = Forecaster(Probability(), hypotheses, horizon=100_000, seed=1)
        predict, update = forecaster.predict, forecaster.update

        def work() -> None:
            for x, label in zip(contexts, labels, strict=True):
                update(predict(x), label)

        return work

    return ready


def _nothing(contexts: list[Float64Array], labels: list[float]) -> Side:
    empty: Any = compiled.Empty()

    def ready() -> Callable[[], None]:
        predict, update = empty.predict, empty.update

        def work() -> None:
            for x, label in zip(contexts, labels, strict=True):
                update(predict(x, None, None), label)

        return work

    return ready
