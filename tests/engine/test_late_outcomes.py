"""Outcomes that come late: the guarantee holds, forecasts wait, blanks are filled in, the kernel has NumPy's plan.

That `run`, single events and the loop are one thing is in `suites/test_late.py`.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import part
from games import CLASSES, STRATEGIES, game
from swapcal.engine import kernels
from swapcal.engine.ledger import RESERVED
from swapcal.engine.pending import Chunk
from swapcal.engine.schedule import NEVER, Schedule, learn_order, play_alone
from swapcal.errors import AlreadyUpdated, ExpiredForecast, InvalidInput, UnknownForecast
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
@pytest.mark.parametrize("hypotheses", ["groups", "linear", "quadratic"])
def test_the_guarantee_holds_with_late_outcomes(hypotheses: str, delay: str) -> None:
    for k, strategy in enumerate(STRATEGIES):
        assert worst_ratio(hypotheses, strategy, delay, 600, k, (None, "random")[k % 2]) <= 1.0 + 1e-9


@pytest.mark.slow
def test_the_guarantee_holds_with_late_outcomes_in_many_games() -> None:
    """Games of every kind at delta = 0.05, looked at all the while: not one of them fails."""
    kinds = list(product(CLASSES, STRATEGIES, DELAYS))
    failed = 0
    for seed in range(part(200, 80)):
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


@pytest.mark.parametrize("potential", ["Exponential", "Squint"])
def test_small_gains_are_not_bounded_by_their_squares(potential: str) -> None:
    """Thirty rounds of one bin, each off by a tenth: the sum is 3, that of the squares 0.3."""
    functions = sc.Finite(1, potential=getattr(sc.potentials, potential)())
    forecaster = sc.Forecaster(sc.Mean(), functions, bins=1, seed=1)
    forecaster.run(np.ones((30, 1)), np.full(30, 0.6))
    assert forecaster.error() == pytest.approx(0.3)
    assert forecaster.error() <= forecaster.guarantee(0.05)


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
    for each in (forecaster, sc.Forecaster.from_bytes(forecaster.to_bytes())):
        for forecast in made[3:]:
            each.update(forecast, 0.5)
        assert (each.n_pending, each.n_rounds) == (0, window + 1)
        assert each.state.ledger.n_late == window
        assert each.state.ledger.drift[RESERVED] == 0.0
        with pytest.raises(sc.AlreadyUpdated):
            each.update(made[-1], 0.5)
    assert len(forecaster.state.pending.flags) == min(max(window, 5), 4096)


N = 700


def stream(seed: int = 1) -> tuple[Any, ...]:
    """Contexts, outcomes, the model, and outcomes with blanks: a tenth of them, and all of the last hundred."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(N), rng.integers(0, 2, (N, 3))]).astype(float)
    p = rng.uniform(0.1, 0.9, N)
    y = (rng.random(N) < np.clip(p + 0.2 * x[:, 1] - 0.1, 0.0, 1.0)).astype(float)
    seen = np.where((rng.random(N) < 0.1) | (np.arange(N) >= N - 100), np.nan, y)
    return x, y, p, seen


def made(learns: bool, **settings: Any) -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(), sc.Finite(4), seed=3, hint=sc.OnlineRegression() if learns else None, **settings)


def test_with_known_moments_it_is_learned_when_that_is_due() -> None:
    """A blank that is filled in with a moment is as one that was there from the start."""
    x, y, p, seen = stream()
    seen[: N // 2] = y[: N // 2]
    blank = np.isnan(seen[: N - 100]) & (np.arange(N - 100) >= N // 2)
    known = np.arange(N) + 150.0
    one, two = made(True), made(True)
    both = [one.run(x[:600], np.where(blank, np.nan, y[:600]), p[:600], known=known[:600], missing="skip", waits=blank)]
    # Moments of a second call are counted from its own first row.
    rows = np.flatnonzero(blank)
    late = rows[known[rows] >= 600]
    one.fill_in(late, y[late], known=known[late])
    both.append(one.run(x[600:], y[600:], p[600:], known=known[600:] - 600.0))
    whole = np.where(blank & (known[:600] < 600), np.nan, y[:600])
    first = two.run(x[:600], whole, p[:600], known=known[:600], missing="skip", waits=np.isnan(whole))
    second = two.run(x[600:], y[600:], p[600:], known=known[600:] - 600.0)
    assert len(late)
    assert both[0].tolist() == first.tolist()
    assert both[1].tolist() == second.tolist()


def test_what_cannot_be_filled_in_says_why_and_changes_nothing() -> None:
    x, _, p, seen = stream()
    forecaster = made(False, max_pending=400)
    forecaster.run(x, seen, p, missing="skip", waits=np.isnan(seen))
    waiting = np.flatnonzero(np.isnan(seen))
    expired, open_ = waiting[waiting < N - 400], waiting[waiting >= N - 400]
    assert forecaster.lateness().n_expired == len(expired)
    assert forecaster.n_pending == len(open_)
    before = forecaster.to_bytes()
    good = [int(open_[0]), int(open_[1])]
    known = next(t for t in range(N - 400, N) if not np.isnan(seen[t]))
    for bad, error in (
        (int(expired[0]), ExpiredForecast),
        (known, AlreadyUpdated),
        (N, UnknownForecast),
        (good[0], InvalidInput),
        (0.5, InvalidInput),
    ):
        with pytest.raises(error):
            forecaster.fill_in([*good, bad], [0.0, 1.0, 1.0])
    with pytest.raises(InvalidInput):
        forecaster.fill_in(good, [0.0, 7.0])
    assert forecaster.to_bytes() == before
    forecaster.fill_in(good, [0.0, 1.0])
    with pytest.raises(AlreadyUpdated):
        forecaster.fill_in(good[:1], [0.0])
    mine = forecaster.predict(x[0], p[0])
    with pytest.raises(InvalidInput, match="given to the caller"):
        forecaster.fill_in([mine.round], [1.0])
    with pytest.raises(InvalidInput, match="True or False for each"):
        forecaster.run(x, seen, p, missing="skip", waits=[True])


@pytest.mark.skipif(kernels.native is None, reason="the compiled kernels are not installed, or switched off")
def test_the_compiled_plan_is_that_of_numpy() -> None:
    """What is learned before which row, with lines from before, ties, and outcomes that never come."""
    rng = np.random.default_rng(1)
    for n, carried in ((0, 0), (0, 3), (1, 0), (7, 2), (200, 30), (500, 0)):
        for spread in (1, 4, 300):
            own = np.arange(n) + 1 + rng.integers(0, spread, n)
            own[rng.random(n) < 0.1] = NEVER
            arrive = np.concatenate([rng.integers(0, max(n, 1), carried), own]).astype(np.int64)
            lines = rng.permutation(50)[:carried].astype(np.int64)
            for ours, twin in zip(kernels.native.planned(arrive, lines), learn_order(arrive, lines), strict=True):
                assert ours.dtype == twin.dtype
                assert ours.tolist() == twin.tolist()


@pytest.mark.skipif(kernels.native is None, reason="the compiled kernels are not installed, or switched off")
def test_a_plan_that_cannot_be_is_refused_by_the_kernel() -> None:
    x, y, p, _ = stream()
    forecaster = made(False)
    rows = forecaster.hypotheses.rows(x, N)
    ends = np.minimum(np.arange(N + 1), 1)
    for code in (5, -99):
        plan = Schedule(np.array([code]), ends, np.ones(N, dtype=np.uint8), np.full(N, np.nan))
        with pytest.raises((ValueError, RuntimeError), match=r"before its forecast|no such round"):
            play_alone(forecaster._round, Chunk(rows, y, p, None, np.empty(N), plan))


@pytest.mark.parametrize("delay", [0, 500])
@pytest.mark.parametrize("target", [sc.Probability(), sc.Mean(high=1e4), sc.Quantile(0.9), sc.Expectile(0.8)], ids=repr)
def test_without_a_hint_forecasts_start_from_the_first_outcomes_known(target: Any, delay: int) -> None:
    """Not from the middle of the range: all outcomes lie at its lower end, and one delay is all that they need."""
    rng, n = np.random.default_rng(3), 3_000
    y = (rng.random(n) < 0.004).astype(float) if isinstance(target, sc.Probability) else 0.01 * rng.random(n)
    forecaster = sc.Forecaster(target, sc.Finite(1), seed=1)
    forecasts = forecaster.run(np.ones((n, 1)), y, known=None if not delay else np.arange(n) + float(delay))
    for rows in (slice(delay + 200, delay + 700), slice(delay + 200, n)):
        assert 0.5 * target.value(y) <= forecasts[rows].mean() <= 2.5 * target.value(y)
    known = y[: forecaster.n_rounds]
    if isinstance(target, sc.Probability):
        assert forecaster.state.origin == pytest.approx((0.5 + known.sum()) / (1.0 + len(known)))
    else:
        assert forecaster.state.origin == pytest.approx(target.value(known), rel=0.01)
