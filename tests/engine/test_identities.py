"""Two ways to say the same thing give the same numbers: loop or `run`, other units, special cases that coincide."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

N = 4
POTENTIALS: dict[str, Potential] = {
    "AdaNormalHedge": AdaNormalHedge(),
    "Exponential": Exponential(),
    "Squint": Squint(),
    "PNorm": PNorm(3.0),
}
CLASSES = [*POTENTIALS, "Linear"]


def hypotheses_of(kind: str, n: int = N) -> Hypotheses:
    return sc.Linear(n) if kind == "Linear" else sc.Finite(n, potential=POTENTIALS[kind])


@dataclass(frozen=True)
class Stream:
    x: Float64Array
    y: Float64Array
    hints: Float64Array
    features: Float64Array


def stream_of(n_rounds: int, seed: int, *, n: int = N) -> Stream:
    """Two active functions a round, so that sums do not depend on their order; everything is a multiple of 1/64."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_rounds, n))
    for row in x:
        row[rng.choice(n, 2, replace=False)] = rng.choice([1.0, 0.5, -0.25], 2) * 0.625
    center = 0.5 + 0.4 * x[:, 0] + 0.2 * np.sin(np.arange(n_rounds) / 50.0)
    y = np.round(64 * np.clip(center + 0.2 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 64
    hints = np.round(32 * np.clip(center + 0.1 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 32
    return Stream(x, y, hints, rng.standard_normal((n_rounds, 2)))


def states(forecaster: sc.Forecaster) -> dict[str, Any]:
    """All that changes from round to round, but for the name the forecaster goes by."""
    counters, arrays = forecaster.state.snapshot()
    return {**{k: v for k, v in counters.items() if k not in ("identity", "key")}, **arrays}


def assert_same_state(one: sc.Forecaster, two: sc.Forecaster) -> None:
    first, second = states(one), states(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert np.array_equal(value, second[name]), name


@dataclass(frozen=True)
class Setting:
    """A forecaster with all that it is fed."""

    property: Elicitable
    hypotheses: Hypotheses
    options: dict[str, Any]
    hinted: bool = False

    def forecaster(self) -> sc.Forecaster:
        return sc.Forecaster(self.property, self.hypotheses, seed=3, **self.options)

    def feed(self, stream: Stream, t: int) -> dict[str, Any]:
        features = None if self.options.get("hint") is None else stream.features[t]
        return {"hint": float(stream.hints[t]) if self.hinted else None, "features": features}

    def loop(self, forecaster: sc.Forecaster, stream: Stream) -> list[float]:
        values = []
        for t in range(len(stream.y)):
            forecast = forecaster.predict(stream.x[t], **self.feed(stream, t))
            forecaster.update(forecast, stream.y[t])
            values.append(float(forecast))
        return values


LEARNING = sc.OnlineRegression(n_features=2)
SETTINGS: dict[str, Setting] = {
    **{f"{kind}, no hint": Setting(sc.Mean(), hypotheses_of(kind), {"horizon": 200}) for kind in CLASSES},
    **{f"{kind}, hints": Setting(sc.Mean(), hypotheses_of(kind), {"horizon": 200}, True) for kind in CLASSES},
    **{f"{kind}, learning": Setting(sc.Mean(), hypotheses_of(kind), {"bins": 6, "hint": LEARNING}) for kind in CLASSES},
    "learning on top of hints": Setting(sc.Expectile(0.8), sc.Finite(N), {"bins": 7, "hint": LEARNING}, True),
    "learning quantile, jitter": Setting(
        sc.Quantile(0.75), sc.Finite(N), {"bins": 7, "hint": LEARNING, "jitter": 0.1}, True
    ),
    "quantile, jitter": Setting(sc.Quantile(0.9), sc.Finite(N), {"bins": 5, "jitter": 1.0 / 64}),
    "linear quantile, jitter": Setting(sc.Quantile(0.2), sc.Linear(N), {"bins": 5, "jitter": 0.5}, True),
    "anytime": Setting(sc.Mean(), sc.Finite(N), {}),
    "moment": Setting(sc.Moment(3), sc.Finite(N), {"bins": 5, "levels": 3, "trust": 0.0}, True),
}


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("name", SETTINGS)
def test_run_is_the_loop(name: str) -> None:
    """Labels vary by a hundredth of the range: values appear, and the arrays that hold them are replaced on the way."""
    setting, some = SETTINGS[name], stream_of(400, 21)
    y = 0.5 + 0.4 * some.x[:, 0] + 0.01 * (some.y - 0.5)
    stream = Stream(some.x, y, np.round(256 * y) / 256, some.features)
    looped, ran = setting.forecaster(), setting.forecaster()
    expected = setting.loop(looped, stream)
    parts = []
    for part in (slice(0, 90), slice(90, 400)):
        hints = stream.hints[part] if setting.hinted else None
        features = None if setting.options.get("hint") is None else stream.features[part]
        parts.append(ran.run(stream.x[part], stream.y[part], hints, features=features))
    assert np.concatenate(parts).tolist() == expected
    assert len(set(expected)) > 2
    assert_same_state(looped, ran)


def test_the_horizon_does_not_matter() -> None:
    """It is there for the guarantee ahead of a run; forecasts are the same with any, and without."""
    stream = stream_of(400, 23)
    runs = []
    for horizon in (None, 400, 10, 10**9):
        for hints in (None, stream.hints):
            forecaster = sc.Forecaster(sc.Quantile(0.7), sc.Finite(N), seed=4, horizon=horizon, jitter=0.01)
            runs.append(forecaster.run(stream.x, stream.y, hints).tolist())
            assert forecaster.guarantee() < forecaster.guarantee(n_rounds=400)
    assert all(run == runs[k % 2] for k, run in enumerate(runs))


@pytest.mark.parametrize("name", SETTINGS)
def test_distribution_is_what_predict_draws_from(name: str) -> None:
    setting, stream = SETTINGS[name], stream_of(120, 6)
    forecaster, drawn, surprise = setting.forecaster(), 0, 0.0
    for t in range(120):
        before = states(forecaster)
        distribution = forecaster.distribution(stream.x[t], **setting.feed(stream, t))
        after = states(forecaster)
        assert all(np.array_equal(before[k], after[k]) for k in before), "asking changes nothing"
        forecast = forecaster.predict(stream.x[t], **setting.feed(stream, t))
        assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-15)
        assert min(distribution.values()) >= 0.0
        assert distribution[forecast.value] == forecast.probability
        assert set(distribution) == {forecast.value, forecast.other}
        if len(distribution) == 2:
            drawn += 1
            lower = min(distribution)
            surprise += (forecast.value == lower) - distribution[lower]
        forecaster.update(forecast, stream.y[t])
    # The draws follow the probabilities: Hoeffding's inequality at 1e-6.
    assert abs(surprise) <= np.sqrt(0.5 * max(drawn, 1) * np.log(2e6))


def test_a_forecast_without_outcome_only_uses_up_its_draw() -> None:
    """The evidence does not know of it: the next distribution is that of a forecaster that never made it."""
    stream = stream_of(100, 19)
    one, two = (sc.Forecaster(sc.Mean(), sc.Finite(N), bins=5, seed=1) for _ in range(2))
    for t in range(100):
        two.predict(stream.x[-1 - t])
        assert one.distribution(stream.x[t]) == two.distribution(stream.x[t])
        played = two.predict(stream.x[t])
        # The other one draws until it has drawn the same.
        while (forecast := one.predict(stream.x[t])).value != played.value:
            assert forecast.value == played.other
        one.update(forecast, stream.y[t])
        two.update(played, stream.y[t])
    assert two.n_pending == 100
    assert one.error() == two.error() > 0.0


def with_levels(stream: Stream, n_levels: int) -> Float64Array:
    """The contexts with indicators of the hint's level sets behind them."""
    level = np.minimum(np.floor(stream.hints * n_levels), n_levels - 1)
    return np.hstack([stream.x, (level[:, None] == np.arange(n_levels)).astype(float)])


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("target", [sc.Mean(), sc.Expectile(0.7), sc.Moment(2)], ids=repr)
def test_error_is_the_audit(target: Elicitable, kind: str) -> None:
    """The ledger of the forecaster and the audit of the recorded stream; on a fixed grid, but for the mean."""
    stream = stream_of(900 if isinstance(target, sc.Mean) else 150, 5)
    options: dict[str, Any] = {} if isinstance(target, sc.Mean) else {"bins": 6}
    hypotheses = hypotheses_of(kind)
    plain = sc.Forecaster(target, hypotheses, **options)
    p = plain.run(stream.x, stream.y)
    for r in (1.0, 2.0, 3.5):
        audited = sc.swap_multicalibration_error(stream.y, p, stream.x, property=target, hypotheses=hypotheses, r=r)
        assert plain.error(r) == pytest.approx(audited, rel=1e-10)
    assert len(plain.values) >= 11 if isinstance(target, sc.Mean) else len(plain.values) == 6

    hinted = sc.Forecaster(target, hypotheses, levels=4, **options)
    p = hinted.run(stream.x, stream.y, stream.hints)
    x, extended = (stream.x, hypotheses) if kind == "Linear" else (with_levels(stream, 4), hypotheses_of(kind, N + 4))
    for r in (1.0, 2.0, 3.5):
        audited = sc.swap_multicalibration_error(stream.y, p, x, property=target, hypotheses=extended, r=r)
        assert hinted.error(r) == pytest.approx(audited, rel=1e-10)


def test_one_constant_function_is_calibration() -> None:
    stream, ones = stream_of(300, 12), np.ones((300, 1))
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), bins=6, seed=1)
    p = forecaster.run(ones, stream.y)
    for r in (1.0, 2.0, 3.0):
        error = sc.calibration_error(stream.y, p, r=r)
        assert error > 0.0
        assert forecaster.error(r) == pytest.approx(error, rel=1e-12)
        for hypotheses in (None, sc.Finite(1), sc.Linear(1)):
            swap = sc.swap_multicalibration_error(stream.y, p, ones, hypotheses=hypotheses, r=r)
            assert swap == pytest.approx(error, rel=1e-12)
        for hypotheses in (None, sc.Finite(1)):
            plain = sc.multicalibration_error(stream.y, p, ones, hypotheses=hypotheses, r=r)
            assert plain == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("hinted", [False, True])
def test_linear_is_the_two_norm_of_a_finite_class(hinted: bool) -> None:
    """With p = 2 the gradient of the p-norm potential is S itself; level sets are left out, as Linear has none."""
    stream = stream_of(300, 13)
    hints = stream.hints if hinted else None
    linear = sc.Forecaster(sc.Mean(), sc.Linear(N), bins=7, seed=4)
    finite = sc.Forecaster(sc.Mean(), sc.Finite(N, potential=PNorm(2.0)), bins=7, seed=4, levels=0)
    assert linear.run(stream.x, stream.y, hints).tolist() == finite.run(stream.x, stream.y, hints).tolist()
    assert finite.error() < linear.error()


CHANGES = ["a zero function is added", "functions are negated", "functions are permuted", "every function comes twice"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
def test_what_changes_no_forecast(kind: str, hinted: bool, change: str) -> None:
    """Zeros have no weight, weights are odd, and doubling all of Phi keeps signs and ratios."""
    stream = stream_of(250, 15)
    hints = stream.hints if hinted else None
    scale = 0.5 if kind == "Linear" else 1.0
    if change == "a zero function is added":
        x = np.hstack([stream.x[:, :2], np.zeros((250, 1)), stream.x[:, 2:]])
    elif change == "functions are negated":
        x = stream.x * np.array([1.0, -1.0, -1.0, 1.0])
    elif change == "functions are permuted":
        x = stream.x[:, [2, 0, 3, 1]]
    else:
        # Side by side, so that partial sums are twice what they were; halved to stay in the unit ball.
        x = np.repeat(stream.x[:, :1] * scale, 2, axis=1)
        stream = Stream(stream.x[:, :1] * scale, stream.y, stream.hints, stream.features)
    one = sc.Forecaster(sc.Mean(), hypotheses_of(kind, stream.x.shape[1]), bins=6, seed=6, levels=0)
    two = sc.Forecaster(sc.Mean(), hypotheses_of(kind, x.shape[1]), bins=6, seed=6, levels=0)
    assert one.run(stream.x, stream.y, hints).tolist() == two.run(x, stream.y, hints).tolist()
    factor = 2.0 if kind == "Linear" and change == "every function comes twice" else 1.0
    assert two.error() == pytest.approx(factor * one.error(), rel=1e-12)


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("unit", "scaled"),
    [
        (sc.Mean(), sc.Mean(low=-3.0, high=5.0)),
        (sc.Expectile(0.8), sc.Expectile(0.8, low=-3.0, high=5.0)),
        (sc.Quantile(0.75), sc.Quantile(0.75, low=-3.0, high=5.0)),
    ],
    ids=["mean", "expectile", "quantile"],
)
def test_units_of_labels(unit: Elicitable, scaled: Elicitable, kind: str, hinted: bool) -> None:
    """Labels and hints on a grid of powers of two, so that the change of units is exact."""
    stream = stream_of(190, 16)
    one, two = (sc.Forecaster(each, hypotheses_of(kind), bins=8, seed=7) for each in (unit, scaled))
    p = one.run(stream.x, stream.y, stream.hints if hinted else None)
    q = two.run(stream.x, -3.0 + 8.0 * stream.y, -3.0 + 8.0 * stream.hints if hinted else None)
    assert q.tolist() == (-3.0 + 8.0 * p).tolist()
    assert two.error() == one.error()
    assert two.guarantee() == one.guarantee()


def test_the_expectile_at_one_half_is_the_mean() -> None:
    """V is half of the mean's: a quarter of the error at r = 2, and the same play wherever only ratios matter."""
    stream = stream_of(300, 17)
    for kind in ("Linear", "PNorm"):
        mean, expectile = (
            sc.Forecaster(each, hypotheses_of(kind), bins=7, seed=9) for each in (sc.Mean(), sc.Expectile(0.5))
        )
        p = mean.run(stream.x, stream.y, stream.hints)
        assert expectile.run(stream.x, stream.y, stream.hints).tolist() == p.tolist()
        assert expectile.error() == pytest.approx(0.25 * mean.error(), rel=1e-12)
        quarter = sc.swap_multicalibration_error(stream.y, p, stream.x, property=sc.Expectile(0.5))
        assert quarter == pytest.approx(0.25 * sc.swap_multicalibration_error(stream.y, p, stream.x), rel=1e-12)
    assert sc.Expectile(0.5).value(stream.y) == pytest.approx(sc.Mean().value(stream.y), rel=1e-14)


def test_other_names_of_the_mean() -> None:
    """The first moment, the probability of a binary label, and a user's own p - y."""
    stream = stream_of(200, 18)
    y = np.round(stream.y)
    own = sc.Property(lambda p, y: p - y, name="own mean")
    runs, errors = [], []
    for each in (sc.Mean(), sc.Moment(1), sc.Probability(), sc.Probability(sc.Log()), own):
        forecaster = sc.Forecaster(each, sc.Finite(N), bins=6, seed=2)
        runs.append(forecaster.run(stream.x, y, stream.hints).tolist())
        errors.append(forecaster.error())
    assert all(run == runs[0] for run in runs)
    assert all(error == errors[0] > 0.0 for error in errors)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n_epochs=st.integers(1, 5),
    n_values=st.integers(1, 6),
    linear=st.booleans(),
    r=st.sampled_from([1.0, 1.5, 2.0, 4.0]),
)
def test_the_error_is_subadditive_over_epochs(seed: int, n_epochs: int, n_values: int, linear: bool, r: float) -> None:
    """|V|^r / n^(r - 1) is convex and homogeneous, so epochs add up to at least the whole, shared values or not."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, n_epochs)
    total = int(lengths.sum())
    x = rng.uniform(-0.5, 0.5, (total, 3))
    y, p = rng.random(total), rng.integers(0, n_values, total) / n_values
    hypotheses: sc.Finite | sc.Linear = sc.Linear(3) if linear else sc.Finite(3)
    cuts = np.concatenate([[0], np.cumsum(lengths)])

    def error(part: slice) -> float:
        return sc.swap_multicalibration_error(y[part], p[part], x[part], hypotheses=hypotheses, r=r)

    parts = [error(slice(a, b)) for a, b in pairwise(cuts)]
    assert error(slice(0, total)) <= sum(parts) * (1.0 + 1e-12)
