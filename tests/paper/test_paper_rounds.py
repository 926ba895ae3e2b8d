"""The edges of `swapcal.paper`: settings, bins, learners that fail. What all obey: `rivals/test_rivals_checks.py`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.paper import Algorithm1, Algorithm2, MsMwC
from swapcal.paper.grid import two_points
from swapcal.protocols import Row
from swapcal.typing import Float64Array

Method = Algorithm1 | Algorithm2

HORIZON = 60
MAKERS: dict[str, Callable[..., Method]] = {
    "1": lambda **options: Algorithm1(sc.Mean(), 2, **{"horizon": HORIZON, "bins": 4, "seed": 3, **options}),
    "2": lambda **options: Algorithm2(
        sc.Mean(), sc.learners.MultiplicativeWeights(2), **{"horizon": HORIZON, "bins": 4, "seed": 3, **options}
    ),
}
NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[..., Method]:
    return MAKERS[request.param]


def stream() -> tuple[Float64Array, Float64Array]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (HORIZON, 2))
    return x, np.clip(0.5 + 0.4 * x[:, 0] + 0.1 * rng.standard_normal(HORIZON), 0.0, 1.0)


def test_a_forecast_that_waits_too_long_expires(make: Callable[..., Method]) -> None:
    method = make()
    first, second = method.predict([1.0, 0.0]), method.predict([1.0, 0.0])
    for _ in range(1023):
        method.predict([1.0, 0.0])
    with pytest.raises(sc.ExpiredForecast):
        method.update(first, 0.5)
    method.update(second, 0.5)


def test_a_good_hint_is_not_used(make: Callable[..., Method]) -> None:
    x, y = stream()
    with_hints = make().run(x, y, np.linspace(0.0, 1.0, HORIZON))
    assert np.array_equal(with_hints, make().run(x, y))
    single: Any = np.float32(0.5)
    assert make().predict(x[0], single).hint == 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"horizon": 0}, {"horizon": 2.5}, {"horizon": True}, {"horizon": None}, {"horizon": 10**400}, {"r": 0.5},
        {"r": NAN}, {"r": "2"}, {"bins": 0}, {"bins": 1.5}, {"gains": "actual"}, {"gains": None},
        {"forecasts": "left"}, {"forecasts": 1}, {"seed": -1}, {"seed": 0.5}, {"experts": 3},
        {"experts": lambda n: None}, {"experts": lambda n: MsMwC},
        {"experts": lambda n: MsMwC(n + 1, horizon=HORIZON)},
    ],
)  # fmt: skip
def test_bad_settings(make: Callable[..., Method], options: dict[str, Any]) -> None:
    with pytest.raises(sc.InvalidInput):
        make(**options)


@pytest.mark.parametrize("bad", [None, 0, 2.0, "two", sc.learners.GradientDescent, sc.Finite(2)])
def test_bad_classes_and_properties(bad: Any) -> None:
    for make in (
        lambda: Algorithm1(sc.Mean(), bad, horizon=HORIZON),
        lambda: Algorithm2(sc.Mean(), bad, horizon=HORIZON),
        lambda: Algorithm1(bad, 2, horizon=HORIZON),
        lambda: Algorithm2(bad, sc.learners.GradientDescent(2), horizon=HORIZON),
    ):
        with pytest.raises(sc.InvalidInput):
            make()


def test_the_number_of_bins() -> None:
    """N = ceil(T^(1/(r+1))), that of r = 2 below it; never more than points."""
    for horizon, r, n_bins in ((1000, 2.0, 10), (1001, 2.0, 11), (1000, 1.0, 10), (10_000, 3.0, 10), (1, 2.0, 1)):
        assert Algorithm1(sc.Mean(), 1, horizon=horizon, r=r).grid.n_bins == n_bins
    assert Algorithm1(sc.Mean(), 1, horizon=5, bins=9).grid.n_bins == 5


class Moody:
    """A learner that answers and learns as it is told to."""

    n, odd, dual = 2, False, "max"
    answer, lesson = 0.5, 1.0

    def start(self) -> Float64Array:
        return np.zeros(1)

    def predict(self, state: Float64Array, row: Row) -> float:
        return self.answer

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        state[0] += self.lesson
        if self.lesson == 0.0:
            raise RuntimeError("not today")

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        return n_rounds

    def spec(self) -> dict[str, str]:
        return {"kind": "Moody"}


def test_a_learner_that_fails_changes_nothing() -> None:
    learner = Moody()
    method = Algorithm2(sc.Mean(), learner, horizon=HORIZON, bins=4)
    for answer in (2.0, NAN, -INF):
        learner.answer = answer
        with pytest.raises(sc.InvalidInput, match="outside"):
            method.predict([1.0, 1.0])
    learner.answer = 0.5
    forecast = method.predict([1.0, 1.0])
    assert forecast.round == 0
    weights = method.experts.weights.copy()
    for lesson, error in ((NAN, sc.InvalidInput), (0.0, RuntimeError)):
        learner.lesson = lesson
        with pytest.raises(error):
            method.update(forecast, 0.25)
        assert np.array_equal(method.experts.weights, weights)
        assert all(state[0] == 0.0 for each in method.learners for state in each)
    learner.lesson = 1.0
    method.update(forecast, 0.25)
    assert not np.array_equal(method.experts.weights, weights)
    assert sorted(state[0] for each in method.learners for state in each) == [0.0] * 6 + [1.0] * 2


def test_phi_must_be_finite() -> None:
    with pytest.raises(sc.InvalidInput, match="finite"):
        two_points(np.array([-1.0, NAN, 1.0]), 10)


def test_functions_that_cancel_leave_no_evidence() -> None:
    """Two functions with opposite pasts: Phi is 0 and not the 1e-21 that a fused multiplication leaves."""
    method = Algorithm1(sc.Mean(), 2, horizon=HORIZON, bins=4)
    third = 1.0 / 3.0
    for _ in range(5):
        method.update(method.predict([third, -third]), 0.1)
        assert method.phi(method.hypotheses.row([0.7, 0.7])).tolist() == [0.0] * 4


class Hours:
    """A learner of one's own that reads its contexts itself: for each hour, the way that errors lean."""

    def start(self) -> Any:
        return {"sum": [0.0] * 24, "n": [0] * 24}

    def row(self, x: Any) -> int:
        return int(x["hour"])

    def predict(self, state: Any, hour: int) -> float:
        return float(state["sum"][hour] / max(abs(state["sum"][hour]), state["n"][hour] ** 0.5, 1.0))

    def update(self, state: Any, hour: int, kappa: float) -> None:
        state["sum"][hour] += kappa
        state["n"][hour] += 1

    def spec(self) -> Any:
        return {"kind": "Hours"}


class HoursOfVectors(Hours):
    """The same with the hour as a vector."""

    n = 24
    row = None  # type: ignore[assignment]

    def predict(self, state: Any, hour: Any) -> float:
        return super().predict(state, int(hour.indices[0]))

    def update(self, state: Any, hour: Any, kappa: float) -> None:
        super().update(state, int(hour.indices[0]), kappa)


def test_a_learner_of_ones_own_reads_its_contexts_and_keeps_any_state() -> None:
    """A state of lists is copied whole, so that a round that fails leaves no trace."""
    own, other = (Algorithm2(sc.Mean(), each, horizon=60, seed=2) for each in (Hours(), HoursOfVectors()))
    for t in range(60):
        hour, y = 7 * t % 24, float(7 * t % 24 > 12)
        forecast, same = own.predict({"hour": hour}), other.predict(np.eye(24)[hour])
        assert float(forecast) == float(same)
        own.update(forecast, y)
        other.update(same, y)
    assert own.learners == other.learners
    assert any(state["n"] != [0] * 24 for pair in own.learners for state in pair)
