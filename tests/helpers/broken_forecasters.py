"""Forecasters that break one rule each."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import swapcal as sc
from broken_parts import Wrapped
from swapcal.errors import InvalidInput, UnknownForecast


def forecaster() -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=3000, seed=5)


def broken(**changed: Callable[[Any], Any]) -> Callable[[], Any]:
    """A factory of forecasters with members replaced; each gets the true forecaster."""

    def make() -> Wrapped:
        true = forecaster()
        return Wrapped(true, **{name: change(true) for name, change in changed.items()})

    return make


def needs_training(true: Any) -> Callable[..., Any]:
    def predict(x: Any, hint: float | None = None) -> Any:
        if not true.n_rounds:
            raise InvalidInput("train first")
        return true.predict(x, hint)

    return predict


def moved(true: Any) -> Callable[..., Any]:
    def predict(x: Any, hint: float | None = None) -> Any:
        return Moved(true.predict(x, hint))

    return predict


class Moved:
    """A forecast that says more than it may."""

    def __init__(self, forecast: Any) -> None:
        self.forecast = forecast

    def __float__(self) -> float:
        return 1.0 + float(self.forecast)


def restless(true: Any) -> Callable[..., Any]:
    return lambda x, hint=None: {**true.distribution(x, hint), -1.0 - true.n_pending: 0.0}


class Seeds:
    """A new seed for every forecaster."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> sc.Forecaster:
        self.n += 1
        return sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=3000, seed=self.n)


class Sharing:
    """Forecasters with the same evidence in them, emptied whenever one is made."""

    def __init__(self) -> None:
        self.sums: Any = None

    def __call__(self) -> sc.Forecaster:
        made: Any = sc.Forecaster(sc.Mean(), sc.Finite(2), bins=7, seed=5)
        if self.sums is None:
            self.sums = made.state.evidence.sums
        self.sums[:] = 0.0
        made.state.evidence.sums = self.sums
        made._engine.assemble()
        return made  # type: ignore[no-any-return]


def remembering(make: Callable[[], Any]) -> Callable[[], Any]:
    """Keeps contexts by reference and reads them when the outcome comes."""

    def made() -> Any:
        true, contexts = make(), {}

        def predict(x: Any, hint: float | None = None) -> Any:
            forecast = true.predict(x, hint)
            contexts[forecast.round] = x
            return forecast

        def update(forecast: Any, y: float) -> None:
            if isinstance(forecast, sc.Forecast) and forecast.round in contexts:
                row = true.hypotheses.row(contexts[forecast.round])
                forecast = dataclasses.replace(forecast, context=sc.Forecast.packed(*row))
            true.update(forecast, y)

        return Wrapped(true, predict=predict, update=update)

    return made


def late_refused(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if getattr(forecast, "round", 0) + 6 < true.state.pending.issued:
            raise UnknownForecast("too late")
        true.update(forecast, y)

    return update


def twice(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if isinstance(forecast, sc.Forecast) and 0 <= forecast.round < true.state.pending.issued:
            true.state.pending.numbers[1] += not true.state.pending.flags[forecast.round]
            true.state.pending.flags[forecast.round] = 1
        true.update(forecast, y)

    return update


def from_anybody(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if isinstance(forecast, sc.Forecast):
            forecast = dataclasses.replace(forecast, forecaster=true.state.identity)
        true.update(forecast, y)

    return update


def nan_label(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: Any) -> None:
        true.update(forecast, 0.5 if y is None or y != y else y)

    return update


def issues_first(true: Any) -> Callable[..., Any]:
    def predict(x: Any, hint: float | None = None) -> Any:
        if isinstance(x, np.ndarray) and not np.isfinite(x).all():
            true.state.pending.issue()
        return true.predict(x, hint)

    return predict


def hoard(true: Any) -> Callable[[Any], None]:
    def save(file: Any) -> None:
        true.save(file)
        if true.n_rounds > 1000:
            file.seek(0)
            file.truncate()
            file.write(bytes(100_000 + 9 * true.n_rounds))

    return save


def reseeded(file: Any) -> sc.Forecaster:
    loaded = sc.Forecaster.load(file)
    object.__setattr__(loaded.rules, "seed", loaded.rules.seed + 1)
    loaded._engine.assemble()
    return loaded


BROKEN_FORECASTERS: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("predicts_before_learning", broken(predict=needs_training), sc.Forecaster.load),
    (
        "forecasts_stay_in_the_domain",
        broken(predict=moved, update=lambda true: lambda f, y: true.update(f.forecast, y)),
        sc.Forecaster.load,
    ),
    ("predict_learns_nothing", broken(distribution=restless), sc.Forecaster.load),
    ("same_seed_same_path", Seeds(), sc.Forecaster.load),
    ("forecasters_share_nothing", Sharing(), sc.Forecaster.load),
    ("arguments_are_copied", remembering(forecaster), sc.Forecaster.load),
    (
        "run_is_the_loop",
        broken(run=lambda true: lambda X, y, hints=None: true.run(X, y, hints) * (1.0 + 1e-15)),
        sc.Forecaster.load,
    ),
    ("saving_is_exact", forecaster, reseeded),
    ("outcomes_come_in_any_order", broken(update=late_refused), sc.Forecaster.load),
    ("forecasts_are_updated_once", broken(update=twice), sc.Forecaster.load),
    ("foreign_forecasts_are_refused", broken(update=from_anybody), sc.Forecaster.load),
    ("bad_input_changes_nothing", broken(update=nan_label), sc.Forecaster.load),
    ("bad_input_changes_nothing", broken(predict=issues_first), sc.Forecaster.load),
    ("memory_is_bounded", broken(save=hoard), sc.Forecaster.load),
]
