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
@pytest.mark.parametrize("bins", [2, 3, 8, None])
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
