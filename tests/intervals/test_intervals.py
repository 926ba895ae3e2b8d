"""Quantiles that cannot cross, and the coverage that is proved of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from swapcal.engine import kernels
from swapcal.intervals import (
    Interval,
    IntervalForecast,
    MultiHorizon,
    PredictiveDistribution,
    Quantiles,
    QuantilesForecast,
    group_coverage,
    interval_score,
)
from swapcal.intervals.quantiles import BEYOND, tree, unit, unit_back
from swapcal.potentials import AdaNormalHedge, Quadratic


def noisy(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Outcomes around a biased hint, four times as noisy in one group."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.random(n) < 0.3, rng.random(n) < 0.5]).astype(float)
    hints = rng.normal(100.0, 10.0, n)
    return X, hints + 3.0 + rng.standard_t(4, n) * (1.0 + 3.0 * X[:, 1]), hints


def test_coverage_of_every_group_within_its_bound() -> None:
    X, y, hints = noisy(4000)
    interval = Interval(0.9, sc.Finite(3), horizon=4000, seed=1)
    lower, upper = interval.run(X, y, hints).T
    assert (lower < upper).all()
    covered = (lower <= y) & (y <= upper)
    for start, most in ((0, 0.04), (1000, 0.03)):  # the first rounds learn how loud the loud group is
        shares = group_coverage(covered[start:], X[start:])
        assert max(abs(share - 0.9) for share in shares.values()) < most
    totals = np.abs(((covered[20:] - 0.9)[:, None] * X[20:]).sum(axis=0))
    assert totals.max() < interval.miscoverage(0.05) < 4000
    loud, calm = (np.mean((upper - lower)[20:][X[20:, 1] == k]) for k in (1, 0))
    assert loud > 2.0 * calm


def test_the_identity_behind_the_bound() -> None:
    """Covered minus expected is exactly E_2 - s E_1, round for round."""
    X, y, hints = noisy(800)
    interval = Interval(0.8, sc.Finite(3), seed=1, spread=5.0)
    share = 0.8 / 0.9
    first = second = covered = 0.0
    for x, label, hint in zip(X, y, hints, strict=True):
        forecast = interval.predict(x, hint)
        first += (label <= forecast.lower) - 0.1
        second += (label > forecast.lower) * ((label <= forecast.upper) - share)
        covered += (label in forecast) - 0.8
        interval.update(forecast, label)
    assert covered == pytest.approx(second - share * first)


@pytest.mark.parametrize("share", [0.08, 0.15, 0.3])
def test_outcomes_far_below_the_map_are_promised_for(share: float) -> None:
    """They were forgotten: 313 promised and 761 seen for 15 %."""
    rng = np.random.default_rng(0)
    y = rng.normal(0.0, 1.0, 6000)
    far = rng.random(6000) < share
    y[far] = -1e6 * (1.0 + rng.random(int(far.sum())))
    for side in (1.0, -1.0):
        interval = Interval(0.9, sc.Finite(1), horizon=6000, seed=1, spread=1.0)
        lower, upper = interval.run(np.ones((6000, 1)), side * y, np.zeros(6000)).T
        off = abs(float(np.sum((lower <= side * y) & (side * y <= upper))) - 0.9 * 6000)
        assert off < min(interval.miscoverage(0.05), 300.0)
        assert np.isinf(lower if side > 0 else upper).any() or share < 0.05
        assert np.isfinite(upper if side > 0 else lower).mean() > 0.99


class _Sides:
    """Outcomes at, next to and far from the quantiles of a forecast: each is counted on the side on which it lies."""

    def __init__(self, quantiles: Quantiles, hints: Callable[[Any], Any]) -> None:
        self.rng, self.sums = np.random.default_rng(5), np.zeros(len(quantiles.levels))
        for _ in range(400):
            forecast = quantiles.predict([1.0], hint=hints(self.rng))
            q = float(self.rng.choice(forecast.values))
            near = [q, math.nextafter(q, -math.inf), math.nextafter(q, math.inf), self.rng.normal(0.0, 3.0)]
            near += [-1e9 * self.rng.random(), 1e9 * self.rng.random()]
            y = float(near[self.rng.integers(6)])
            y = y if math.isfinite(y) else float(self.rng.normal())
            if forecast.parts:
                self.sums += (y <= np.array(forecast.values)) - np.array(quantiles.levels)
            quantiles.update(forecast, y)


def _sums(forecaster: sc.Forecaster) -> float:
    """The sum of V at what was shown, over all values."""
    ledger = forecaster.state.ledger
    return float(ledger.sums[:, 0].sum() + ledger.moved_sums[:, 0].sum())


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
def test_every_outcome_is_counted_on_its_side() -> None:
    levels = [0.1, 0.5, 0.9]
    quantiles = Quantiles(levels, sc.Finite(1), seed=1, spread=1.0)
    played = _Sides(quantiles, lambda rng: 0.0)
    sums = [_sums(end) for end in quantiles._ends]
    middle = sums[1]
    assert played.sums[1] == pytest.approx(middle)
    shares = {node.position: node.share for node in tree(levels)}
    assert played.sums[0] == pytest.approx(sums[0] + shares[0] * middle)
    assert played.sums[2] == pytest.approx(sums[2] + (1.0 - shares[2]) * middle)


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
def test_quantiles_of_a_model_beyond_the_range_are_counted_too() -> None:
    """Half-widths beyond fifty usual ones lie outside the range of corrections, and so may outcomes."""
    quantiles = Quantiles([0.1, 0.9], sc.Finite(1), seed=1, spread=1.0)
    played = _Sides(quantiles, lambda rng: np.array([-1.0, 1.0]) * float(rng.choice([1.0, 2e3, 1e9])))
    apart = [abs(total - _sums(end)) for total, end in zip(played.sums, quantiles._ends, strict=True)]
    assert max(apart) > 0.5
    assert max(apart) <= quantiles.n_crossed < 400


def test_against_somebody_who_plays() -> None:
    """Outcomes are larger the wider the last interval was: coverage is kept, whoever chooses them."""
    interval = Interval(0.8, sc.Finite(1), horizon=3000, seed=1, spread=1.0, learn=False)
    rng, covered, last = np.random.default_rng(0), [], 1.0
    for _ in range(3000):
        forecast = interval.predict([1.0], hint=0.0)
        y = float(rng.choice([-1, 1]) * last * (0.5 + rng.random()))
        covered.append(y in forecast)
        last = 10.0 if forecast.upper < 2.0 else 1.0
        interval.update(forecast, y)
    assert abs(np.mean(covered) - 0.8) < 0.03
    assert abs(sum(covered) - 0.8 * 3000) < interval.miscoverage(0.05)


def test_many_levels_never_cross_and_each_covers() -> None:
    levels = np.arange(1, 10) / 10
    X, y, hints = noisy(3000)
    quantiles = Quantiles(levels, sc.Finite(3), horizon=3000, seed=1)
    q = quantiles.run(X, y, hints)
    assert (np.diff(q[20:], axis=1) > 0).all()
    for j in range(3):
        inside = X[:, j] == 1
        assert np.abs((y[inside, None] <= q[inside]).mean(axis=0) - levels).max() < 0.06
    totals = np.abs((((y[:, None] <= q) - levels)[20:, :, None] * X[20:, None, :]).sum(axis=0)).max(axis=1)
    assert (totals < quantiles.miscoverage(0.05)).all()


def test_crps_improves_on_the_hint_alone_and_is_the_mean_pinball_loss() -> None:
    X, y, hints = noisy(1500)
    levels = np.arange(1, 20) / 20
    quantiles, scores = Quantiles(levels, sc.Finite(3), seed=1), []
    for x, label, hint in zip(X, y, hints, strict=True):
        forecast = quantiles.predict(x, hint)
        if math.isfinite(forecast.values[0]):
            scores.append((forecast.predictive.crps(label), abs(label - hint)))
        quantiles.update(forecast, label)
    ours, alone = np.mean(scores[500:], axis=0)
    assert ours < 0.75 * alone
    some = PredictiveDistribution([0.2, 0.5, 0.8], [0.0, 1.0, 3.0])
    fine = np.linspace(0, 1, 20_001)[1:-1]
    for label in (-1.0, 0.3, 2.0, 9.0):
        at = np.array([some.quantile(level) for level in fine])
        pinball = 2.0 * np.mean((at - label) * ((label <= at) - fine))
        assert some.crps(label) == pytest.approx(pinball, abs=2e-3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=12, unique=True))
def test_the_tree_places_every_level_once_and_shares_multiply(levels: list[float]) -> None:
    levels = sorted(levels)
    nodes = tree(levels)
    assert sorted(node.position for node in nodes) == list(range(len(levels)))
    rebuilt: dict[int, float] = {}
    for node in nodes:
        low = 0.0 if node.below is None else rebuilt[node.below]  # parents come before their children
        high = 1.0 if node.above is None else rebuilt[node.above]
        rebuilt[node.position] = low + (high - low) * node.share
    assert [rebuilt[k] for k in range(len(levels))] == pytest.approx(levels)


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_the_map_goes_there_and_back(y: float, center: float, scale: float) -> None:
    u = unit(y, center, scale)
    assert 0.0 <= u <= 1.0
    if BEYOND < u < 1 - BEYOND:
        assert unit_back(u, center, scale) == pytest.approx(y, abs=1e-6 * (scale + abs(center)))


def test_the_first_outcomes_teach_the_spread() -> None:
    interval = Interval(0.9, sc.Finite(1), seed=1)
    for t in range(20):
        forecast = interval.predict([1.0])
        assert (forecast.lower, forecast.upper) == (-math.inf, math.inf)
        interval.update(IntervalForecast.from_json(forecast.to_json()), 1000.0 + t)
    forecast = interval.predict([1.0])
    assert 900.0 < forecast.lower < 1010.0 < forecast.upper < 1100.0
    bounded = Interval(0.9, sc.Finite(1), seed=1, low=0.0, high=1.0)
    assert bounded.predict([1.0]).width == 1.0


def test_expected_changes_nothing() -> None:
    X, y, hints = noisy(500)
    interval = Interval(0.9, sc.Finite(3), seed=1)
    interval.run(X, y, hints)
    before, ends = interval.to_bytes(), interval.expected(X[0], hints[0])
    assert ends[0] < ends[1]
    assert np.array_equal(ends, interval.expected(X[0], hints[0]))
    assert interval.to_bytes() == before


@pytest.mark.parametrize("potential", [AdaNormalHedge(), Quadratic()])
def test_linear_classes_work_too(potential: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(2000, 0.8), rng.uniform(-0.4, 0.4, size=(2000, 2))])  # with a constant: for everybody
    y = rng.normal(0, 1.0 + X[:, 1])
    functions = sc.Linear(3, potential=potential)
    q = Quantiles([0.1, 0.9], functions, seed=1, spread=1.0, horizon=2000, learn=False).run(X, y)
    assert (q[:, 0] < q[:, 1]).all()
    assert abs(np.mean((q[:, 0] <= y) & (y <= q[:, 1])) - 0.8) < 0.06
    # Level sets of hints, which have edges after 256 rounds, join the class or leave it alone.
    ends = Interval(0.8, functions, seed=1).run(X, y, y + rng.normal(size=2000))
    assert abs(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) - 0.8) < 0.06


def own_quantiles(bias: float, n: int = 6000) -> tuple[Any, Any, Any]:
    """Outcomes of known spread, and a model's 0.05, 0.5 and 0.95 quantiles, off by so many deviations in one group."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(n), rng.random(n) < 0.3]).astype(float)
    middle, deviation = rng.normal(0.0, 3.0, n), np.exp(rng.normal(0.0, 0.5, n))
    right = middle[:, None] + np.outer(deviation, [-1.645, 0.0, 1.645])
    return X, middle + deviation * rng.normal(size=n), right + (bias * deviation * X[:, 1])[:, None]


def pinball(y: Any, q: Any, levels: Any) -> float:
    return float((((y[:, None] <= q) - levels) * (q - y[:, None])).mean())


@pytest.mark.parametrize("delay", [1, 400])
def test_quantiles_of_a_model_are_left_if_right_and_corrected_if_not(delay: int) -> None:
    levels = np.array([0.05, 0.5, 0.95])
    known = np.arange(6000) + delay
    X, y, right = own_quantiles(0.0)
    shown = Quantiles(levels, sc.Finite(2), seed=1).run(X, y, right, known=known)
    assert pinball(y, shown, levels) < 1.002 * pinball(y, right, levels)
    X, y, wrong = own_quantiles(0.8)
    quantiles = Quantiles(levels, sc.Finite(2), seed=1)
    shown = quantiles.run(X, y, wrong, known=known)
    assert pinball(y, shown, levels) < 0.96 * pinball(y, wrong, levels)
    inside = X[:, 1] == 1.0
    off = np.abs((y[:, None] <= shown)[inside].mean(axis=0) - levels)
    assert off.sum() < 0.4 * np.abs((y[:, None] <= wrong)[inside].mean(axis=0) - levels).sum()
    assert (np.diff(shown, axis=1) >= 0.0).all()
    if delay == 1:
        totals = np.abs(((y[:, None] <= shown) - levels)[20:][inside[20:]].sum(axis=0))
        assert (totals < quantiles.miscoverage(0.05)).all()


def test_quantiles_of_a_model_in_python_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, hints = own_quantiles(0.8, 900)
    hints[5::50] = np.nan
    hints[3::40] = hints[3::40, ::-1]  # out of order
    compiled = Quantiles([0.05, 0.5, 0.95], sc.Finite(2), seed=1)
    shown = compiled.run(X, y, hints)
    assert (np.diff(shown[20:], axis=1) >= 0.0).all()
    assert compiled.n_crossed > 0
    assert np.array_equal(shown[3], hints[3, ::-1])  # until twenty outcomes are known
    monkeypatch.setattr(kernels, "native", None)
    assert np.array_equal(Quantiles([0.05, 0.5, 0.95], sc.Finite(2), seed=1).run(X, y, hints), shown)


@pytest.mark.parametrize("exact", [False, True])
def test_several_steps_ahead_of_a_model(exact: bool) -> None:
    """The ends that are given reach each step's interval, which learns them when they are known, as it would alone."""
    X, y, q = own_quantiles(0.8, 900)
    ends = q[:, [0, 2]]
    ahead: MultiHorizon[IntervalForecast] = MultiHorizon(
        lambda step, turn: Interval(0.9, sc.Finite(2), seed=step), steps=2, exact=exact
    )
    late, n = 7, 890
    shown = np.empty((n, 2, 2))
    for t in range(n):
        steps = (t, t + 1)
        shown[t] = [each.values for each in ahead.predict(X[[*steps]], ends[[*steps]])]
        ahead.update(float(y[t]), known=float(t + 1 + late))
    alone = Interval(0.9, sc.Finite(2), seed=1)
    assert np.array_equal(alone.run(X[:n], y[:n], ends[:n], known=np.arange(n) + 1.0 + late), shown[:, 0])
    share = alone._ends[0].state.shares[0]
    assert share.now > 0.0
    if not exact:
        second = Interval(0.9, sc.Finite(2), seed=2)
        again = second.run(X[1 : n + 1], y[1 : n + 1], ends[1 : n + 1], known=np.arange(n) + 2.0 + late)
        assert np.array_equal(again, shown[:, 1])


@pytest.mark.parametrize("exact", [False, True])
def test_several_steps_ahead(exact: bool) -> None:
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=1200))
    ahead: MultiHorizon[IntervalForecast] = MultiHorizon(
        lambda step, turn: Interval(0.8, sc.Finite(1), seed=10 * step + turn), steps=3, exact=exact
    )
    hits: list[list[bool]] = [[], [], []]
    widths: list[list[float]] = [[], [], []]
    for t in range(1190):
        for h, forecast in enumerate(ahead.predict([[1.0]] * 3, [float(walk[t])] * 3)):
            hits[h].append(float(walk[t + h + 1]) in forecast)
            widths[h].append(forecast.width)
        ahead.update(float(walk[t + 1]))
    assert ahead.waiting == 2 + 1
    for h in range(3):
        assert abs(np.mean(hits[h][200:]) - 0.8) < 0.06
    assert np.median(widths[0][200:]) < np.median(widths[1][200:]) < np.median(widths[2][200:])
    if exact:
        turns = ahead.forecasters[2]
        assert len(turns) == 3
        for turn in turns:
            assert isinstance(turn, Interval)
            assert not turn._ends[0].guarantee().broken


def test_scores_and_wrong_arguments() -> None:
    assert interval_score([2.0], [0.0], [1.0], 0.5).tolist() == [5.0]
    interval = Interval(0.9, sc.Finite(1), low=0.0, spread=1.0)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: Quantiles([0.5, 0.2], sc.Finite(1)), "increasing order"),
        (lambda: Interval(0.9, sc.Finite(1), low=2.0, high=1.0), "smaller than high"),
        (lambda: Interval(90, sc.Finite(1)), "level"),
        (lambda: interval.update(interval.predict([1.0]), -1.0), "outside"),
        (lambda: PredictiveDistribution([0.5, 0.4], [1.0, 2.0]), "increasing"),
        (lambda: group_coverage([True], [[1], [0]]), "one row for each"),
        (lambda: interval.predict([1.0], [0.0, 1.0]), "in all rounds one number for each level"),
        (lambda: Interval(0.9, sc.Finite(1)).predict([1.0], [0.0, 1.0, 2.0]), "2 numbers"),
        (lambda: Interval(0.9, sc.Finite(1)).predict([1.0], [0.0, 1.0], unit=2.0), "a unit goes with a single hint"),
        (lambda: Interval(0.9, sc.Finite(1)).run([[1.0]], [1.0], [[0.0]]), "2 numbers for each"),
        (lambda: MultiHorizon(lambda step, turn: interval, steps=2).predict([[1.0]]), "2 contexts"),
    ]
    for call, sentence in wrong:
        with pytest.raises(sc.InvalidInput, match=sentence):
            call()
    with pytest.raises(sc.UnknownForecast):
        interval.update(0.3, 1.0)  # type: ignore[arg-type]
    for bad in ("", "{}", "[1]", '{"lower": 1}'):
        for kind in (IntervalForecast, QuantilesForecast):
            with pytest.raises(sc.UnknownForecast):
                kind.from_json(bad)


@pytest.mark.parametrize("known", [None, 9.0])
def test_steps_ahead_refuse_an_outcome_before_anything_changes(known: float | None) -> None:
    ahead = sc.MultiHorizon(lambda step, turn: sc.Forecaster(sc.Mean(), sc.Finite(1), horizon=100, seed=step), 2)
    ahead.predict([[1], [1]])
    before = ahead.to_bytes()
    with pytest.raises(sc.InvalidInput, match=r"outside \[0, 1\]"):
        ahead.update(7.0, known=known)
    assert ahead.to_bytes() == before
    ahead.update(math.nan)
    assert [ahead.learn(1, y, known=known) for y in (7.0, 0.5)] == ["invalid", "learned" if known is None else "held"]


@pytest.mark.parametrize("exact", [False, True])
def test_all_steps_ahead_tell_how_late_outcomes_come_and_what_is_shown(exact: bool) -> None:
    rng = np.random.default_rng(2)
    make = lambda step, turn: sc.Forecaster(sc.Mean(), sc.Finite(1), seed=step, hint=sc.OnlineRegression())  # noqa: E731
    ahead = MultiHorizon(make, steps=2, exact=exact)
    for time in range(2_000):
        ahead.predict([[1.0]] * 2, [0.3, 0.3])
        ahead.update(float(rng.random() < 0.6), known=time + 20.0)
    told = ahead.lateness()
    forecasters: Any = ahead.forecasters
    every = [each.lateness() for turns in forecasters for each in turns]
    assert len(every) == (3 if exact else 2)
    assert told.n_late == max(each.n_late for each in every) > 900
    assert told.share == pytest.approx(np.mean([each.share for each in every]))
    assert told.share > 0.5
    assert "(step 2, turn 2)" in told.sentences[0] if exact else "(step 1)" in told.sentences[0]
