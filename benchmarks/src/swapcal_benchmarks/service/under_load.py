"""Load on the service beside an empty endpoint of the same stack, in the same run.

Both servers run on this machine beside the load itself, in turns of a second, so that whatever else the machine does
falls on both. Requests for each second of the server's own CPU time are in the table too: they do not depend on how
many cores the load takes away.
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from swapcal_benchmarks.service.load import Body, Burst, drive

__all__ = ["BATCH", "FORECASTS", "OUTCOMES", "LoadRow", "case", "cases", "measure", "outcome", "outcomes", "servers"]

STREAM = '[streams.late]\ngroups = ["carrier", "origin", ["carrier", "origin"]]\nseed = 1\n'
FORECASTS, OUTCOMES = "/v1/streams/late/forecasts", "/v1/streams/late/outcomes"
CONNECTIONS = 64
BATCH, BATCH_CONNECTIONS = 100, 8


@dataclass
class LoadRow:
    """One way to load a server, over all turns."""

    name: str
    cases: int = 1
    requests: int = 0
    failed: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def add(self, one: Burst) -> None:
        """One more turn."""
        self.requests += one.requests
        self.failed += one.failed
        self.seconds += one.seconds
        self.cpu += one.cpu
        self.latencies += one.latencies

    @property
    def rate(self) -> float:
        """Cases a second."""
        return self.cases * self.requests / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Cases for each second of the server's CPU time."""
        return self.cases * self.requests / self.cpu

    def milliseconds(self, level: float) -> float:
        """A quantile of the time to answer."""
        ordered = sorted(self.latencies)
        return 1e3 * ordered[min(len(ordered) - 1, int(level * len(ordered)))]


def case(k: int) -> bytes:
    """Case number k, as it is sent."""
    return b'{"id":"case-%d","context":{"carrier":"A%d","origin":"O%d","hour":%d},"hint":0.%d}' % (
        k,
        k % 12,
        k % 3,
        k % 24,
        k % 9 + 1,
    )


def cases(k: int) -> bytes:
    """Batch number k of cases."""
    return b'{"cases":[' + b",".join(case(10**9 + BATCH * k + j) for j in range(BATCH)) + b"]}"


def outcome(k: int) -> bytes:
    """The outcome of case number k."""
    return b'{"id":"case-%d","y":%d}' % (k, k % 3 == 0)


def outcomes(k: int) -> bytes:
    """The outcomes of batch number k."""
    entries = (b'{"id":"case-%d","y":%d}' % (10**9 + BATCH * k + j, j % 3 == 0) for j in range(BATCH))
    return b'{"outcomes":[' + b",".join(entries) + b"]}"


@contextmanager
def servers(store: str | None) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The empty endpoint and the service: for each its port and its process."""
    with tempfile.TemporaryDirectory(prefix="swapcal-bench-") as folder:
        config = Path(folder) / "swapcal.toml"
        ports = _free_port(), _free_port()
        address = store if store is not None else str(Path(folder) / "swapcal.db")
        service = f'[service]\nauth = false\nport = {ports[1]}\nstore = "{address}"\nlog = "warning"\n'
        config.write_text(f"{service}[limits]\nrate = 1e9\n{STREAM}", encoding="utf-8")
        commands = (
            [sys.executable, "-m", "swapcal_benchmarks.service.empty", str(ports[0])],
            [sys.executable, "-m", "swapcal.cli", "serve", "--config", str(config)],
        )
        started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
        try:
            for port in ports:
                _wait(port)
            yield (ports[0], started[0].pid), (ports[1], started[1].pid)
        finally:
            for process in started:
                process.terminate()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(port: int) -> None:
    until = time.monotonic() + 60.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


async def measure(store: str | None, turns: int) -> list[LoadRow]:
    """Every load for a second in turn, so often: the empty endpoint, single cases, batches, and their outcomes."""
    rows = {
        name: LoadRow(name, cases)
        for name, cases in (
            ("empty endpoint", 1),
            ("forecasts, one a request", 1),
            ("outcomes, one a request", 1),
            (f"forecasts, {BATCH} a request", BATCH),
            (f"outcomes, {BATCH} a request", BATCH),
        )
    }
    with servers(store) as (empty, service):
        first, batch = 0, 0
        for turn in range(turns + 1):
            loads: list[tuple[str, tuple[int, int], str, Body, int, int]] = [
                ("empty endpoint", empty, FORECASTS, case, CONNECTIONS, first),
                ("forecasts, one a request", service, FORECASTS, case, CONNECTIONS, first),
                ("outcomes, one a request", service, OUTCOMES, outcome, CONNECTIONS, first),
                (f"forecasts, {BATCH} a request", service, FORECASTS, cases, BATCH_CONNECTIONS, batch),
                (f"outcomes, {BATCH} a request", service, OUTCOMES, outcomes, BATCH_CONNECTIONS, batch),
            ]
            made: dict[str, int] = {}
            for name, (port, pid), path, body, connections, start in loads:
                # No more outcomes than there are forecasts: an unknown one would be refused, which is cheaper.
                most = made.get(name.replace("outcomes", "forecasts")) if name.startswith("outcomes") else None
                one = await drive(
                    port, path, body, seconds=1.0, connections=connections, first=start, pid=pid, most=most
                )
                made[name] = one.requests
                # The first turn warms everything up.
                if turn:
                    rows[name].add(one)
            first += made["forecasts, one a request"]
            batch += made[f"forecasts, {BATCH} a request"]
    return list(rows.values())
