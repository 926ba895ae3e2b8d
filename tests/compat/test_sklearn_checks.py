"""scikit-learn's own examination, on several wrapped models each; nothing is excused."""

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from effort import ALL
from swapcal.compat.sklearn import MulticalibratedClassifier, MulticalibratedInterval, MulticalibratedRegressor

# Every other one, beginning with the second, is examined in `make test`: one of each kind, with groups, with and
# without a split.
ESTIMATORS: list[Any] = [
    MulticalibratedClassifier(GaussianNB()),
    MulticalibratedClassifier(DecisionTreeClassifier(random_state=0), cv=2, groups=[0]),
    MulticalibratedClassifier(RidgeClassifier(), cv=None, protect="nothing"),
    MulticalibratedRegressor(LinearRegression()),
    MulticalibratedRegressor(DecisionTreeRegressor(random_state=0), cv=2, groups=[0]),
    MulticalibratedRegressor(make_pipeline(StandardScaler(), SGDRegressor(random_state=0)), cv=None),
    MulticalibratedInterval(Ridge(), cv=2),
    MulticalibratedInterval(DecisionTreeRegressor(random_state=0), coverage=0.8, cv=None, groups=[0]),
]
SLOW: list[Any] = [
    MulticalibratedClassifier(),
    MulticalibratedClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    MulticalibratedRegressor(),
    MulticalibratedInterval(),
]
EXCUSED_BY_SKLEARN = {"check_array_api_input"}
"""Skipped by scikit-learn itself where the environment does not ask for it."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """These fits are tiny: threads that wait for each other take many times as long as one."""
    with threadpool_limits(1):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [*(ESTIMATORS if ALL else ESTIMATORS[1::2]), *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)],
    ids=lambda e: f"{type(e).__name__}-{type(e.estimator).__name__}",
)
def test_check_estimator(estimator: Any) -> None:
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [r for r in results if r["status"] != "passed" and r["check_name"] not in EXCUSED_BY_SKLEARN]
    assert not failed, [(r["check_name"], r["status"], r["exception"]) for r in failed]
    assert len(results) > 45
