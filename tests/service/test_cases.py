"""Over the network: a case is forecast once, and learned or forgotten once, however and however often it is sent."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import swapcal as sc
from service_running import Running
from swapcal.client import Client, ServiceError
from swapcal.service.schemas import Forgotten, Learned, Outcome, Refused

SLOW = "the end of its delay"
# What is sent, to which stream, and what comes of it: status, and a part of the answer. Whatever is refused changes
# nothing, which is checked after every step.
LIVES: dict[str, list[tuple[str, str, str, Any, int, dict[str, Any] | str]]] = {
    "the same case again gets the same answer": [
        ("late", "forecast", "same", 0.3, 200, {"replayed": False}),
        ("late", "forecast", "same", 0.3, 200, {"replayed": True}),
        ("late", "forecast", "same", 0.4, 409, "new id"),
        ("late", "forecast", "same", None, 409, "new id"),
    ],
    "learned once and for good": [
        ("late", "forecast", "known", 0.3, 200, {}),
        ("late", "state", "known", None, 200, {"state": "pending", "y": None}),
        ("late", "outcome", "known", 2.0, 422, "neither 0 nor 1"),
        ("late", "outcome", "known", 1.0, 200, {"result": "learned", "y": 1.0, "replayed": False}),
        ("late", "outcome", "known", 1.0, 200, {"result": "learned", "y": 1.0, "replayed": True}),
        ("late", "outcome", "known", 0.0, 409, "learned for good"),
        ("late", "outcome", "known", None, 409, "cannot be forgotten"),
        ("late", "state", "known", None, 200, {"state": "learned", "y": 1.0}),
        ("late", "forecast", "known", 0.3, 200, {"replayed": True}),
    ],
    "forgotten once and for good, in its stream alone": [
        ("late", "forecast", "gone", 0.3, 200, {}),
        ("late", "outcome", "gone", None, 200, {"result": "forgotten", "replayed": False}),
        ("late", "outcome", "gone", 1.0, 409, "forgotten"),
        ("late", "state", "gone", None, 200, {"state": "forgotten", "y": None}),
        ("small", "outcome", "gone", 1.0, 404, "no such case"),
        ("small", "forecast", "gone", 0.3, 200, {"replayed": False}),
    ],
    "held until those before it": [
        ("ordered", "forecast", "first", 0.3, 200, {}),
        ("ordered", "forecast", "second", 0.3, 200, {}),
        ("ordered", "outcome", "second", 1.0, 200, {"result": "learned"}),
        ("ordered", "state", "second", None, 200, {"state": "held"}),
        ("ordered", "outcome", "first", None, 200, {"result": "forgotten"}),
        ("ordered", "state", "second", None, 200, {"state": "learned"}),
    ],
    "its room is needed": [
        *(("small", "forecast", f"old-{k}", 0.3, 200, {}) for k in range(7)),
        ("small", "outcome", "old-0", 1.0, 410, "waited too long"),
        ("small", "outcome", "old-0", None, 410, "waited too long"),
        ("small", "state", "old-0", None, 200, {"state": "expired", "y": None}),
        ("small", "outcome", "old-6", 1.0, 200, {"result": "learned"}),
    ],
    SLOW: [
        ("short", "forecast", "slow", 0.3, 200, {}),
        ("short", "state", "slow", None, 200, {"state": "expired"}),
        ("short", "outcome", "slow", 1.0, 410, "waited too long"),
        ("short", "outcome", "slow", None, 200, {"result": "forgotten"}),
    ],
    "a refused case leaves no trace": [
        ("late", "forecast", "bad-hint", 2.0, 422, "outside [0, 1]"),
        ("late", "state", "bad-hint", None, 404, "no such case"),
    ],
    "quantiles clip": [
        ("minutes", "forecast", "q", 20.0, 200, {}),
        ("minutes", "outcome", "q", 5000.0, 200, {"result": "learned"}),
    ],
}


@pytest.mark.parametrize("life", LIVES)
def test_the_life_of_a_case(server: Running, life: str) -> None:
    forecasts: dict[tuple[str, str], Any] = {}
    for stream, what, case, argument, status, expected in LIVES[life]:
        before = server.status(stream)
        if what == "state":
            answer = server.http.get(f"/v1/streams/{stream}/cases/{case}")
        else:
            answer = getattr(server, what)(case, argument, stream=stream)
        body = answer.json()
        assert answer.status_code == status, (life, case, what, argument, body)
        if isinstance(expected, str):
            assert expected in body["detail"]
            assert answer.headers["content-type"] == "application/problem+json"
        else:
            assert body.items() >= expected.items()
        if status >= 400 or what == "state" or expected.get("replayed"):
            assert server.status(stream) == before
        if what == "forecast" and status == 200:
            if life == SLOW:
                time.sleep(1.1)
            first = forecasts.setdefault((stream, case), body)
            assert body | {"replayed": False} == first
            low, high = (-60.0, 300.0) if stream == "minutes" else (0.0, 1.0)
            assert low <= body["forecast"] <= high


def test_held_outcomes_are_told(server: Running) -> None:
    spec = {"outcome_order": "forecast", "settle": 3, "pending": 4}
    assert server.http.put("/v1/streams/settling", json=spec).status_code == 201
    for k in range(2):
        server.forecast(f"c{k}", stream="settling")
    assert server.outcome("c1", 1.0, stream="settling").status_code == 200
    # What waits for c0 until its outcome has had its time, when c3 is forecast; c0 has none when c4 needs its room.
    for k, (held, outcomes, expired) in enumerate([(1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1)], start=1):
        if k > 1:
            server.forecast(f"c{k}", stream="settling")
        status = server.status("settling")
        assert (status["held"], status["outcomes"], status["expired"]) == (held, outcomes, expired)
        state = server.http.get("/v1/streams/settling/cases/c1").json()["state"]
        assert state == ("held" if held else "learned")
    assert server.http.get("/v1/streams/settling/cases/c0").json()["state"] == "expired"
    assert server.outcome("c0", 1.0, stream="settling").status_code == 410
    metrics = server.http.get("/metrics").text
    assert 'swapcal_stream_expired{stream="settling"} 1.0' in metrics
    assert 'swapcal_cases_total{result="expired",stream="settling",what="outcome"} 1.0' in metrics
    assert server.http.delete("/v1/streams/settling").status_code == 204


def test_a_batch_is_judged_entry_by_entry(server: Running) -> None:
    case = {"id": "b-1", "context": {"carrier": "UA"}, "hint": 0.2}
    cases = [case, {**case, "id": "b-2", "hint": 1.5}, case, {**case, "hint": 0.9}, {**case, "id": "b-3"}]
    answer = server.post("/v1/streams/late/forecasts", {"cases": cases})
    assert answer.status_code == 207
    entries = answer.json()["forecasts"]
    assert [entry.get("status", 200) for entry in entries] == [200, 422, 200, 409, 200]
    assert entries[2] == entries[0] | {"replayed": True}
    assert [entry["id"] for entry in entries] == ["b-1", "b-2", "b-1", "b-1", "b-3"]
    told = [("b-1", None), ("b-2", 1), ("b-1", None), ("b-3", 0.5), ("b-3", 1), ("b-1", 1.0), ("b-3", None)]
    counted = _metrics(server)
    answer = server.post("/v1/streams/late/outcomes", {"outcomes": [{"id": one, "y": y} for one, y in told]})
    results = [(one["result"], one.get("status", one.get("replayed"))) for one in answer.json()["outcomes"]]
    assert results == [
        ("forgotten", False), ("refused", 404), ("forgotten", True), ("refused", 422), ("learned", False),
        ("refused", 409), ("refused", 409),
    ]  # fmt: skip
    now = _metrics(server)
    more = {result: now[result] - counted.get(result, 0.0) for result in now}
    assert more == {"new": 1, "forgotten": 1, "replayed": 1, "contradiction": 2, "unknown": 1, "invalid": 1}


def _metrics(server: Running) -> dict[str, float]:
    """Entries of outcomes to the stream so far, by what became of them."""
    lines = [line.split("} ") for line in server.http.get("/metrics").text.splitlines() if 'what="outcome"' in line]
    here = [(labels, count) for labels, count in lines if "swapcal_cases_total" in labels and '"late"' in labels]
    return {labels.split('result="')[1].split('"')[0]: float(count) for labels, count in here}


def test_null_alone_forgets(server: Running) -> None:
    server.forecast("null-1")
    for body in ({"id": "null-1"}, {"id": "null-1", "y": "null"}, {"id": "null-1", "y": []}):
        assert server.post("/v1/streams/late/outcomes", body).status_code == 422
    assert server.http.get("/v1/streams/late/cases/null-1").json()["state"] == "pending"
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


def test_a_weight_is_part_of_what_was_asked(server: Running) -> None:
    assert server.http.put("/v1/streams/weighted", json={"groups": ["carrier"], "seed": 4}).status_code == 201
    with Client(server.url) as client:
        first = client.forecast("weighted", "a", {"carrier": "A"}, hint=0.3, weight=0.5)
        assert client.forecast("weighted", "a", {"carrier": "A"}, hint=0.3, weight=0.5).replayed
        assert (client.case("weighted", "a").weight, client.case("weighted", "a").forecast) == (0.5, first.forecast)
        client.forecast("weighted", "b", {"carrier": "A"}, hint=0.3, weight=0.0)
        assert client.case("weighted", "b").state == "forgotten"
        assert client.forget("weighted", "b").replayed
    other = {"id": "a", "context": {"carrier": "A"}, "hint": 0.3}
    assert server.post("/v1/streams/weighted/forecasts", other).status_code == 409
    for weight in (-0.1, 1.5, "much"):
        assert server.post("/v1/streams/weighted/forecasts", other | {"id": "c", "weight": weight}).status_code == 422
    second = server.forecast("d", hint=0.6, stream="weighted").json()["forecast"]
    assert server.outcome("b", 1.0, stream="weighted").status_code == 409
    server.outcome("a", 1.0, stream="weighted")
    server.outcome("d", 0.0, stream="weighted")
    loss = sc.Probability().loss
    mean = (0.5 * loss(first.forecast, 1.0) + loss(second, 0.0)) / 1.5
    assert server.status("weighted")["loss_after"] == pytest.approx(mean, rel=1e-12)
    assert "2 rows" in server.http.get("/v1/streams/weighted/report").text
    assert server.http.delete("/v1/streams/weighted").status_code == 204


def test_bodies_and_batches_have_limits(server: Running) -> None:
    large = b'{"id": "x", "context": {"a": "' + b"y" * 70_000 + b'"}}'
    headers = {"content-type": "application/json"}
    assert server.http.post("/v1/streams/late/forecasts", content=large, headers=headers).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(70):
            yield b" " * 1024

    assert server.http.post("/v1/streams/late/forecasts", content=pieces(), headers=headers).status_code == 413
    cases = [{"id": f"n-{k}"} for k in range(201)]
    assert server.post("/v1/streams/late/forecasts", {"cases": cases}).status_code == 413
    plain = server.http.post("/v1/streams/late/forecasts", content=b"{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415


@pytest.mark.parametrize("id", ["", "a" * 201, "../x", "a b", "a\n", "a/b", "\u00e4", "\u0000", ".hidden"])
def test_odd_ids_are_refused(server: Running, id: str) -> None:
    assert server.forecast(id).status_code == 422


@pytest.mark.parametrize("name", ["%00", "a%00b", "a%20b", "late%0a", "Late", "..x", "a" * 64, "%C3%A4"])
def test_odd_names_of_streams_and_cases_are_refused_where_they_enter(server: Running, name: str) -> None:
    case = {"id": "a", "hint": 0.5}
    assert server.post(f"/v1/streams/{name}/forecasts", case).status_code == 404
    assert server.http.get(f"/v1/streams/{name}/alarms").status_code == 404
    assert server.http.delete(f"/v1/streams/{name}").status_code == 404
    made = server.http.put(f"/v1/streams/{name}", json={})
    assert (made.status_code, "a stream's name is" in made.json()["detail"]) == (422, True)
    assert server.http.get(f"/v1/streams/late/cases/{name}").status_code == 404
    assert "swapcal_store_losses_total 0.0" in server.http.get("/metrics").text


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/ping"])
def test_health(server: Running, path: str) -> None:
    assert server.http.get(path).json() == {"live": True, "ready": True}


def test_hints_that_learn_read_features(server: Running) -> None:
    assert server.forecast("l-1", stream="learning", carrier="UA", hour=9).status_code == 200
    missing = server.forecast("l-2", stream="learning", carrier="UA")
    assert (missing.status_code, "'hour'" in missing.json()["detail"]) == (422, True)


def test_streams_are_made_looked_at_and_deleted(server: Running) -> None:
    spec = {"property": "expectile", "level": 0.8, "low": -1, "high": 1, "groups": ["a"]}
    assert server.http.put("/v1/streams/fresh", json=spec).status_code == 201
    assert server.http.put("/v1/streams/fresh", json=spec).status_code == 200
    assert server.http.put("/v1/streams/fresh", json=spec | {"level": 0.7}).status_code == 409
    assert server.forecast("f-1", stream="fresh").status_code == 200
    answer = server.http.get("/v1/streams/fresh").json()
    assert "seed" not in answer["spec"]
    assert answer["status"]["forecasts"] == 1
    assert "fresh" in server.http.get("/v1/streams").json()["streams"]
    assert server.http.delete("/v1/streams/fresh").status_code == 204
    assert server.http.get("/v1/streams/fresh").status_code == 404
    assert server.forecast("f-1", stream="fresh").status_code == 404
    assert server.http.delete("/v1/streams/late").status_code == 409
    for bad in (
        {"property": "mode"},
        {"property": "quantile"},
        {"low": 2},
        {"groups": [["a", 1]]},
        {"features": ["a"]},
        {"group_limit": 10_000, "horizon": 10**9},
    ):
        assert server.http.put("/v1/streams/bad", json=bad).status_code == 422


def test_what_there_is_to_read(server: Running) -> None:
    for k in range(40):
        server.forecast(f"read-{k}", hint=0.9, carrier="<b>&")
        server.outcome(f"read-{k}", 0.0)
    audit = server.http.get("/v1/streams/late/audit").json()
    assert audit["before"]["rounds"] <= audit["after"]["rounds"] == server.status()["outcomes"]
    [group] = [one for one in audit["groups"] if one["name"] == "carrier=<b>&"]
    assert group["rounds"] == 40
    assert group["before"]["bias"] == pytest.approx(0.9, abs=0.05)
    assert group["before"]["off"]
    assert audit["before"]["groups_off"] >= 1
    alarms = server.http.get("/v1/streams/late/alarms").json()
    assert "tolerated is a bias of 0.02 in any group" in alarms["note"]
    assert all(one["group"] in one["alarm"] and one["side"] in ("too high", "too low") for one in alarms["alarms"])
    assert ("carrier=<b>&", "too high") in {(one["group"], one["side"]) for one in alarms["model"]}
    metrics = server.http.get("/metrics").text
    for name, list_of in (("alarms", "alarms"), ("model_alarms", "model")):
        assert len(alarms[list_of]) == server.status()[name]
        assert f'swapcal_stream_{name}{{stream="late"}} {float(len(alarms[list_of]))}' in metrics
    assert 'swapcal_cases_total{result="new",stream="late",what="forecast"}' in metrics
    assert "carrier" not in metrics
