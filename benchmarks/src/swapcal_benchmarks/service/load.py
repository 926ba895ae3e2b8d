"""A load generator for one HTTP/1.1 server on this machine: many kept connections, little cost for each request."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Burst", "cpu_seconds", "drive", "resident_megabytes"]

Body = Callable[[int], bytes]
"""The body of request number k."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What a burst of requests gave: how many, how many failed, seconds, the server's CPU seconds, and latencies."""

    requests: int
    failed: int
    seconds: float
    cpu: float
    latencies: list[float]


class _Connection(asyncio.Protocol):
    """One kept connection: sends the next request when the last one has been answered."""

    def __init__(self, head: bytes, body: Body, numbers: "_RequestNumbers", done: asyncio.Future[None]) -> None:
        self.head, self.body, self.numbers, self.done = head, body, numbers, done
        self.transport: asyncio.Transport | None = None
        self.buffer, self.sent = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        assert self.transport is not None
        k = self.numbers.next()
        if k is None:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        body = self.body(k)
        self.sent = time.perf_counter()
        self.transport.write(self.head + b"%d\r\n\r\n" % len(body) + body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        at = head.index(b"content-length:") + 15
        length = int(head[at : (head + b"\r").index(b"\r", at)])
        if len(self.buffer) < end + 4 + length:
            return
        self.numbers.latencies.append(time.perf_counter() - self.sent)
        self.numbers.failed += not head.startswith(b"http/1.1 2")
        self.buffer = self.buffer[end + 4 + length :]
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed a connection"))


class _RequestNumbers:
    """Hands out request numbers until time is up, and collects what became of them."""

    def __init__(self, first: int, until: float, most: int | None) -> None:
        self.k, self.until, self.last = first, until, None if most is None else first + most
        self.latencies: list[float] = []
        self.failed = 0

    def next(self) -> int | None:
        if time.perf_counter() > self.until or self.k == self.last:
            return None
        self.k += 1
        return self.k


async def drive(
    port: int,
    path: str,
    body: Body,
    *,
    seconds: float,
    connections: int = 32,
    first: int = 0,
    pid: int | None = None,
    most: int | None = None,
) -> Burst:
    """Send `POST path` over `connections` kept connections for so many seconds, or so many requests at `most`.

    Requests are numbered from `first` + 1 on; `pid` is the server, for its CPU time.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()
    loop = asyncio.get_running_loop()
    start, cpu = time.perf_counter(), 0.0 if pid is None else cpu_seconds(pid)
    numbers = _RequestNumbers(first, start + seconds, most)
    ends: list[asyncio.Future[None]] = []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        ends.append(done)
        await loop.create_connection(lambda done=done: _Connection(head, body, numbers, done), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*ends)
    took, used = time.perf_counter() - start, (0.0 if pid is None else cpu_seconds(pid)) - cpu
    return Burst(len(numbers.latencies), numbers.failed, took, used, numbers.latencies)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Resident memory of a process; Linux."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
