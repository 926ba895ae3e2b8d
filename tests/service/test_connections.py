"""What one connection may cost, whoever sends: nobody here has a token, and the service wants one."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service_running import GROUPS, Running, start

HEAD, SECONDS, CONNECTIONS = 8192, 2, 30
LIMITS = {"head": HEAD, "request_seconds": SECONDS, "connections": CONNECTIONS}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("limited")
    config = {"streams": {"late": {"groups": GROUPS}}, "limits": LIMITS}
    running = start(folder, 0, {"store": str(folder / "swapcal.db"), "config": config})
    yield running
    running.kill()


def _connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20.0)


def _answer(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while data := connection.recv(65_536):
            parts.append(data)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def _is_ended(connection: socket.socket, block: bytes) -> bool:
    """Whether the other side ends the connection before it has taken 200 MB of these."""
    try:
        for _ in range(200 * 2**20 // len(block)):
            connection.sendall(block)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


def _memory(server: Running) -> int:
    """Bytes that the process has in memory."""
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _body(first: bytes) -> bytes:
    line = b"POST /v1/streams/late/forecasts HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return line + first


ENDLESS = {
    "header": (b"GET /ping HTTP/1.1\r\nhost: localhost\r\nx: ", b"a"),
    "headers": (b"GET /ping HTTP/1.1\r\nhost: localhost\r\n", b"a: b\r\n"),
    "address": (b"GET /", b"a"),
    "extension": (_body(b"transfer-encoding: chunked\r\n\r\n1;"), b"a"),
    "chunks": (_body(b"transfer-encoding: chunked\r\n\r\n"), b"1;aaaaaaaaaaaa\r\na\r\n"),
    "trailer": (_body(b"transfer-encoding: chunked\r\n\r\n0\r\n"), b"a: b\r\n"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_is_around_a_body_has_a_limit(limited: Running, what: str) -> None:
    first, more = ENDLESS[what]
    before = _memory(limited)
    with _connect(limited) as connection:
        connection.sendall(first)
        assert _is_ended(connection, more * (65_536 // len(more)))
    assert _memory(limited) - before < 10 * 2**20
    assert limited.forecast(f"after-{what}").status_code == 200


@pytest.mark.parametrize("size", [HEAD + 1, 3 * HEAD])
def test_a_head_that_comes_in_one_piece_has_the_same_limit(limited: Running, size: int) -> None:
    with _connect(limited) as connection:
        connection.sendall(b"GET /ping HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * size + b"\r\n\r\n")
        assert _answer(connection).startswith(b"HTTP/1.1 431 ")
    assert limited.http.get("/ping", headers={"x": "a" * (HEAD // 2)}).status_code == 200


HALVES = {
    "nothing": b"",
    "a head": b"GET /ping HTTP/1.1\r\nhost: loc",
    "a body": _body(b'content-length: 100\r\n\r\n{"id": "half"'),
    "a second request": b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\nGET /pi",
}


@pytest.mark.parametrize("what", HALVES)
def test_half_a_request_is_not_waited_for(limited: Running, what: str) -> None:
    started = time.monotonic()
    with _connect(limited) as connection:
        connection.sendall(HALVES[what])
        answer = _answer(connection)
    assert time.monotonic() - started >= 0.9 * SECONDS
    assert b"HTTP/1.1 408 " in answer
    assert b"application/problem+json" in answer


def test_bytes_that_trickle_buy_no_time(limited: Running) -> None:
    with _connect(limited) as connection:
        connection.settimeout(0.1)
        answer, started = b"", time.monotonic()
        connection.sendall(b"GET /ping HTTP/1.1\r\nhost: localhost\r\n")
        while not answer and time.monotonic() - started < 60.0:
            connection.sendall(b"a")
            try:
                answer = connection.recv(1000)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_whoever_does_not_read_is_not_waited_for(limited: Running) -> None:
    size, asked = len(limited.http.get("/openapi.json").content), 0
    before = _answered(limited)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20.0)
        connection.connect(("127.0.0.1", limited.port))
        # Until no buffer takes any more, and an answer waits for its reader.
        stuck = False
        while not stuck:
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 5)
            asked, until = asked + 5, time.monotonic() + SECONDS / 2
            while _answered(limited) - before < asked and not stuck:
                stuck = time.monotonic() > until
        time.sleep(2 * SECONDS)
        assert len(_answer(connection)) < asked * size


def _answered(server: Running) -> int:
    lines = server.http.get("/metrics").text.splitlines()
    return sum(int(float(one.split()[-1])) for one in lines if one.startswith('swapcal_requests_total{route="/openapi'))


def test_requests_that_wait_are_few(limited: Running) -> None:
    before = _memory(limited)
    with _connect(limited) as connection:
        assert _is_ended(connection, b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
    assert _memory(limited) - before < 10 * 2**20


def test_connections_are_counted(limited: Running) -> None:
    held = [_connect(limited) for _ in range(CONNECTIONS + 5)]
    try:
        answers = [_answer(one) for one in held]
    finally:
        for one in held:
            one.close()
    refused = [one for one in answers if one.startswith(b"HTTP/1.1 503 ")]
    assert len(refused) >= 5
    assert all(b"retry-after: 1" in one for one in refused)
    assert limited.forecast("after-many").status_code == 200


def test_a_stop_waits_for_no_half_request(limited: Running, tmp_path: Path) -> None:
    config = {"streams": {"late": {"groups": GROUPS}}, "limits": {"request_seconds": 600}}
    server = start(tmp_path, 0, {"store": str(tmp_path / "a.db"), "config": config, "stop_seconds": 30})
    with _connect(server) as half:
        half.sendall(HALVES["a body"])
        time.sleep(0.2)
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 15.0
