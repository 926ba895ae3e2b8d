"""Kills, and several workers: one owner for each stream, requests find it, and when it dies another goes on."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from effort import ALL, part
from service_killing import ORDERED, SPEC, Load, answered, check_store, finish, killed
from service_running import Running, Starter, start
from swapcal.service.store import Commit, NotOwner, open_store
from swapcal.service.stream import Stream

CONFIG = {"streams": {"late": SPEC}}
SERIES = [(0, SPEC), (1, ORDERED), *([(2, SPEC), (3, SPEC)] if ALL else [])]
"""Seed and stream: 12 kills for each store, and 200 with SWAPCAL_EFFORT=all."""


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "spec"), SERIES)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_killed_at_random_moments(
    tmp_path: Path, where: str, seed: int, spec: Any, request: pytest.FixtureRequest
) -> None:
    """Under load: nothing that was answered is lost, nothing is learned twice, no bit differs."""
    store = str(tmp_path / "swapcal.db") if where == "sqlite" else request.getfixturevalue(where)
    assert check_store(store, killed(tmp_path, store, part(50, 6), seed=seed, spec=spec), spec) > 100


def test_two_workers_on_one_stream_never_learn_twice(tmp_path: Path, postgres: str) -> None:
    settings = {"store": postgres, "snapshot_every": 150, "config": CONFIG}
    one, two = start(tmp_path, 0, settings), start(tmp_path, 1, settings)
    load = Load([one.url, two.url], threads=4)
    threads = load.run()
    try:
        answered(load, 100)
        one.kill()
        _answers(two)
        answered(load, 30)
        one = start(tmp_path, 2, settings | {"port": one.port})
        answered(load, 30)
        two.kill()
        _answers(one)
        finish(load, threads)
        assert one.stop() == 0
    finally:
        load.over.set()
        one.kill()
        two.kill()
    assert check_store(postgres, load) > 100


def _answers(worker: Running) -> None:
    """Wait until a worker answers for the stream by itself."""
    until = time.monotonic() + 600.0
    while worker.http.get("/v1/streams/late").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


def _told(server: Running, case: str) -> Any:
    """The forecast of a case; a second without an answer of the store, on a busy machine, is a 503 and asked again."""
    until = time.monotonic() + 600.0
    while (answer := server.forecast(case)).status_code != 200:
        assert (answer.status_code, time.monotonic() < until) == (503, True)
    return answer.json()


def test_requests_are_passed_on_to_the_owner(serve: Starter, postgres: str) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    owner = serve(store=postgres, port=port, advertise=f"http://127.0.0.1:{port}", config=CONFIG)
    other = serve(store=postgres, config=CONFIG)
    first = other.forecast("passed-on-1")
    assert first.status_code == 200
    assert owner.forecast("passed-on-1").json() == first.json() | {"replayed": True}
    assert other.outcome("passed-on-1", 1.0).status_code == 200
    assert other.outcome("passed-on-1", 0.0).status_code == 409
    assert "swapcal_forwarded_total 3.0" in other.http.get("/metrics").text
    # A worker that hangs still owns its streams; the other says so, and that the request can be sent again.
    os.kill(owner.process.pid, signal.SIGKILL)
    owner.process.wait()
    _answers(other)
    assert other.forecast("passed-on-1").json() == first.json() | {"replayed": True}


def test_an_owner_that_comes_back_from_the_dead_writes_nothing(postgres: str) -> None:
    import msgspec

    from swapcal.service.spec import StreamSpec

    spec = msgspec.convert(SPEC, StreamSpec)
    old, new = open_store(postgres), open_store(postgres)
    try:
        old.open()
        new.open()
        old.create("late", msgspec.json.encode(spec), Stream("late", spec).to_bytes())
        first = old.acquire("late")
        assert first is not None
        with pytest.raises(NotOwner):
            new.acquire("late")
        # The database has lost sight of the old worker, which does not know it.
        old.release("late")
        second = new.acquire("late")
        assert second is not None
        assert second.epoch == first.epoch + 1
        with pytest.raises(NotOwner):
            old.commit([Commit("late", first.epoch, 1, (), (), None)])
        with pytest.raises(NotOwner):
            old.drop("late", first.epoch)
        new.commit([Commit("late", second.epoch, 1, (), (), None)])
    finally:
        old.close()
        new.close()


def test_a_second_server_on_one_file_serves_no_stream_of_it(serve: Starter) -> None:
    one, two = serve(), serve()
    assert one.forecast("file-1").status_code == 200
    refused = two.forecast("file-1")
    assert refused.status_code == 503
    assert "another worker" in refused.json()["detail"]
    one.kill()
    _answers(two)
    assert two.forecast("file-1").json()["replayed"]


def test_what_postgresql_cannot_write_is_not_taken_for_a_lost_store(postgres: str) -> None:
    import psycopg

    store = open_store(postgres)
    store.open()
    try:
        with pytest.raises(psycopg.DataError):
            store.find("late", ["\0"])
        assert store.find("late", ["a"]) == {}
    finally:
        store.close()


@contextlib.contextmanager
def _stopped(postgres: str) -> Iterator[None]:
    """All connections to a database, stopped as a hung disk would stop them."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as db:
        query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        pids = [pid for (pid,) in db.execute(query)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def _locked(postgres: str) -> Iterator[None]:
    """The stream's row, locked by somebody else."""
    import psycopg

    with psycopg.connect(postgres) as db:
        db.execute("SELECT * FROM swapcal_streams FOR UPDATE")
        yield
        db.rollback()


@pytest.mark.parametrize("hindered", [_stopped, _locked])
def test_a_database_that_stalls_is_told_and_goes_on_with_nothing_lost(
    serve: Starter, postgres: str, hindered: Callable[[str], contextlib.AbstractContextManager[None]]
) -> None:
    server = serve(store=postgres, store_seconds=1, stop_seconds=3, config=CONFIG)
    answers = {f"a{k}": _told(server, f"a{k}") for k in range(5)}
    with hindered(postgres):
        assert server.forecast("b").status_code == 503
        assert server.http.get("/v2/health/ready").status_code == 503
        assert "swapcal_ready 0.0" in server.http.get("/metrics").text
        assert server.forecast("c").status_code == 503
    _answers(server)
    for case, answer in answers.items():
        assert _told(server, case) | {"replayed": True} == answer | {"replayed": True}
    assert [_told(server, case)["id"] for case in "bcd"] == ["b", "c", "d"]
    with hindered(postgres):
        assert server.forecast("e").status_code == 503
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 300.0


def test_what_is_answered_beside_a_damaged_stream_is_stored(serve: Starter, postgres: str) -> None:
    """Its log, read in part, is a transaction; what is committed while that is open would be lost with the process."""
    import psycopg

    config = {"streams": {"late": SPEC, "other": SPEC}}
    server = serve(store=postgres, config=config)
    assert [server.forecast("a", stream=name).status_code for name in ("late", "other")] == [200, 200]
    assert server.outcome("a", 1.0).status_code == 200
    server.kill()
    with psycopg.connect(postgres) as db:
        db.execute(
            "UPDATE swapcal_cases SET request = 'not json' WHERE stream IN (SELECT min(key) FROM swapcal_streams)"
        )
    server = serve(store=postgres, config=config)
    assert server.forecast("b").status_code == 503
    answer = server.forecast("b", stream="other").json()
    server.kill()
    server = serve(store=postgres, config=config)
    assert server.forecast("b", stream="other").json() == answer | {"replayed": True}
