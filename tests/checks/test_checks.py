"""The public checks: every part of this package obeys them, and every rule catches somebody who does not."""

import inspect
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from broken_parts import (
    BROKEN_FORECASTERS,
    BROKEN_HINTS,
    BROKEN_HYPOTHESES,
    BROKEN_POTENTIALS,
    BROKEN_PROPERTIES,
    Wrapped,
    broken,
    forecaster,
    mean,
)
from effort import halved
from instances import FORECASTERS, HINTS, HYPOTHESES, LEARNERS, LOADERS, POTENTIALS, PROPERTIES
from swapcal import checks, hints, hypotheses, learners, potentials, properties
from swapcal.checks import CheckFailed, check, check_forecaster
from swapcal.checks.forecasters import ForecasterRules
from swapcal.checks.hints import HintRules
from swapcal.checks.hypotheses import HypothesesRules
from swapcal.checks.properties import PotentialRules, PropertyRules
from swapcal.checks.rules import Rules
from swapcal.errors import InvalidInput
from swapcal.learners import Learner
from swapcal.potentials import AdaNormalHedge, Exponential, Potential, Squint
from swapcal.protocols import Elicitable, Hypotheses, LearningHint


@pytest.mark.parametrize("part", halved([*PROPERTIES, *POTENTIALS, *HYPOTHESES, *HINTS, *LEARNERS]), ids=repr)
def test_parts(part: Elicitable | Potential | Hypotheses | LearningHint | Learner) -> None:
    check(part)


@pytest.mark.parametrize("name", FORECASTERS)
def test_forecasters(name: str) -> None:
    check_forecaster(FORECASTERS[name], load=LOADERS.get(name))


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("name", ["anytime quantile", "regression on features"])
def test_forecasters_while_room_grows(name: str) -> None:
    assert FORECASTERS[name]().state.values.capacity == 12
    check_forecaster(FORECASTERS[name], load=LOADERS.get(name))


NOT_PARTS = {
    "Oracle",
    "Product",
    "Union",
    "Taught",
    "Alarm",
    "Audit",
    "Classes",
    "Forecast",
    "Forecaster",
    "Grid",
    "Groups",
    "Guarantee",
    "Interval",
    "Keyed",
}
NOT_PARTS |= {
    "Cost",
    "Quadratic",
    "MeanVariance",
    "Model",
    "Monitor",
    "MultiHorizon",
    "Numeric",
    "PredictionSet",
    "PredictiveDistribution",
    "Quantiles",
    "Trees",
    "RegressionState",
    "TailMean",
    "TaskConfig",
}
"""Values, machines, and classes that read records instead of vectors: they have tests of their own."""


def test_every_public_class_is_in_the_list_of_instances() -> None:
    parts: list[object] = [*PROPERTIES, *POTENTIALS, *HYPOTHESES, *HINTS, *LEARNERS]
    parts += [each.proper_loss for each in PROPERTIES if isinstance(each, sc.Probability)]
    seen = {type(part) for part in parts}
    assert seen > {sc.Mean, sc.Log, sc.Finite, sc.OnlineRegression, AdaNormalHedge}
    for module in (sc, properties, potentials, hypotheses, hints, learners):
        own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", (name for name in own if not name.startswith("_"))):
            each = getattr(module, name)
            if not inspect.isclass(each) or issubclass(each, Exception) or getattr(each, "_is_protocol", False):
                continue
            refused = each in (sc.Variance, sc.CVaR, sc.Mode)
            assert refused or name in NOT_PARTS or each in seen, f"{name} needs a line in tests/helpers/instances.py"


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


# Every rule catches a part that breaks it.


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


@pytest.mark.parametrize(("rule", "make", "load"), BROKEN_FORECASTERS)
def test_a_broken_forecaster_is_caught(rule: str, make: Callable[[], Any], load: Callable[[Any], Any]) -> None:
    with pytest.raises(CheckFailed) as caught:
        check_forecaster(make, load=load)
    assert caught.value.rule == rule, str(caught.value)
    assert "Why the rule exists: " in str(caught.value)


def test_every_rule_has_somebody_who_breaks_it() -> None:
    for rules, cases in (
        (PropertyRules, BROKEN_PROPERTIES),
        (PotentialRules, BROKEN_POTENTIALS),
        (HypothesesRules, BROKEN_HYPOTHESES),
        (HintRules, BROKEN_HINTS),
        (ForecasterRules, BROKEN_FORECASTERS),
    ):
        assert set(rules.rules()) == {case[0] for case in cases}


def test_every_rule_says_what_it_asks_and_why() -> None:
    kinds: tuple[type[Rules[Any]], ...] = (PropertyRules, PotentialRules, HypothesesRules, HintRules, ForecasterRules)
    for rule in (rule for kind in kinds for rule in kind.rules().values()):
        says, blank, *why = (inspect.getdoc(rule) or "").split("\n")
        assert says.endswith(".")
        assert not blank
        assert " ".join(why).endswith(".")


# Who is checked, and who is excused.


def test_roles_are_recognized_by_their_members() -> None:
    check(Wrapped(sc.Mean()))
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
        "forecasts_are_updated_once": "forecasts are plain numbers",
        "foreign_forecasts_are_refused": "forecasts are plain numbers",
        "bad_input_changes_nothing": "a toy; it believes everything",
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
    check_forecaster(forecaster, stream=checks.Trial(x, y, hints=np.full(3000, 0.4)))
    with pytest.raises(CheckFailed, match="predicts_before_learning"):
        check_forecaster(forecaster, stream=checks.Trial(x[:, :1], y))
    with pytest.raises(CheckFailed, match=r"saving_is_exact.*there is no load"):
        check_forecaster(broken(), stream=checks.Trial(x, y))
