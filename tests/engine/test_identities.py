"""Special cases that must coincide: two ways to say the same thing give the same numbers."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from identity_streams import CLASSES, N, Stream, hypotheses_of, stream_of
from swapcal.potentials import PNorm
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array


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


# Special cases of classes.


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


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
def test_permuting_functions_permutes_the_state(kind: str, hinted: bool) -> None:
    """Two terms add up alike in both orders; a third, the hint's level set, would not, so it is left out."""
    stream, order = stream_of(250, 14), np.array([2, 0, 3, 1])
    hints = stream.hints if hinted else None
    one, two = (sc.Forecaster(sc.Mean(), hypotheses_of(kind), bins=6, seed=5, levels=0) for _ in range(2))
    assert one.run(stream.x, stream.y, hints).tolist() == two.run(stream.x[:, order], stream.y, hints).tolist()
    assert np.array_equal(one.state.evidence.arrays()["sums"][:, order], two.state.evidence.arrays()["sums"])
    assert np.array_equal(one.state.evidence.counts, two.state.evidence.counts)
    assert one.error() == pytest.approx(two.error(), rel=1e-12)


@pytest.mark.parametrize("change", ["a zero function is added", "functions are negated", "every function comes twice"])
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
    else:
        # Side by side, so that partial sums are twice what they were; halved to stay in the unit ball.
        x = np.repeat(stream.x[:, :1] * scale, 2, axis=1)
        stream = Stream(stream.x[:, :1] * scale, stream.y, stream.hints, stream.features)
    one = sc.Forecaster(sc.Mean(), hypotheses_of(kind, stream.x.shape[1]), bins=6, seed=6, levels=0)
    two = sc.Forecaster(sc.Mean(), hypotheses_of(kind, x.shape[1]), bins=6, seed=6, levels=0)
    assert one.run(stream.x, stream.y, hints).tolist() == two.run(x, stream.y, hints).tolist()
    factor = 2.0 if kind == "Linear" and change == "every function comes twice" else 1.0
    assert two.error() == pytest.approx(factor * one.error(), rel=1e-12)


# Special cases of properties.


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


# Time.


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


def test_parts_of_a_run_add_up() -> None:
    """The error over values that appear on the way is at most that before them plus that after them."""
    cut = 2_000
    stream = stream_of(cut + 500, 20)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(N))
    first = forecaster.run(stream.x[:cut], stream.y[:cut])
    n, before = len(forecaster.values), forecaster.error()
    second = forecaster.run(stream.x[cut:], stream.y[cut:])
    assert len(forecaster.values) >= n >= 11
    assert before == pytest.approx(sc.swap_multicalibration_error(stream.y[:cut], first, stream.x[:cut]), rel=1e-10)
    after = sc.swap_multicalibration_error(stream.y[cut:], second, stream.x[cut:])
    assert max(before - after, 0.0) < forecaster.error() <= before + after
