"""Outcomes that come late: the drift that the ledger sees, the guarantee that holds, forecasts that wait."""

import io
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

import swapcal as sc
from games import CLASSES, STRATEGIES, game, row_of
from swapcal.engine.ledger import DRIFT, PEAK, RESERVED
from swapcal.simulate.adversaries import rounds

Delay = Callable[[np.random.Generator, float], int]

DELAYS: dict[str, Delay] = {
    "none": lambda rng, y: 0,
    "10": lambda rng, y: 10,
    "100": lambda rng, y: 100,
    "1,000": lambda rng, y: 1000,
    "geometric": lambda rng, y: int(rng.geometric(1.0 / 60.0)),
    "by outcome": lambda rng, y: 300 if y > 0.5 else 0,
}


class Late:
    """A forecaster whose outcomes are told later than the adversary thinks."""

    def __init__(self, forecaster: sc.Forecaster, delay: Delay, seed: int) -> None:
        self.forecaster, self.delay, self.rng = forecaster, delay, np.random.default_rng(seed)
        self.property, self.hypotheses = forecaster.property, forecaster.hypotheses
        self.waiting: list[tuple[int, sc.Forecast, float]] = []

    def predict(self, x: object, hint: float | None = None) -> sc.Forecast:
        return self.forecaster.predict(x, hint)

    def update(self, forecast: sc.Forecast, y: float) -> None:
        self.waiting.append((forecast.round + self.delay(self.rng, y), forecast, y))
        for item in [each for each in self.waiting if each[0] <= forecast.round]:
            self.waiting.remove(item)
            self.forecaster.update(item[1], item[2])

    def finish(self) -> Iterator[None]:
        for _, forecast, y in self.waiting:
            self.forecaster.update(forecast, y)
            yield


def worst_ratio(hypotheses: str, strategy: str, delay: str, n_rounds: int, seed: int, hints: str | None) -> float:
    """The largest error over guarantee at any of many times."""
    forecaster, adversary = game("mean", hypotheses, strategy, n_rounds, seed=seed, hints=hints)
    late, worst = Late(forecaster, DELAYS[delay], seed), 0.0

    def look() -> None:
        nonlocal worst
        if forecaster.n_rounds:
            worst = max(worst, forecaster.error() / float(forecaster.guarantee(0.05)))

    for t, _ in enumerate(rounds(late, adversary, n_rounds)):
        if t % 50 == 49:
            look()
    for t, _ in enumerate(late.finish()):
        if t % 50 == 49:
            look()
    look()
    return worst


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("hypotheses", ["groups", "linear"])
def test_the_guarantee_holds_with_late_outcomes(hypotheses: str, delay: str) -> None:
    for k, strategy in enumerate(STRATEGIES):
        assert worst_ratio(hypotheses, strategy, delay, 600, k, (None, "random")[k % 2]) <= 1.0 + 1e-9


@pytest.mark.slow
def test_the_guarantee_holds_with_late_outcomes_in_many_games() -> None:
    """200 games of every kind at delta = 0.05, looked at all the while: not one of them fails."""
    kinds = list(product(CLASSES, STRATEGIES, DELAYS))
    failed = 0
    for seed in range(200):
        hypotheses, strategy, delay = kinds[(37 * seed) % len(kinds)]
        hints = (None, "random", "constant")[seed % 3]
        failed += worst_ratio(hypotheses, strategy, delay, 2000, seed, hints) > 1.0 + 1e-9
    assert failed == 0


@pytest.mark.parametrize("potential", ["AdaNormalHedge", "Exponential", "Squint"])
@pytest.mark.parametrize("n_rounds", [500, 5000])
def test_outcomes_that_come_all_at_once_at_the_end(potential: str, n_rounds: int) -> None:
    """Weights leave the exponential for its tangent: then nothing is promised but what is certain."""
    functions = sc.Finite(1, potential=getattr(sc.potentials, potential)())
    forecaster = sc.Forecaster(sc.Mean(), functions, seed=1)
    waiting = [forecaster.predict([1.0]) for _ in range(n_rounds)]
    for forecast in waiting:
        forecaster.update(forecast, 1.0)
    assert forecaster.error() == pytest.approx(0.25 * n_rounds)
    assert forecaster.error() <= forecaster.guarantee(0.05) <= n_rounds
    # And back again: what was beyond the tangent is remembered.
    waiting = [forecaster.predict([1.0]) for _ in range(n_rounds)]
    for forecast in waiting:
        forecaster.update(forecast, 0.0)
    assert forecaster.error() <= forecaster.guarantee(0.05)


@pytest.mark.parametrize("kind", ["AdaNormalHedge", "Exponential", "Squint"])
def test_at_once_and_without_hints_only_the_ends_move_the_drift(kind: str) -> None:
    """A draw cancels its own evidence to the last bit; an end that heals takes away, and is never drawn."""
    rng = np.random.default_rng(3)
    functions = sc.Finite(3, potential=getattr(sc.potentials, kind)())
    forecaster = sc.Forecaster(sc.Mean(), functions, seed=2)
    ledger, ends = forecaster.state.ledger, 0
    for t in range(400):
        x = rng.integers(-2, 3, 3) / 2.0
        forecast = forecaster.predict(x)
        before = float(ledger.drift[DRIFT])
        assert ledger.drift[RESERVED] == abs(forecast.phi)
        assert (forecast.phi != 0.0) == (forecast.kind == "pair")
        forecaster.update(forecast, float(np.clip(0.9 * (t > 200) + 0.05 + 0.3 * x[0] * rng.random(), 0.0, 1.0)))
        change = float(ledger.drift[DRIFT]) - before
        assert change == 0.0 if forecast.kind in ("pair", "zero") else change <= 0.0
        ends += forecast.kind in ("low", "high")
        assert ledger.drift[RESERVED] == 0.0
    assert ledger.drift[PEAK] == pytest.approx(max(0.0, ledger.drift[PEAK]))
    assert ends > 0


@pytest.mark.parametrize("kind", ["groups", "exponential", "squint", "p-norm", "linear"])
def test_late_outcomes_move_the_drift_by_the_difference_of_the_evidence(kind: str) -> None:
    functions, contexts = CLASSES[kind]
    rng = np.random.default_rng(4)
    forecaster = sc.Forecaster(sc.Mean(), functions, seed=3)
    state, waiting, moved = forecaster.state, list[sc.Forecast](), 0
    for t in range(600):
        forecast = forecaster.predict(contexts[rng.integers(len(contexts))])
        waiting.append(forecast)
        reserved = sum(state.evidence.reserve(each.phi) for each in waiting if each.phi)
        assert state.ledger.drift[RESERVED] == pytest.approx(reserved, rel=1e-9)
        if len(waiting) > 25 or t > 570:
            late = waiting.pop(int(rng.integers(len(waiting))))
            y, row = float(rng.random() < 0.7), row_of(late)
            slot, n = state.values.find(late.value), float(state.counts[state.values.find(late.value)])
            v = float(sc.Mean().identification(late.evidence_at, y))
            v = min(v, 0.0) if late.kind == "low" else max(v, 0.0) if late.kind == "high" else v
            now, before = state.evidence.phi(slot, row), float(state.ledger.drift[DRIFT])
            expected = (now - late.phi) * v
            if kind in ("p-norm", "linear"):
                sums = state.evidence.arrays()["sums"][slot]
                p = 2.0 if kind == "linear" else state.evidence.potential.exponent  # type: ignore[attr-defined]
                radius = 1.0 if kind == "linear" else len(sums) ** (2.0 / p)
                pull = float(np.linalg.norm(sums, p)) ** 2 / (n * (n + 1.0)) if n else 0.0
                expected = 2.0 * expected + (v * late.phi) ** 2 / radius - pull
            forecaster.update(late, y)
            found = float(state.ledger.drift[DRIFT]) - before
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-9 * (1.0 + abs(before)))
            moved += abs(found) > 1e-6
        assert state.ledger.drift[PEAK] >= state.ledger.drift[DRIFT] + 0.0
    assert moved > 100


@pytest.mark.parametrize("potential", ["Exponential", "Squint"])
def test_small_gains_are_not_bounded_by_their_squares(potential: str) -> None:
    """Thirty rounds of one bin, each off by a tenth: the sum is 3, that of the squares 0.3."""
    functions = sc.Finite(1, potential=getattr(sc.potentials, potential)())
    forecaster = sc.Forecaster(sc.Mean(), functions, bins=1, seed=1)
    forecaster.run(np.ones((30, 1)), np.full(30, 0.6))
    assert forecaster.error() == pytest.approx(0.3)
    assert forecaster.error() <= forecaster.guarantee(0.05)


# Forecasts that wait


@pytest.mark.parametrize("window", [5, 1024, 3000])
def test_flags_grow_with_those_who_wait_and_the_oldest_expire(window: int) -> None:
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1, max_pending=window)
    made = [forecaster.predict([1.0]) for _ in range(window)]
    assert (forecaster.n_pending, forecaster.state.ledger.n_expired) == (window, 0)
    forecaster.update(made[0], 0.5)
    made += [forecaster.predict([1.0]) for _ in range(3)]
    # The first of the three takes the place of one that has had its outcome; the others push one out each.
    assert (forecaster.n_pending, forecaster.state.ledger.n_expired) == (window, 2)
    for forecast, error in ((made[0], sc.ExpiredForecast), (made[2], sc.ExpiredForecast)):
        with pytest.raises(error):
            forecaster.update(forecast, 0.5)
    file = io.BytesIO()
    forecaster.save(file)
    file.seek(0)
    loaded = sc.Forecaster.load(file)
    for each in (forecaster, loaded):
        for forecast in made[3:]:
            each.update(forecast, 0.5)
        assert (each.n_pending, each.n_rounds) == (0, window + 1)
        assert each.state.ledger.n_late == window
        assert each.state.ledger.drift[RESERVED] == 0.0
        with pytest.raises(sc.AlreadyUpdated):
            each.update(made[-1], 0.5)
    assert len(forecaster.state.pending.flags) == min(max(window, 5), 4096)


@pytest.mark.parametrize("own", [False, True])
def test_an_outcome_is_taken_while_every_flag_is_up(own: bool) -> None:
    """With as many forecasts open as there are flags, for a property of one's own too."""
    target = sc.Property(lambda p, y: p - y, lipschitz=1.0) if own else sc.Mean()
    forecaster = sc.Forecaster(target, sc.Finite(1), seed=1)
    made = [forecaster.predict([1.0]) for _ in range(1024)]
    for forecast in made:
        forecaster.update(forecast, 0.5)
    assert forecaster.n_rounds == 1024
    made = [forecaster.predict([1.0]) for _ in range(1500)]
    forecaster.run(np.ones((50, 1)), np.full(50, 0.5))
    assert forecaster.n_pending == 1500
    forecaster.update(made[0], 0.5)
