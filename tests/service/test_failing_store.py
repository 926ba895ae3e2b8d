"""A store that fails: nothing that was not answered has happened, and later forecasts are as if nothing had."""

import asyncio
import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Sequence
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

SPEC = StreamSpec(groups=["carrier"], seed=5)


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
        config = Config(Service(store=str(path), auth=False, snapshot_every=7), streams={"late": SPEC})
        server = Server(config, Failing(str(path), when))
        answers: list[Any] = []
        refusals: set[Any] = set()

        async def sent(job: ForecastJob | OutcomeJob) -> Any:
            for _ in range(20):
                try:
                    return await server.writer.submit(job)
                except Problem as problem:
                    refusals.add((problem.status, problem.store_down, problem.retry_after))
            raise AssertionError("the store does not come back")

        async with server.running():
            for k in range(60):
                case = Case(f"c{k}", {"carrier": "ABC"[k % 3]}, 0.1 * (k % 9))
                [made] = await sent(ForecastJob("late", [case]))
                answers.append((made.id, made.forecast, made.round))
                if k >= 5:
                    [told] = await sent(
                        OutcomeJob("late", [Outcome(f"c{k - 5}", None if k % 7 == 0 else float(k % 2))])
                    )
                    answers.append((told.id, None if isinstance(told, Forgotten) else told.y))
            status = await server.query(lambda registry: registry.get("late").status())
        assert refusals == ({(503, True, 1)} if when else set())
        return [*answers, status]

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
        config = Config(Service(store=str(tmp_path / "x.db"), auth=False), Limits(queue=59), {"late": SPEC})
        server = Server(config, Sqlite(config.service.store))
        async with server.running():
            jobs = [ForecastJob("late", [Case(f"c{k}-{j}") for j in range(10)]) for k in range(20)]
            results = await asyncio.gather(*(server.writer.submit(job, 10) for job in jobs), return_exceptions=True)
            refused = [result for result in results if isinstance(result, Problem)]
            assert {(problem.status, problem.retry_after) for problem in refused} == {(503, 1)}
            status = await server.query(lambda registry: registry.get("late").status())
        return len(refused), status.forecasts

    refused, forecasts = asyncio.run(play())
    assert refused == 15
    assert forecasts == 50


def test_whoever_is_to_blame_falls_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swapcal.service.stream import Stream, ValidCase

    predict = Stream.predict

    def broken(stream: Stream, cases: Sequence[ValidCase]) -> Any:
        made = predict(stream, cases)
        if any(case.context.get("carrier") == "poison" for case in cases):
            raise ZeroDivisionError
        return made

    monkeypatch.setattr(Stream, "predict", broken)

    async def play(carriers: Sequence[str]) -> list[Any]:
        path = tmp_path / f"{'-'.join(carriers)}.db"
        config = Config(Service(store=str(path), auth=False), streams={"late": SPEC})
        server = Server(config, Sqlite(str(path)))
        async with server.running():
            jobs = [ForecastJob("late", [Case(f"c{k}", {"carrier": one}, 0.2)]) for k, one in enumerate(carriers)]
            return list(await asyncio.gather(*(server.writer.submit(job) for job in jobs), return_exceptions=True))

    results = asyncio.run(play(["A", "poison", "B"]))
    assert isinstance(results[1], Problem)
    assert results[1].status == 500
    [[first], [second]] = asyncio.run(play(["A", "B"]))
    assert results[0] == [first]
    assert results[2][0].forecast == second.forecast
    assert results[2][0].round == 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE cases SET request = 'not json'", "event 8 of the log is damaged"),
        ("UPDATE cases SET request = 7", "event 8 of the log is damaged"),
        ("UPDATE cases SET forecast = x'00'", "is not as it was made"),
        ("UPDATE cases SET created = 'abc'", "abc"),
        ("DELETE FROM cases", "event 8 is missing"),
    ],
)
def test_a_damaged_row_closes_its_stream_and_no_other(serve: Starter, tmp_path: Path, damage: str, reason: str) -> None:
    config: dict[str, Any] = {"streams": {"late": {}, "other": {}}}
    server = serve(config=config)
    for k in range(10):
        server.forecast(f"c{k}")
        server.forecast(f"c{k}", stream="other")
    server.kill()
    with contextlib.closing(sqlite3.connect(tmp_path / "swapcal.db")) as db, db:
        db.execute(f"{damage} WHERE id = 'c7' AND stream = (SELECT key FROM streams WHERE name = 'late')")
    server = serve(config=config, stop_seconds=5)
    refused = server.forecast("c1")
    assert refused.status_code == 503
    assert "stream 'late' cannot be loaded" in refused.json()["detail"]
    assert reason in refused.json()["detail"]
    assert server.forecast("c1", stream="other").json()["replayed"]
    assert server.forecast("new", stream="other").status_code == 200
    assert server.stop() == 0


def test_whatever_happens_in_the_writer_every_request_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swapcal.service.writer.REOPEN_EVERY", 0.0)
    config = Config(Service(store=str(tmp_path / "x.db"), auth=False), streams={"late": SPEC})

    async def play() -> None:
        server = Server(config, Sqlite(config.service.store))
        async with server.running():
            [first] = await server.writer.submit(ForecastJob("late", [Case("a", {}, 0.5)]))
            whole = server.writer._round
            for broken in ("_round", "_prune"):
                with monkeypatch.context() as patch:
                    patch.setattr(server.writer, broken, lambda *_: 1 / 0)
                    jobs = [server.writer.submit(ForecastJob("late", [Case("b", {}, 0.5)])) for _ in range(3)]
                    results = await asyncio.wait_for(asyncio.gather(*jobs, return_exceptions=True), 600.0)
                assert len(results) == 3
                assert broken == "_prune" or {one.status for one in results} == {500}
            assert server.writer._round == whole
            until = time.monotonic() + 600.0
            while not server.writer.ready:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
            assert server.writer.queued == 0
            [again] = await server.writer.submit(ForecastJob("late", [Case("a", {}, 0.5)]))
            assert (again.forecast, again.replayed) == (first.forecast, True)

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
        config = Config(Service(store=str(tmp_path / "x.db"), auth=False, stop_seconds=1), streams={"late": SPEC})
        store = Stalling(config.service.store, seconds=0.3)
        server = Server(config, store)
        async with server.running():
            [first] = await server.writer.submit(ForecastJob("late", [Case("a", {}, 0.5)]))
            store.goes_on.clear()
            jobs = [server.writer.submit(ForecastJob("late", [Case(f"s{k}", {}, 0.5)])) for k in range(3)]
            results = await asyncio.wait_for(asyncio.gather(*jobs, return_exceptions=True), 600.0)
            assert all(isinstance(one, Problem) and one.status == 503 and one.store_down for one in results)
            assert (server.writer.ready, server.writer.queued) == (False, 0)
            with pytest.raises(Problem, match="send the same request again"):
                await asyncio.wait_for(server.query(lambda registry: registry.store.names()), 600.0)
            store.goes_on.set()
            while not server.writer.ready:
                await asyncio.sleep(0.01)
            [again] = await server.writer.submit(ForecastJob("late", [Case("a", {}, 0.5)]))
            assert (again.forecast, again.replayed) == (first.forecast, True)
            [second] = await server.writer.submit(ForecastJob("late", [Case("s0", {}, 0.5)]))
            assert second.round == 1
            store.goes_on.clear()
            started = time.monotonic()
        # A stop does not wait for a store that does not answer.
        assert time.monotonic() - started < 120.0
        store.goes_on.set()
        server.writer._thread.join()

    asyncio.run(play())
