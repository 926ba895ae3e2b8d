"""What is around the service: a model server that gives hints, traces, back-ups, a log that does not add up."""

import asyncio
import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from service_running import Starter
from swapcal.client import Client, Retries, ServiceError
from swapcal.errors import InvalidInput
from swapcal.service.config import Config, Service
from swapcal.service.server import Server
from swapcal.service.spec import StreamSpec
from swapcal.service.sqlite import Sqlite


class Model(BaseHTTPRequestHandler):
    """A model server in both shapes; it breaks when a case asks it to."""

    asked: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).asked.append(body)
        if self.path == "/elsewhere":
            self.send_response(307)
            self.send_header("location", "/invocations")
            self.end_headers()
            return
        if self.path == "/odd":
            self._odd(str(body["dataframe_records"][0]["odd"]))
            return
        if self.path == "/invocations":
            hints = [0.25 if one["carrier"] == "UA" else 0.75 for one in body["dataframe_records"]]
            answer: Any = {"predictions": hints if body["dataframe_records"][0]["carrier"] != "bad" else hints[1:]}
        else:
            [carriers] = [one["data"] for one in body["inputs"] if one["name"] == "carrier"]
            data = [0.25 if one == "UA" else 0.75 for one in carriers]
            answer = {"outputs": [{"name": "p", "shape": [len(data)], "datatype": "FP64", "data": data}]}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _odd(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range({"endless": 100_000, "slow": 100}.get(text, 0)):
                self.wfile.write(b" " * (1 if text == "slow" else 100_000))
                time.sleep(0.1 if text == "slow" else 0.0)
            self.wfile.write({"deep": "[" * 100_000}.get(text, text).encode())

    def log_message(self, *arguments: object) -> None:
        """Nothing: tests are quiet."""


@pytest.fixture
def model() -> Iterator[HTTPServer]:
    Model.asked = []
    server = HTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_server_gives_the_hint(serve: Starter, model: HTTPServer, tmp_path: Path) -> None:
    base = f"http://127.0.0.1:{model.server_port}"
    spec = {"groups": ["carrier"]}
    config = {
        "streams": {"one": spec, "two": spec, "gone": spec},
        "upstream": {
            "one": {"url": f"{base}/invocations", "timeout": 60},
            "two": {"url": f"{base}/v2/models/m/infer", "kind": "v2", "columns": ["carrier"], "timeout": 60},
            "gone": {"url": "http://127.0.0.1:9/none", "timeout": 0.5},
        },
    }
    server = serve(config=config)
    for stream in ("one", "two"):
        fetched = server.forecast("m-1", hint=None, stream=stream, carrier="UA").json()
        assert fetched["hint"] == 0.25
        cases = [{"id": "m-2", "context": {"carrier": "B6"}}, {"id": "m-3", "context": {"carrier": "B6"}, "hint": 0.5}]
        answers = server.post(f"/v1/streams/{stream}/forecasts", {"cases": cases}).json()["forecasts"]
        assert [one["hint"] for one in answers] == [0.75, 0.5]
    assert len(Model.asked[1]["dataframe_records"]) == 1
    assert server.forecast("m-4", hint=None, stream="one", carrier="bad").status_code == 502
    refused = server.forecast("m-5", hint=None, stream="gone", carrier="UA")
    assert refused.status_code == 502
    assert "127.0.0.1:9" not in refused.text
    server.kill()
    again = serve(config=config)
    asked = len(Model.asked)
    assert again.forecast("m-1", hint=None, stream="one", carrier="UA").json() == {**again_of(again), "replayed": True}
    assert again.status("one")["forecasts"] == 3
    assert len(Model.asked) == asked, "what is stored is not asked for again"


def test_a_model_server_leads_nowhere_else(serve: Starter, model: HTTPServer) -> None:
    upstream = {"url": f"http://127.0.0.1:{model.server_port}/elsewhere", "timeout": 60}
    server = serve(config={"streams": {"one": {}}, "upstream": {"one": upstream}})
    refused = server.forecast("o-1", hint=None, stream="one", carrier="UA")
    assert (refused.status_code, "HTTPStatusError" in refused.json()["detail"]) == (502, True)
    assert len(Model.asked) == 1


ODD_ANSWERS = [
    "", "null", "{", "deep", "[0.5]", '{"predictions": [1e400]}', '{"predictions": {"0": 1}}', '{"predictions": "1"}',
    '{"predictions": [true]}', '{"predictions": ["0.5"]}', '{"predictions": [null]}', '{"predictions": [[]]}',
    '{"predictions": [[0.1, 0.9]]}', '{"predictions": [NaN]}', '{"predictions": []}', '{"predictions": [0.1, 0.2]}',
    "endless", "slow",
]  # fmt: skip


def test_what_is_no_hint_is_refused_with_a_reason(serve: Starter, model: HTTPServer) -> None:
    """Whatever a model server answers, and however long it takes for it."""
    url = f"http://127.0.0.1:{model.server_port}/odd"
    upstream = {"one": {"url": url, "timeout": 60}, "hasty": {"url": url, "timeout": 1}}
    server = serve(config={"streams": {"one": {}, "hasty": {}}, "upstream": upstream})
    for k, text in enumerate(ODD_ANSWERS):
        refused = server.forecast(f"o-{k}", hint=None, stream="hasty" if text == "slow" else "one", odd=text)
        assert refused.status_code == 502, (text, refused.text)
        assert refused.json()["detail"].startswith("the model server gave"), refused.text
        assert {"endless": "more than", "slow": "TimeoutError"}.get(text, "") in refused.text
        assert str(model.server_port) not in refused.text
    assert server.forecast("beyond", hint=None, stream="one", odd='{"predictions": [1.5]}').status_code == 422
    assert server.status("one")["forecasts"] == 0
    assert server.forecast("right", hint=None, stream="one", odd='{"predictions": [[0.5]]}').json()["hint"] == 0.5
    assert "Traceback" not in server.log.read_text()


def again_of(server: Any) -> dict[str, Any]:
    stored = server.http.get("/v1/streams/one/cases/m-1").json()
    answer: dict[str, Any] = server.forecast("m-1", hint=None, stream="one", carrier="UA").json()
    assert (answer["hint"], answer["forecast"]) == (stored["hint"], stored["forecast"])
    return answer


def test_a_back_up_made_while_it_runs_goes_on(serve: Starter, tmp_path: Path) -> None:
    server = serve(snapshot_every=30)
    for k in range(50):
        server.forecast(f"b-{k}")
        if k >= 10:
            server.outcome(f"b-{k - 10}", float(k % 2))
    copy = tmp_path / "copy.db"
    with sqlite3.connect(tmp_path / "swapcal.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    more = [server.forecast(f"later-{k}").json() for k in range(10)]
    restored = serve(store=str(copy))
    assert [restored.forecast(f"later-{k}").json() for k in range(10)] == more


def test_other_settings_for_a_stream_that_is_there_end_the_start(tmp_path: Path) -> None:
    async def start(*groups: str) -> None:
        config = Config(
            Service(store=str(tmp_path / "x.db"), auth=False), streams={"late": StreamSpec(groups=list(groups))}
        )
        async with Server(config, Sqlite(config.service.store)).running():
            pass

    asyncio.run(start("carrier"))
    with pytest.raises(InvalidInput, match="other settings"):
        asyncio.run(start("origin"))


def test_traces_where_the_package_is_there(serve: Starter) -> None:
    pytest.importorskip("opentelemetry", reason="opentelemetry is not installed")
    server = serve(traces=True)
    assert server.forecast("t-1").status_code == 200
    assert server.http.get("/v1/streams/late/cases/t-1").json()["state"] == "pending"
    with Client(server.url, retries=Retries(attempts=1)) as client, pytest.raises(ServiceError):
        client.case("late", "t-2")
