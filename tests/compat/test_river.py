"""river's own examination, without skips, and what the wrapped models promise."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing, tree

import swapcal as sc
from effort import ALL
from swapcal.compat.river import (
    ExpectileLoss,
    GroupCoverage,
    MulticalibratedClassifier,
    MulticalibratedInterval,
    MulticalibratedRegressor,
    PinballLoss,
    SwapError,
)


def scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


# Every other one, beginning with the second, is examined in `make test`: one of each kind, with groups or a quantile.
MODELS: list[Any] = [
    MulticalibratedClassifier(scaled(linear_model.LogisticRegression())),
    MulticalibratedClassifier(scaled(linear_model.LogisticRegression()), groups=["ip_in_url"], seed=3),
    MulticalibratedRegressor(scaled(linear_model.LinearRegression())),
    MulticalibratedRegressor(scaled(linear_model.PARegressor()), sc.Quantile(0.9, low=30, high=50)),
    MulticalibratedRegressor(tree.HoeffdingTreeRegressor(), groups=["gallup > 43"]),
    MulticalibratedInterval(scaled(linear_model.LinearRegression())),
    MulticalibratedInterval(tree.HoeffdingTreeRegressor(), coverage=0.5, groups=["gallup > 43"]),
]
SLOW: list[Any] = [
    MulticalibratedClassifier(naive_bayes.GaussianNB()), MulticalibratedClassifier(tree.HoeffdingTreeClassifier()),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model", [*(MODELS if ALL else MODELS[1::2]), *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)]
)
def test_check_estimator(model: Any) -> None:
    assert not model._unit_test_skips()
    checks.check_estimator(model)


def drifting(n: int = 4000) -> list[tuple[dict[str, Any], bool]]:
    rng = np.random.default_rng(0)
    rows = []
    for t in range(n):
        x: dict[str, Any] = {"a": float(rng.normal()), "team": "red" if rng.random() < 0.4 else "blue"}
        logit = x["a"] + (2.0 * t / n if x["team"] == "red" else -1.0)
        rows.append((x, bool(rng.random() < 1.0 / (1.0 + np.exp(-logit)))))
    return rows


def blind() -> Any:
    return compose.Select("a") | preprocessing.StandardScaler() | linear_model.LogisticRegression()


def test_swap_error_goes_down_where_the_model_is_blind() -> None:
    before, after = SwapError(groups=["team"]), SwapError(groups=["team"])
    alone, model = blind(), MulticalibratedClassifier(blind(), groups=["team"], seed=1)
    for x, y in drifting(2500):
        before.update(y, alone.predict_proba_one(x), x=x)
        after.update(y, model.predict_proba_one(x), x=x)
        alone.learn_one(x, y)
        model.learn_one(x, y)
    assert after.get() < 0.6 * before.get()


def test_pipelines_and_delayed_evaluation() -> None:
    model = preprocessing.StandardScaler() | MulticalibratedClassifier(linear_model.LogisticRegression(), seed=1)
    assert evaluate.progressive_val_score(datasets.Phishing(), model.clone(), metrics.ROCAUC(), delay=20).get() > 0.9
    assert evaluate.progressive_val_score(datasets.Phishing(), model, SwapError(bins=10), delay=20).get() < 30
    regressor = MulticalibratedRegressor(scaled(linear_model.LinearRegression()), seed=1)
    assert evaluate.progressive_val_score(datasets.TrumpApproval(), regressor, metrics.MAE(), delay=3).get() < 2.0


class Given:
    """A model that is a column, and learns nothing."""

    def predict_proba_one(self, x: Any) -> dict[bool, float]:
        return {False: 1.0 - x["p"], True: x["p"]}

    def predict_one(self, x: Any) -> float:
        return float(x["p"])

    def learn_one(self, x: Any, y: Any) -> None:
        pass


@pytest.mark.parametrize("late", [0, 200])
@pytest.mark.parametrize("kind", ["classifier", "regressor", "interval"])
def test_late_outcomes_are_learned_with_what_was_forecast(kind: str, late: int) -> None:
    """As by a forecaster with a learning hint that is told as late."""
    rng, n = np.random.default_rng(1), 2000
    cases: list[dict[str, Any]] = [
        {"p": float(rng.uniform(0.2, 0.8)), "team": str(rng.choice(["red", "blue"]))} for _ in range(n)
    ]
    unit = np.array([x["p"] + (0.15 if x["team"] == "red" else -0.1) for x in cases])
    y = rng.random(n) < unit if kind == "classifier" else unit + 0.1 * rng.normal(size=n)
    target: Any = sc.Probability() if kind == "classifier" else sc.Mean(low=-1.0, high=2.0)
    given: Any = Given()
    make: dict[str, Any] = {
        "classifier": lambda: MulticalibratedClassifier(given, groups=["team"]),
        "regressor": lambda: MulticalibratedRegressor(given, target, groups=["team"]),
        "interval": lambda: MulticalibratedInterval(given, groups=["team"]),
    }
    model = make[kind]()
    if kind == "classifier":
        model.learn_one(cases[0], True)
    waiting = []
    for t, x in enumerate(cases):
        waiting.append(model.forecast_one(x) if late else None)
        if t >= late:
            model.learn_one(cases[t - late], y[t - late], forecast=waiting[t - late])
    if kind == "interval":
        assert model._interval.rounds.open == late
        return
    found = model._forecasters[True] if kind == "classifier" else model._forecaster
    groups = sc.Groups(["team"], limit=1000)
    settings: dict[str, Any] = {"seed": found.rules.seed, "hint": sc.OnlineRegression(), "outside": "clip"}
    own = sc.Forecaster(target, groups.extended(0), **settings)
    if kind == "classifier":
        own.update(own.predict(groups.row(cases[0]), cases[0]["p"]), 1.0)
    told = []
    for t, x in enumerate(cases):
        told.append(own.predict(groups.row(x), x["p"]))
        if t >= late:
            own.update(told[t - late], float(y[t - late]))
    assert found.lateness() == own.lateness()
    assert found.lateness().n_pending == late
    assert found.lateness().mean_share > 0.4


def test_classes_that_appear_late() -> None:
    model, rng = MulticalibratedClassifier(naive_bayes.GaussianNB(), seed=1), np.random.default_rng(0)
    assert model.predict_one({"a": 1.0}) is None
    for t in range(1500):
        label = str(rng.choice(["x", "y"] if t < 500 else ["x", "y", "z"]))
        model.learn_one({"a": rng.normal() + "xyz".index(label)}, label)
    p = model.predict_proba_one({"a": 0.5})
    assert set(p) == {"x", "y", "z"}
    assert sum(p.values()) == pytest.approx(1.0)


def test_intervals_cover_every_group() -> None:
    rng = np.random.default_rng(0)
    model = MulticalibratedInterval(linear_model.LinearRegression(), groups=["loud"], seed=1)
    gap = GroupCoverage(0.9, groups=["loud"], at_least=500)
    for _ in range(3000):
        x = {"a": float(rng.normal()), "loud": bool(rng.random() < 0.3)}
        y = 3.0 * x["a"] + float(rng.normal(0, 5.0 if x["loud"] else 0.5))
        gap.update(y, model.predict_one(x, with_interval=True), x=x)
        model.learn_one(x, y)
    assert set(gap.groups_covered()) == {"all", "loud=True", "loud=False"}
    assert gap.get() < 0.04


def test_losses_are_those_of_the_properties_and_can_be_reverted() -> None:
    rng = np.random.default_rng(0)
    for metric, target in ((PinballLoss(0.3), sc.Quantile(0.3)), (ExpectileLoss(0.7), sc.Expectile(0.7))):
        y, p = rng.random(50), rng.random(50)
        for a, b in zip(y, p, strict=True):
            metric.update(a, b)
        assert metric.get() == pytest.approx(float(np.mean(target.loss(p, y))))
        metric.update(9.0, 1.0)
        metric.revert(9.0, 1.0)
        assert metric.get() == pytest.approx(float(np.mean(target.loss(p, y))))
    for closed in (SwapError(), GroupCoverage()):
        with pytest.raises(NotImplementedError):
            closed.revert(1.0, 0.5)
    with pytest.raises(sc.InvalidInput, match="with_interval=True"):
        GroupCoverage().update(1.0, 2.0)


def test_rows_of_a_frame_are_learned_one_by_one() -> None:
    rows = list(datasets.TrumpApproval().take(120))
    one, many = (MulticalibratedRegressor(scaled(linear_model.LinearRegression()), seed=1) for _ in range(2))
    frame = pd.DataFrame([x for x, _ in rows])
    for x, y in rows:
        one.learn_one(x, y)
    many.learn_many(frame, pd.Series([y for _, y in rows]))
    assert many.predict_many(frame).tolist() == [one.predict_one(x) for x, _ in rows]


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_how_much_of_a_correction_is_shown_is_an_option(kind: str) -> None:
    """Where nothing is protected all of it is shown from the first round."""
    shares = []
    for protect, budget in (("loss", 0.0), ("loss", None), ("nothing", None)):
        asked: dict[str, Any] = {"groups": ["team"], "seed": 1, "protect": protect, "budget": budget}
        own = scaled(linear_model.LinearRegression())
        model: Any = MulticalibratedRegressor(compose.Select("a") | own, sc.Probability(), **asked)
        if kind == "classifier":
            model = MulticalibratedClassifier(blind(), **asked)
        for x, y in drifting(400):
            model.learn_one(x, y)
        forecaster = model._forecasters[True] if kind == "classifier" else model._forecaster
        assert (forecaster.rules.protect, forecaster.rules.budget) == (protect, budget)
        shares.append(forecaster.lateness().mean_share)
    assert max(shares[:2]) < 1.0 == shares[2]
