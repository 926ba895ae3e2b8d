"""A server process for tests: started from a configuration, killed or stopped, and asked over the network."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

__all__ = ["GROUPS", "Running", "Starter", "start", "toml"]

GROUPS = ["carrier", "origin", ["carrier", "origin"]]
START_SECONDS = 600.0
_RUN = (
    "import sys\n"
    "from pathlib import Path\n"
    "from swapcal.service.config import read\n"
    "from swapcal.service.app import run\n"
    "sys.exit(run(read(Path(sys.argv[1])), started=lambda port: print('port', port, flush=True)))\n"
)


@dataclass
class Running:
    """A server and how to reach it."""

    process: subprocess.Popen[str]
    port: int
    config: Path
    log: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, timeout=600.0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, path: str, body: Any, **kwargs: Any) -> httpx.Response:
        return self.http.post(path, json=body, **kwargs)

    def forecast(self, id: str, hint: float | None = 0.3, stream: str = "late", **context: Any) -> httpx.Response:
        body = {"id": id, "context": context or {"carrier": "UA", "origin": "EWR"}}
        return self.post(f"/v1/streams/{stream}/forecasts", body if hint is None else body | {"hint": hint})

    def outcome(self, id: str, y: float | None, stream: str = "late") -> httpx.Response:
        return self.post(f"/v1/streams/{stream}/outcomes", {"id": id, "y": y})

    def status(self, stream: str = "late") -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/v1/streams/{stream}").json()["status"]
        return found

    def kill(self) -> None:
        """As the power would go: no signal handler runs."""
        self.process.kill()
        self._ended()

    def stop(self, seconds: float = 600.0) -> int:
        """In good order; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._ended()
        return code

    def _ended(self) -> None:
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.http.close()


Starter = Callable[..., Running]
"""Starts a server with these settings; the fixture `serve` ends it."""


def start(folder: Path, number: int, settings: Mapping[str, Any]) -> Running:
    """A server; `settings` of the service, and under `config` further tables of the configuration.

    With `port` it takes that one, as one does that comes back after it was killed.
    """
    config = folder / f"config-{number}.toml"
    rest = dict(settings)
    tables = rest.pop("config", {"streams": {"late": {"groups": GROUPS}}})
    service = {"auth": False, "port": 0, "log": "warning"} | rest
    config.write_text(toml({"service": service} | tables), encoding="utf-8")
    log = folder / f"log-{number}.txt"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(config)], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"port (\d+)\n", line)
    if found is None:
        process.kill()
        process.wait()
        process.stdout.close()
        raise RuntimeError(f"the server did not start: {log.read_text()}")
    running = Running(process, int(found[1]), config, log)
    until = time.monotonic() + START_SECONDS
    while running.http.get("/v2/health/ready").status_code != 200:
        if time.monotonic() > until:
            running.kill()
            raise RuntimeError(f"the server does not get ready: {log.read_text()[-2000:]}")
        time.sleep(0.02)
    return running


def toml(tables: Mapping[str, Any]) -> str:
    """Plain data as TOML, as far as the configuration goes; strings, numbers and lists are written as in JSON."""
    lines: list[str] = []

    def write(prefix: str, table: Mapping[str, Any]) -> None:
        flat = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
        if (prefix and flat) or not table:
            lines.append(f"[{prefix}]")
        lines.extend(
            f"{key} = {msgspec.json.encode(value).decode()}" for key, value in flat.items() if value is not None
        )
        for key, value in table.items():
            if isinstance(value, Mapping):
                write(f"{prefix}.{key}" if prefix else key, value)

    write("", tables)
    return "\n".join(lines) + "\n"
