"""Outcomes that will never come: a case is forgotten once, for good, and costs nothing from then on."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import swapcal as sc
from service_running import GROUPS, Running, Starter, start
from swapcal.client import Client, ServiceError
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.outcome_order import OutcomeOrder
from swapcal.service.registry import Registry
from swapcal.service.report import learned_cases, recorded_result
from swapcal.service.schemas import Case, Forgotten, Learned, Outcome, Refused, StreamStatus
from swapcal.service.spec import StreamSpec
from swapcal.service.store import EventStore, open_store
from swapcal.service.stream import Stream

STREAMS = {
    "late": {"groups": GROUPS},
    "short": {"delay": "1s"},
    "small": {"pending": 5},
    "ordered": {"outcome_order": "forecast"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("forgotten")
    running = start(folder, 0, {"store": str(folder / "swapcal.db"), "config": {"streams": STREAMS}})
    yield running
    running.kill()


def _case(server: Running, id: str, stream: str = "late") -> Any:
    return server.http.get(f"/v1/streams/{stream}/cases/{id}").json()


def test_a_case_is_forgotten_once_and_for_good(server: Running) -> None:
    before, rounds = server.status(), server.http.get("/v1/streams/late/audit").json()["after"]["rounds"]
    server.forecast("gone-1")
    assert server.outcome("gone-1", None).json() == {"result": "forgotten", "id": "gone-1", "replayed": False}
    after = server.status()
    assert server.outcome("gone-1", None).json() == {"result": "forgotten", "id": "gone-1", "replayed": True}
    refused = server.outcome("gone-1", 1.0)
    assert refused.status_code == 409
    assert "forgotten" in refused.json()["detail"]
    assert server.status() == after
    counts = ("forecasts", "forgotten", "pending", "outcomes", "expired")
    assert [after[one] - before[one] for one in counts] == [1, 1, 0, 0, 0]
    assert server.http.get("/v1/streams/late/audit").json()["after"]["rounds"] == rounds
    case = _case(server, "gone-1")
    assert (case["state"], case["y"]) == ("forgotten", None)
    assert case["learned"] >= case["created"]
    assert server.forecast("gone-1").json()["replayed"], "the forecast itself stays"


def test_what_was_learned_or_is_held_is_not_forgotten(server: Running) -> None:
    server.forecast("known-1")
    server.outcome("known-1", 1.0)
    for k in range(2):
        server.forecast(f"held-{k}", stream="ordered")
    server.outcome("held-1", 1.0, stream="ordered")
    for one, stream, state in (("known-1", "late", "learned"), ("held-1", "ordered", "held")):
        status = server.status(stream)
        refused = server.outcome(one, None, stream=stream)
        assert refused.status_code == 409
        assert "cannot be forgotten" in refused.json()["detail"]
        assert server.status(stream) == status
        assert _case(server, one, stream)["state"] == state
    assert server.outcome("held-0", None, stream="ordered").status_code == 200
    assert _case(server, "held-1", "ordered")["state"] == "learned", "nobody waits for held-0 any more"


def test_null_alone_forgets(server: Running) -> None:
    server.forecast("null-1")
    for body in ({"id": "null-1"}, {"id": "null-1", "y": "null"}, {"id": "null-1", "y": []}):
        assert server.post("/v1/streams/late/outcomes", body).status_code == 422
    assert _case(server, "null-1")["state"] == "pending"
    assert server.outcome("nobody-asked", None).status_code == 404


def test_in_a_batch_and_in_the_metrics(server: Running) -> None:
    for k in range(3):
        server.forecast(f"batch-{k}")
    told = [("batch-0", None), ("batch-1", 0.0), ("batch-0", None), ("batch-0", 1.0), ("batch-1", None), ("x-x", None)]
    counted = _metrics(server)
    answer = server.post("/v1/streams/late/outcomes", {"outcomes": [{"id": one, "y": y} for one, y in told]})
    assert answer.status_code == 207
    results = [(one["result"], one.get("status", one.get("replayed"))) for one in answer.json()["outcomes"]]
    assert results == [
        ("forgotten", False), ("learned", False), ("forgotten", True), ("refused", 409), ("refused", 409),
        ("refused", 404),
    ]  # fmt: skip
    now = _metrics(server)
    more = {result: now[result] - counted.get(result, 0.0) for result in now}
    assert more == {"new": 1, "forgotten": 1, "replayed": 1, "contradiction": 2, "unknown": 1}
    text = server.http.get("/metrics").text
    assert f'swapcal_stream_forgotten{{stream="late"}} {float(server.status()["forgotten"])}' in text


def _metrics(server: Running) -> dict[str, float]:
    """Entries of outcomes to the stream so far, by what became of them."""
    lines = [line.split("} ") for line in server.http.get("/metrics").text.splitlines() if 'what="outcome"' in line]
    here = [(labels, count) for labels, count in lines if "swapcal_cases_total" in labels and '"late"' in labels]
    return {labels.split('result="')[1].split('"')[0]: float(count) for labels, count in here}


def test_the_end_of_the_delay_tells_that_nothing_will_come(server: Running) -> None:
    server.forecast("slow-1", stream="short")
    time.sleep(1.1)
    assert _case(server, "slow-1", "short")["state"] == "expired"
    assert server.outcome("slow-1", 1.0, stream="short").status_code == 410
    assert server.outcome("slow-1", None, stream="short").json()["result"] == "forgotten"
    for k in range(7):
        server.forecast(f"old-{k}", stream="small")
    assert server.outcome("old-0", None, stream="small").status_code == 410, "its room is another's now"


def test_the_client(server: Running) -> None:
    with Client(server.url) as client:
        for k in range(3):
            client.forecast("late", f"client-{k}", {}, 0.5)
        assert client.forget("late", "client-0") == Forgotten("client-0")
        assert client.forget("late", "client-0").replayed
        told = client.outcomes("late", [Outcome("client-1", None), Outcome("client-2", 1.0), Outcome("client-2", None)])
        assert [type(one) for one in told] == [Forgotten, Learned, Refused]
        with pytest.raises(ServiceError, match="forgotten"):
            client.outcome("late", "client-1", 1.0)
        # JSON would have null for them, and a number that somebody failed to compute says nothing of the kind.
        for y in (float("nan"), float("inf")):
            with pytest.raises(sc.InvalidInput, match="finite number"):
                client.outcome("late", "client-1", y)
        assert client.case("late", "client-1").state == "forgotten"


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
        nxt = [stream.asked({"carrier": "A"}, 0.4)] * 20
        assert [one.value for one in again.predict(nxt)] == [one.value for one in stream.predict(nxt)]
    finally:
        store.close()


@pytest.mark.parametrize("order", ["arrival", "forecast"])
def test_the_log_with_sqlite(sqlite: str, order: str) -> None:
    _played_and_played_again(sqlite, order)


@pytest.mark.parametrize("order", ["arrival", "forecast"])
def test_the_log_with_postgresql(postgres: str, order: str) -> None:
    _played_and_played_again(postgres, order)


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
            stream = Stream.load("s", spec, stream.dump())
        made += stream.predict([stream.asked(cases[k], float(hints[k]))])
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
        [forecast] = stream.predict([stream.asked({"a": a}, hint)])
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
    assert (result.counts.scored, result.counts.without_outcome, result.config["forgotten of the stream"]) == (
        83,
        17,
        7,
    )


def test_rounds_to_be_skipped_are_kept_no_longer_than_needed() -> None:
    """An order that only hears of outcomes that will not come stays small; one of before has none."""
    order = OutcomeOrder.from_dict({"front": 0, "held": []}, 10, sc.Forecaster(sc.Mean(), sc.Finite(1)).state.identity)
    for k in itertools.chain(range(1, 50, 2), range(0, 50, 2)):
        order.skip(k)
        assert order.due(issued=k + 1) == []
    assert (len(order), len(order._gone), len(order._rounds)) == (0, 0, 0)
