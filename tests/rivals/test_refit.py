"""The refit beside every run: scikit-learn's numbers, from outcomes that were known; isotonic and Platt as well."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import swapcal
from swapcal import Mean, Probability, Quantile
from swapcal.engine.schedule import nothing_late, schedule
from swapcal.errors import InvalidInput
from swapcal.protocols import Rows
from swapcal.rivals.refit import WINDOW, Known, Regression, learned, refitted, stretches
from swapcal.tasks.against import Against
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.runner import run

linear_model = pytest.importorskip("sklearn.linear_model")
NONE = np.zeros(0, dtype=np.int64)


def stream(n: int, seed: int = 0, kind: str = "event") -> tuple[Known, Any]:
    rng = np.random.default_rng(seed)
    a, b, p = rng.integers(0, 4, n), rng.integers(0, 9, n), rng.beta(2, 4, n)
    indices = np.stack([np.zeros(n, dtype=np.int64), 1 + a, 5 + b], axis=1)
    x = np.zeros((n, 14))
    np.put_along_axis(x, indices, 1.0, axis=1)
    groups = Rows(np.arange(0, 3 * n + 1, 3), indices.ravel(), np.ones(3 * n))
    mean = np.clip(0.8 * p + 0.15 * (a == 1) - 0.1 * (b == 3), 0.01, 0.99)
    y = (rng.random(n) < mean) * 1.0 if kind == "event" else mean + rng.normal(0.0, 0.1 + 0.1 * (a == 2), n)
    return Known(p, y, groups, rng.integers(1, 4, n) / 3.0), x


def log_odds(p: Any) -> Any:
    return np.log(p / (1.0 - p))


def test_logistic_regression_is_that_of_scikit_learn() -> None:
    data, x = stream(3000)
    ours = Regression("logistic", None)
    ours.fit(data)
    columns = np.column_stack([log_odds(data.p), x])
    theirs = linear_model.LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    theirs.fit(columns, data.y, sample_weight=data.weights)
    np.testing.assert_allclose(ours.predict(data), theirs.predict_proba(columns)[:, 1], atol=2e-5)


def test_linear_regression_is_that_of_scikit_learn() -> None:
    data, x = stream(2000, kind="number")
    ours, theirs = Regression("linear", None), linear_model.Ridge(alpha=1.0)
    ours.fit(data)
    columns = np.column_stack([data.p, x])
    theirs.fit(columns, data.y, sample_weight=data.weights)
    np.testing.assert_allclose(ours.predict(data), theirs.predict(columns), atol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_loss_of_a_quantile_is_that_of_scikit_learn_within_half_a_percent(level: float) -> None:
    data, x = stream(1500, kind="number")
    data = data._replace(weights=np.ones(1500))
    ours, theirs = Regression("linear", level), linear_model.QuantileRegressor(quantile=level, alpha=0.0)
    ours.fit(data)
    columns = np.column_stack([data.p, x])
    best = theirs.fit(columns, data.y).predict(columns)
    loss = Quantile(level).loss
    assert loss(ours.predict(data), data.y).mean() == pytest.approx(loss(best, data.y).mean(), rel=5e-3)


def test_isotonic_regression_is_that_of_scikit_learn() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    data, _ = stream(900)
    forecasts = refitted(Probability(), data, nothing_late(900), "isotonic")
    theirs = isotonic(out_of_bounds="clip").fit(data.p[:500], data.y[:500], data.weights[:500])
    np.testing.assert_allclose(forecasts[500:], theirs.predict(data.p[500:]), atol=1e-12)
    np.testing.assert_array_equal(forecasts[:500], data.p[:500])


def test_fits_use_the_outcomes_that_are_known_and_the_last_of_them() -> None:
    """A plain loop over the rows, with outcomes up to 900 rows late and some that never come."""
    n, rng = 2600, np.random.default_rng(5)
    data, _ = stream(n, seed=5)
    data.y[rng.random(n) < 0.1] = np.nan
    known = np.where(np.isnan(data.y), np.nan, np.arange(n) + rng.integers(0, 900, n))
    late = schedule(known, None, n, 0, (NONE, NONE, NONE.astype(float)), "arrival", None, np.isnan(data.y))
    forecasts, used, model = refitted(Probability(), data, late), 0, None
    moment = np.maximum(np.ceil(known), np.arange(n) + 1)
    for t in range(n):
        there = np.flatnonzero(moment <= t)
        if len(there) >= used + max(500, used // 10):
            used = len(there)
            newest = there[np.argsort(moment[there], kind="stable")][-WINDOW:]
            model = Regression("logistic", None)
            model.fit(data.taken(newest))
        one = data.taken(np.array([t]))
        assert forecasts[t] == pytest.approx(data.p[t] if model is None else model.predict(one)[0], abs=1e-5)
    assert used > 1500


def test_fits_come_after_a_tenth_more_rows_and_five_hundred_at_least() -> None:
    at = [used for _, _, used in stretches(np.arange(1, 30_001), 30_000)]
    assert at[:11] == [*range(0, 5001, 500)]
    assert all(b - a == int(0.1 * a) for a, b in itertools.pairwise(at[10:]))


def test_the_order_in_which_outcomes_come() -> None:
    late = schedule(
        np.array([5.0, 1.0, 3.0, np.nan]),
        None,
        4,
        0,
        (NONE, NONE, NONE.astype(float)),
        "arrival",
        None,
        np.zeros(4, bool),
    )
    order, known = learned(late, np.ones(4, dtype=bool))
    assert (order.tolist(), known.tolist()) == ([1, 2], [2, 3])


def test_segments_are_fitted_by_themselves() -> None:
    data, _ = stream(1400, seed=2)
    segments = np.arange(1400) % 2
    forecasts = refitted(Probability(), data._replace(segments=segments), nothing_late(1400), "platt")
    own = np.flatnonzero(segments[:1000] == 1)
    model = Regression("logistic", None, grouped=False)
    model.fit(data.taken(own))
    rows = np.arange(1001, 1400, 2)
    np.testing.assert_allclose(forecasts[rows], model.predict(data.taken(rows)), atol=1e-5)


def table(n: int = 3000, seed: int = 1) -> dict[str, Any]:
    data, x = stream(n, seed)
    return {"y": data.y, "p": data.p, "a": x[:, 1:5].argmax(axis=1).astype(str), "w": data.weights}


def test_a_run_shows_the_refit_beside_its_losses() -> None:
    data = table()
    result = run(data, TaskConfig("y", "p", ("a",), seed=1))
    assert list(result.against) == ["refit"]
    pair = result.against["refit"]
    assert pair.before == pytest.approx(result.paired["Brier score"].before, rel=1e-12)
    codes = np.unique(data["a"], return_inverse=True)[1]
    groups = Rows(np.arange(0, 6001, 2), np.stack([np.zeros(3000, int), 1 + codes], 1).ravel(), np.ones(6000))
    forecasts = refitted(Probability(), Known(data["p"], data["y"], groups, np.ones(3000)), nothing_late(3000))
    assert pair.after == pytest.approx(((forecasts - data["y"]) ** 2).mean(), rel=1e-5)


def test_a_run_is_compared_with_what_was_asked() -> None:
    config = TaskConfig("y", "p", ("a",), seed=1, against=("isotonic", "platt:a"), weight="w", delay="700")
    assert list(run(table(), config).against) == ["isotonic", "platt:a"]
    assert run(table(), TaskConfig("y", "p", ("a",), seed=1, against=("none",))).against == {}
    with pytest.raises(InvalidInput, match="--against takes refit, isotonic, platt"):
        TaskConfig("y", "p", against=("mcgrad",))


def test_longer_runs_and_those_that_go_on_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapcal.tasks.against.MOST", 1000)
    assert run(table(), TaskConfig("y", "p", ("a",), seed=1)).against == {}
    assert list(run(table(), TaskConfig("y", "p", ("a",), seed=1, against=("refit",))).against) == ["refit"]
    assert run(table(900), TaskConfig("y", "p", ("a",), seed=1), state=tmp_path / "state").against == {}
    with pytest.raises(InvalidInput, match="--against cannot be combined with --state"):
        run(table(900), TaskConfig("y", "p", against=("refit",)), state=tmp_path / "other")


def test_rivals_are_of_means_and_quantiles() -> None:
    assert Against(Mean(), None).methods == {"refit": ("refit", "")}
    with pytest.raises(InvalidInput, match="isotonic is for means"):
        refitted(Quantile(0.5), stream(600)[0], nothing_late(600), "isotonic")


def test_the_command_prints_it(tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame(table(1200)).to_csv(tmp_path / "rows.csv", index=False)
    options = ["--y", "y", "--p", "p", "--groups", "a", "--seed", "1"]
    found = json.loads(swapcal("run", str(tmp_path / "rows.csv"), *options, "--json").output)["result"]["against"]
    shown = swapcal("run", str(tmp_path / "rows.csv"), *options).output
    assert f"refit {found['refit']['after']:.4f}" in shown.replace("refit:", "refit").replace("Brier score ", "")
