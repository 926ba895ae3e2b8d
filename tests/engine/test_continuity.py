"""One run, told in several ways: loop or `run`, dense or sparse, through JSON."""

import numpy as np
import pytest
import scipy.sparse

import swapcal as sc
from identity_streams import (
    CLASSES,
    LEARNING,
    SETTINGS,
    N,
    Setting,
    Stream,
    assert_same_state,
    hypotheses_of,
    states,
    stream_of,
)


@pytest.mark.parametrize("name", SETTINGS)
def test_run_is_the_loop(name: str) -> None:
    setting, stream = SETTINGS[name], stream_of(200, 1)
    looped, ran = setting.forecaster(), setting.forecaster()
    expected = setting.loop(looped, stream, 0, 200)
    features = None if setting.options.get("hint") is None else stream.features
    parts = [
        ran.run(
            stream.x[part],
            stream.y[part],
            stream.hints[part] if setting.hinted else None,
            features=None if features is None else features[part],
        )
        for part in (slice(0, 90), slice(90, 200))
    ]
    assert np.concatenate(parts).tolist() == expected
    assert len(set(expected)) > 2
    assert_same_state(looped, ran)


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
def test_run_is_the_loop_while_room_grows(kind: str, hinted: bool) -> None:
    """Values appear, by hints and by cuts, and the arrays that hold them are replaced on the way."""
    setting, stream = Setting(sc.Mean(), hypotheses_of(kind), {"hint": LEARNING} if hinted else {}, hinted), quiet(850)
    looped, ran = setting.forecaster(), setting.forecaster()
    expected = setting.loop(looped, stream, 0, 850)
    features = stream.features if hinted else None
    hints = stream.hints if hinted else None
    assert ran.run(stream.x, stream.y, hints, features=features).tolist() == expected
    # A potential that trusts no hint makes fewer values of them.
    assert ran.state.values.capacity > 12 or kind == "PNorm"
    assert_same_state(looped, ran)


def quiet(n_rounds: int) -> Stream:
    """A stream whose labels vary by a hundredth of the range, so that the grid has to be fine."""
    stream = stream_of(n_rounds, 21)
    y = 0.5 + 0.4 * stream.x[:, 0] + 0.01 * (stream.y - 0.5)
    return Stream(stream.x, y, np.round(256 * y) / 256, stream.features)


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


@pytest.mark.parametrize("kind", CLASSES)
def test_forms_of_a_context(kind: str) -> None:
    """Dense, mapping, pair, sparse row: one context, whatever the order in which a sparse one names its entries."""
    stream = stream_of(60, 2)
    matrix, array = scipy.sparse.csr_matrix(stream.x), scipy.sparse.csr_array(stream.x)
    forecasters = [sc.Forecaster(sc.Mean(), hypotheses_of(kind), bins=5, seed=8) for _ in range(9)]
    for t in range(60):
        where = np.flatnonzero(stream.x[t])[::-1]
        values = stream.x[t, where]
        forms = [
            stream.x[t],
            stream.x[t].tolist(),
            tuple(stream.x[t]),
            dict(zip(where.tolist(), values.tolist(), strict=True)),
            (where, values),
            (where.tolist(), values.tolist()),
            matrix[t],
            array[[t]],
            {j: stream.x[t, j] for j in range(N)},
        ]
        forecasts = [f.predict(x) for f, x in zip(forecasters, forms, strict=True)]
        assert len({(f.value, f.probability, f.indices, f.values) for f in forecasts}) == 1
        for forecaster, forecast in zip(forecasters, forecasts, strict=True):
            forecaster.update(forecast, stream.y[t])
    for X in (stream.x, stream.x.tolist(), matrix, array, scipy.sparse.coo_matrix(stream.x), matrix.tocsc()):
        forecaster = sc.Forecaster(sc.Mean(), hypotheses_of(kind), bins=5, seed=8)
        forecaster.run(X, stream.y)
        assert_same_state(forecaster, forecasters[0])


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


@pytest.mark.parametrize("name", SETTINGS)
def test_forecasts_survive_json(name: str) -> None:
    setting, stream = SETTINGS[name], stream_of(80, 11)
    kept, sent = setting.forecaster(), setting.forecaster()
    for t in range(80):
        one, two = (f.predict(stream.x[t], **setting.feed(stream, t)) for f in (kept, sent))
        back = sc.Forecast.from_json(two.to_json())
        assert back == two
        kept.update(one, stream.y[t])
        sent.update(back, stream.y[t])
    assert_same_state(kept, sent)


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if "hint" in setting.options])
def test_a_learning_hint_is_the_regression_alone(name: str) -> None:
    """It sees the context without level sets and the label without jitter, and its word is the forecast's hint."""
    setting, stream = SETTINGS[name], stream_of(120, 22)
    forecaster, alone = setting.forecaster(), LEARNING.start(setting.property, N)
    for t in range(120):
        row, base = setting.hypotheses.row(stream.x[t]), float(stream.hints[t]) if setting.hinted else None
        forecast = forecaster.predict(stream.x[t], base, features=stream.features[t])
        assert forecast.hint == alone.forecast(row, stream.features[t], base)
        assert forecast.base == base
        forecaster.update(forecast, stream.y[t])
        alone.update(row, stream.features[t], base, float(stream.y[t]))


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
