"""A store that fails: nothing that was not answered has happened, and later forecasts are as if nothing had."""

import asyncio
import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from service_running import Running, Starter
from swapcal.service.config import Config, Limits, Service
from swapcal.service.idempotency import ForecastJob, OutcomeJob
from swapcal.service.schemas import Case, Forgotten, Outcome, Problem, StoreDown
from swapcal.service.server import Server
from swapcal.service.spec import StreamSpec
from swapcal.service.sqlite import Sqlite
from swapcal.service.store import Commit
from swapcal.service.stream import Stream, ValidCase

SPEC = StreamSpec(groups=["carrier"], seed=5)


@contextlib.asynccontextmanager
async def serving(store: Sqlite, limits: Limits | None = None, **settings: Any) -> AsyncIterator[Server]:
    """A server on a store, in this process, with two streams."""
    config = Config(
        Service(store=str(store.path), auth=False, **settings), limits or Limits(), {"late": SPEC, "other": SPEC}
    )
    server = Server(config, store)
    async with server.running():
        yield server


def case(id: str, carrier: str = "A", hint: float = 0.5, stream: str = "late") -> ForecastJob:
    return ForecastJob(stream, [Case(id, {"carrier": carrier}, hint)])


async def answers(server: Server, *jobs: Any) -> list[Any]:
    """What comes of jobs that are sent together: answers, or what was raised."""
    together = asyncio.gather(*(server.writer.submit(job) for job in jobs), return_exceptions=True)
    return [one if isinstance(one, BaseException) else one[0] for one in await asyncio.wait_for(together, 600.0)]


async def until_ready(server: Server) -> None:
    until = time.monotonic() + 600.0
    while not server.writer.ready:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


class Failing(Sqlite):
    """A disk that is full every now and then: before the transaction, or after it."""

    def __init__(self, path: str, when: set[int]) -> None:
        super().__init__(path)
        self.when, self.commits = when, 0

    def commit(self, commits: Sequence[Commit]) -> None:
        self.commits += 1
        if self.commits in self.when:
            if self.commits % 2:
                # Written, but nobody learns of it: as when the connection breaks while the answer is on its way.
                super().commit(commits)
            raise StoreDown("no space left on the device")
        super().commit(commits)


def _played(path: Path, when: set[int], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr("swapcal.service.writer.REOPEN_EVERY", 0.0)

    async def play() -> list[Any]:
        told: list[Any] = []
        refusals: set[Any] = set()

        async def sent(job: ForecastJob | OutcomeJob) -> Any:
            for _ in range(20):
                try:
                    return (await server.writer.submit(job))[0]
                except Problem as problem:
                    refusals.add((problem.status, problem.store_down, problem.retry_after))
            raise AssertionError("the store does not come back")

        async with serving(Failing(str(path), when), snapshot_every=7) as server:
            for k in range(60):
                made = await sent(case(f"c{k}", "ABC"[k % 3], 0.1 * (k % 9)))
                told.append((made.id, made.forecast, made.round))
                if k >= 5:
                    y = None if k % 7 == 0 else float(k % 2)
                    learned = await sent(OutcomeJob("late", [Outcome(f"c{k - 5}", y)]))
                    told.append((learned.id, None if isinstance(learned, Forgotten) else learned.y))
            status = await server.query(lambda registry: registry.get("late").status())
        assert refusals == ({(503, True, 1)} if when else set())
        return [*told, status]

    return asyncio.run(play())


def test_a_failing_store_changes_no_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = _played(tmp_path / "good.db", set(), monkeypatch)
    disturbed = _played(tmp_path / "bad.db", {3, 4, 5, 20, 21, 40, 57, 58, 90}, monkeypatch)
    assert disturbed == undisturbed


def test_without_a_store_hints_can_be_passed_through(tmp_path: Path) -> None:
    from swapcal.service.handlers import forecast_all

    async def play(when_down: Any) -> Any:
        service = Service(store=str(tmp_path / "no" / "folder" / "x.db"), auth=False, when_down=when_down)
        server = Server(Config(service), Sqlite(service.store))
        async with server.running():
            assert not server.writer.ready
            return await forecast_all(server, "late", [Case("a", {}, 0.25)])

    [answer] = asyncio.run(play("hint"))
    assert (answer.forecast, answer.calibrated, answer.round) == (0.25, False, -1)
    with pytest.raises(Problem, match="send the same request again"):
        asyncio.run(play("refuse"))


def test_a_full_queue_refuses_and_loses_nothing(tmp_path: Path) -> None:
    async def play() -> tuple[int, int]:
        async with serving(Sqlite(str(tmp_path / "x.db")), Limits(queue=59)) as server:
            jobs = [ForecastJob("late", [Case(f"c{k}-{j}", {"carrier": "A"}) for j in range(10)]) for k in range(20)]
            results = await asyncio.gather(*(server.writer.submit(job, 10) for job in jobs), return_exceptions=True)
            refused = [result for result in results if isinstance(result, Problem)]
            assert {(problem.status, problem.retry_after) for problem in refused} == {(503, 1)}
            status = await server.query(lambda registry: registry.get("late").status())
        return len(refused), status.forecasts

    assert asyncio.run(play()) == (15, 50)


def test_whoever_is_to_blame_falls_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Stream.predict

    def broken(stream: Stream, cases: Sequence[ValidCase]) -> Any:
        made = predict(stream, cases)
        if any(each.context.get("carrier") == "poison" for each in cases):
            raise ZeroDivisionError
        return made

    monkeypatch.setattr(Stream, "predict", broken)

    async def play(carriers: Sequence[str]) -> list[Any]:
        async with serving(Sqlite(str(tmp_path / f"{'-'.join(carriers)}.db"))) as server:
            return await answers(server, *(case(f"c{k}", one, 0.2) for k, one in enumerate(carriers)))

    one, failed, two = asyncio.run(play(["A", "poison", "B"]))
    first, second = asyncio.run(play(["A", "B"]))
    assert isinstance(failed, Problem)
    assert (failed.status, one) == (500, first)
    assert (two.forecast, two.round) == (second.forecast, 1)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE cases SET request = 'not json'", "event 8 of the log is damaged"),
        ("UPDATE cases SET request = 7", "event 8 of the log is damaged"),
        ("UPDATE cases SET forecast = x'00'", "is not as it was made"),
        ("UPDATE cases SET created = 'abc'", "abc"),
        ("DELETE FROM cases", "event 8 is missing"),
        (
            "UPDATE snapshots SET snapshot = x'504b0304' WHERE stream = 1 --",
            "the snapshot of stream 'late' cannot be read",
        ),
    ],
)
def test_a_damaged_row_closes_its_stream_and_no_other(tmp_path: Path, damage: str, reason: str) -> None:
    path, copy = tmp_path / "x.db", tmp_path / "copy.db"

    async def play() -> None:
        async with serving(Sqlite(str(path))) as server:
            for k in range(10):
                await answers(server, case(f"c{k}"), case(f"c{k}", stream="other"))
            # As it is now: a server that stops in good order leaves a snapshot, and its log is not read again.
            with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copy)) as db:
                source.backup(db)
                db.execute(f"{damage} WHERE id = 'c7' AND stream = (SELECT key FROM streams WHERE name = 'late')")
                db.commit()
        async with serving(Sqlite(str(copy)), stop_seconds=5) as server:
            jobs = case("c1"), case("c1", stream="other"), case("new", stream="other")
            refused, again, new = await answers(server, *jobs)
        assert (refused.status, "stream 'late' cannot be loaded" in str(refused)) == (503, True)
        assert reason in str(refused)
        assert (again.replayed, new.replayed) == (True, False)

    asyncio.run(play())


def test_whatever_happens_in_the_writer_every_request_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swapcal.service.writer.REOPEN_EVERY", 0.0)

    async def play() -> None:
        async with serving(Sqlite(str(tmp_path / "x.db"))) as server:
            [first] = await answers(server, case("a"))
            whole = server.writer._round
            for broken in ("_round", "_prune"):
                with monkeypatch.context() as patch:
                    patch.setattr(server.writer, broken, lambda *_: 1 / 0)
                    results = await answers(server, *(case("b") for _ in range(3)))
                assert len(results) == 3
                assert broken == "_prune" or {one.status for one in results} == {500}
            assert server.writer._round == whole
            await until_ready(server)
            assert server.writer.queued == 0
            [again] = await answers(server, case("a"))
            assert (again.forecast, again.replayed) == (first.forecast, True)

    asyncio.run(play())


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("query_only = ON", "attempt to write a readonly database"), ("max_page_count = 1", "database or disk is full")],
)
def test_a_disk_that_is_full_or_only_read_is_told_and_loses_nothing(
    tmp_path: Path, setting: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As SQLite itself says it; a page of 200 kB does not fit into what is left of the last one."""

    async def play() -> None:
        async with serving(Sqlite(str(tmp_path / "x.db"))) as server:
            [first] = await answers(server, case("a"))
            await server.query(lambda registry: registry.store._db.execute(f"PRAGMA {setting}").fetchall())
            many = ForecastJob("late", [Case(f"m{k}", {"carrier": "A" * 400}, 0.5) for k in range(500)])
            [refused] = await answers(server, many)
            assert (refused.status, refused.store_down) == (503, True)
            assert any(reason in getattr(one, "reason", "") for one in caplog.records)
            await until_ready(server)
            [again], made = await answers(server, case("a")), await server.writer.submit(many)
            assert (again.forecast, again.replayed) == (first.forecast, True)
            assert [one.round for one in made] == list(range(1, 501))

    asyncio.run(play())


def test_what_goes_on_in_the_background_survives_its_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens that are revoked are refused, whatever went wrong once; the watch over the store is such a loop too."""
    monkeypatch.setattr("swapcal.service.server.TOKENS_EVERY", 0.01)

    async def play() -> None:
        async with serving(Sqlite(str(tmp_path / "x.db"))) as server:
            calls, read = list[Any](), server.access.refresh

            def failing(rows: Any) -> None:
                calls.append(rows)
                if len(calls) < 3:
                    raise ZeroDivisionError
                read(rows)

            monkeypatch.setattr(server.access, "refresh", failing)
            until = time.monotonic() + 60.0
            while len(calls) < 5:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)

    asyncio.run(play())


def test_a_lock_that_cannot_be_opened_is_the_stores_failure(tmp_path: Path) -> None:
    store = Sqlite(str(tmp_path / "x.db"))
    (tmp_path / "x.db.lock").mkdir()
    store.open()
    with pytest.raises(StoreDown):
        store.acquire("late")
    store.close()


@pytest.mark.parametrize("how", ["deleted", "replaced", "without its log"])
def test_a_file_that_is_gone_is_noticed_before_an_answer(serve: Starter, tmp_path: Path, how: str) -> None:
    server = serve()
    first = server.forecast("a").json()
    away = tmp_path / "away"
    away.mkdir()
    for path in tmp_path.glob("swapcal.db-wal" if how == "without its log" else "swapcal.db*"):
        path.rename(away / path.name)
    if how == "replaced":
        shutil.copy(away / "swapcal.db", tmp_path / "swapcal.db")
    answer = server.forecast("b")
    assert answer.status_code == 503, answer.text
    assert "deleted or replaced" in server.log.read_text()
    if how == "without its log":
        # What was in the log that lost its name is in the file once it is closed.
        _ready(server)
    else:
        assert server.http.get("/v2/health/ready").status_code == 503
        assert server.forecast("b").status_code == 503
        for path in away.iterdir():
            path.replace(tmp_path / path.name)
        _ready(server)
    assert server.forecast("a").json() == first | {"replayed": True}
    assert server.forecast("c").status_code == 200
    assert server.stop() == 0


def _ready(server: Running) -> None:
    until = time.monotonic() + 600.0
    while server.http.get("/v2/health/ready").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


class Stalling(Sqlite):
    """A disk that does not answer until it is told to."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(path, seconds=seconds)
        self.goes_on = threading.Event()
        self.goes_on.set()

    def commit(self, commits: Sequence[Commit]) -> None:
        with self._guard():
            self.goes_on.wait()
        super().commit(commits)


def test_a_store_that_stalls_is_told_and_goes_on_with_nothing_lost(tmp_path: Path) -> None:
    async def play() -> None:
        store = Stalling(str(tmp_path / "x.db"), seconds=2.0)
        async with serving(store, stop_seconds=1) as server:
            [first] = await answers(server, case("a"))
            store.goes_on.clear()
            results = await answers(server, *(case(f"s{k}") for k in range(3)))
            assert all(isinstance(one, Problem) and one.status == 503 and one.store_down for one in results)
            assert (server.writer.ready, server.writer.queued) == (False, 0)
            with pytest.raises(Problem, match="send the same request again"):
                await asyncio.wait_for(server.query(lambda registry: registry.store.names()), 600.0)
            store.goes_on.set()
            await until_ready(server)
            [again], [second] = await answers(server, case("a")), await answers(server, case("s0"))
            assert (again.forecast, again.replayed, second.round) == (first.forecast, True, 1)
            store.goes_on.clear()
        # A stop does not wait for a store that does not answer: it has not answered yet.
        assert not store.goes_on.is_set()
        store.goes_on.set()
        server.writer._thread.join()

    asyncio.run(play())
