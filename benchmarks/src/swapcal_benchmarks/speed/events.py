"""`predict` and `update` from Python, one event at a time."""

import copy
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
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
    forms |= {name: (groups, rows, *plain) for name, rows in _rows_of_frames(records).items()}
    usual, array = _hinted(finite, list(X), *plain), "a float64 array and plain floats"
    found = [(name, compare(_hinted(*form), usual, sizes.repeats)) for name, form in forms.items()]
    made = "what the frame takes to make the row comes before that, and is more: see frame.iloc[t] below"
    slow = ("a row of pandas' iloc", "a polars frame of one row")
    rows = [
        one.row("events", name, array, 3.0, note=made)
        if name in slow
        else one.row("events", name, array, 1.1 if forms[name][0] is finite else 1.6)
        for name, one in found
    ]
    return [*rows, *_rows_in_use(records, groups, *plain, sizes), _batches(X, y, hints, sizes)]


def _rows_of_frames(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as frames give them, made before the clock runs."""
    found: dict[str, list[Any]] = {}
    if find_spec("pandas") is not None:
        frame = import_module("pandas").DataFrame(records)
        found["a row of pandas' iloc"] = [frame.iloc[t] for t in range(len(frame))]
    if find_spec("polars") is not None:
        frame = import_module("polars").DataFrame(records)
        found["a row of polars' iter_rows(named=True)"] = list(frame.iter_rows(named=True))
        found["a polars frame of one row"] = [frame[t] for t in range(len(frame))]
    return found


def _rows_in_use(
    records: list[dict[str, Any]], groups: Groups, labels: list[float], hints: list[float], sizes: SpeedSizes
) -> list[TargetRow]:
    """What an event adds to a row that pandas must make first, which costs more than the event."""
    if find_spec("pandas") is None:
        return []
    frame = import_module("pandas").DataFrame(records)

    def playing() -> Callable[[], None]:
        forecaster = Forecaster(Probability(), copy.deepcopy(groups), seed=1)

        def work() -> None:
            for t, (label, hint) in enumerate(zip(labels, hints, strict=True)):
                forecaster.update(forecaster.predict(frame.iloc[t], hint), label)

        return work

    def making() -> Callable[[], None]:
        def work() -> None:
            for t, _ in enumerate(zip(labels, hints, strict=True)):
                frame.iloc[t]

        return work

    ratio = compare(playing, making, sizes.repeats)
    return [ratio.row("events", "frame.iloc[t], predict and update", "frame.iloc[t] alone", 1.5)]


def _batches(X: Float64Array, y: Float64Array, hints: Float64Array, sizes: SpeedSizes) -> TargetRow:
    """A hundred events at once, and the same events one by one: forecasts first, then outcomes."""
    parts = [slice(start, start + 100) for start in range(0, len(y), 100)]

    def many() -> Callable[[], None]:
        forecaster = Forecaster(Probability(), Finite(20), seed=1)

        def work() -> None:
            for part in parts:
                forecaster.update_many(forecaster.predict_many(X[part], hints[part]), y[part])

        return work

    def one_by_one() -> Callable[[], None]:
        forecaster = Forecaster(Probability(), Finite(20), seed=1)
        contexts, labels, guides = list(X), y.tolist(), hints.tolist()

        def work() -> None:
            for part in parts:
                made = [forecaster.predict(x, hint) for x, hint in zip(contexts[part], guides[part], strict=True)]
                for forecast, label in zip(made, labels[part], strict=True):
                    forecaster.update(forecast, label)

        return work

    ratio = compare(many, one_by_one, sizes.repeats)
    return ratio.row("events", "predict_many and update_many, 100 at once", "a loop over predict and update", 1.0)


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
