"""MsMwC: the authors' algorithm round by round, and a regret bound that nobody breaks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from effort import ALL, crossed
from naive_paper import NaiveMaster, NaiveMsMwC, kkt_residual
from swapcal.errors import InvalidInput
from swapcal.paper import MsMwC, MsMwCMaster, msmwc
from swapcal.paper.projection import Step, project
from swapcal.typing import Float64Array

Algorithm = MsMwC | MsMwCMaster
Make = Callable[[int, int], Algorithm]
Adversary = Callable[[int, int, Float64Array, np.random.Generator], Float64Array]


class FastMsMwC(MsMwC):
    """The largest constants that the proof covers: rates fall within a few rounds."""

    rate_cap = 1.0 / 16.0
    correction = 8.0


MAKERS: dict[str, Make] = {
    "theorem 2": lambda d, T: MsMwC(d, horizon=T),
    "fast rates": lambda d, T: FastMsMwC(d, horizon=T),
    "master": lambda d, T: MsMwCMaster(d, horizon=T),
}


def greedy_sparse(t: int, n: int, w: Float64Array, rng: np.random.Generator) -> Float64Array:
    """The heaviest loses; expert 0 wins whenever it is not the heaviest."""
    gains = np.zeros(len(w))
    gains[0] = 1.0
    gains[int(np.argmax(w))] = -1.0
    return gains


def among(w: Float64Array) -> Any:
    return np.arange(len(w))


ADVERSARIES: dict[str, Adversary] = {
    "one good": lambda t, n, w, rng: np.where(among(w) == 0, 1.0, -1.0),
    "one active": lambda t, n, w, rng: np.where(among(w) == len(w) - 1, 1.0, 0.0),
    "greedy": lambda t, n, w, rng: np.where(w > 1.0 / len(w), -1.0, 1.0),
    "greedy, sparse": greedy_sparse,
    "alternating": lambda t, n, w, rng: np.where(among(w) % 2 == t % 2, 1.0, -1.0),
    "in turn": lambda t, n, w, rng: np.where(among(w) == t % len(w), 1.0 if t // len(w) % 3 else -1.0, 0.0),
    "noise": lambda t, n, w, rng: rng.uniform(-1.0, 1.0, len(w)),
    "lured": lambda t, n, w, rng: np.where(among(w) == 0, 1.0 if 2 * t < n else -1.0, 0.0),
    "faint": lambda t, n, w, rng: np.where(among(w) == 0, 0.05, rng.uniform(-1.0, 1.0, len(w))),
}


@pytest.fixture(autouse=True)
def exact_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test plays, every step is a minimizer."""

    def watched(w: Float64Array, logs: Float64Array, b: Float64Array, rates: Float64Array, floor: float) -> Step:
        step = project(w, logs, b, rates, floor)
        assert kkt_residual(logs, b, rates, floor, step) < 1e-10
        return step

    monkeypatch.setattr(msmwc, "project", watched)


def play(experts: Algorithm, name: str, n: int) -> tuple[Float64Array, Float64Array]:
    """Regret against every expert, and its sum of squares, after `n` rounds."""
    rng, adversary = np.random.default_rng(7), ADVERSARIES[name]
    regret, squares = np.zeros(experts.n_experts), np.zeros(experts.n_experts)
    for t in range(n):
        weights = experts.weights
        gains = adversary(t, n, weights, rng)
        regret += gains - float(weights @ gains)
        squares += gains**2
        experts.update(gains)
    return regret, squares


NAIVE: dict[str, Callable[[int, int], NaiveMsMwC | NaiveMaster]] = {
    "theorem 2": NaiveMsMwC,
    "fast rates": lambda d, T: NaiveMsMwC(d, T, cap=1.0 / 16.0, c=8.0),
    "master": NaiveMaster,
}


@pytest.mark.parametrize(
    ("kind", "adversary", "sizes"), crossed(MAKERS, ADVERSARIES, [(1, 1), (3, 1), (1, 9), (2, 40), (5, 250)])
)
def test_every_round_is_that_of_the_oracle(kind: str, adversary: str, sizes: tuple[int, int]) -> None:
    d, T = sizes
    experts, naive, rng = MAKERS[kind](d, T), NAIVE[kind](d, T), np.random.default_rng(3)
    for t in range(min(T, 120)):
        gains = ADVERSARIES[adversary](t, T, experts.weights, rng)
        experts.update(gains)
        naive.update(gains.tolist())
        assert experts.weights == pytest.approx(naive.w, rel=1e-9, abs=0.0)


def test_rounds_with_falling_rates_and_weights_at_the_floor_are_those_of_the_oracle() -> None:
    d, T = 3, 60
    experts, naive = MAKERS["fast rates"](d, T), NAIVE["fast rates"](d, T)
    assert isinstance(experts, MsMwC)
    at_floor = 0
    for t in range(2500):
        # The first expert is good for long, then bad: weights go down to the floor and come back from it.
        gains = np.array([1.0 if t < 1500 else -1.0, -1.0 + t % 2, 0.0])
        experts.update(gains)
        naive.update(gains.tolist())
        assert experts.weights == pytest.approx(naive.w, rel=1e-9, abs=0.0)
        at_floor += int((experts.weights == 1.0 / (d * T)).sum())
    assert at_floor > 100
    assert experts.rates[0] < 1.0 / 20.0 < experts.rates[2] == pytest.approx(1.0 / 16.0)


@pytest.mark.parametrize(
    ("kind", "adversary", "sizes"),
    crossed(MAKERS, ADVERSARIES, [(2, 1), (2, 50), (2, 600), (7, 900), (60, 300)], of=7),
)
def test_the_regret_is_within_the_bound(kind: str, adversary: str, sizes: tuple[int, int]) -> None:
    d, T = sizes
    experts = MAKERS[kind](d, T)
    regret, squares = play(experts, adversary, T)
    assert (regret <= experts.regret_bound(squares)).all()


@pytest.mark.parametrize("kind", MAKERS)
def test_the_bound_holds_past_the_horizon(kind: str) -> None:
    for adversary in ("one good", "greedy", "lured"):
        experts = MAKERS[kind](4, 10)
        regret, squares = play(experts, adversary, 800)
        assert (regret <= experts.regret_bound(squares)).all()


def test_the_bound_is_the_expression_in_its_docstring() -> None:
    d, T = 8, 5000
    experts, log_term = MsMwC(d, horizon=T), math.log(8 * 5000)
    assert experts.regret_bound(0.0) == pytest.approx([64.0 * math.log(8) + 2.5 * 7 / 8] * 8)
    knee = 4096.0 * log_term
    for v in (1.0, 77.5, knee):
        assert experts.regret_bound(v)[0] == pytest.approx(64.0 * math.log(8) + v / 2.0 + 2.5 * 7 / 8)
    v = 100.0 * knee
    expected = 65.0 * math.sqrt(v * log_term) - 2112.0 * log_term + 64.0 * math.log(8)
    expected += 32.0 * (1.0 / 64.0 - math.sqrt(log_term / v)) + 2.5 * 7 / 8
    assert experts.regret_bound(v)[0] == pytest.approx(expected)
    for v in np.geomspace(1e-3, 1e9, 60):
        assert experts.regret_bound(v)[0] <= 65.0 * math.sqrt(v * log_term) + 64.0 * math.log(8) + 3.0


def test_the_bound_of_the_master_is_the_best_over_its_bases() -> None:
    master, v = MsMwCMaster(4, horizon=64), np.array([0.0, 5.0, 400.0, 1e6])
    rates = [2.0 ** -(5 + k) for k in range(1, 7)]
    s1, s2 = sum(rates), sum(e * e for e in rates)
    for i in range(4):
        terms = [(0.5 * math.log(4) + math.log(s2 / e**2) - 1.0) / e + 64.0 * e * float(v[i]) for e in rates]
        assert master.regret_bound(v)[i] == pytest.approx(min(terms) + s1 / s2)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_hundred_thousand_experts_and_ten_million_rounds_stay_finite(kind: str) -> None:
    d, T = 10**5, 10**7
    experts, rng = MAKERS[kind](d, T), np.random.default_rng(0)
    for t in range(8):
        experts.update(ADVERSARIES["greedy"](t, T, experts.weights, rng) if t % 2 else np.sign(rng.normal(size=d)))
        assert np.isfinite(experts.weights).all()
        assert abs(float(experts.weights.sum()) - 1.0) < 1e-12
        assert experts.weights.min() >= (0.0 if kind == "master" else 1.0 / (float(d) * T))
    assert np.isfinite(experts.regret_bound(float(T))).all()


@pytest.mark.parametrize(
    ("kind", "adversary", "n"),
    [
        ("theorem 2", "one good", 100_000 if ALL else 5_000),
        ("fast rates", "lured", 9_000 if ALL else 3_000),
        ("master", "lured", 9_000 if ALL else 3_000),
    ],
)
def test_a_long_run_keeps_sum_and_bound(kind: str, adversary: str, n: int) -> None:
    """Fast rates fall after some 2,500 rounds, those of theorem 2 after 50,000: the first is played here every time."""
    experts = MAKERS[kind](2, n)
    regret, squares = play(experts, adversary, n)
    assert (regret <= experts.regret_bound(squares)).all()
    assert abs(float(experts.weights.sum()) - 1.0) < 1e-12


def test_weights_cannot_be_written_and_stay_as_they_were_read() -> None:
    experts = MsMwC(3, horizon=100)
    before = experts.weights
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1.0
    experts.update([1.0, 0.0, -1.0])
    assert before.tolist() == [1 / 3] * 3
    gains = np.array([0.5, 0.0, 0.0])
    experts.update(gains)
    assert gains.tolist() == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize(
    "gains",
    [
        [0.0, 0.0, math.nan], [0.0, math.inf, 0.0], [0.0, 1.001, 0.0], [-1.001, 0.0, 0.0], [0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0], [[0.0, 0.0, 0.0]], "abc", None, ["a", "b", "c"], [1j, 0.0, 0.0], [[0.0], [0.0, 0.0]],
    ],
)  # fmt: skip
def test_bad_gains_are_refused_and_leave_no_trace(kind: str, gains: Any) -> None:
    experts, twin = MAKERS[kind](3, 50), MAKERS[kind](3, 50)
    experts.update([1.0, 0.0, -0.5])
    twin.update([1.0, 0.0, -0.5])
    with pytest.raises(InvalidInput):
        experts.update(gains)
    assert (experts.weights == twin.weights).all()
    experts.update([0.0, 0.3, 1.0])
    twin.update([0.0, 0.3, 1.0])
    assert (experts.weights == twin.weights).all()
    assert (experts.regret_bound(3.0) == twin.regret_bound(3.0)).all()


@pytest.mark.parametrize("make", [MsMwC, MsMwCMaster])
@pytest.mark.parametrize(
    ("n_experts", "settings"),
    [
        (0, {}), (2.0, {}), (True, {}), (3, {"horizon": 0}), (3, {"horizon": -5}), (3, {"horizon": math.nan}),
        (3, {"horizon": 10**400}), (3, {"horizon": "10"}),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(make: Any, n_experts: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        make(n_experts, **{"horizon": 10, **settings})
