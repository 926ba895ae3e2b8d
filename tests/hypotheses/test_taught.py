"""A class known through its learner alone: theorem O against loops over all functions, and adversaries."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses import Oracle
from swapcal.learners import model
from swapcal.protocols import Row

EDGES = np.linspace(-0.9, 0.9, 36)


def stumps(x: float) -> Any:
    return np.where(x > EDGES, 1.0, -1.0)


class Stumps:
    """Weights over stumps; its states are dictionaries."""

    n = 1

    def start(self) -> Any:
        return {"t": 0, "g": [0.0] * len(EDGES)}

    def predict(self, state: Any, row: Row) -> float:
        g = np.array(state["g"])
        w = np.exp(np.sqrt(np.log(len(EDGES)) / max(state["t"], 1)) * (g - g.max()))
        return float(w @ stumps(float(row.values.sum())) / w.sum())

    def update(self, state: Any, row: Row, kappa: float) -> None:
        state["t"] += 1
        state["g"] = (np.array(state["g"]) + kappa * stumps(float(row.values.sum()))).tolist()

    def regret(self, n: Any) -> Any:
        return 2.0 * np.sqrt(n * np.log(len(EDGES)))

    def spec(self) -> Any:
        return {"kind": "Stumps"}


class Known(Stumps):
    def supremum(self, state: Any) -> float:
        return float(max(state["g"]))


def naive(rounds: list[tuple[float, float, float]], r: float) -> float:
    """The swap error of (value, x, y) over all stumps, by a loop."""
    total = 0.0
    for value in {each[0] for each in rounds}:
        own = [(x, value - y) for z, x, y in rounds if z == value]
        top = np.abs(sum(stumps(x) * v for x, v in own)).max()
        total += len(own) * (top / len(own)) ** r
    return float(total)


def game(learner: Any, kind: str, seed: int, bins: int | None, n_rounds: int = 250) -> Any:
    rng, rounds = np.random.default_rng(seed), []
    forecaster = sc.Forecaster(sc.Mean(), Oracle(learner), bins=bins, seed=seed)
    for _ in range(n_rounds):
        x = [float(rng.uniform(-1.0, 1.0))]
        mean = sum(p * z for z, p in forecaster.distribution(x).items())
        y = {"half": 0.5, "far": float(mean < 0.5), "step": float(rng.random() < 0.3 + 0.4 * (x[0] > 0.2))}[kind]
        forecast = forecaster.predict(x)
        forecaster.update(forecast, y)
        rounds.append((forecast.value, x[0], y))
    return forecaster, rounds


@pytest.mark.parametrize("kind", ["half", "far", "step"])
@pytest.mark.parametrize("bins", [2, 3, 4, 8, None])
@pytest.mark.parametrize("seed", [1, 2])
def test_exact_is_naive_and_below_at_most_and_guarantee(kind: str, bins: int | None, seed: int) -> None:
    forecaster, rounds = game(Known(), kind, seed, bins)
    other, same = game(Stumps(), kind, seed, bins)
    assert rounds == same
    error, most = forecaster.error(), other.error()
    assert (error.kind, most.kind) == ("exact", "at most")
    assert str(most).startswith("at most")
    for r in (1.0, 1.5, 2.0, 3.0):
        assert forecaster.error(r) == pytest.approx(naive(rounds, r), rel=1e-9)
        assert forecaster.error(r) <= other.error(r) * (1.0 + 1e-12)
    assert error <= forecaster.guarantee(0.05)
    assert not forecaster.guarantee(0.05).broken


def test_the_counterexample() -> None:
    """All of the error is rounding: 4,000 times 0.25 squared; the promise must cover it."""
    forecaster, _ = game(Known(), "half", 3, 2, 2000)
    assert forecaster.error() > 100.0
    assert forecaster.error() <= forecaster.guarantee(0.05)


def test_saved_and_read_it_goes_on() -> None:
    forecaster, _ = game(Stumps(), "step", 4, None)
    again = sc.Forecaster.from_bytes(forecaster.to_bytes(), hypotheses=Oracle(Stumps()))
    for x in (-0.7, 0.1, 0.8):
        pair = [each.predict([x]) for each in (forecaster, again)]
        assert pair[0].value == pair[1].value
        for each, forecast in zip((forecaster, again), pair, strict=True):
            each.update(forecast, 0.9)
    assert again.error() == forecaster.error()


def test_a_learner_that_fails_leaves_everything_alone() -> None:
    class Fails(Stumps):
        def update(self, state: Any, row: Row, kappa: float) -> None:
            super().update(state, row, kappa)
            if state["t"] == 5:
                raise RuntimeError("out of order")

    forecaster = sc.Forecaster(sc.Mean(), Oracle(Fails()), bins=1, seed=1)
    for _ in range(4):
        forecaster.update(forecaster.predict([0.5]), 0.5)
    forecast = forecaster.predict([0.5])
    before = forecaster.to_bytes()
    with pytest.raises(RuntimeError, match="out of order"):
        forecaster.update(forecast, 0.5)
    assert forecaster.to_bytes() == before


class Ridge:
    """The forward algorithm over bins of x: ridge regression with x in the Gram matrix; squares, any linear f."""

    contract, n = "squares", 1

    def features(self, row: Row) -> Any:
        return np.eye(8)[min(int((float(row.values.sum()) + 1.0) * 4.0), 7)]

    def start(self) -> Any:
        return {"n": [0.0] * 8, "s": [0.0] * 8}

    def predict(self, state: Any, row: Row) -> float:
        x = self.features(row)
        return float(x @ np.array(state["s"]) / (x @ np.array(state["n"]) + 2.0))

    def update(self, state: Any, row: Row, kappa: float) -> None:
        x = self.features(row)
        state["n"], state["s"] = (np.array(state["n"]) + x).tolist(), (np.array(state["s"]) + kappa * x).tolist()

    def regret(self, n: Any) -> Any:
        return 8.0 * np.log1p(n / 8.0) + 8.0

    def spec(self) -> Any:
        return {"kind": "Ridge"}


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["half", "far", "step"])
def test_theorem_q(kind: str, scaled: bool) -> None:
    """sup |sum f kappa|^2 is at most n (X + Reg), for f that are constant in bins; and the promise is above that."""
    for seed in (1, 2):
        rng, rounds = np.random.default_rng(seed), []
        forecaster = sc.Forecaster(sc.Mean(), Oracle(Ridge(), scaled=scaled), bins=5, seed=seed)
        for _ in range(250):
            x = [float(rng.uniform(-1.0, 1.0))]
            mean = sum(p * z for z, p in forecaster.distribution(x).items())
            y = {"half": 0.5, "far": float(mean < 0.5), "step": float(rng.random() < 0.3 + 0.4 * (x[0] > 0.2))}[kind]
            forecast = forecaster.predict(x)
            forecaster.update(forecast, y)
            rounds.append((forecast.value, x[0], y))
        error, true = forecaster.error(), 0.0
        for value in {each[0] for each in rounds}:
            own = [(min(int((x + 1.0) * 4.0), 7), value - y) for z, x, y in rounds if z == value]
            sums = np.bincount([b for b, _ in own], weights=[v for _, v in own], minlength=8)
            true += np.abs(sums).sum() ** 2 / len(own)
        assert error.kind == "at most"
        assert error.at_least <= true <= error.at_most + 1e-9
        guarantee = forecaster.guarantee(0.05)
        assert guarantee.theorem == "theorem Q"
        assert error <= guarantee
        assert not guarantee.broken


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("hints", [None, "good", "turning"])
@pytest.mark.parametrize("protect", ["nothing", "loss"])
def test_hints_delays_and_standing_back(late: int, hints: str | None, protect: Any) -> None:
    """What was shown counts in the nearest value, with V there; exact is naive, and below at most and guarantee."""
    pair = [
        sc.Forecaster(sc.Mean(), Oracle(made), seed=3, protect=protect, budget=0.05, levels=0)
        for made in (Known(), Stumps())
    ]
    rng, waiting, rounds = np.random.default_rng(9), [], []
    for t in range(500):
        x = float(rng.uniform(-1.0, 1.0))
        p = 0.3 + 0.4 * (x > 0.2)
        hint = None if hints is None else min(max(p + (0.1 if hints == "good" or t < 250 else -0.3), 0.0), 1.0)
        waiting.append(([each.predict([x], hint) for each in pair], x, float(rng.random() < p)))
        if len(waiting) > late:
            forecasts, x, y = waiting.pop(int(rng.integers(len(waiting))))  # outcomes come in any order
            assert forecasts[0].value == forecasts[1].value
            shown, values = forecasts[0].value, pair[0].values
            for each, forecast in zip(pair, forecasts, strict=True):
                each.update(forecast, y)
            said = shown if forecasts[0].said is None else values[np.argmin(np.abs(values - shown))]
            rounds.append((float(said), x, shown - y))
    exact, most = pair[0].error(), pair[1].error()
    for r in (1.0, 1.5, 2.0, 3.0):
        total = 0.0
        for value in {each[0] for each in rounds}:
            own = [(x, v) for z, x, v in rounds if z == value]
            total += len(own) * (float(np.abs(sum(stumps(x) * v for x, v in own)).max()) / len(own)) ** r
        assert pair[0].error(r) == pytest.approx(total, rel=1e-9)
        assert pair[0].error(r) <= pair[1].error(r) * (1.0 + 1e-12)
    assert most.at_least <= exact <= most * (1.0 + 1e-12)
    assert exact <= pair[0].guarantee(0.05)
    assert not pair[0].guarantee(0.05).broken


@pytest.mark.parametrize("package", ["river", "sklearn"])
def test_any_model(package: str) -> None:
    if package == "river":
        made = pytest.importorskip("river.linear_model").LinearRegression()
    else:
        made = pytest.importorskip("sklearn.linear_model").SGDRegressor(random_state=0)
    forecaster, _ = game(model(made, 1, pickled=True), "step", 5, 8)
    assert forecaster.error().kind == "answers"
    assert forecaster.error() <= forecaster.guarantee(0.05)
    data = forecaster.to_bytes()
    again = sc.Forecaster.from_bytes(data, hypotheses=Oracle(model(made, 1, pickled=True)))
    assert again.distribution([0.3]) == forecaster.distribution([0.3])
    with pytest.raises(StateFileError):
        sc.Forecaster.from_bytes(data)
    with pytest.raises(StateFileError, match="pickled=True"):
        sc.Forecaster.from_bytes(data, hypotheses=Oracle(model(made, 1)))
    records = sc.Forecaster(sc.Mean(), Oracle(model(made, ["a", "b"])), bins=4)
    records.update(records.predict({"a": 1.0, "b": 30.0}), 0.4)
    assert records.n_rounds == 1
    with pytest.raises(InvalidInput, match="pickled=True"):
        records.to_bytes()
