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
from swapcal.compat.batch import FixedPredictor, fitted
from swapcal.compat.sklearn import MulticalibratedClassifier, MulticalibratedInterval, MulticalibratedRegressor
from swapcal.protocols import Rows


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


@pytest.mark.parametrize("how", ["mean", "hash"])
def test_groups_by_name_are_calibrated_on_fresh_rows(how: str) -> None:
    frame, y = biased()
    fresh, truth = biased(1200, seed=1)
    before = plain().fit(frame, y).predict_proba(fresh)[:, 1]
    model = MulticalibratedClassifier(plain(), groups=["team"], how=how, cv=2, states=4, random_state=1).fit(frame, y)
    after = model.predict_proba(fresh)[:, 1]
    assert worst_bias(fresh, truth, before) > 0.15
    assert worst_bias(fresh, truth, after) < 0.06
    assert np.array_equal(after, model.predict_proba(fresh)[:, 1])


def test_hashed_forecasts_keep_to_the_grid_and_the_mixture() -> None:
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(1), horizon=500, seed=1)
    rng = np.random.default_rng(0)
    rows = Rows(np.arange(501), np.zeros(500, np.int64), np.ones(500))
    mixture = fitted(forecaster, rows, (rng.random(500) < 0.3).astype(float), None, states=5, seed=2)
    assert len(mixture.states) == 5
    odds = mixture.distribution([1.0])
    assert sum(odds.values()) == pytest.approx(1.0)
    cases = [sc.Finite(1).row([w]) for w in np.linspace(0.5, 1.0, 600)]
    hashed = np.array([mixture.hashed(case) for case in cases])
    means = np.array([mixture.mean(case) for case in cases])
    assert abs(hashed.mean() - means.mean()) < 0.02  # the hash is a fair draw
    assert mixture.hashed(cases[0]) == hashed[0]
    assert len(rows.indptr) - 1 == 500


def test_online_to_batch_population_error() -> None:
    """The proposition of `online_to_batch`, measured: the mixture of all states on the population."""
    n, rng = 800, np.random.default_rng(3)
    member = (rng.random((n, 2)) < 0.5).astype(float)
    member[:, 0] = 1.0
    y = (rng.random(n) < 0.3 + 0.4 * member[:, 1]).astype(float)
    ends = np.concatenate([[0], np.cumsum(member.sum(axis=1))]).astype(int)
    rows = Rows(ends, np.concatenate([np.flatnonzero(m) for m in member]), np.ones(int(ends[-1])))
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(2), horizon=n, seed=1)
    mixture = fitted(forecaster, rows, y, None, states=n, seed=1)
    assert [state.n_rounds for state in mixture.states] == list(range(n // 2, n))
    error: dict[float, Any] = {}
    for x in ([1.0, 0.0], [1.0, 1.0]):  # the whole population: two kinds of people, equally many
        for z, p in FixedPredictor(mixture.states[::10]).distribution(x).items():
            moment = 0.5 * p * np.array(x) * (z - (0.3 + 0.4 * x[1]))
            error[z] = error.get(z, np.zeros(2)) + moment
    population = sum(float(np.abs(moment).max()) for moment in error.values())
    n_values = len(forecaster.values)
    half = mixture.states[0]
    run = np.sqrt(n * forecaster.guarantee(0.05)) + np.sqrt(n / 2 * half.guarantee(0.05))
    bound = run / (n / 2) + 1.7 * np.sqrt(n_values * np.log(2 * n_values * 2 / 0.05) / (n / 2))
    assert population < 0.1 < bound


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
    model = MulticalibratedClassifier(groups=["x0 > 0"], cv=2, states=2, random_state=1).fit(X, y)
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
    frame = pd.DataFrame({"x": rng.random(2000), "loud": rng.random(2000) < 0.5}, index=np.arange(2000) + 7)
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
    # Without weights the two are off by 0.2 each; a mean over the states of the pass keeps some of its start.
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
    frame, y = biased(600)
    model = MulticalibratedClassifier(plain(), groups=["team"], cv=2, states=1, random_state=1)
    search = GridSearchCV(model, {"estimator__logisticregression__C": [0.1, 1.0], "groups": [None, ["team"]]}, cv=2)
    search.fit(frame, y)
    assert search.best_params_["groups"] == ["team"]
    with pytest.raises(NotFittedError):
        clone(search.best_estimator_).predict(frame)
    with pytest.raises(sc.InvalidInput, match="no column 'x7'"):
        MulticalibratedRegressor(groups=[7]).fit(np.eye(4), np.arange(4.0))
