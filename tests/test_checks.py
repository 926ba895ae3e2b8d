"""The public checks: every part of this package obeys them, and every rule catches somebody who does not."""

import dataclasses
import inspect
import io
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from instances import FORECASTERS, HINTS, HYPOTHESES, LOADERS, POTENTIALS, PROPERTIES
from swapcal import checks, hints, hypotheses, potentials, properties
from swapcal.checks import CheckFailed, check, check_forecaster
from swapcal.checks.forecasters import FORECASTER_RULES
from swapcal.checks.hints import HINT_RULES
from swapcal.checks.hypotheses import HYPOTHESES_RULES
from swapcal.checks.potentials import POTENTIAL_RULES
from swapcal.checks.properties import PROPERTY_RULES
from swapcal.errors import InvalidInput, UnknownForecast
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.roles import Elicitable, Hypotheses, LearningHint, Row
from swapcal.typing import Float64Array


@pytest.mark.parametrize("property", PROPERTIES, ids=repr)
def test_properties(property: Elicitable) -> None:
    check(property)


@pytest.mark.parametrize("potential", POTENTIALS, ids=repr)
def test_potentials(potential: Potential) -> None:
    check(potential)


@pytest.mark.parametrize("each", HYPOTHESES, ids=repr)
def test_hypotheses(each: Hypotheses) -> None:
    check(each)


@pytest.mark.parametrize("hint", HINTS, ids=repr)
def test_hints(hint: LearningHint) -> None:
    check(hint)


@pytest.mark.parametrize("name", FORECASTERS)
def test_forecasters(name: str) -> None:
    check_forecaster(FORECASTERS[name], load=LOADERS.get(name))


NOT_PARTS = {"Audit", "Forecast", "Forecaster", "Grid", "Guarantee", "RegressionState"}
"""Values and machines: they are made by parts, or made of them, and have tests of their own."""


def test_every_public_class_is_in_the_list_of_instances() -> None:
    parts: list[object] = [*PROPERTIES, *POTENTIALS, *HYPOTHESES, *HINTS]
    parts += [each.proper_loss for each in PROPERTIES if isinstance(each, sc.Probability)]
    seen = {type(part) for part in parts}
    assert seen > {sc.Mean, sc.Log, sc.Finite, sc.OnlineRegression, AdaNormalHedge}
    for module in (sc, properties, potentials, hypotheses, hints):
        for name in module.__all__:
            each = getattr(module, name)
            if not inspect.isclass(each) or issubclass(each, Exception) or getattr(each, "_is_protocol", False):
                continue
            refused = each in (sc.Variance, sc.CVaR, sc.Mode)
            assert refused or name in NOT_PARTS or each in seen, f"{name} needs a line in tests/instances.py"


# The inequality of each potential: one round adds at most the weighted gain and the theorem's additive term.

NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)
GAINS = np.concatenate([np.linspace(-1.0, 1.0, 21), [1e-6, -1e-6]])


def grid_of_sums(potential: Potential) -> list[tuple[float, float]]:
    """Pairs (s, c) that rounds can lead to: |s| <= c for absolute gains, and s^2 <= n c for squares."""
    absolute = float(potential.spread(np.array([0.5]))[0]) == 0.5
    pairs = [(0.0, 0.0)]
    for c in (0.01, 0.4, 1.0, 3.0, 10.0, 60.0, 500.0):
        reach = c if absolute else 3.0 * math.sqrt(c) + c
        pairs += [(float(s), c) for s in np.linspace(0.0, min(reach, 8.0 * math.sqrt(c) + 1.0), 17) if s <= reach]
    return pairs


def mass_of_both_signs(potential: Potential, s: float, c: float) -> float:
    """Psi(s, c) + Psi(-s, c), from the definitions in the references."""
    if isinstance(potential, AdaNormalHedge):
        return 2.0 if c == 0.0 else math.exp(s * s / (3.0 * c)) + 1.0
    if isinstance(potential, Exponential):
        return math.fsum(2.0 * math.cosh(eta * s) * math.exp(-psi * c) for eta, psi in potential.rates)
    eta, weights = 0.25 * (NODES + 1.0), 0.25 * WEIGHTS
    return float(weights @ ((2.0 * np.cosh(eta * s) * np.exp(-(eta**2) * c) - 2.0) / eta))


def additive_term(potential: Potential, g: float, c: float) -> float:
    return 3.0 * abs(g) / (c + 1.0) if isinstance(potential, AdaNormalHedge) else 0.0


@pytest.mark.parametrize("potential", [AdaNormalHedge(), Exponential(), Exponential(n_rates=3), Squint()], ids=repr)
def test_potential_inequality(potential: Potential) -> None:
    closest = math.inf
    for s, c in grid_of_sums(potential):
        before, weight = mass_of_both_signs(potential, s, c), potential.weight(s, c)
        for g, spread in zip(GAINS.tolist(), potential.spread(GAINS).tolist(), strict=True):
            after = mass_of_both_signs(potential, s + g, c + spread)
            room = before + weight * g + additive_term(potential, g, c) - after
            assert room >= -1e-9 * (1.0 + abs(before)), f"s={s}, c={c}, g={g}"
            closest = min(closest, room if abs(g) > 0.5 else math.inf)
    assert closest < 0.5  # the weights are not just small enough, they are about right


@pytest.mark.parametrize("potential", [PNorm(), PNorm(p=3.0), PNorm(p=9.0)], ids=repr)
def test_quadratic_potential_inequality(potential: PNorm) -> None:
    rng, p = np.random.default_rng(0), potential.exponent

    def norm(vector: Float64Array) -> float:
        return float(np.sum(np.abs(vector) ** p) ** (1.0 / p))

    for n in (1, 2, 5, 40, 1000):
        for _ in range(40):
            sums, g = rng.uniform(-1.0, 1.0, (2, 6)) * np.array([[rng.uniform(0.0, n)], [1.0]])
            weights = np.array([potential.weight(float(s), 0.0) for s in sums]) * potential.row_factor(sums, n)
            after = norm(sums + g) ** 2 / (n + 1)
            assert after <= norm(sums) ** 2 / n + 2.0 * weights @ g + (p - 1.0) * norm(g) ** 2 / (n + 1) + 1e-9


# Every rule catches a part that breaks it. `Wrapped` is a part with some members replaced.


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
    ("has_the_role", Wrapped(squint, reference="")),
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
    ("factor_is_a_scale", Wrapped(squint, row_factor=lambda sums, n: 0.0)),
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


def forgetful_record(n_bins: int) -> Wrapped:
    return Wrapped(finite.start_record(n_bins), restore=lambda arrays: None)


def restored_without_copy(true: Any) -> Callable[[Any], None]:
    def restore(arrays: dict[str, Float64Array]) -> None:
        true.restore(arrays)
        true.sums = arrays["sums"]

    return restore


shared_start = finite.start(5)
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
    ("records_are_saved_exactly", Wrapped(finite, start_record=forgetful_record)),
    ("refining_keeps_the_middle", evidence(refine=lambda true: lambda factor: true.refine(1))),
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


def learning_forecast(true: Any) -> Callable[..., float]:
    def forecast(row: Row, features: Any, base: float | None) -> float:
        value = float(true.forecast(row, features, base))
        true.update(row, features, base, true._low)
        return value

    return forecast


def hoarding(true: Any) -> Callable[[], dict[str, Float64Array]]:
    def arrays() -> dict[str, Float64Array]:
        return {**true.arrays(), "history": np.zeros(int(true.arrays()["totals"][0]))}

    return arrays


def nan_is_zero(true: Any) -> Callable[..., None]:
    return lambda row, features, base, y: true.update(row, features, base, float(np.nan_to_num(y)))


BROKEN_HINTS: list[tuple[str, Any]] = [
    ("has_the_role", Wrapped(regression, n_features=-1)),
    ("forecasts_stay_in_the_domain", hinting(forecast=lambda true: lambda *a: true.forecast(*a) + 0.7)),
    ("forecasting_changes_nothing", hinting(forecast=learning_forecast)),
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
    common = np.zeros((4, 19))

    def start(property: Elicitable, n_inputs: int) -> Any:
        state = regression.start(property, n_inputs)
        common[:] = 0.0
        state._sparse = common
        return state

    return Wrapped(regression, start=start)


BROKEN_HINTS += [("states_are_shared_with_nobody", sharing_hint())]


@pytest.mark.parametrize(
    ("rule", "part"),
    [*BROKEN_PROPERTIES, *BROKEN_POTENTIALS, *BROKEN_HYPOTHESES, *BROKEN_HINTS],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_part_is_caught(rule: str, part: Any) -> None:
    with pytest.raises(CheckFailed) as caught:
        check(part)
    assert caught.value.rule == rule, str(caught.value)
    message = str(caught.value)
    assert rule in message
    assert "Why the rule exists: " in message
    assert message.endswith(".")


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
        made: Any = forecaster()
        if self.sums is None:
            self.sums = made._evidence.sums
        self.sums[:] = 0.0
        made._evidence.sums = self.sums
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
                indices, values = tuple(row.indices.tolist()), tuple(row.values.tolist())
                forecast = dataclasses.replace(forecast, indices=indices, values=values)
            true.update(forecast, y)

        return Wrapped(true, predict=predict, update=update)

    return made


def late_refused(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if getattr(forecast, "round", 0) + 6 < true._pending.issued:
            raise UnknownForecast("too late")
        true.update(forecast, y)

    return update


def twice(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if isinstance(forecast, sc.Forecast) and 0 <= forecast.round < true._pending.issued:
            true._pending.open += not true._pending.flags[forecast.round]
            true._pending.flags[forecast.round] = 1
        true.update(forecast, y)

    return update


def from_anybody(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: float) -> None:
        if isinstance(forecast, sc.Forecast):
            forecast = dataclasses.replace(forecast, forecaster=true._identity)
        true.update(forecast, y)

    return update


def nan_label(true: Any) -> Callable[..., None]:
    def update(forecast: Any, y: Any) -> None:
        true.update(forecast, 0.5 if y is None or y != y else y)

    return update


def issues_first(true: Any) -> Callable[..., Any]:
    def predict(x: Any, hint: float | None = None) -> Any:
        if isinstance(x, np.ndarray) and not np.isfinite(x).all():
            true._pending.issue()
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
    loaded.seed += 1
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


@pytest.mark.parametrize(("rule", "make", "load"), BROKEN_FORECASTERS)
def test_a_broken_forecaster_is_caught(rule: str, make: Callable[[], Any], load: Callable[[Any], Any]) -> None:
    with pytest.raises(CheckFailed) as caught:
        check_forecaster(make, load=load)
    assert caught.value.rule == rule, str(caught.value)
    assert "Why the rule exists: " in str(caught.value)


def test_every_rule_has_somebody_who_breaks_it() -> None:
    for rules, cases in (
        (PROPERTY_RULES, BROKEN_PROPERTIES),
        (POTENTIAL_RULES, BROKEN_POTENTIALS),
        (HYPOTHESES_RULES, BROKEN_HYPOTHESES),
        (HINT_RULES, BROKEN_HINTS),
        (FORECASTER_RULES, BROKEN_FORECASTERS),
    ):
        assert {rule.__name__ for rule in rules} == {case[0] for case in cases}


def test_every_rule_says_what_it_asks_and_why() -> None:
    for rule in (*PROPERTY_RULES, *POTENTIAL_RULES, *HYPOTHESES_RULES, *HINT_RULES, *FORECASTER_RULES):
        says, blank, *why = (inspect.getdoc(rule) or "").split("\n")
        assert says.endswith(".")
        assert not blank
        assert " ".join(why).endswith(".")


# Who is checked, and who is excused.


def test_roles_are_recognized_by_their_members() -> None:
    check(Wrapped(sc.Mean()))
    check(Wrapped(Squint()))
    check(Wrapped(sc.Linear(2)))
    check(Wrapped(sc.OnlineRegression()))
    check(forecaster)
    with pytest.raises(InvalidInput, match=r"nearest to Potential, for which it lacks spec$"):
        check(SimpleNamespace(**{name: None for name in dir(Potential) if name != "spec"}))
    with pytest.raises(InvalidInput, match="plays none of the roles"):
        check(sc.Mean)
    with pytest.raises(InvalidInput, match="pass a function that makes one"):
        check(forecaster())


def test_a_part_is_excused_from_a_rule_for_a_reason() -> None:
    wrong: Any = Wrapped(mean, lipschitz=0.5)
    with pytest.raises(CheckFailed, match="lipschitz_as_claimed"):
        check(wrong)
    wrong.check_exceptions = {"lipschitz_as_claimed": "a toy whose constant is known to be wrong"}
    check(wrong)
    for exceptions, message in (
        ({"lipschitz": "misspelled"}, "names 'lipschitz'"),
        ({"lipschitz_as_claimed": " "}, "must give a reason"),
        (["lipschitz_as_claimed"], "must map names"),
    ):
        wrong.check_exceptions = exceptions
        with pytest.raises(InvalidInput, match=message):
            check(wrong)


class Bare:
    """A rival with the outer protocol and nothing else."""

    check_exceptions = {  # noqa: RUF012
        "predict_learns_nothing": "forecasts are deterministic, so there is no distribution",
        "saving_is_exact": "a rival of a benchmark; it is not saved",
        "forecasters_share_nothing": "is seen through save, which it has not",
        "arguments_are_copied": "is seen through save, which it has not",
        "forecasts_are_updated_once": "is seen through save, which it has not",
        "foreign_forecasts_are_refused": "is seen through save, which it has not",
        "bad_input_changes_nothing": "is seen through save, which it has not",
        "memory_is_bounded": "is seen through save, which it has not",
    }

    def __init__(self) -> None:
        self.property, self.n_functions, self.total, self.n = sc.Mean(), 2, 0.5, 1

    def predict(self, x: Any) -> float:
        return self.total / self.n

    def update(self, forecast: float, y: float) -> None:
        self.total, self.n = self.total + y, self.n + 1

    def run(self, X: Any, y: Any) -> list[float]:
        values = []
        for label in y:
            values.append(self.predict(None))
            self.update(values[-1], label)
        return values


def test_a_rival_without_files_is_checked_for_the_rest() -> None:
    check(Bare)
    check_forecaster(Bare)


def test_a_stream_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (3000, 2)).astype(float), rng.random(3000)
    check_forecaster(forecaster, stream=checks.Stream(x, y, hints=np.full(3000, 0.4)))
    with pytest.raises(CheckFailed, match="predicts_before_learning"):
        check_forecaster(forecaster, stream=checks.Stream(x[:, :1], y))
    file = io.BytesIO()
    forecaster().save(file)
    with pytest.raises(CheckFailed, match=r"forecasters_share_nothing.*there is no load"):
        check_forecaster(broken(), stream=checks.Stream(x, y))
