"""Every case is forecast once and learned once, however often and in whatever order it is sent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service_running import GROUPS, Running, start

STREAMS = {
    "late": {"groups": GROUPS},
    "small": {"pending": 5},
    "short": {"delay": "1s"},
    "minutes": {
        "property": "quantile",
        "level": 0.9,
        "low": -60,
        "high": 300,
        "outside": "clip",
        "groups": ["carrier"],
    },
    "learning": {"hint": "learn", "features": ["hour"], "groups": ["carrier"]},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("once")
    config = {"streams": STREAMS, "limits": {"body": 65_536, "batch": 200}}
    running = start(folder, 0, {"store": str(folder / "swapcal.db"), "config": config})
    yield running
    running.kill()


def test_the_same_case_again_gets_the_same_answer(server: Running) -> None:
    first, again = server.forecast("same-1").json(), server.forecast("same-1").json()
    assert not first["replayed"]
    assert again == first | {"replayed": True}


def test_the_same_id_with_another_body_is_refused(server: Running) -> None:
    server.forecast("other-1", hint=0.3)
    for answer in (server.forecast("other-1", hint=0.4), server.forecast("other-1", hint=0.3, carrier="B6")):
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == 409
        assert "new id" in answer.json()["detail"]


def test_outcomes_come_in_any_order_and_are_learned_once(server: Running) -> None:
    before = server.status()["outcomes"]
    ids = [f"order-{k}" for k in range(20)]
    for one in ids:
        assert server.forecast(one).status_code == 200
    for one in reversed(ids):
        assert server.outcome(one, 1.0).json() == {"result": "learned", "id": one, "y": 1.0, "replayed": False}
    for one in ids:
        assert server.outcome(one, 1.0).json()["replayed"]
    assert server.status()["outcomes"] == before + 20


def test_a_contradicting_outcome_is_refused_and_changes_nothing(server: Running) -> None:
    server.forecast("against-1")
    server.outcome("against-1", 1.0)
    status = server.status()
    assert server.outcome("against-1", 0.0).status_code == 409
    assert server.status() == status
    assert server.http.get("/v1/streams/late/cases/against-1").json()["y"] == 1.0


def test_unknown_outcomes_are_told_from_expired_ones(server: Running) -> None:
    assert server.outcome("never-asked", 1.0).status_code == 404
    for k in range(7):
        server.forecast(f"old-{k}", stream="small")
    assert server.outcome("old-0", 1.0, stream="small").status_code == 410
    assert server.outcome("old-6", 1.0, stream="small").status_code == 200
    case = server.http.get("/v1/streams/small/cases/old-0").json()
    assert (case["state"], case["y"]) == ("expired", None)


def test_ids_stay_in_their_stream(server: Running) -> None:
    server.forecast("mine", stream="late")
    assert server.outcome("mine", 1.0, stream="small").status_code == 404
    assert not server.forecast("mine", stream="small").json()["replayed"]


def test_a_batch_is_judged_entry_by_entry(server: Running) -> None:
    case = {"id": "b-1", "context": {"carrier": "UA"}, "hint": 0.2}
    cases = [case, {**case, "id": "b-2", "hint": 1.5}, case, {**case, "hint": 0.9}, {**case, "id": "b-3"}]
    answer = server.post("/v1/streams/late/forecasts", {"cases": cases})
    assert answer.status_code == 207
    entries = answer.json()["forecasts"]
    assert [entry.get("status", 200) for entry in entries] == [200, 422, 200, 409, 200]
    assert entries[2] == entries[0] | {"replayed": True}
    assert [entry["id"] for entry in entries] == ["b-1", "b-2", "b-1", "b-1", "b-3"]
    outcomes = [{"id": "b-1", "y": 1}, {"id": "b-2", "y": 1}, {"id": "b-1", "y": 1}, {"id": "b-3", "y": 0.5}]
    answer = server.post("/v1/streams/late/outcomes", {"outcomes": outcomes})
    assert [entry.get("status", 200) for entry in answer.json()["outcomes"]] == [200, 404, 200, 422]


def test_a_refused_case_leaves_no_trace(server: Running) -> None:
    before = server.status()
    assert server.forecast("bad-hint", hint=2.0, carrier="never seen before").status_code == 422
    assert server.status() == before
    assert server.http.get("/v1/streams/late/cases/bad-hint").status_code == 404


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


def test_quantiles_clip_and_learning_hints_read_features(server: Running) -> None:
    answer = server.forecast("q-1", hint=20.0, stream="minutes", carrier="UA")
    assert -60.0 <= answer.json()["forecast"] <= 300.0
    assert server.outcome("q-1", 5000.0, stream="minutes").status_code == 200
    assert server.forecast("l-1", stream="learning", carrier="UA", hour=9).status_code == 200
    missing = server.forecast("l-2", stream="learning", carrier="UA")
    assert missing.status_code == 422
    assert "'hour'" in missing.json()["detail"]


ODD_NAMES = ["%00", "a%00b", "a%20b", "late%0a", "Late", "..x", "a" * 64, "%C3%A4"]


@pytest.mark.parametrize("name", ODD_NAMES)
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
    assert audit["before"]["rounds"] == audit["after"]["rounds"] == server.status()["outcomes"]
    [group] = [one for one in audit["groups"] if one["name"] == "carrier=<b>&"]
    assert group["rounds"] == 40
    assert group["before"]["bias"] == pytest.approx(0.9, abs=0.05)
    assert group["before"]["off"]
    assert audit["before"]["groups_off"] >= 1
    alarms = server.http.get("/v1/streams/late/alarms").json()
    assert "tolerated is a bias of 0.02 in any group" in alarms["note"]
    assert all(one["group"] in one["alarm"] and one["side"] in ("too high", "too low") for one in alarms["alarms"])
    assert len(alarms["alarms"]) == server.status()["alarms"]
    metrics = server.http.get("/metrics").text
    assert 'swapcal_cases_total{result="new",stream="late",what="forecast"}' in metrics
    assert "carrier" not in metrics


def test_a_waiting_time_that_is_over(server: Running) -> None:
    import time

    server.forecast("short-1", stream="short")
    time.sleep(1.1)
    assert server.outcome("short-1", 1.0, stream="short").status_code == 410
