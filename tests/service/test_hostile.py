"""Requests made up from the OpenAPI document, right and wrong: no 500, and nothing changed by what was refused."""

import contextlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from effort import part
from request_attack import attack
from service_running import Running
from swapcal.service.routes import OPERATIONS, Operation, document

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


def _attack(server: Running, requests: int) -> None:
    raw = document(OPERATIONS)
    # Streams that exist, so that requests get past the first door.
    for path in raw["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "stream" and operation["operationId"] not in ("put_stream", "delete_stream"):
                    parameter["schema"] = {"enum": ["late", "learning"]}
    schema = schemathesis.openapi.from_dict(raw)
    weights = {"forecast": 8, "learn": 4, "put_stream": 3}
    total = sum(weights.get(op.name, 1) for op in OPERATIONS)
    seen: dict[int, int] = {}
    with httpx.Client(base_url=server.url, timeout=600.0) as http:
        state = _state(http)
        for op in OPERATIONS:
            share = max(3, requests * weights.get(op.name, 1) // total)
            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                strategy = schema[op.path][op.method].as_strategy(generation_mode=mode)
                state = _attack_one(server, http, op, strategy, max(1, share // 2), seen, state)
    assert sum(seen.values()) >= requests // 2, seen
    assert any(status < 300 for status in seen), seen
    assert {400, 404, 422} & set(seen), seen
    assert server.forecast("still-there").status_code == 200


def _attack_one(
    server: Running, http: httpx.Client, op: Operation, strategy: Any, n: int, seen: dict[int, int], state: Any
) -> Any:
    """Send `n` requests to a route; the state that they leave behind."""

    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        nonlocal state
        response = _send(server, http, case)
        seen[response.status_code] = seen.get(response.status_code, 0) + 1
        assert response.status_code < 500 or response.status_code in (502, 503), (case, response.text)
        if response.status_code >= 400:
            assert response.headers["content-type"] == "application/problem+json", response.text
        if op.method != "GET":
            now = _state(http)
            assert response.status_code < 400 or now == state, (case, response.text)
            state = now

    # A route without parameters cannot be asked wrongly.
    with contextlib.suppress(Unsatisfiable):
        one()
    return state


def _send(server: Running, http: httpx.Client, case: Any) -> httpx.Response:
    kwargs = case.as_transport_kwargs(base_url=server.url)
    kwargs.pop("cookies", None)
    headers = {name: value for name, value in (kwargs.pop("headers", None) or {}).items() if value is not None}
    # The server wants no token here, and what is no header at all never leaves the client.
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    data = kwargs.pop("data", None)
    if data is not None:
        kwargs["content"] = data if isinstance(data, (bytes, str)) else str(data)
    kwargs = {key: value for key, value in kwargs.items() if key in ("method", "url", "params", "json", "content")}
    return http.request(headers=headers, **kwargs)


def _state(http: httpx.Client) -> Any:
    """What the server has stored: its streams, and how many events and groups each of them has seen."""
    lines = http.get("/metrics").text.splitlines()
    kept = ("swapcal_stream_", 'swapcal_cases_total{result="new"')
    return [line for line in lines if line.startswith(kept)]


@pytest.mark.slow
def test_made_up_requests(server: Running) -> None:
    _attack(server, part(5000, 600))
    assert "traceback" not in server.log.read_text()


def test_bad_requests_change_nothing(tmp_path: Path) -> None:
    """What `make bad` sends 100,000 of."""
    counts = attack(tmp_path, part(5000, 500))
    assert {"400", "404", "405", "409", "415", "422"} <= set(counts)
    assert counts["accepted"] < counts.total() / 10


ODD_BODIES = [
    b"", b"null", b"[]", b"{", b"\xff\xfe", b"{}" * 1000, b"[" * 100_000, b'{"id": "a"', b'{"id": 1}', b'{"id": null}',
    b'{"id": "a", "id": "b", "hint": 1e999}', b'{"id": "a", "hint": NaN}', b'{"id": "a", "hint": "0.5"}',
    b'{"id": "a", "hint": true}', b'{"id": "a", "context": {"x": {"y": 1}}}', b'{"id": "a", "context": {"x": [1]}}',
    b'{"id": "a", "context": {"x": ' + b"9" * 400 + b"}}", b'{"id": "a", "context": {"x": "\\ud800"}}',
    b'{"id": "a", "context": {"' + b"x" * 200 + b'": 1}}', b'{"id": "a", "more": 1}', b'{"cases": []}',
    b'{"cases": [1]}', b'{"cases": null}', b'{"cases": [{"id": "a"}], "id": "a"}', b'{"id": "\\u0000"}',
    b'{"id": "a", "context": {"x": "' + b"y" * 501 + b'"}}',
    b'{"id": "a", "context": {' + b",".join(b'"c%d": 1' % k for k in range(201)) + b"}}",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/streams/late/forecasts", "/v1/streams/late/outcomes"])
def test_odd_bodies(server: Running, path: str) -> None:
    with httpx.Client(base_url=server.url) as http:
        before = _state(http)
        for body in ODD_BODIES:
            answer = http.post(path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 413, 422), (body[:60], answer.text)
        assert _state(http) == before


def test_odd_values_of_columns_are_groups_like_any(server: Running) -> None:
    values: list[Any] = [None, True, False, 0, -0.0, 1e308, 5e-324, "", " ", "other", "missing", "<script>", "\u2028",
                         "a" * 500, 2**53, "\x1b[31m", "'; DROP TABLE cases; --", "\U0001f600"]  # fmt: skip
    cases: list[dict[str, Any]] = [
        {"id": f"v-{k}", "context": {"carrier": value, "origin": value}} for k, value in enumerate(values)
    ]
    together = server.post("/v1/streams/late/forecasts", {"cases": cases})
    assert together.status_code == 200, together.text
    for case in cases:
        assert server.post("/v1/streams/late/forecasts", case).json()["replayed"]
        assert server.http.get(f"/v1/streams/late/cases/{case['id']}").json()["context"] == case["context"]
        assert server.outcome(case["id"], 1.0).status_code == 200
    names = {one["name"] for one in server.http.get("/v1/streams/late/audit").json()["groups"]}
    assert {"carrier=<script>", "carrier='; DROP TABLE cases; --"} <= names
