"""Events in the forms that people have: the same forecasts, bit for bit, from each of them."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from effort import crossed
from swapcal.engine import kernels

Form = Callable[[Any], Any]


def stream(n: int = 300) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, 4)) < 0.5, 0.0, rng.choice([1.0, 0.25, -0.5], (n, 4)))
    return X, rng.choice([0.0, 1.0], n), rng.random(n)


@pytest.mark.filterwarnings("ignore::swapcal.GroupsWarning")
def test_cases_of_groups_are_remembered_and_only_where_nothing_can_change() -> None:
    rng = np.random.default_rng(0)
    kinds = [("a", 1), ("a", 1.0), ("a", "1"), ("b", None), ("b", float("nan")), ("c", True), ("d", 70), ("e", 5)]
    Case = namedtuple("Case", ["team", "age"])
    Less = namedtuple("Less", ["age"])
    groups = [sc.Groups(["team", ("team", "age"), "age >= 60"], limit=12, rare=3) for _ in range(3)]
    one, other, rows = (sc.Forecaster(sc.Probability(), each, seed=1) for each in groups)
    groups[1].memory = None  # looks at every case
    for team, age in [kinds[k] for k in rng.integers(0, len(kinds), 400)]:
        case, label = {"team": team, "age": age}, float(rng.random() < 0.4)
        forecasts = one.predict(case, hint=0.4), other.predict(case, hint=0.4), rows.predict(Case(team, age), hint=0.4)
        assert len({(f.value, f.context) for f in forecasts}) == 1
        for forecaster, forecast in zip((one, other, rows), forecasts, strict=True):
            forecaster.update(forecast, label)
    assert groups[0].names == groups[1].names == groups[2].names
    assert groups[0].memory
    unhashable = {"team": ["a"], "age": 1}
    for odd in (
        unhashable,
        Case(["a"], 1),
        {"age": 70, "team": "d", "more": 0},
        {"team": "a"},
        Less(1),
    ):
        found: list[Any] = []
        for forecaster in (one, other):
            try:
                found.append(forecaster.predict(odd, hint=0.4).context)
            except sc.InvalidInput as error:
                found.append(str(error))
        assert found[0] == found[1]
    assert groups[0].remembered(unhashable) is None
    looked = sc.Groups([("odd", lambda case: float(case["n"] % 2))])
    assert [looked.row({"n": n}).indices.tolist() for n in (1, 2, 1)] == [[0, 1], [0], [0, 1]]


@pytest.mark.filterwarnings("ignore::swapcal.GroupsWarning")
def test_rows_of_frames_are_the_records_they_hold() -> None:
    """In turns from frames whose columns stand in another order, one of them with a column more, one with one less."""
    pd: Any = pytest.importorskip("pandas")
    pl: Any = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    records = [{"team": "abc"[rng.integers(3)], "age": int(rng.integers(20, 70)), "n": None} for _ in range(300)]
    for record in records[::7]:
        record["team"] = None
    frame = pd.DataFrame(records)
    turned = frame[["n", "age", "team"]].assign(extra=1.0)
    polars = pl.DataFrame(records)
    without = [{"age": record["age"]} for record in records]
    forms: list[tuple[Callable[[int], Any], Callable[[int], Any]]] = [
        (lambda t: records[t], lambda t: frame.iloc[t]),
        (lambda t: records[t], lambda t: turned.iloc[t]),
        (lambda t: records[t], lambda t: frame.iloc[[t]]),
        (lambda t: records[t], lambda t: polars[t]),
        (lambda t: without[t], lambda t: frame[["age"]].iloc[t]),
    ]
    plain, framed = (
        sc.Forecaster(sc.Probability(), sc.Groups(["team", "age >= 40"], rare=2, absent="missing"), seed=1)
        for _ in range(2)
    )
    for t in range(300):
        plainly, framed_as = forms[t % len(forms)]
        expected, found = plain.predict(plainly(t), hint=0.3), framed.predict(framed_as(t), hint=0.3)
        assert (found.value, found.context) == (expected.value, expected.context)
        plain.update(expected, t % 2)
        framed.update(found, t % 2)


MANY: dict[str, dict[str, Any]] = {
    "probability": {"property": sc.Probability()},
    "a model that learns": {"property": sc.Mean(), "hint": sc.OnlineRegression(n_features=2)},
    "quantile, whose labels are looked at": {"property": sc.Quantile(0.8)},
    "few rounds may wait": {"property": sc.Mean(), "max_pending": 20},
    "python's own V": {"property": sc.Property(lambda p, y: p - y, name="a mean of my own")},
}


@pytest.mark.parametrize(
    ("name", "form", "backend"), crossed(MANY, [np.asarray, np.ndarray.tolist], ["native", "python"], of=2)
)
def test_many_at_once_leave_the_state_of_one_after_the_other(name: str, form: Form, backend: str) -> None:
    """Forecasts and bytes: also where the first hint comes in the middle, and the grid grows."""
    if backend == "native" and kernels.native is None:
        pytest.skip("the kernels are not there")
    n, size, settings = 360, 40, MANY[name]
    X, _, hints = stream(n)
    y = np.random.default_rng(1).random(n)
    y = np.round(y) if isinstance(settings["property"], sc.Probability) else y
    with kernels.using(backend):
        many, one = (sc.Forecaster(hypotheses=sc.Finite(4), seed=1, identity="it", **settings) for _ in range(2))
    features = X[:, :2] if "hint" in settings else None
    for start in range(0, n, size):
        part = slice(start, start + size)
        guides = None if start < 3 * size else hints[part]
        extra = None if features is None else features[part]
        made = many.predict_many(form(X[part]), guides, features=extra)
        given = [None] * size if guides is None else guides.tolist()
        extras = [None] * size if extra is None else list(extra)
        loop = [one.predict(x, hint=h, features=f) for x, h, f in zip(X[part], given, extras, strict=True)]
        assert [f.to_dict() for f in made] == [f.to_dict() for f in loop]
        first = size - 20 if "max_pending" in settings else 0  # the others have expired
        many.update_many(made[first:], y[part][first:])
        for forecast, label in zip(loop[first:], y[part][first:].tolist(), strict=True):
            one.update(forecast, label)
        assert many.to_bytes() == one.to_bytes()


def test_a_batch_ends_at_what_cannot_be_learned() -> None:
    forecaster = sc.Forecaster(sc.Probability(), sc.Finite(1), seed=1)
    forecasts = forecaster.predict_many(np.ones((5, 1)))
    with pytest.raises(sc.AlreadyUpdated):
        forecaster.update_many([*forecasts[:3], forecasts[0], forecasts[4]], [0.0, 1.0, 0.0, 1.0, 0.0])
    assert (forecaster.n_rounds, forecaster.n_pending) == (3, 2)


def test_many_records_and_wrong_batches() -> None:
    forecaster = sc.Forecaster(sc.Probability(), sc.Groups(["team"]), seed=1)
    forecasts = forecaster.predict_many({"team": ["a", "b", "a"]}, [0.1, 0.2, 0.3])
    assert [f.indices[:2] for f in forecasts] == [(0, 1), (0, 2), (0, 1)]
    for call in (
        lambda: forecaster.predict_many({"team": ["a"]}, [0.1, 0.2]),
        lambda: forecaster.predict_many({"team": ["a", "b"]}, [0.1, 2.0]),
        lambda: forecaster.predict_many(3),
        lambda: forecaster.update_many(forecasts, [0.0, 1.0]),
        lambda: forecaster.update_many(forecasts, [0.0, 1.0, 7.0]),
    ):
        with pytest.raises(sc.InvalidInput):
            call()
    assert (forecaster.n_pending, forecaster.n_rounds) == (3, 0)
    numeric = sc.Forecaster(sc.Probability(), sc.Numeric(["age"]), seed=1)
    assert len(numeric.predict_many({"age": [1.0, 2.0]})) == 2


def test_weights_multiply_the_functions() -> None:
    X, y, hints = stream()
    weights = np.random.default_rng(1).random(300)
    by_weight, by_hand, alone = (sc.Forecaster(sc.Probability(), sc.Finite(4), seed=1) for _ in range(3))
    assert np.array_equal(by_weight.run(X, y, hints, weights=weights), by_hand.run(X * weights[:, None], y, hints))
    assert np.array_equal(
        alone.run(X, y, hints, weights=np.ones(300)),
        sc.Forecaster(sc.Probability(), sc.Finite(4), seed=1).run(X, y, hints),
    )
    team = {"team": np.where(X[:, 0] > 0, "a", "b")}
    groups = sc.Forecaster(sc.Probability(), sc.Groups(["team"]), seed=1, protect="nothing")
    half = groups.run(team, y, hints, weights=np.where(np.arange(300) < 200, 0.0, 1.0))
    fresh = sc.Forecaster(sc.Probability(), sc.Groups(["team"]), seed=1, protect="nothing")
    assert not np.array_equal(half, fresh.run(team, y, hints))
    for bad in (-weights, 2.0 * weights / weights.max(), weights[:5]):
        with pytest.raises(sc.InvalidInput):
            by_weight.run(X, y, hints, weights=bad)
    with pytest.raises(sc.InvalidInput, match="finite classes"):
        sc.Forecaster(sc.Probability(), sc.Linear(4), seed=1).run(X, y, hints, weights=weights)
