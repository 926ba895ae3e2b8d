"""What the tests of the service share: a real server process, and a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service's packages are not installed: pip install '.[serve]'")

from postgres_running import MISSING, database, postgres_programs, postgres_running
from service_running import GROUPS, Running, Starter, start


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
    if postgres_programs() is None:
        pytest.skip(MISSING)
    with postgres_running() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """A fresh database."""
    return database(postgres_server)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a database of its own runs in the slow lane."""
    for item in items:
        if isinstance(item, pytest.Function) and "postgres" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
