"""Alarms, and what was forgotten: the same after a crash, and seen wherever one looks."""

from pathlib import Path

from service_running import start


def test_alarms_are_the_same_after_a_crash(tmp_path: Path) -> None:
    spec = {"groups": ["carrier"], "outcome_order": "forecast", "monitor": {"tolerance": 0.1, "alpha": 0.01}}
    settings = {"store": str(tmp_path / "swapcal.db"), "snapshot_every": 70, "config": {"streams": {"late": spec}}}
    server = start(tmp_path, 0, settings)
    for k in range(0, 120, 3):
        cases = [{"id": f"c{j}", "context": {"carrier": "AB"[j % 2]}, "hint": 0.7} for j in range(k, k + 3)]
        assert server.post("/v1/streams/late/forecasts", {"cases": cases}).status_code == 200
        # The model is right for A on average, and much too high for B.
        outcomes = [{"id": f"c{j}", "y": 0.0 if j % 2 else float(j % 20 < 14)} for j in (k + 2, k, k + 1)]
        assert server.post("/v1/streams/late/outcomes", {"outcomes": outcomes}).status_code == 200
    server.post("/v1/streams/late/forecasts", {"cases": [{"id": "gone"}, {"id": "open"}]})
    assert server.outcome("gone", None).json()["result"] == "forgotten"
    before = server.http.get("/v1/streams/late/alarms").json()
    status = server.status()
    server.kill()
    server = start(tmp_path, 1, settings)
    try:
        assert server.http.get("/v1/streams/late/alarms").json() == before
        assert server.status() == status
        assert (server.outcome("gone", 0.0).status_code, server.outcome("gone", None).json()["replayed"]) == (409, True)
        assert server.outcome("open", None).json() == {"result": "forgotten", "id": "open", "replayed": False}
        assert "carrier=B" in {one["group"] for one in before["model"]}
        assert "carrier=A" not in {one["group"] for one in before["model"]}
        assert all(one["side"] == "too high" for one in before["model"])
        assert status["model_alarms"] == len(before["model"])
        metrics = server.http.get("/metrics").text
        assert f'swapcal_stream_model_alarms{{stream="late"}} {float(len(before["model"]))}' in metrics
        assert f'swapcal_stream_alarms{{stream="late"}} {float(len(before["alarms"]))}' in metrics
    finally:
        server.kill()
