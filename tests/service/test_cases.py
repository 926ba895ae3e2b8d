"""Over the network: a case is forecast once, and learned or forgotten once, however and however often it is sent."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

import swapcal as sc
from service_running import GROUPS, Running
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
        ("late", "outcome", "known", 2.0, 422, "outside [0, 1]"),
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
    case = {"id": "b-1", "context": {"carrier": "UA", "origin": "EWR"}, "hint": 0.2}
    cases = [case, {**case, "id": "b-2", "hint": 1.5}, case, {**case, "hint": 0.9}, {**case, "id": "b-3"}]
    answer = server.post("/v1/streams/late/forecasts", {"cases": cases})
    assert answer.status_code == 207
    entries = answer.json()["forecasts"]
    assert [entry.get("status", 200) for entry in entries] == [200, 422, 200, 409, 200]
    assert entries[2] == entries[0] | {"replayed": True}
    assert [entry["id"] for entry in entries] == ["b-1", "b-2", "b-1", "b-1", "b-3"]
    told = [("b-1", None), ("b-2", 1), ("b-1", None), ("b-3", 1.5), ("b-3", 1), ("b-1", 1.0), ("b-3", None)]
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


@pytest.mark.parametrize("word", ["cases", "outcomes", "\\u0063ases"])
def test_one_case_or_several_is_decided_by_what_the_body_is(server: Running, word: str) -> None:
    """Not by whether the word is somewhere in it."""
    column = json.loads(f'"{word}"')
    case = {"id": column, "context": {column: column}, "hint": 0.2}
    first = server.post("/v1/streams/small/forecasts", case)
    assert (first.status_code, first.json().get("result")) == (200, "forecast"), first.text
    assert server.outcome(column, 1.0, stream="small").status_code == 200
    headers = {"content-type": "application/json"}
    for field, path in (("cases", "forecasts"), ("outcomes", "outcomes")):
        body = f'{{"{word}": []}}'.encode()
        answer = server.http.post(f"/v1/streams/small/{path}", content=body, headers=headers)
        assert (answer.status_code, "length >= 1" in answer.text) == (422, column == field), answer.text


def test_the_same_case_is_the_same_json(server: Running) -> None:
    for k, (first, other) in enumerate([(1, True), (1, 1.0), (0, False), ("1", 1), (None, "")]):
        case = {"id": f"json-{k}", "context": {"a": first, "b": None}, "hint": 0.2}
        assert server.post("/v1/streams/small/forecasts", case).status_code == 200
        turned = case | {"context": {"b": None, "a": first}}
        assert server.post("/v1/streams/small/forecasts", turned).json()["replayed"] is True
        changed = case | {"context": {"a": other, "b": None}}
        assert server.post("/v1/streams/small/forecasts", changed).status_code == 409, (first, other)


def test_a_column_that_is_needed_is_asked_for_by_name(server: Running) -> None:
    """A misspelled column would be a missing value for ever; null says that there is none."""
    before = server.status()
    refused = server.forecast("column-1", carier="UA", origin="EWR")
    assert (refused.status_code, "'carier'; did you mean 'carrier'?" in refused.json()["detail"]) == (422, True)
    refused = server.forecast("column-1", stream="learning", carrier="UA", hours=4)
    assert (refused.status_code, "'hours'; did you mean 'hour'?" in refused.json()["detail"]) == (422, True)
    assert server.status() == before
    cases = [{"id": "column-1", "context": {"carrier": "UA", "origin": None, "more": 1}}, {"id": "column-2"}]
    answers = server.post("/v1/streams/late/forecasts", {"cases": cases}).json()["forecasts"]
    assert [one["result"] for one in answers] == ["forecast", "refused"]
    assert server.http.put("/v1/streams/lenient", json={"groups": ["a"], "absent": "missing"}).status_code == 201
    assert server.forecast("column-3", stream="lenient", b=1).status_code == 200
    assert server.outcome("column-3", 1.0, stream="lenient").status_code == 200
    names = {one["name"] for one in server.http.get("/v1/streams/lenient/audit").json()["groups"]}
    assert names == {"all", "a=missing"}
    assert server.http.delete("/v1/streams/lenient").status_code == 204


def test_only_what_was_learned_calibrates(server: Running) -> None:
    """The first answers of a stream are the model's own, and say so, also when they are asked for again."""
    assert server.http.put("/v1/streams/young", json={}).status_code == 201
    told = [server.forecast("y-0", stream="young").json()]
    assert server.outcome("y-0", None, stream="young").status_code == 200
    told.append(server.forecast("y-1", stream="young").json())
    assert server.outcome("y-1", 1.0, stream="young").status_code == 200
    told.append(server.forecast("y-2", stream="young").json())
    assert [one["calibrated"] for one in told] == [False, False, True]
    assert told[0]["forecast"] == told[0]["hint"]
    for k, one in enumerate(told):
        assert server.forecast(f"y-{k}", stream="young").json() == one | {"replayed": True}
    assert server.http.delete("/v1/streams/young").status_code == 204


def test_null_alone_forgets(server: Running) -> None:
    server.forecast("null-1")
    for body in ({"id": "null-1"}, {"id": "null-1", "y": "null"}, {"id": "null-1", "y": []}):
        assert server.post("/v1/streams/late/outcomes", body).status_code == 422
    assert server.http.get("/v1/streams/late/cases/null-1").json()["state"] == "pending"
    with Client(server.url) as client:
        for k in range(3):
            client.forecast("late", f"client-{k}", {"carrier": "UA", "origin": "EWR"}, 0.5)
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
    for kind, status in {
        "text/plain": 415, "application/jsonp": 415, "application/json-seq": 415, "application/problem+json": 415,
        "application/json": 422, "Application/JSON ; charset=utf-8": 422,
    }.items():  # fmt: skip
        answer = server.http.post("/v1/streams/late/forecasts", content=b"{}", headers={"content-type": kind})
        assert answer.status_code == status, kind


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
    found = server.http.get(f"/v1/streams/late/cases/{name}")
    assert (found.status_code, "%" in name) in ((404, "no case can have this id" in found.text), (404, False))
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
    assert server.forecast("f-1", stream="fresh", a=1).status_code == 200
    answer = server.http.get("/v1/streams/fresh").json()
    assert "seed" not in answer["spec"]
    assert answer["status"]["forecasts"] == 1
    assert "fresh" in server.http.get("/v1/streams").json()["streams"]
    assert server.http.delete("/v1/streams/fresh").status_code == 204
    assert server.http.get("/v1/streams/fresh").status_code == 404
    assert server.forecast("f-1", stream="fresh", a=1).status_code == 404
    assert server.http.delete("/v1/streams/late").status_code == 409
    for bad in (
        {"property": "mode"},
        {"property": "quantile"},
        {"low": 2},
        {"groups": [["a", 1]]},
        {"features": ["a"]},
        {"group_limit": 10_000, "horizon": 10**9},
        {"delay": "30d", "keep": "1s"},
        {"delay": "120d"},
    ):
        assert server.http.put("/v1/streams/bad", json=bad).status_code == 422


def test_streams_have_a_number_and_a_size(server: Running) -> None:
    there = server.http.get("/v1/streams").json()["streams"]
    names = [f"many-{k}" for k in range(20 - len(there))]
    assert [server.http.put(f"/v1/streams/{name}", json={}).status_code for name in names] == [201] * len(names)
    refused = server.http.put("/v1/streams/too-many", json={})
    assert (refused.status_code, "raise `streams`" in refused.json()["detail"]) == (403, True)
    assert server.http.put(f"/v1/streams/{names[0]}", json={}).status_code == 200
    for name in names:
        assert server.http.delete(f"/v1/streams/{name}").status_code == 204
    large = server.http.put("/v1/streams/large", json={"group_limit": 10_000, "bins": 1001})
    assert (large.status_code, "more than 2000000 cells" in large.json()["detail"]) == (422, True)


def test_values_of_columns_make_no_more_groups_than_there_may_be(server: Running) -> None:
    assert server.http.put("/v1/streams/full", json={"groups": ["a"], "group_limit": 10}).status_code == 201
    for k in range(0, 400, 100):
        cases = [{"id": f"v-{j}", "context": {"a": f"value {j}"}} for j in range(k, k + 100)]
        assert server.post("/v1/streams/full/forecasts", {"cases": cases}).status_code == 200
    assert server.status("full")["groups"] <= 11
    assert server.http.delete("/v1/streams/full").status_code == 204


def test_what_there_is_to_read(server: Running) -> None:
    # A stream of its own: alarms come in the order of forecasts, and in the others some still wait for their outcomes.
    assert server.http.put("/v1/streams/read", json={"groups": GROUPS}).status_code == 201
    for k in range(40):
        server.forecast(f"read-{k}", hint=0.9, stream="read", carrier="<b>&", origin="EWR")
        server.outcome(f"read-{k}", 0.0, stream="read")
    audit = server.http.get("/v1/streams/read/audit").json()
    assert audit["before"]["rounds"] <= audit["after"]["rounds"] == server.status("read")["outcomes"] == 40
    [group] = [one for one in audit["groups"] if one["name"] == "carrier=<b>&"]
    assert group["rounds"] == 40
    assert group["before"]["bias"] == pytest.approx(0.9, abs=0.05)
    assert group["before"]["off"]
    assert audit["before"]["groups_off"] >= 1
    alarms = server.http.get("/v1/streams/read/alarms").json()
    assert "tolerated is a bias of 0.02 in any group" in alarms["note"]
    assert all(one["group"] in one["alarm"] and one["side"] in ("too high", "too low") for one in alarms["alarms"])
    assert ("carrier=<b>&", "too high") in {(one["group"], one["side"]) for one in alarms["model"]}
    metrics = server.http.get("/metrics").text
    for name, list_of in (("alarms", "alarms"), ("model_alarms", "model")):
        assert len(alarms[list_of]) == server.status("read")[name]
        assert f'swapcal_stream_{name}{{stream="read"}} {float(len(alarms[list_of]))}' in metrics
    assert 'swapcal_cases_total{result="new",stream="read",what="forecast"}' in metrics
    assert "carrier" not in metrics
    assert server.http.delete("/v1/streams/read").status_code == 204
