"""What the tests of the service share: a real server process, and a real PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service's packages are not installed: pip install '.[serve]'")

from service_running import GROUPS, Running, Starter, start

POSTGRES_HINT = "PostgreSQL is not installed: apt-get install postgresql"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Starter]:
    """Start servers; all of them are ended with the test."""
    started: list[Running] = []

    def starter(**settings: object) -> Running:
        settings.setdefault("store", str(tmp_path / "swapcal.db"))
        started.append(start(tmp_path, len(started), settings))
        return started[-1]

    yield starter
    for one in started:
        one.kill()


STREAMS = {
    "late": {"groups": GROUPS},
    "small": {"pending": 5},
    "short": {"delay": "1s"},
    "ordered": {"outcome_order": "forecast"},
    "minutes": {
        "property": "quantile", "level": 0.9, "low": -60, "high": 300, "outside": "clip", "groups": ["carrier"],
    },
    "learning": {"hint": "learn", "features": ["hour"], "groups": ["carrier"]},
}  # fmt: skip


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests that only talk to it."""
    folder: Path = tmp_path_factory.mktemp("server")
    config = {"streams": STREAMS, "limits": {"body": 65_536, "batch": 200, "streams": 20, "rate": 1e6}}
    running = start(folder, 0, {"store": str(folder / "swapcal.db"), "config": config})
    yield running
    running.kill()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of our own on the loopback; the address of its first database."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(p).parent for p in [shutil.which("initdb")] if p]
    if not found:
        pytest.skip(POSTGRES_HINT)
    programs = found[-1]
    # The server refuses to run as root, and its user may not enter pytest's folders.
    user = [] if os.geteuid() else ["runuser", "-u", "postgres", "--"]
    folder = Path(tempfile.mkdtemp(prefix="swapcal-postgres-"))
    if user:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command: str) -> None:
        subprocess.run([*user, *command], check=True, capture_output=True, cwd="/")

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    try:
        run(str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=on"
        run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """A fresh database."""
    import psycopg

    name = f"t{time.time_ns()}"
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return postgres_server.rsplit("/", 1)[0] + f"/{name}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a database of its own runs in the slow lane."""
    for item in items:
        if isinstance(item, pytest.Function) and "postgres" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
