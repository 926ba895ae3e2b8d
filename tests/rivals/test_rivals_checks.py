"""What every published method obeys: the public rules of forecasters, probabilities, units, and what it refuses."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import ALL, halved
from rival_games import HEDGING, N_GROUPS, RIVALS, make, stream
from swapcal.checks import Trial, check_forecaster
from swapcal.checks.rules import default_stream
from swapcal.errors import InvalidInput
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.rivals import all_rivals

ROUNDS = 3000


def trial(name: str) -> Trial:
    """Groups, so that every method can be asked; labels that follow them, and a biased hint."""
    rng = np.random.default_rng(5)
    if name == "luo":
        contexts = rng.normal(size=(ROUNDS, N_GROUPS)) / 4.0
        contexts /= np.maximum(np.linalg.norm(contexts, axis=1, keepdims=True), 1.0)
    elif name == "ghuge oracle":
        contexts = np.eye(N_GROUPS)[rng.integers(0, N_GROUPS, ROUNDS)]
    else:
        contexts = (rng.random((ROUNDS, N_GROUPS)) < 0.6).astype(np.float64)
    labels = np.clip(0.2 + 0.4 * contexts[:, 0] + 0.3 * rng.random(ROUNDS), 0.0, 1.0)
    return Trial(contexts, labels, np.clip(labels + 0.1 * rng.normal(size=ROUNDS), 0.0, 1.0))


CHECKED = RIVALS if ALL else halved({kind: name for name, (kind, *_) in RIVALS.items()}.values())
"""One variant of each; all of them in `make thorough`."""


@pytest.mark.parametrize("name", CHECKED)
def test_every_rival_obeys_the_rules_of_forecasters(name: str) -> None:
    check_forecaster(partial(make, name, horizon=400), stream=trial(name))


def test_everybody_is_there() -> None:
    assert {kind for kind, *_ in RIVALS.values()} == set(all_rivals())
    assert all(kind.card.reference for kind in all_rivals().values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "make",
    [
        lambda: sc.paper.Algorithm1(sc.Mean(), 3, horizon=400, seed=2),
        lambda: sc.paper.Algorithm2(sc.Quantile(0.8), MultiplicativeWeights(3), horizon=400, seed=2),
        lambda: sc.paper.Algorithm2(sc.Expectile(0.7), GradientDescent(3), horizon=400, seed=2),
    ],
    ids=["algorithm 1", "algorithm 2, finite", "algorithm 2, linear"],
)
def test_the_paper_obeys_them_too(make: Any) -> None:
    check_forecaster(make, stream=default_stream(make(), ROUNDS, hinted=False))


@pytest.mark.parametrize("name", RIVALS)
def test_probabilities_domain_and_units(name: str) -> None:
    """The same problem in other units, [-2, 6] for [0, 1], has the same forecasts in those units."""
    default = RIVALS[name][1]
    if isinstance(default, sc.Moment):
        default = sc.Mean()
    spec = {key: value for key, value in default.spec().items() if key != "kind"}
    unit, wide = make(name, property=default), make(name, property=type(default)(**spec | {"low": -2.0, "high": 6.0}))
    x, y, hints = stream()
    shown = []
    for context, label, hint in zip(x, 8.0 * y - 2.0, 8.0 * hints - 2.0, strict=True):
        plan = wide.plan(wide.hypotheses.row(context), float(hint))
        assert all(-2.0 <= value <= 6.0 for value in plan.values)
        assert min(plan.probabilities) >= 0.0
        assert math.isclose(sum(plan.probabilities), 1.0)
        assert list(plan.values) == sorted(plan.values) or name not in HEDGING
        forecast = wide.predict(context, float(hint))
        wide.update(forecast, float(label))
        shown.append(float(forecast))
    np.testing.assert_allclose(shown, 8.0 * unit.run(x, y, hints) - 2.0, atol=1e-9)


@pytest.mark.parametrize("name", [*HEDGING, "garg", "garg quantile", "luo"])
def test_another_seed_is_another_draw(name: str) -> None:
    x, y, _ = stream()
    assert not np.array_equal(make(name, seed=5).run(x, y), make(name, seed=6).run(x, y))


@pytest.mark.parametrize("name", HEDGING)
def test_one_bin_and_a_short_horizon(name: str) -> None:
    forecasts = make(name, n=1, horizon=1, bins=1).run(np.ones((9, 1)), np.linspace(0.1, 0.9, 9))
    assert ((forecasts >= 0.0) & (forecasts <= 1.0)).all()


@pytest.mark.parametrize("kind", all_rivals().values(), ids=lambda kind: kind.__name__)
def test_refuses_by_name_what_it_cannot_do(kind: Any) -> None:
    card, targets = kind.card, {"mean": sc.Mean(), "quantile": sc.Quantile(0.5), "expectile": sc.Expectile(0.9)}
    own = sc.Linear(2) if card.classes == ("linear",) else sc.Finite(2)
    other = sc.Finite(2) if card.classes == ("linear",) else sc.Linear(2)
    known = next(
        target for word, target in targets.items() if word in card.properties or "elicitable" in card.properties
    )
    refused: list[tuple[Any, Any]] = [(known, other)] if card.classes in (("linear",), ("finite",)) else []
    if "elicitable" not in card.properties:
        refused += [(target, own) for word, target in targets.items() if word not in card.properties]
    for target, hypotheses in refused:
        with pytest.raises(InvalidInput, match=card.name):
            kind(target, hypotheses, horizon=10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {setting: 0}) for name in (*HEDGING, "garg", "garg quantile") for setting in ("horizon", "bins")),
        *((name, {"seed": -1}) for name in HEDGING),
        ("gupta", {"forecasts": "left"}), ("gupta", {"rate": math.nan}),
        ("ghuge", {"halfspace": "all"}), ("hu-wu", {"forecasts": "point"}),
        ("mvp", {"rate": "practice"}), ("garg", {"ridge": 0.0}), ("garg", {"ridge": math.nan}),
        ("foster-hart", {"levels": 0}),
        ("logistic", {"rate": -0.1}), ("isotonic", {"window": 0}), ("aci", {"rate": -1.0}),
        ("group aci", {"rate": math.inf}), ("rolling quantile", {"window": 0}), ("clairvoyant", {"bins": 0}),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        make(name, **options)
