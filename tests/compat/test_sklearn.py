"""What the scikit-learn estimators promise beyond the interface."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import swapcal as sc
from swapcal.compat.sklearn import MulticalibratedClassifier, MulticalibratedInterval, MulticalibratedRegressor
from swapcal.compat.sklearn.regressor import moves
from swapcal.protocols import Rows
from swapcal_benchmarks.wrapper import measured


def biased(n: int = 4000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Two groups of which a model that sees only x is wrong, in opposite directions."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "team": rng.choice(["red", "blue"], n)})
    logit = frame["x"] + np.where(frame["team"] == "red", 1.0, -1.0)
    return frame, (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).to_numpy().astype(int)


def plain() -> Any:
    return make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())


def worst_bias(frame: pd.DataFrame, y: Any, p: Any) -> float:
    return max(abs(float(np.mean(p[frame["team"] == team] - y[frame["team"] == team]))) for team in ("red", "blue"))


@pytest.mark.parametrize("protect", ["loss", "nothing"])
def test_groups_by_name_are_calibrated_on_fresh_rows(protect: str) -> None:
    frame, y = biased()
    fresh, truth = biased(4000, seed=1)
    before = plain().fit(frame, y).predict_proba(fresh)[:, 1]
    model = MulticalibratedClassifier(plain(), groups=["team"], protect=protect, cv=2, random_state=1).fit(frame, y)
    after = model.predict_proba(fresh)[:, 1]
    assert worst_bias(fresh, truth, before) > 0.15
    assert worst_bias(fresh, truth, after) < 0.06
    assert np.array_equal(after, model.predict_proba(fresh)[:, 1])


@pytest.mark.parametrize("sharp", [False, True], ids=["biased by group", "right"])
def test_what_is_fitted_once_loses_nothing(sharp: bool) -> None:
    """Fitted once and used on fresh rows: a biased model gains, a right one stays as it is."""
    frame, y = biased(6000)
    fresh, truth = biased(6000, seed=1)
    if sharp:
        frame, fresh = (
            each.assign(x=each["x"] + np.where(each["team"] == "red", 1.0, -1.0)) for each in (frame, fresh)
        )
    model = MulticalibratedClassifier(plain(), groups=["team"], random_state=1).fit(frame, y)
    row = measured("simulated", "logistic regression", "fresh", model.estimator_, model, fresh, truth)
    assert not row.worse
    assert row.difference <= (1e-3 if sharp else -0.05) * row.loss
    assert model.forecasters_[0].n_pending == 0


def test_partial_fit_is_judged_late_too() -> None:
    """Batches of a stream whose bias turns with every batch: what the last batch taught is wrong in the next."""
    X, p = np.zeros((500, 1)), FrozenEstimator(SGDClassifier(loss="log_loss", random_state=0).fit([[0], [0]], [0, 1]))
    rng, model = np.random.default_rng(0), MulticalibratedClassifier(p, random_state=1)
    losses = []
    for k in range(30):
        y = (rng.random(500) < (0.7 if k % 2 else 0.3)).astype(int)
        if k:
            row = measured("turning", "constant", str(k), model.estimator_, model, X, y)
            losses.append(row.difference / row.loss)
        model.partial_fit(X, y, classes=[0, 1])
    assert model.forecasters_[0].n_rounds == 15_000
    assert np.mean(losses) < 0.01


def test_frozen_models_are_left_alone_and_those_that_learn_keep_learning() -> None:
    frame, y = biased()
    frozen = plain().fit(frame, y)
    coefficients = frozen[-1].coef_.copy()
    model = MulticalibratedClassifier(FrozenEstimator(frozen), groups=["team"], random_state=1)
    for start in range(0, 4000, 500):  # before any fit
        model.partial_fit(frame[start : start + 500], y[start : start + 500], classes=[0, 1])
    assert np.array_equal(frozen[-1].coef_, coefficients)
    fresh, truth = biased(seed=1)
    assert worst_bias(fresh, truth, model.predict_proba(fresh)[:, 1]) < 0.06
    model.fit(frame, y).partial_fit(fresh, truth)  # and after one
    assert model.forecasters_[0].n_rounds == 8000
    X = frame[["x"]].to_numpy()
    learning = MulticalibratedClassifier(SGDClassifier(loss="log_loss", random_state=0), random_state=1)
    for start in range(0, 4000, 500):
        learning.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
    assert learning.score(X, y) > 0.6
    with pytest.raises(sc.InvalidInput, match="the classes are"):
        learning.partial_fit(X[:3], [0, 1, 2])


def test_more_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.array(["a", "b", "c"])[np.argmax(X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(1500, 3)), axis=1)]
    model = MulticalibratedClassifier(groups=["x0 > 0"], cv=2, random_state=1).fit(X, y)
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert p.min() >= 0.0
    for k, label in enumerate(model.classes_):
        assert abs(p[:, k].mean() - np.mean(y == label)) < 0.03


@pytest.mark.parametrize(
    ("make", "target"),
    [(partial(sc.Quantile, 0.8), sc.Quantile(0.8)), (partial(sc.Expectile, 0.7), sc.Expectile(0.7)), (None, sc.Mean())],
    ids=["quantile", "expectile", "mean"],
)
def test_any_property(make: Any, target: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((3000, 2))
    y = X[:, 0] + rng.normal(0, 0.1 + 0.3 * (X[:, 1] > 0.5))
    model = MulticalibratedRegressor(LinearRegression(), property=make, groups=["x1 > 0.5"], cv=2, random_state=1)
    model.fit(X, y)
    used = model.forecaster_.property
    for half in (X[:, 1] > 0.5, X[:, 1] <= 0.5):
        assert abs(np.mean(used.identification(model.predict(X[half]), y[half]))) < 0.05
    assert type(used) is type(target)


def test_intervals_and_frames_of_both_kinds() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(6000), "loud": rng.random(6000) < 0.5}, index=np.arange(6000) + 7)
    y = (frame["x"] + rng.normal(0, np.where(frame["loud"], 0.5, 0.1))).to_numpy()
    model = MulticalibratedInterval(LinearRegression(), groups=["loud"], cv=2, random_state=1).fit(frame, y)
    out = model.frame(frame)
    assert out.index.equals(frame.index)
    assert list(out.columns) == ["model", "lower", "upper"]
    covered = (out["lower"] <= y) & (y <= out["upper"])
    assert abs(covered[frame["loud"]].mean() - 0.9) < 0.05
    assert abs(covered[~frame["loud"]].mean() - 0.9) < 0.05
    widths = out["upper"] - out["lower"]
    assert widths[frame["loud"]].mean() > 2 * widths[~frame["loud"]].mean()
    other = polars.DataFrame(frame[:200].reset_index(drop=True).to_dict("list"))
    same = model.frame(other)
    assert isinstance(same, polars.DataFrame)
    assert np.allclose(same["lower"].to_numpy(), out["lower"][:200].to_numpy())


def test_weights_count_in_the_model_and_in_the_evidence() -> None:
    frame, y = biased()
    red = (frame["team"] == "red").to_numpy()
    weights = np.where(red, 1.0, 0.0)
    model = MulticalibratedClassifier(plain(), cv=2, random_state=1)
    model.fit(frame, y, sample_weight=weights)
    p = model.predict_proba(frame)[:, 1]
    # Without weights the two are off by 0.2 each.
    assert abs(np.mean(p[red] - y[red])) < 0.1 < 0.3 < abs(np.mean(p[~red] - y[~red]))
    with pytest.raises(ValueError, match="at least one "):
        model.fit(frame, y, sample_weight=np.zeros(len(y)))


def test_metadata_routing() -> None:
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    weights = np.linspace(0.0, 1.0, 200)
    seen: list[Any] = []

    class Spy(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            seen.append(None if sample_weight is None else len(sample_weight))
            return super().fit(X, y, sample_weight)

    with sklearn.config_context(enable_metadata_routing=True):
        routed = MulticalibratedClassifier(Spy().set_fit_request(sample_weight=True), cv=2)
        routed.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weights)
        assert seen == [200, 100, 100]
        seen.clear()
        unrouted = MulticalibratedClassifier(Spy().set_fit_request(sample_weight=False), cv=2)
        unrouted.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weights)
        assert seen == [None, None, None]


def test_grid_search() -> None:
    frame, y = biased(6000)
    model = MulticalibratedClassifier(plain(), groups=["team"], cv=2, random_state=1)
    search = GridSearchCV(model, {"estimator__logisticregression__C": [0.1, 1.0], "groups": [None, ["team"]]}, cv=2)
    search.fit(frame, y)
    assert search.best_params_["groups"] == ["team"]
    with pytest.raises(NotFittedError):
        clone(search.best_estimator_).predict(frame)
    with pytest.raises(sc.InvalidInput, match="no column 'x7'"):
        MulticalibratedRegressor(groups=[7]).fit(np.eye(4), np.arange(4.0))


def test_intervals_that_are_fitted_once_cover_what_was_asked_in_every_group_of_new_rows() -> None:
    """Ten seeds; the means of coverage are within 0.01 of 0.9, and within 0.03 in the worst group."""
    n, covered = 2_000, []
    for seed in range(10):
        rng = np.random.default_rng(100 + seed)
        X = rng.random((2 * n, 3))
        y = X[:, 0] + rng.normal(0.0, 1.0, 2 * n) * np.array([0.1, 0.2, 0.4, 0.8])[(4.0 * X[:, 1]).astype(int)]
        groups = ["x1 > 0.25", "x1 > 0.5", "x1 > 0.75", "x2 > 0.8"]
        model = MulticalibratedInterval(groups=groups, random_state=seed).fit(X[:n], y[:n])
        lower, upper = model.predict_interval(X[n:]).T
        inside = (lower <= y[n:]) & (y[n:] <= upper)
        some = [np.ones(n, dtype=bool), X[n:, 2] > 0.8, *(X[n:, 1] * 4.0 // 1 == k for k in range(4))]
        covered.append([inside[each].mean() for each in some])
    means = np.mean(covered, axis=0)
    assert abs(means[0] - 0.9) <= 0.01
    assert np.abs(means - 0.9).max() <= 0.03
    assert np.abs(np.array(covered)[:, 0] - 0.9).max() <= 0.03


def test_ends_are_moved_by_weight_where_they_are_numbers_and_groups_are_large_enough() -> None:
    y, ends = np.arange(200.0), np.tile([-1.0, 1.0], (200, 1))
    ends[:50, 1] = np.inf
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    rows = Rows(np.arange(0, 401, 2), np.tile([0, 1], 200), np.repeat(weights, 2))
    rows.indices[1::2][10:] = 2
    found = moves(ends, y, rows, 4, 0.9)
    # Of the rows 50 to 99 that count, nine tenths of 51 lie within 95; groups 1 and 3 have no such row.
    assert found[1].sum() == 95.0 - 1.0
    assert not found[:, [1, 3]].any()
    model = MulticalibratedInterval(random_state=1).fit(np.ones((40, 1)), np.arange(40.0))
    assert model.moves_.any()
    assert not model.partial_fit(np.ones((1, 1)), [1.0]).moves_.any()


def test_weights_of_rows_count_for_coverage_and_not_for_what_is_asked() -> None:
    """Nine tenths of the weight is covered, and rows without weight have no say."""
    rng = np.random.default_rng(3)
    X = rng.random((3_000, 1))
    loud = rng.random(3_000) < 0.5
    y = X[:, 0] + rng.normal(0.0, np.where(loud, 2.0, 0.2))
    model = MulticalibratedInterval(random_state=1).fit(X, y, sample_weight=np.where(loud, 0.0, 0.5))
    lower, upper = model.predict_interval(X).T
    assert ((lower <= y) & (y <= upper))[~loud].mean() == pytest.approx(0.9, abs=0.02)
