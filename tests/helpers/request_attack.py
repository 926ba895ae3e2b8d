"""Requests that are wrong in their bytes, paths, methods and bodies, sent as they are; and what must be true then."""

import json
import random
import socket
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from service_killing import SPEC, check_log
from service_running import Running, start

__all__ = ["attack"]

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, -0.0, 1e308, 10**400, "", "0.5", "\u0000", "\ud800", "a\n", "../late", "a" * 501, [],
    {}, [1], {"y": 1}, [[[[]]]], "NaN", float("nan"), float("inf"), "\u2028", "'; DROP TABLE cases; --",
]  # fmt: skip
GOOD: dict[str, Any] = {
    "forecasts": {"id": "a", "context": {"carrier": "UA", "origin": "EWR"}, "hint": 0.25, "weight": 0.5},
    "outcomes": {"id": "a", "y": 1.0},
    "stream": {"groups": ["carrier", ["carrier", "origin"]], "delay": "7d", "keep": "9d", "monitor": {"alpha": 0.1}},
}
PATHS = [
    "/v1/streams/late/forecasts", "/v1/streams/late/outcomes", "/v1/streams/late/cases/a", "/v1/streams/late",
    "/v1/streams/late/audit", "/v1/streams/late/alarms", "/v1/streams", "/metrics", "/openapi.json",
]  # fmt: skip
PIECES = [
    "%00", "%0a", "%", "%zz", "..", "%2e%2e", "/", "//", "%2f", "\\", " ", "*", "?", "#", ";", "a b", "%C3%28",
    "late%0a", "Late", "a" * 300, "\x7f", "\x01", "cases", "%ED%A0%80", "{stream}", "0", "-", "é",
]  # fmt: skip
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "", "G T", "\x00"]
TYPES = ["application/json", "application/json", "application/json", "text/plain", "", "application/jsonp", "\xff"]


class Answer(NamedTuple):
    """What came back: status 0 where nothing did, and the connection was closed."""

    status: int
    kind: str
    body: bytes


def requests(rng: random.Random, port: int) -> Iterator[tuple[bytes, bool]]:
    """Requests without end: right ones with a few things changed; and whether each can be told from its beginning."""
    while True:
        method, path, body = _right(rng)
        kind = "application/json"
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            what = rng.randrange(10)
            if what < 5 and body is not None:
                body = _changed(rng, body)
            elif what < 8:
                path = _crooked(rng, path)
            elif what == 8:
                method = rng.choice(METHODS)
            else:
                kind = rng.choice(TYPES)
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if rng.random() < 0.2:
            data = _damaged(rng, data)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Type: {kind}"]
        head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode("latin-1", "replace")
        whole = rng.random() > 0.02
        yield (head if whole else _damaged(rng, head)) + data, whole


def _right(rng: random.Random) -> tuple[str, str, Any]:
    which = rng.randrange(8)
    if which < 5:
        what = ("forecasts", "outcomes")[which % 2]
        body = GOOD[what]
        if rng.random() < 0.3:
            body = {("cases", "outcomes")[which % 2]: [body] * rng.randint(0, 3)}
        return "POST", f"/v1/streams/late/{what}", body
    if which == 5:
        return "PUT", f"/v1/streams/{rng.choice(['made', 'late'])}", GOOD["stream"]
    return rng.choice(["GET", "DELETE"]), rng.choice(PATHS), None


def _changed(rng: random.Random, body: Any) -> Any:
    """The same with one place of it made odd, wherever that is."""
    if isinstance(body, dict) and body and rng.random() < 0.9:
        key, kept = rng.choice([*body]), dict(body)
        what = rng.randrange(4)
        if what == 0:
            del kept[key]
        elif what == 1:
            kept[str(rng.choice(ODD))[:200]] = rng.choice(ODD)
        else:
            kept[key] = _changed(rng, body[key])
        return kept
    if isinstance(body, list) and body and rng.random() < 0.8:
        at = rng.randrange(len(body))
        return [*body[:at], _changed(rng, body[at]), *body[at + 1 :]]
    return rng.choice(ODD)


def _crooked(rng: random.Random, path: str) -> str:
    parts = path.split("/")
    at = rng.randrange(1, len(parts))
    piece = rng.choice(PIECES)
    parts[at] = rng.choice([piece, parts[at] + piece, piece + parts[at]])
    return "/".join(parts)


def _damaged(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, lost, or repeated."""
    at, n = rng.randrange(len(data) + 1), rng.randint(1, 4)
    return data[:at] + rng.choice([b"", rng.randbytes(n), data[at : at + n] * 50]) + data[at + n :]


class Wire:
    """A connection on which requests are sent as they are, and opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port, self.socket, self.rest = port, socket.create_connection(("127.0.0.1", port)), b""

    def again(self) -> None:
        self.socket.close()
        self.socket, self.rest = socket.create_connection(("127.0.0.1", self.port)), b""

    def ask(self, request: bytes, whole: bool) -> Answer:
        """The answer; where a request may not be whole, this side of the connection is closed behind it."""
        try:
            self.socket.sendall(request)
            if not whole:
                self.socket.shutdown(socket.SHUT_WR)
            answer = self._read()
        except OSError:
            answer = Answer(0, "", b"")
        self.again()
        return answer

    def _read(self) -> Answer:
        self.socket.settimeout(120.0)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            if not (piece := self.socket.recv(65_536)):
                return Answer(0, "", data)
            data += piece
        head = data[:end].decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        length = int(fields.get("content-length", 0))
        while len(data) < end + 4 + length and (piece := self.socket.recv(65_536)):
            data += piece
        return Answer(int(head[0].split()[1]), fields.get("content-type", ""), data[end + 4 :])


def attack(folder: Path, n: int, seed: int = 1) -> Counter[str]:
    """Send so many requests; a count by status, or an AssertionError for what must not be.

    Every request is answered with 2xx, or refused with a sentence; a refusal changes nothing in the store, and what
    the service has learned in the end is what its log says, so that refusals have changed nothing in memory either.
    """
    store, rng, counts = folder / "swapcal.db", random.Random(seed), Counter[str]()
    limits = {"request_seconds": 2, "streams": 50, "rate": 1e9}
    server = start(folder, 0, {"store": str(store), "config": {"streams": {"late": SPEC}, "limits": limits}})
    try:
        with closing(sqlite3.connect(store)) as db:
            wire, state = Wire(server.port), _state(db)
            made = requests(rng, server.port)
            for _ in range(n):
                request, whole = next(made)
                answer = wire.ask(request, whole)
                counts[_judged(request, answer)] += 1
                if not answer.status:
                    # It may have been taken, and nobody was there for the answer: what comes later is stored later.
                    server.status()
                now = _state(db)
                assert answer.status < 400 or now == state, (request, answer, state, now)
                assert answer.status or not whole, request
                state = now
            wire.socket.close()
        _ends_well(server, store)
    finally:
        server.kill()
    return counts


def _judged(request: bytes, answer: Answer) -> str:
    if 200 <= answer.status < 300:
        return "accepted"
    assert 400 <= answer.status < 500 or answer.status == 0, (request, answer)
    if answer.status == 0:
        return "closed without a word"
    assert answer.kind == "application/problem+json", (request, answer)
    said = json.loads(answer.body)
    assert (said["status"], len(said["detail"]) > 10) == (answer.status, True), (request, answer)
    return str(answer.status)


def _state(db: sqlite3.Connection) -> list[Any]:
    """All that a request can have changed in the store."""
    return db.execute("SELECT name, seq, epoch, hex(spec) FROM streams ORDER BY name").fetchall()


def _ends_well(server: Running, store: Path) -> None:
    log = server.log.read_text()
    assert "Traceback" not in log, log[-3000:]
    assert server.stop() == 0
    check_log(str(store), SPEC)
