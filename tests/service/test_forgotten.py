"""Outcomes that will never come, in the log and in what is learned: they cost nothing from then on."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import swapcal as sc
from service_running import Starter
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.registry import Registry
from swapcal.service.report import learned_cases, recorded_result
from swapcal.service.schemas import Case, Outcome, StreamStatus
from swapcal.service.spec import StreamSpec
from swapcal.service.store import EventStore, open_store
from swapcal.service.stream import Stream


def test_killed_after_the_answer_it_is_forgotten_still(serve: Starter) -> None:
    one = serve()
    for k in range(3):
        one.forecast(f"k-{k}")
    one.outcome("k-1", None)
    one.outcome("k-2", 1.0)
    status = one.status()
    one.kill()
    two = serve()
    assert two.status() == status
    assert two.outcome("k-1", None).json()["replayed"]
    assert two.outcome("k-1", 0.0).status_code == 409
    assert two.outcome("k-0", None).json() == {"result": "forgotten", "id": "k-0", "replayed": False}


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return str(tmp_path / "swapcal.db")


def _played_and_played_again(address: str, order: Any) -> None:
    """All of a transaction, some of one, or none are forgotten; whoever plays the log again gets the same bits."""
    store: EventStore = open_store(address)
    store.open()
    try:
        registry = Registry(store, 10)
        registry.create("late", StreamSpec(groups=["carrier"], seed=1, outcome_order=order))
        for k in range(0, 200, 5):
            cases = [Case(f"c{j}", {"carrier": "AB"[j % 2]}, 0.4) for j in range(k, k + 5)]
            # Of the cases of ten rounds ago, the first, the fourth, or all of them will have no outcome.
            told = [
                Outcome(f"c{j}", None if j % 3 == 0 or k % 4 == 0 else j % 2) for j in range(k - 50, k - 45) if k >= 50
            ]
            jobs: list[Any] = [ForecastJob("late", cases), *([OutcomeJob("late", told)] if told else [])]
            store.commit(play(jobs, registry, float(k + 1), 70).commits)
        stream = registry.get("late")
        registry.forget("late")
        again = registry.get("late")
        assert again is not stream
        assert again.status() == stream.status()
        assert again.status().forgotten == sum(j % 3 == 0 or (j // 5 * 5 + 50) % 4 == 0 for j in range(150))
        assert again.status().outcomes + again.status().forgotten == 150
        nxt = [stream.validate({"carrier": "A"}, 0.4)] * 20
        assert [one.value for one in again.predict(nxt)] == [one.value for one in stream.predict(nxt)]
    finally:
        store.close()


@pytest.mark.parametrize("order", ["arrival", "forecast"])
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_the_log(store: str, order: str, request: pytest.FixtureRequest) -> None:
    _played_and_played_again(request.getfixturevalue(store), order)


@pytest.mark.parametrize("order", ["arrival", "forecast"])
def test_forgotten_cases_are_rows_of_a_recorded_stream_without_an_outcome(order: Any) -> None:
    """The numbers of `Forecaster.run`, where NaN says the same; also from a snapshot in the middle."""
    rng, n = np.random.default_rng(3), 600
    y, hints = (rng.random(n) < 0.3).astype(float), rng.random(n).round(2)
    known = np.arange(n) + 1.0 + rng.geometric(0.1 + 0.4 * y)
    y[rng.random(n) < 0.1] = np.nan
    spec = StreamSpec(groups=["carrier"], seed=1, pending=1000, outcome_order=order)
    cases: list[dict[str, Any]] = [{"carrier": "AB"[k % 2]} for k in range(n)]
    plain = sc.Forecaster(sc.Probability(), sc.Groups(["carrier"], limit=200), seed=1, max_pending=1000)
    expected = plain.run(cases, y, hints, known=known, order=order, missing="skip")
    stream, made = Stream("s", spec), list[sc.Forecast]()
    for k in range(n):
        for row in np.flatnonzero((known == k) & ~np.isnan(y)).tolist():
            stream.learn(made[row], float(hints[row]), float(y[row]))
        if k == n // 2:
            stream = Stream.from_bytes(stream.to_bytes(), name="s", spec=spec)
        made += stream.predict([stream.validate(cases[k], float(hints[k]))])
        if np.isnan(y[k]):
            stream.forget(made[-1])
    assert [one.value for one in made] == expected.tolist()
    assert stream.status().forgotten == np.isnan(y).sum()


def test_corrections_are_shown_where_somebody_says_what_will_not_come() -> None:
    """A model that is wrong by 0.25 for a quarter of the cases; outcomes come late, and one in seven never."""
    told, silent = (_late(told=told) for told in (True, False))
    assert (told.pending, told.standing_back) == (400, False)
    assert (silent.standing_back, silent.forgotten) == (True, 0)
    assert told.stood_back < 3000 < 5000 < silent.stood_back
    assert None not in (told.loss_before, told.loss_after)
    assert told.loss_after < 0.99 * told.loss_before  # type: ignore[operator]


def _late(*, told: bool) -> StreamStatus:
    rng, late = np.random.default_rng(5), 400
    stream, made = Stream("s", StreamSpec(groups=["a"], seed=1, monitor=False)), list[Any]()
    for k in range(6000):
        a, hint = int(rng.integers(0, 4)), round(float(rng.uniform(0.2, 0.8)), 2)
        [forecast] = stream.predict([stream.validate({"a": a}, hint)])
        y = float(rng.random() < hint + (0.25 if a == 0 else 0.0)) if rng.random() > 0.15 else None
        made.append((forecast, hint, y))
        if k >= late and (told or made[k - late][2] is not None):
            stream.close(*made[k - late])
    return stream.status()


def test_a_report_counts_them_among_those_without_outcome(sqlite: str) -> None:
    store = open_store(sqlite)
    store.open()
    registry = Registry(store, 10)
    registry.create("late", StreamSpec(groups=["carrier"], seed=1))
    cases = [Case(f"c{k}", {"carrier": "AB"[k % 2]}, 0.5) for k in range(100)]
    told = [Outcome(f"c{k}", None if k < 7 else k % 2) for k in range(90)]
    store.commit(play([ForecastJob("late", cases), OutcomeJob("late", told)], registry, 1.0, 10**9).commits)
    stream = registry.get("late")
    learned = learned_cases(store.events("late", 0), stream.spec, stream.groups.n, stream.identity)
    assert learned is not None
    result = recorded_result("late", stream.spec, stream.groups, learned, msgspec.structs.asdict(stream.status()))
    store.close()
    assert (result.counts.scored, result.counts.without_outcome, result.details["forgotten of the stream"]) == (
        83,
        17,
        7,
    )
