"""Parts that break one rule each. `Wrapped` is a part with some members replaced."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.potentials import Squint
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array


class Wrapped:
    """A part that behaves like another one but for the members named."""

    def __init__(self, part: Any, **changed: Any) -> None:
        self.part = part
        self.__dict__.update(changed)

    def __getattr__(self, name: str) -> Any:
        if name in ("part", "__deepcopy__"):
            raise AttributeError(name)
        return getattr(self.part, name)

    def __repr__(self) -> str:
        return f"Wrapped({self.part!r})"


def negative(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: -function(*arguments)


mean, median = sc.Mean(), sc.Median()


def in_place(p: Any) -> Any:
    """The weight of a mean, and a change of the forecasts."""
    if isinstance(p, np.ndarray):
        p += 1e-9
    return mean.loss_weight(p)


BROKEN_PROPERTIES: list[tuple[str, Any]] = [
    ("has_the_role", Wrapped(mean, assumption="")),
    ("has_the_role", Wrapped(mean, domain=(1.0, 0.0))),
    ("labels_are_judged", Wrapped(mean, invalid_labels=lambda y: None)),
    ("labels_are_judged", Wrapped(mean, invalid_labels=lambda y: "no label is good enough")),
    ("identification_is_bounded", Wrapped(mean, identification=lambda p, y: 3.0 * (p - y))),
    ("identification_is_bounded", Wrapped(mean, identification=lambda p, y: 0.0 * p * y / 0.0)),
    ("signs_at_the_ends", Wrapped(mean, identification=lambda p, y: y - p)),
    ("signs_at_the_ends", Wrapped(mean, domain=(0.2, 1.0))),
    (
        "monotone_as_claimed",
        Wrapped(mean, identification=lambda p, y: 0.5 * (p - y) + 0.3 * np.sin(20.0 * p) * (p - y)),
    ),
    ("lipschitz_as_claimed", Wrapped(mean, lipschitz=0.5)),
    ("lipschitz_as_claimed", Wrapped(median, lipschitz=0.5)),
    ("continuous_as_claimed", Wrapped(median, continuous=True)),
    ("loss_has_the_derivative", Wrapped(mean, loss=lambda p, y: abs(p - y))),
    ("loss_has_the_derivative", Wrapped(mean, loss_weight=lambda p: 0.0 * p + 1.0)),
    ("value_is_the_root", Wrapped(mean, value=lambda y: float(np.median(y)))),
    ("value_is_the_root", Wrapped(mean, value=lambda y: 1.5)),
    ("numbers_equal_arrays", Wrapped(median, loss=lambda p, y: median.loss(p, y) + isinstance(p, float))),
    ("numbers_equal_arrays", Wrapped(mean, loss_weight=in_place)),
    ("spec_is_plain", Wrapped(mean, spec=lambda: {"kind": "Mean", "low": np.float64})),
    ("spec_is_plain", Wrapped(mean, spec=lambda: {"kind": "Mean", "low": 0.5, "high": 1.0})),
    ("spec_is_plain", Wrapped(mean, spec=lambda: ["Mean"])),
]


def upper_median(y: Float64Array) -> float:
    """A root of the mean identification, like every value between the two middle labels."""
    return float(np.sort(y)[len(y) // 2])


BROKEN_PROPERTIES += [
    # A tilt that the derivative's tolerance does not see, but for which the lower median is better.
    (
        "value_minimizes_the_loss",
        Wrapped(median, value=upper_median, loss=lambda p, y: median.loss(p, y) + 1e-6 * p),
    ),
]

squint = Squint()
BROKEN_POTENTIALS: list[tuple[str, Any]] = [
    ("has_the_role", Wrapped(squint, level=None)),
    ("weight_is_odd", Wrapped(squint, weight=lambda s, c: squint.weight(s, c) * (1.0 if s > 0 else 1.0 + 1e-15))),
    ("weight_increases", Wrapped(squint, weight=negative(squint.weight))),
    ("weight_increases", Wrapped(squint, weight=lambda s, c: max(min(s, 1.0), -1.0))),
    (
        "weight_is_finite",
        Wrapped(squint, weight=lambda s, c: 2.0 * math.sinh(s) if abs(s) < 700 else math.copysign(math.inf, s)),
    ),
    ("weight_is_finite", Wrapped(squint, weight=lambda s, c: math.sinh(s))),
    ("spread_adds_up", Wrapped(squint, spread=lambda g: g)),
    ("spread_adds_up", Wrapped(squint, spread=lambda g: 0.1 + np.abs(g))),
    (
        "weights_of_a_bin_have_the_signs_of_its_sums",
        Wrapped(sc.potentials.PNorm(), row_weights=lambda sums, n: -sums / n),
    ),
    (
        "weights_of_a_bin_have_the_signs_of_its_sums",
        Wrapped(sc.potentials.PNorm(), row_weights=lambda sums, n: np.abs(sums)),
    ),
    ("level_rises", Wrapped(squint, level=lambda s, c: s / (c + 1.0))),
    ("level_rises", Wrapped(squint, level=lambda s, c: np.ones_like(s))),
    ("bound_moves_as_it_should", Wrapped(squint, bound=lambda tally, r, delta: 100.0 * delta)),
    ("bound_moves_as_it_should", Wrapped(squint, bound=lambda tally, r, delta: 1.0 / tally.n_rounds)),
    (
        "zero_gain_stays_below_the_bound",
        Wrapped(squint, bound=lambda tally, r, delta: 2.0 + 0.1 * math.log(1.0 / delta)),
    ),
    (
        "zero_gain_stays_below_the_bound",
        Wrapped(squint, weight=lambda s, c: math.copysign(abs(s) ** 0.01, s) if s else 0.0),
    ),
    ("spec_is_plain", Wrapped(squint, spec=lambda: {"kind": "Squint", "rates": (1, 2)})),
]

finite = sc.Finite(3)


def evidence(**changed: Callable[[Any], Any]) -> Wrapped:
    """The finite class with members of its evidence replaced; each gets the true evidence."""

    def start(n_bins: int) -> Wrapped:
        true = finite.start(n_bins)
        return Wrapped(true, **{name: change(true) for name, change in changed.items()})

    return Wrapped(finite, start=start)


def aliased(x: Any) -> Row:
    row = finite.row(x)
    return Row(np.arange(3), x) if isinstance(x, np.ndarray) and x.all() else row


def zero_for_nan(x: Any) -> Row:
    return finite.row(np.nan_to_num(x) if isinstance(x, np.ndarray) else x)


def forgetful(true: Any) -> Callable[[int], None]:
    def grow(capacity: int) -> None:
        true.grow(capacity)
        true.sums[0], true.weights[0] = 0.0, 0.0

    return grow


def restored_without_copy(true: Any) -> Callable[[Any], None]:
    def restore(arrays: dict[str, Float64Array]) -> None:
        true.restore(arrays)
        true.sums = arrays["sums"]

    return restore


BROKEN_HYPOTHESES: list[tuple[str, Any]] = [
    ("has_the_role", Wrapped(finite, n="three")),
    ("has_the_role", Wrapped(finite, start=lambda n_bins: object())),
    ("rows_agree_with_row", Wrapped(finite, rows=lambda X, n: finite.rows(0.5 * np.asarray(X), n))),
    ("rows_are_in_order", Wrapped(sc.Linear(3), supremum=lambda sums: 5.0 * sc.Linear(3).supremum(sums))),
    ("contexts_are_copied", Wrapped(finite, row=aliased)),
    ("bad_contexts_are_refused", Wrapped(finite, row=zero_for_nan)),
    ("supremum_is_exact", Wrapped(finite, supremum=lambda sums: 0.9 * finite.supremum(sums))),
    ("supremum_is_exact", Wrapped(finite, supremum=sc.Linear(3).supremum)),
    ("supremum_is_exact", Wrapped(sc.Linear(3), supremum=lambda sums: np.abs(sums).max(axis=-1))),
    ("supremum_is_exact", Wrapped(finite, dual="other", supremum=lambda sums: np.square(sums).max(axis=-1) * 0.1)),
    ("phi_is_linear", evidence(phi=lambda true: lambda i, row: true.phi(i, row) ** 3)),
    ("phi_is_linear", evidence(phi=lambda true: lambda i, row: true.phi(i, row) + 0.1)),
    ("phi_has_the_sign_of_the_bias", evidence(phi=lambda true: negative(true.phi))),
    ("phi_has_the_sign_of_the_bias", evidence(record=lambda true: lambda i, row, v: true.record(0, row, v))),
    ("level_rises_with_the_bias", evidence(level=lambda true: lambda i, row: 0.0)),
    ("growing_keeps_the_evidence", evidence(grow=lambda true: lambda capacity: None)),
    ("growing_keeps_the_evidence", evidence(grow=forgetful)),
    ("drift_is_zero_at_once", evidence(drift=lambda true: lambda i, row, phi, v: true.phi(i, row) * v)),
    ("drift_is_zero_at_once", evidence(drift=lambda true: lambda i, row, phi, v: 0.0)),
    (
        "evidence_is_saved_exactly",
        evidence(arrays=lambda true: lambda: {k: a.astype(np.float32) for k, a in true.arrays().items()}),
    ),
    ("evidence_is_saved_exactly", evidence(restore=lambda true: lambda arrays: None)),
    ("evidence_is_saved_exactly", evidence(restore=restored_without_copy)),
    ("bound_moves_as_it_should", evidence(bound=lambda true: lambda tally, r, delta: delta)),
    ("spec_is_plain", Wrapped(finite, spec=lambda: {"n": 3})),
]


def sharing() -> Wrapped:
    """A class that hands out the same arrays again once they are empty."""
    common = np.zeros((5, 3))

    def start(n_bins: int) -> Any:
        true = finite.start(n_bins)
        if n_bins == 5:
            common[:] = 0.0
            true.sums = common
        return true

    return Wrapped(finite, start=start)


BROKEN_HYPOTHESES += [("evidence_is_shared_with_nobody", sharing())]

regression = sc.OnlineRegression(n_features=2)


def hinting(**changed: Callable[[Any], Any]) -> Wrapped:
    """The regression with members of its state replaced; each gets the true state."""

    def start(property: Elicitable, n_inputs: int) -> Wrapped:
        true = regression.start(property, n_inputs)
        return Wrapped(true, **{name: change(true) for name, change in changed.items()})

    return Wrapped(regression, start=start)


def learning_word(true: Any) -> Callable[..., tuple[float, bytes]]:
    def said(row: Row, features: Any, base: float | None) -> tuple[float, bytes]:
        answer: tuple[float, bytes] = true.said(row, features, base)
        true.update(row, features, base, true._low)
        return answer

    return said


def hoarding(true: Any) -> Callable[[], dict[str, Float64Array]]:
    def arrays() -> dict[str, Float64Array]:
        return {**true.arrays(), "history": np.zeros(int(true.arrays()["totals"][0]))}

    return arrays


def nan_is_zero(true: Any) -> Callable[..., None]:
    return lambda row, features, base, y: true.update(row, features, base, float(np.nan_to_num(y)))


BROKEN_HINTS: list[tuple[str, Any]] = [
    ("has_the_role", Wrapped(regression, n_features=-1)),
    ("forecasts_stay_in_the_domain", hinting(said=lambda true: lambda *a: (true.said(*a)[0] + 0.7, b""))),
    ("forecasting_changes_nothing", hinting(said=learning_word)),
    ("learns_from_outcomes", hinting(update=lambda true: lambda row, features, base, y: None)),
    ("states_are_saved_exactly", hinting(restore=lambda true: lambda arrays: None)),
    ("bad_input_changes_nothing", hinting(update=nan_is_zero)),
    (
        "memory_is_bounded",
        hinting(arrays=hoarding, restore=lambda true: lambda a: true.restore({k: a[k] for k in true.arrays()})),
    ),
    ("spec_is_plain", Wrapped(regression, spec=lambda: None)),
]


def sharing_hint() -> Wrapped:
    common: Any = None

    def start(property: Elicitable, n_inputs: int) -> Any:
        nonlocal common
        state = regression.start(property, n_inputs)
        common = state._weights if common is None else common
        common[:] = 0.0
        state._weights = common
        return state

    return Wrapped(regression, start=start)


BROKEN_HINTS += [("states_are_shared_with_nobody", sharing_hint())]


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
                object.__setattr__(forecast, "forecaster", true.state.identity)
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
            forecast = dataclasses.replace(forecast)
            object.__setattr__(forecast, "forecaster", true.state.identity)
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
