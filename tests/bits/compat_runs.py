"""Other packages' interfaces: a line for a frame, scikit-learn, river."""

import json
from typing import Any

import numpy as np

import swapcal as sc
from command_runs import figures
from plays import Played, Run, Runs, numbers

T = 400


def frame() -> Any:
    """Two groups of which a model that sees only x is wrong, in opposite directions."""
    import pandas

    rng = np.random.default_rng(3)
    table = pandas.DataFrame({"x": rng.normal(size=T).round(3), "team": rng.choice(["red", "blue"], T)})
    odds = table["x"].to_numpy() + np.where(table["team"] == "red", 1.0, -1.0)
    # A rational function, as no two machines agree on the last bits of an exponential.
    share = 0.5 + 0.5 * odds / (1.0 + np.abs(odds))
    table["y"] = (rng.random(T) < share).astype(int)
    table["amount"] = (10.0 * share + rng.random(T)).round(4)
    table["score"] = (0.5 + 0.2 * table["x"]).clip(0.02, 0.98).round(4)
    return table


def with_blanks() -> Any:
    table = frame()
    table["y"] = table["y"].astype(float).where(np.arange(T) % 9 != 4)
    return table


def recalibrated(learn: bool, polars: bool) -> Played:
    table = with_blanks()
    if polars:
        import polars as pl

        table = pl.DataFrame(table.to_dict("list"))
    out = sc.recalibrate(table, "y", "score", "team,x > 0", learn=learn, seed=4).frame
    return Played(numbers(out["forecast"].to_numpy()))


def of_a_quantile() -> Played:
    settings: dict[str, Any] = {"property": sc.Quantile(0.8, low=0.0, high=12.0), "seed": 4}
    forecaster = sc.forecaster_for(frame(), y="amount", groups=["team"], **settings)
    odds = forecaster.distribution({"team": "red"})
    return Played(numbers(list(odds), list(odds.values()), forecaster.error()))


def audited() -> Played:
    from swapcal.tasks.result import to_json

    return Played(figures=figures(json.loads(to_json(sc.audit(with_blanks(), y="y", p="score", groups=["team"])))))


class Clipped:
    """A classifier of scikit-learn's kind without a solver: its probabilities are a clipped line."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "Clipped":
        self.classes_ = np.unique(y)
        self.rate_ = float(np.mean(np.asarray(y) == self.classes_[1]))
        return self

    def predict_proba(self, X: Any) -> Any:
        p = np.clip(self.rate_ + 0.2 * np.asarray(X["x"], dtype=float), 0.02, 0.98)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def sklearn_classifier(protect: str) -> Played:
    from sklearn.base import BaseEstimator, ClassifierMixin

    from swapcal.compat.sklearn import MulticalibratedClassifier

    class Line(ClassifierMixin, Clipped, BaseEstimator):  # type: ignore[misc]
        """What scikit-learn asks of an estimator."""

    table = frame()
    model = MulticalibratedClassifier(Line(), groups=["team"], protect=protect, cv=2, random_state=1)
    model.fit(table[["x", "team"]], table["y"])
    return Played(numbers(model.predict_proba(table[["x", "team"]])[:80]))


def sklearn_line() -> Any:
    from sklearn.base import BaseEstimator, RegressorMixin

    class Line(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        """A line through the mean, without a solver."""

        def fit(self, X: Any, y: Any) -> Any:
            self.mean_ = float(np.mean(y))
            return self

        def predict(self, X: Any) -> Any:
            return self.mean_ + np.asarray(X["x"], dtype=float)

    return Line()


def sklearn_regressor() -> Played:
    from swapcal.compat.sklearn import MulticalibratedRegressor

    table = frame()
    model = MulticalibratedRegressor(sklearn_line(), groups=["team"], cv=2, random_state=1)
    model.fit(table[["x", "team"]], table["amount"])
    return Played(numbers(model.predict(table[["x", "team"]])[:80]))


def sklearn_interval() -> Played:
    from swapcal.compat.sklearn import MulticalibratedInterval

    table = frame()
    model = MulticalibratedInterval(sklearn_line(), groups=["team"], cv=2, random_state=1)
    model.fit(table[["x", "team"]], table["amount"])
    out = model.frame(table[["x", "team"]].head(80))
    return Played(numbers(out["model"].to_numpy(), out["lower"].to_numpy(), out["upper"].to_numpy()))


def river_classifier() -> Played:
    from river import dummy

    from swapcal.compat.river import MulticalibratedClassifier, SwapError

    model, error = (
        MulticalibratedClassifier(dummy.PriorClassifier(), groups=["team"], seed=3),
        SwapError(groups=["team"]),
    )
    out = []
    for row in frame().to_dict("records"):
        x = {"x": row["x"], "team": row["team"]}
        p = model.predict_proba_one(x)
        out.append(p.get(True, 0.0))
        error.update(bool(row["y"]), p, x=x)
        model.learn_one(x, bool(row["y"]))
    return Played(numbers(out), {"swap error": error.get()})


def river_numbers(interval: bool) -> Played:
    from river import dummy, stats

    from swapcal.compat.river import GroupCoverage, MulticalibratedInterval, MulticalibratedRegressor

    inner = dummy.StatisticRegressor(stats.Mean())
    model: Any = MulticalibratedInterval(inner, coverage=0.8, groups=["team"], seed=3)
    if not interval:
        model = MulticalibratedRegressor(inner, groups=["team"], seed=3)
    coverage: Any = GroupCoverage(0.8, groups=["team"])
    out = []
    for row in frame().to_dict("records"):
        x = {"x": row["x"], "team": row["team"]}
        if interval:
            ends = model.predict_one(x, with_interval=True)
            out.append([ends.lower, ends.upper])
            coverage.update(row["amount"], ends, x=x)
        else:
            out.append([model.predict_one(x)])
        model.learn_one(x, row["amount"])
    return Played(numbers(out), {"coverage": coverage.get()} if interval else None)


def runs() -> Runs:
    """Name and play of every run; the wrappers rest on what is played on both backends."""
    yield Run("frame: recalibrated", lambda: recalibrated(False, False))
    yield Run("frame: recalibrated, learning, polars", lambda: recalibrated(True, True))
    yield Run("frame: forecaster of a quantile", of_a_quantile, both=False)
    yield Run("frame: audit", audited, both=False)
    yield Run("sklearn: classifier, loss", lambda: sklearn_classifier("loss"), both=False)
    yield Run("sklearn: classifier, nothing", lambda: sklearn_classifier("nothing"), both=False)
    yield Run("sklearn: regressor", sklearn_regressor, both=False)
    yield Run("sklearn: interval", sklearn_interval, both=False)
    yield Run("river: classifier", river_classifier, both=False)
    yield Run("river: regressor", lambda: river_numbers(False), both=False)
    yield Run("river: interval", lambda: river_numbers(True), both=False)
