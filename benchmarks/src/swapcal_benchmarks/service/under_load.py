"""Load on the service, as ratios to an empty endpoint of the same stack in the same run; and a soak.

    python -m swapcal_benchmarks.service.under_load   # the table, a minute or two
    python -m swapcal_benchmarks.service.under_load --soak 30   # 30 minutes of load, with the server's memory
    python -m swapcal_benchmarks.service.under_load --store postgresql://...

Both servers run on this machine beside the load itself, in turns of a second, so that whatever else the machine does
falls on both. Requests for each second of the server's own CPU time are in the table too: they do not depend on how
many cores the load takes away.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from swapcal_benchmarks.service.load import Body, Burst, drive, resident_megabytes

__all__ = ["main"]

STREAM = '[streams.late]\ngroups = ["carrier", "origin", ["carrier", "origin"]]\nseed = 1\n'
FORECASTS, OUTCOMES = "/v1/streams/late/forecasts", "/v1/streams/late/outcomes"
CONNECTIONS = 64
BATCH, BATCH_CONNECTIONS = 100, 8
SINGLE_ASKED, BATCH_ASKED = 0.4, 6.0


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


def _case(k: int) -> bytes:
    return b'{"id":"case-%d","context":{"carrier":"A%d","origin":"O%d","hour":%d},"hint":0.%d}' % (
        k,
        k % 12,
        k % 3,
        k % 24,
        k % 9 + 1,
    )


def _cases(k: int) -> bytes:
    return b'{"cases":[' + b",".join(_case(10**9 + BATCH * k + j) for j in range(BATCH)) + b"]}"


def _outcome(k: int) -> bytes:
    return b'{"id":"case-%d","y":%d}' % (k, k % 3 == 0)


def _outcomes(k: int) -> bytes:
    entries = (b'{"id":"case-%d","y":%d}' % (10**9 + BATCH * k + j, j % 3 == 0) for j in range(BATCH))
    return b'{"outcomes":[' + b",".join(entries) + b"]}"


@contextmanager
def _servers(store: str | None) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
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


async def _measure(store: str | None, turns: int) -> list[LoadRow]:
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
    with _servers(store) as (empty, service):
        first, batch = 0, 0
        for turn in range(turns + 1):
            loads: list[tuple[str, tuple[int, int], str, Body, int, int]] = [
                ("empty endpoint", empty, FORECASTS, _case, CONNECTIONS, first),
                ("forecasts, one a request", service, FORECASTS, _case, CONNECTIONS, first),
                ("outcomes, one a request", service, OUTCOMES, _outcome, CONNECTIONS, first),
                (f"forecasts, {BATCH} a request", service, FORECASTS, _cases, BATCH_CONNECTIONS, batch),
                (f"outcomes, {BATCH} a request", service, OUTCOMES, _outcomes, BATCH_CONNECTIONS, batch),
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


def _table(rows: list[LoadRow], store: str) -> str:
    empty, single, batch = rows[0], rows[1], rows[3]
    lines = [
        f"| {store} | a second, times the empty endpoint | for the server's CPU second, the same | p50 | p99 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row.name} | {row.rate / empty.rate:.2f} | {row.cpu_rate / empty.cpu_rate:.2f} | "
        f"{row.milliseconds(0.5):.1f} ms | {row.milliseconds(0.99):.1f} ms |"
        for row in rows
    ]
    failed = sum(row.failed for row in rows)
    lines += [
        "",
        f"Single forecasts, stored: {single.rate / empty.rate:.2f} of the empty endpoint a second, "
        f"{single.cpu_rate / empty.cpu_rate:.2f} for the CPU (asked: {SINGLE_ASKED}). Batches of {BATCH}: "
        f"{batch.rate / single.rate:.1f} times as many forecasts a second as single ones, "
        f"{batch.cpu_rate / single.cpu_rate:.1f} for the CPU (asked: {BATCH_ASKED:g}). "
        f"{sum(row.requests for row in rows):,} requests, {failed} refused. The empty endpoint answered "
        f"{empty.rate:,.0f} requests a second in this run, on a machine with {os.cpu_count()} cores and a load of "
        f"{os.getloadavg()[0]:.1f}.",
    ]
    return "\n".join(lines)


async def _soak(store: str | None, minutes: float) -> str:
    """Load for so long, outcomes behind forecasts; memory at the first tenth and at the end."""
    samples: list[tuple[float, float]] = []
    requests = failed = 0
    with _servers(store) as (_, (port, pid)):
        started, first = time.monotonic(), 0
        while time.monotonic() - started < 60.0 * minutes:
            made = await drive(port, FORECASTS, _cases, seconds=2.0, connections=2, first=first)
            learned = await drive(
                port, OUTCOMES, _outcomes, seconds=2.0, connections=2, first=first, most=made.requests
            )
            single = await drive(port, FORECASTS, _case, seconds=1.0, connections=8, first=first)
            first += max(made.requests, single.requests)
            requests += made.requests + learned.requests + single.requests
            failed += made.failed + learned.failed + single.failed
            samples.append((time.monotonic() - started, resident_megabytes(pid)))
    marks = [samples[min(len(samples) - 1, len(samples) * part // 10)][1] for part in (0, 1, 3, 5, 7, 10)]
    return (
        f"Soak of {samples[-1][0] / 60.0:.1f} minutes: {requests:,} requests, {failed} refused; resident memory in MB "
        f"at the start and after 10, 30, 50, 70 and 100 % of the time: {', '.join(f'{size:.0f}' for size in marks)}."
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write it where `--docs` says."""
    parser = argparse.ArgumentParser(description="Load on the service, as ratios to an empty endpoint.")
    parser.add_argument("--store", help="postgresql://... instead of a SQLite file of its own")
    parser.add_argument("--turns", type=int, default=10, help="seconds for each row of the table")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="load for so long instead of the table")
    parser.add_argument("--docs", type=Path, help="folder for service-bench.md")
    given = parser.parse_args(arguments)
    kind = "SQLite" if given.store is None else "PostgreSQL"
    if given.soak is not None:
        text = asyncio.run(_soak(given.store, given.soak))
    else:
        text = _table(asyncio.run(_measure(given.store, given.turns)), kind)
    sys.stdout.write(text + "\n")
    if given.docs is not None:
        _write(given.docs / "service-bench.md", kind if given.soak is None else f"{kind}, soak", text)


_HEAD = """# The service under load

Ratios to an empty endpoint of the same stack (Starlette, msgspec, uvicorn) in the same run, both servers on the machine
that makes the load. Written by `python -m swapcal_benchmarks.service.under_load --docs docs`.
"""


def _write(path: Path, section: str, text: str) -> None:
    """Replace one section of the page, and leave the others."""
    old = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    head, *sections = old.split("\n## ")
    kept = [one for one in sections if not one.startswith(f"{section}\n")]
    parts = [head.rstrip("\n") + "\n", *(f"{one.rstrip()}\n" for one in sorted([*kept, f"{section}\n\n{text}"]))]
    path.write_text("\n## ".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
