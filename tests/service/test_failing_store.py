"""A store that fails: nothing that was not answered has happened, and later forecasts are as if nothing had."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

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
