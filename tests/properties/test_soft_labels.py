"""A label of 0.4 for a probability is a label everywhere; what is exact for 0 and 1 alone steps back."""

import json
import pathlib

import numpy as np
import pytest

import swapcal as sc
from commands import swapcal
from swapcal.audits.audit import Audit
from swapcal.audits.column import Column
from swapcal.decisions import Decisions
from swapcal.engine import kernels
from swapcal.properties import Concave, Log, Probability, ProperLoss, Spherical, Squared, Tsallis

LOSSES = [Squared(), Log(), Spherical(), Tsallis(3.0), Concave(lambda p: p * (1 - p), lambda p: 1 - 2 * p)]


def _stream(n: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(n), rng.random(n) < 0.5])
    y = np.clip(0.2 + 0.4 * x[:, 1] + 0.15 * rng.standard_normal(n), 0.0, 1.0)
    return x, y, np.full(n, 0.4)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_losses_of_soft_labels_are_those_of_events_up_to_a_term_without_the_forecast(loss: ProperLoss) -> None:
    p, y = np.linspace(0.05, 0.95, 19)[:, None], np.linspace(0.0, 1.0, 11)[None, :]
    expected = y * loss.loss(p, 1.0 + 0.0 * y) + (1.0 - y) * loss.loss(p, 0.0 * y)
    apart = loss.loss(p + 0.0 * y, y + 0.0 * p) - expected
    assert np.allclose(apart, apart[:1], atol=1e-12)
    single = np.array([[float(loss.loss(float(a), float(b))) for b in y[0]] for a in p[:, 0]])
    assert np.allclose(single, loss.loss(p + 0.0 * y, y + 0.0 * p), rtol=1e-14)


def test_the_log_loss_at_the_ends() -> None:
    ends = Log().loss(np.array([0.0, 0.0, 1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0, 0.4]))
    assert ends.tolist() == [0.0, np.inf, 0.0, np.inf, np.inf]
    assert [Log().loss(0.0, 0.4), Log().loss(1.0, 0.4), Log().loss(1.0, 1.0)] == [np.inf, np.inf, 0.0]


def test_the_value_is_the_mean_and_labels_beyond_are_refused() -> None:
    assert Probability().value(np.array([0.4, 0.6, 0.2])) == pytest.approx(0.4)
    forecaster = sc.Forecaster(Probability(), sc.Finite(1), seed=1)
    with pytest.raises(sc.InvalidInput, match=r"label 1\.2 is outside \[0, 1\]"):
        forecaster.update(forecaster.predict([1.0]), 1.2)


def test_a_forecaster_learns_them_and_the_guarantee_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _ = _stream()
    run, loop = (sc.Forecaster(Probability(), sc.Finite(2), seed=1) for _ in range(2))
    monkeypatch.setattr(kernels, "native", None)
    python = sc.Forecaster(Probability(), sc.Finite(2), seed=1)
    p = run.run(x, y)
    assert (python.run(x[:500], y[:500]) == p[:500]).all()
    for row, label in zip(x[:500], y[:500], strict=True):
        loop.update(loop.predict(row), float(label))
    means = [p[2000:][x[2000:, 1] == k].mean() for k in (0, 1)]
    assert means == pytest.approx([0.2, 0.6], abs=0.04)
    assert run.error() < run.guarantee(0.05) < len(y)
    assert loop.n_rounds == 500


def test_exact_intervals_step_back() -> None:
    x, y, p = _stream()
    soft, hard = (Column(Audit(Probability(), sc.Finite(2)), label="the model") for _ in range(2))
    for column, labels in ((soft, y), (hard, (y > 0.4).astype(float))):
        column.add(labels, p, sc.Finite(2).rows(x, len(x)))
    assert hard.groups().exact
    assert not soft.groups().exact
    groups, v = soft.groups(), p - y
    assert (groups.low <= groups.mean).all()
    assert (groups.mean <= groups.high).all()
    assert groups.mean[1] == pytest.approx(v[x[:, 1] == 1].mean())
    assert soft.scores is None


@pytest.mark.parametrize("loss", [Squared(), Log()])
def test_what_a_constant_and_the_best_map_would_lose_is_exact(loss: ProperLoss) -> None:
    """With 4,000 different labels: their histogram has 100 bins and must not be felt."""
    x, y, _ = _stream()
    p = 0.3 + 0.2 * x[:, 1]
    target = Probability(loss)
    column = Column(Audit(target, sc.Finite(2)), label="the model")
    column.add(y, p, sc.Finite(2).rows(x, len(x)))
    summary = column.summary()
    assert summary.loss == pytest.approx(np.mean(target.loss(p, y)), abs=1e-12)
    assert summary.constant_loss == pytest.approx(np.mean(target.loss(np.full(len(y), y.mean()), y)), abs=1e-9)
    best = np.where(x[:, 1] == 1, y[x[:, 1] == 1].mean(), y[x[:, 1] == 0].mean())
    assert summary.ideal_loss == pytest.approx(np.mean(target.loss(best, y)), rel=2e-3)


def test_decisions_count_a_share_of_an_event() -> None:
    soft, hard = Decisions.from_costs(1.0, 4.0), Decisions.from_costs(1.0, 4.0)
    soft.update_many([0.4, 0.4], [0.1, 0.6])
    for y, w in ((1.0, 0.4), (0.0, 0.6)):
        hard.update_many([y, y], [0.1, 0.6], [w, w])
    assert np.allclose(soft.sums, hard.sums)
    with pytest.raises(sc.InvalidInput, match=r"lie in \[0, 1\]"):
        soft.update_many([1.5], [0.5])


def test_the_command_audits_and_recalibrates_them(tmp_path: pathlib.Path) -> None:
    x, y, p = _stream()
    path = tmp_path / "soft.csv"
    lines = [f"{a:.0f},{b!r},{c!r}" for a, b, c in zip(x[:, 1], y.tolist(), p.tolist(), strict=True)]
    path.write_text("\n".join(["g,y,p", *lines]) + "\n")
    common = ["--y", "y", "--p", "p", "--groups", "g", "--property", "probability", "--costs", "1:5", "--json"]
    audit = json.loads(swapcal("audit", path, *common).stdout)["result"]
    assert (audit["range"]["low"], audit["range"]["high"]) == (0.0, 1.0)
    run = json.loads(swapcal("run", path, *common, "--seed", "1").stdout)["result"]
    losses = run["paired"]["Brier score"]
    assert losses["before"] == pytest.approx(np.mean((p - y) ** 2), abs=1e-12)
    assert losses["after"] < 0.5 * losses["before"]


def test_a_stream_of_the_service_learns_them() -> None:
    pytest.importorskip("msgspec")
    from swapcal.service.spec import StreamSpec
    from swapcal.service.stream import Stream

    x, y, _ = _stream(1500)
    stream = Stream("s", StreamSpec(groups=["g"], seed=1))
    assert isinstance(stream.property, Probability)
    said = []
    for row, label in zip(x, y.tolist(), strict=True):
        [made] = stream.predict([stream.validate({"g": int(row[1])}, 0.4)])
        said.append(made.value)
        stream.learn(made, 0.4, label)
    late = np.array(said)[750:]
    assert [late[x[750:, 1] == k].mean() for k in (0, 1)] == pytest.approx([0.2, 0.6], abs=0.05)


def test_frames_and_wrappers_take_them() -> None:
    pd, dummy = pytest.importorskip("pandas"), pytest.importorskip("sklearn.dummy")
    from swapcal.compat.sklearn import MulticalibratedClassifier, MulticalibratedRegressor
    from swapcal.tasks.config import TaskConfig

    x, y, p = _stream()
    table = pd.DataFrame({"g": x[:, 1], "y": y, "p": p})
    config = TaskConfig("y", "p", "g", property="probability", seed=1)
    found = sc.recalibrate(table, "y", "p", "g", config=config)
    assert found.paired["Brier score"].after < 0.5 * found.paired["Brier score"].before
    made = MulticalibratedRegressor(dummy.DummyRegressor(), property=Probability(), groups=["g"]).fit(table[["g"]], y)
    forecasts = made.predict(table[["g"]])
    assert [forecasts[x[:, 1] == k].mean() for k in (0, 1)] == pytest.approx([0.2, 0.6], abs=0.05)
    # A classifier of scikit-learn takes classes; the error names what takes numbers.
    with pytest.raises(ValueError, match="a regressor numbers"):
        MulticalibratedClassifier(dummy.DummyClassifier(), groups=["g"]).fit(table[["g"]], y)


def test_a_model_of_river_takes_them() -> None:
    river = pytest.importorskip("river.dummy")
    from river import stats

    from swapcal.compat.river import MulticalibratedRegressor

    x, y, _ = _stream(2000)
    model = MulticalibratedRegressor(river.StatisticRegressor(stats.Mean()), Probability(), groups=["g"])
    for row, label in zip(x, y.tolist(), strict=True):
        model.learn_one({"g": int(row[1])}, label)
    assert [model.predict_one({"g": k}) for k in (0, 1)] == pytest.approx([0.2, 0.6], abs=0.05)


def test_keys_of_spark_take_them() -> None:
    pa = pytest.importorskip("pyarrow")
    from swapcal.compat.spark.workers import SparkColumns, play_bucket
    from swapcal.keyed import KeyBucket

    events = {"store": ["a"] * 4, "t": [1.0, 1.0, 2.0, 3.0], "case": ["1", "1", "2", "2"]}
    events |= {"p": [0.3, None, 0.3, None], "y": [None, 0.4, None, 1.4]}
    columns = SparkColumns("store", "y", "p", (), ("t",), None, "case")
    played = play_bucket(KeyBucket(sc.Forecaster(Probability(), sc.Finite(1), seed=1)), pa.table(events), columns)
    assert played["status"].to_pylist() == ["forecast", "learned", "forecast", "invalid"]
