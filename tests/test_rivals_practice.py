"""What practitioners use, and the limit: good citizens, and each what its name says."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from swapcal.errors import InvalidInput
from swapcal.grid import Grid
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Mean, Moment, Probability, Quantile
from swapcal.rivals import all_rivals
from swapcal.rivals.aci import AdaptiveConformal
from swapcal.rivals.clairvoyant import Clairvoyant
from swapcal.rivals.group_aci import GroupConformal
from swapcal.rivals.logistic_recalibration import LogisticRecalibration
from swapcal.rivals.raw_model import RawModel
from swapcal.rivals.rolling_isotonic import RollingIsotonic, isotonic
from swapcal.rivals.rolling_property import RollingProperty
from swapcal.streams.synthetic import drifting, miscalibrated
from swapcal.typing import Float64Array
from test_rivals_swap import N_GROUPS, N_ROUNDS, Make, check_rival, check_units, learned, stream

MAKERS: dict[str, Make] = {
    "raw": lambda **kw: RawModel(Expectile(0.7), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
    "raw-linear": lambda **kw: RawModel(Mean(), Linear(N_GROUPS), horizon=N_ROUNDS, **kw),
    "logistic": lambda **kw: LogisticRecalibration(Mean(), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
    "logistic-moment": lambda **kw: LogisticRecalibration(Moment(2), Linear(N_GROUPS), horizon=N_ROUNDS, **kw),
    "isotonic": lambda **kw: RollingIsotonic(
        Mean(), Finite(N_GROUPS), horizon=N_ROUNDS, **{"window": 60, "every": 7, **kw}
    ),
    "aci": lambda **kw: AdaptiveConformal(Quantile(0.8), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
    "group-aci": lambda **kw: GroupConformal(Quantile(0.8), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
    "rolling-expectile": lambda **kw: RollingProperty(
        Expectile(0.7), Finite(N_GROUPS), horizon=N_ROUNDS, **{"window": 20, **kw}
    ),
    "rolling-quantile": lambda **kw: RollingProperty(Quantile(0.9), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
    "clairvoyant": lambda **kw: Clairvoyant(Quantile(0.3), Finite(N_GROUPS), horizon=N_ROUNDS, **kw),
}
METHODS: tuple[Any, ...] = (
    RawModel,
    LogisticRecalibration,
    RollingIsotonic,
    AdaptiveConformal,
    GroupConformal,
    RollingProperty,
    Clairvoyant,
)


@pytest.mark.parametrize("name", MAKERS)
def test_good_citizens(name: str) -> None:
    check_rival(MAKERS[name])


@pytest.mark.parametrize("method", METHODS)
def test_units(method: Any) -> None:
    narrow, wide = Mean(), Mean(low=-2.0, high=6.0)
    if "quantile" in method.card.properties:
        quantiles = Quantile(0.8), Quantile(0.8, low=-2.0, high=6.0)
        check_units(*(method(p, Finite(N_GROUPS), horizon=N_ROUNDS) for p in quantiles))
    else:
        check_units(*(method(p, Finite(N_GROUPS), horizon=N_ROUNDS) for p in (narrow, wide)))


@pytest.mark.parametrize("method", METHODS)
def test_no_guarantee_is_claimed(method: Any) -> None:
    assert method.card.exponent is None
    assert all_rivals()[method.__name__] is method


@pytest.mark.parametrize(
    ("method", "target", "hypotheses"),
    [
        (LogisticRecalibration, Quantile(0.5), Finite(2)),
        (RollingIsotonic, Expectile(0.5), Finite(2)),
        (AdaptiveConformal, Mean(), Finite(2)),
        (GroupConformal, Mean(), Finite(2)),
        (GroupConformal, Quantile(0.5), Linear(2)),
        (RollingProperty, Mean(), Linear(2)),
    ],
)
def test_refuses_by_name(method: Any, target: Any, hypotheses: Any) -> None:
    with pytest.raises(InvalidInput, match=method.card.name):
        method(target, hypotheses, horizon=100)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("logistic", {"rate": math.nan}),
        ("logistic", {"rate": -0.1}),
        ("isotonic", {"window": 0}),
        ("isotonic", {"every": 0}),
        ("aci", {"rate": -1.0}),
        ("aci", {"window": 1.5}),
        ("group-aci", {"rate": math.inf}),
        ("rolling-quantile", {"window": 0}),
        ("clairvoyant", {"bins": 0}),
    ],
)
def test_bad_settings(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        MAKERS[name](**options)


# The raw model and the clairvoyant


def test_raw_model_is_the_hint() -> None:
    x, y, hints = stream()
    assert RawModel(Mean(), Finite(N_GROUPS), horizon=1).run(x, y, hints).tolist() == hints.tolist()
    middle = RawModel(Mean(low=-2.0, high=6.0), Finite(N_GROUPS), horizon=1)
    assert float(middle.predict(x[0])) == 2.0


@pytest.mark.parametrize("n_rounds", [1000, 4000])
def test_clairvoyant_errs_as_the_rounded_truth(n_rounds: int) -> None:
    """Its error is that of the truth put on the grid, by the audit; and every forecast is half a bin off at most."""
    world = drifting(n_rounds, 1, 6)
    hypotheses = Finite(world.x.shape[1])
    truth = world.truth_expectile(0.7)
    target = Expectile(0.7)
    method = Clairvoyant(target, hypotheses, horizon=n_rounds)
    p = method.run(world.x, world.y, hints=truth)
    n = math.ceil(n_rounds ** (1 / 3) - 1e-9)
    rounded = np.minimum(np.floor(truth * n), n - 1) / n + 0.5 / n
    errors = [
        sc.swap_multicalibration_error(world.y, q, world.x, property=target, hypotheses=hypotheses, r=2.0)
        for q in (p, rounded)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert method.grid == Grid(0.0, 1.0, n)
    assert np.max(np.abs(p - truth)) <= 0.5 / n + 1e-12


def test_clairvoyant_without_the_truth() -> None:
    method = Clairvoyant(Mean(), Finite(2), horizon=10)
    with pytest.raises(InvalidInput, match="true conditional property"):
        method.predict([1.0, 0.0])


# Logistic recalibration


def test_logistic_step_is_the_gradient_of_the_log_loss() -> None:
    rate, h = 0.3, 1e-6
    x, y, hints = stream(40)
    method = LogisticRecalibration(Mean(), Finite(N_GROUPS), horizon=40, rate=rate)
    method.run(x, y, hints)
    start = np.concatenate([[method.intercept, method.slope], method.weights])
    context, label, hint = np.array([1.0, 0.0, -0.5, 1.0]), 0.3, 0.8
    inputs = np.concatenate([[1.0, math.log(hint / (1.0 - hint))], context])

    def log_loss(parameters: Float64Array) -> float:
        chance = 1.0 / (1.0 + math.exp(-float(parameters @ inputs)))
        return -label * math.log(chance) - (1.0 - label) * math.log(1.0 - chance)

    slopes = np.array([(log_loss(start + h * e) - log_loss(start - h * e)) / (2.0 * h) for e in np.eye(len(start))])
    method.update(method.predict(context, hint=hint), label)
    after = np.concatenate([[method.intercept, method.slope], method.weights])
    np.testing.assert_allclose(after, start - rate * slopes, atol=1e-8)


def test_logistic_starts_at_the_hint_and_improves_it() -> None:
    world = miscalibrated(6000, 0, 6)
    method = LogisticRecalibration(Probability(), Finite(world.x.shape[1]), horizon=6000)
    assert float(method.predict(world.x[0], hint=0.3)) == pytest.approx(0.3)
    p = method.run(world.x, world.y, world.hint)
    late = slice(2000, None)
    assert np.mean((p - world.y)[late] ** 2) < np.mean((world.hint - world.y)[late] ** 2) - 0.005
    assert np.abs(world.x[late].T @ (p - world.y)[late]).max() / 4000 < 0.02


def test_logistic_survives_extreme_scores() -> None:
    method = LogisticRecalibration(Probability(), Finite(1), horizon=10, rate=1e3)
    p = method.run(np.ones((10, 1)), [0, 1] * 5, hints=[0.0, 1.0] * 5)
    assert np.all((p >= 0.0) & (p <= 1.0))


# Isotonic regression


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=9))
def test_isotonic_is_the_max_min_of_averages(points: list[tuple[int, int]]) -> None:
    """The classical formula: at i the largest over starts of the smallest over ends of the weighted average."""
    y, w = np.array([float(v) for v, _ in points]), np.array([float(k) for _, k in points])
    n = len(y)
    brute = [
        max(min(float(np.average(y[s : e + 1], weights=w[s : e + 1])) for e in range(i, n)) for s in range(i + 1))
        for i in range(n)
    ]
    fitted = isotonic(y, w)
    np.testing.assert_allclose(fitted, brute, atol=1e-12)
    assert np.all(np.diff(fitted) >= 0.0)


def test_rolling_isotonic_is_the_fit_of_its_window() -> None:
    """Monotone in the hint, equal to brute force on the window's distinct hints, and refitted only when it is time."""
    rng = np.random.default_rng(0)
    window, every = 12, 5
    method = RollingIsotonic(Probability(), Finite(1), horizon=40, window=window, every=every)
    hints, y = rng.integers(0, 6, 40) / 5.0, rng.integers(0, 2, 40).astype(np.float64)
    row = method.hypotheses.row([1.0])
    for t in range(40):
        method.update(method.predict([1.0], hint=hints[t]), y[t])
        fitted_at = (t + 1) // every * every
        if not fitted_at:
            assert method.plan(row, 0.37).values == (0.37,)
            continue
        past = slice(max(fitted_at - window, 0), fitted_at)
        levels = np.unique(hints[past])
        sums = [y[past][hints[past] == b] for b in levels]
        n = len(levels)
        for i, b in enumerate(levels.tolist()):
            brute = max(min(float(np.concatenate(sums[s : e + 1]).mean()) for e in range(i, n)) for s in range(i + 1))
            assert method.plan(row, b).values[0] == pytest.approx(brute, abs=1e-12)
        curve = [method.plan(row, h).values[0] for h in np.linspace(0.0, 1.0, 30)]
        assert np.all(np.diff(curve) >= -1e-15)


# Conformal inference


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.005, 0.05])
def test_conformal_coverage_of_all_rounds(level: float, rate: float) -> None:
    """Within (max(q, 1 - q) + rate) / (rate T) of the level at every time, though labels jump and drift."""
    n_rounds = 2500
    rng = np.random.default_rng(1)
    y = 0.05 + 0.9 * (np.linspace(0.0, 0.5, n_rounds) + 0.5 * rng.random(n_rounds))
    y[1000:1400] = 0.99 - 0.3 * rng.random(400)
    y[1400:1500] = 0.01 + 0.01 * rng.random(100)
    method = AdaptiveConformal(Quantile(level), Finite(1), horizon=n_rounds, rate=rate, window=100)
    p = method.run(np.ones((n_rounds, 1)), y, hints=rng.random(n_rounds) if level > 0.5 else None)
    t = np.arange(1, n_rounds + 1)
    gaps = np.abs(np.cumsum(y <= p) / t - level)
    assert np.all(gaps <= (max(level, 1.0 - level) + rate) / (rate * t) + 1e-12)
    assert method.level == pytest.approx(level - rate * float(np.sum((y <= p) - level)), abs=1e-9)


def test_conformal_threshold_is_a_quantile_of_residuals() -> None:
    rng = np.random.default_rng(2)
    window = 30
    method = AdaptiveConformal(Quantile(0.7), Finite(1), horizon=80, window=window)
    y, hints = rng.random(80), rng.random(80)
    method.run(np.ones((80, 1)), y, hints)
    residuals = np.sort((y - hints)[-window:])
    k = math.ceil(method.level * (window + 1))
    expected = min(max(0.4 + residuals[k - 1], 0.0), 1.0)
    assert float(method.predict([1.0], hint=0.4)) == pytest.approx(expected)


def test_group_conformal_covers_every_group() -> None:
    """The bound of its docstring for each group, pathwise; offsets are the sums of errors; plain ACI fails there."""
    n_rounds, level, rate = 8000, 0.8, 0.02
    rng = np.random.default_rng(3)
    x = np.ones((n_rounds, 5))
    x[:, 1:] = rng.random((n_rounds, 4)) < (0.1, 0.3, 0.5, 0.5)
    y = np.clip(0.2 + 0.3 * x[:, 1] - 0.15 * x[:, 2] + rng.uniform(0.0, 0.2 + 0.2 * x[:, 3]), 1e-6, 1.0)
    method = GroupConformal(Quantile(level), Finite(5), horizon=n_rounds, rate=rate)
    p = method.run(x, y)
    v = (y <= p) - level
    np.testing.assert_allclose(method.offsets, -rate * (x.T @ v), atol=1e-9)
    c = max(level, 1.0 - level)
    bound = math.sqrt(n_rounds * (2.0 * c / rate + c * c * 5.0))
    assert np.abs(x.T @ v).max() <= bound
    gaps = np.abs(x.T @ v) / x.sum(axis=0)
    assert gaps.max() < 0.04
    plain = AdaptiveConformal(Quantile(level), Finite(5), horizon=n_rounds).run(x, y)
    assert (np.abs(x.T @ ((y <= plain) - level)) / x.sum(axis=0)).max() > 0.1


def test_group_conformal_leaves_absent_groups_alone() -> None:
    method = GroupConformal(Quantile(0.8), Finite(2), horizon=10)
    before = learned(method)
    assert float(method.predict([0.0, 0.0], hint=0.3)) == 0.3
    method.update(method.predict([0.0, 0.0], hint=0.3), 0.9)
    assert learned(method) == before


# Rolling values of a property


@pytest.mark.parametrize("target", [Mean(), Quantile(0.9), Expectile(0.8), Moment(2)], ids=repr)
def test_rolling_property_is_the_value_of_the_window(target: Any) -> None:
    window = 15
    x, y, _ = stream(120, seed=6)
    method = RollingProperty(target, Finite(N_GROUPS), horizon=120, window=window)
    for t in range(120):
        values = [
            target.value(y[:t][x[:t, j] != 0.0][-window:])
            for j in range(N_GROUPS)
            if x[t, j] != 0.0 and np.any(x[:t, j] != 0.0)
        ]
        if not values:
            values = [target.value(y[:t][-window:])] if t else [0.5]
        forecast = method.predict(x[t])
        assert float(forecast) == pytest.approx(float(np.mean(values)), abs=1e-12)
        method.update(forecast, y[t])
