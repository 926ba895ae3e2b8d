"""A stream: the same bits however the events come, those of the package's own parts, watched, late and forgotten."""

import asyncio
import contextlib
import dataclasses
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import swapcal as sc
from swapcal.monitor import Monitor
from swapcal.service.config import Config, Service
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.registry import Registry
from swapcal.service.schemas import Case, Outcome, StreamStatus
from swapcal.service.server import Server
from swapcal.service.spec import MonitorSpec, StreamSpec
from swapcal.service.sqlite import Sqlite
from swapcal.service.store import open_store, pack, unpack
from swapcal.service.stream import Stream, ValidCase, check

SPECS = {
    "probability": StreamSpec(groups=["carrier", ["carrier", "origin"]], seed=1),
    "quantile": StreamSpec(property="quantile", level=0.9, low=-5, high=5, groups=["carrier"], seed=2, jitter=0.1),
    "learning": StreamSpec(property="mean", hint="learn", features=["hour"], groups=["carrier", "hour >= 12"], seed=3),
    "ordered": StreamSpec(groups=["carrier"], seed=5, outcome_order="forecast", settle=20, monitor=False),
    "clipping": StreamSpec(property="expectile", level=0.7, outside="clip", group_limit=4, seed=4, bins=11),
}
pytestmark = pytest.mark.filterwarnings("ignore::swapcal.GroupsWarning", "ignore::swapcal.AtomsWarning")


def _cases(stream: Stream, n: int) -> Iterator[ValidCase]:
    rng = random.Random(8)
    low, high = stream.property.domain
    for _ in range(n):
        context: dict[str, Any] = {
            "carrier": rng.choice("ABCDE"),
            "origin": rng.randrange(3),
            "hour": rng.randrange(24),
        }
        yield stream.validate(context, rng.choice([None, rng.uniform(low, high)]))


@pytest.mark.parametrize("name", SPECS)
def test_forecasts_in_groups_are_those_of_one_by_one(name: str) -> None:
    many, single = Stream("s", SPECS[name]), Stream("s", SPECS[name])
    cases = list(_cases(many, 200))
    together = many.predict(cases)
    apart = [single.predict([case])[0] for case in cases]
    assert [(a.value, a.context) for a in together] == [(b.value, b.context) for b in apart]
    assert many.groups.names == single.groups.names


def test_groups_are_a_text_or_a_list() -> None:
    text, listed = "carrier,carrier*origin,hour >= 12", ["carrier", "carrier*origin", "hour >= 12"]
    one, other = (Stream("s", msgspec.convert({"groups": each, "seed": 1}, StreamSpec)) for each in (text, listed))
    for stream in (one, other):
        stream.predict(list(_cases(stream, 40)))
    assert one.groups.names == other.groups.names
    assert {"carrier=A & origin=2", "hour >= 12"} <= set(one.groups.names)


def test_audits_are_those_of_the_rounds_one_by_one() -> None:
    stream = Stream("s", SPECS["probability"])
    expected = sc.Audit(sc.Probability(), stream.groups, bins=33), sc.Audit(sc.Probability(), stream.groups, bins=33)
    for k, case in enumerate(_cases(stream, 300)):
        weight, y = (1.0, 0.5, 0.25)[k % 3], float(k % 5 < 2)
        [made] = stream.predict([case._replace(weight=weight)])
        stream.learn(made, case.hint, y)
        row = stream.groups.peek(case.context)
        if case.hint is not None:
            expected[0].update(y, case.hint, row, weight=weight)
        expected[1].update(y, made.value, row, weight=weight)
    assert [column.audit.to_bytes() for column in stream.scores.audits()] == [audit.to_bytes() for audit in expected]


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_the_monitor_is_the_packages_own(tolerance: float | None) -> None:
    spec = StreamSpec(property="mean", low=-5, high=5, groups=["carrier"], seed=1, monitor=MonitorSpec(tolerance))
    stream = Stream("s", spec)
    eps = 0.2 if tolerance is None else tolerance
    plain = Monitor(stream.property, stream.groups, tolerance=eps, alpha=0.05, settle=stream.max_pending)
    rng, cases = random.Random(1), _cases(stream, 300)
    for k in range(30):
        stream.begin(float(k))
        group = list(itertools.islice(cases, 10))
        made = stream.predict(group)
        y = [rng.uniform(-5, 5) for _ in made]
        for case, one, outcome in zip(group, made, y, strict=True):
            stream.learn(one, case.hint, outcome)
        stream.end()
        contexts, rounds = [case.context for case in group], [one.round for one in made]
        plain.update_many(y, [one.value for one in made], contexts, rounds=rounds)
    assert stream.monitors["watch"].monitor.to_bytes() == plain.to_bytes()


def test_no_monitor_where_nobody_wants_one() -> None:
    stream = Stream("s", StreamSpec(seed=1, monitor=False))
    assert not stream.monitors
    assert not stream.status().watched
    assert Stream.from_bytes(stream.to_bytes(), name="s", spec=stream.spec).monitors == {}
    with pytest.raises(sc.InvalidInput, match="alpha or every"):
        check(StreamSpec(monitor=MonitorSpec(alpha=0.1, every=100)))


def test_a_held_outcome_that_could_not_be_learned_is_refused_when_it_comes() -> None:
    stream = Stream("s", StreamSpec(seed=1, outcome_order="forecast"))
    early, late = stream.predict([stream.validate({}, 0.3), stream.validate({}, 0.4)])
    stream.learn(late, 0.4, 1.0)
    assert stream.is_held(late)
    with pytest.raises(sc.InvalidInput):
        stream.learn(early, 0.3, 2.0)
    with pytest.raises(sc.UnknownForecast):
        stream.learn(dataclasses.replace(early, value=0.9), 0.3, 1.0)
    assert (stream.status().held, stream.status().outcomes) == (1, 0)
    stream.learn(early, 0.3, 0.0)
    assert (stream.status().held, stream.status().outcomes) == (0, 2)
    with pytest.raises(sc.InvalidInput, match="settle"):
        check(StreamSpec(settle=5))


@pytest.mark.parametrize("protect", ["loss", "nothing"])
def test_where_outcomes_come_late_a_stream_shows_the_model_and_says_so(protect: Any) -> None:
    stream = Stream("s", StreamSpec(property="mean", seed=1, protect=protect))
    made = [*stream.predict([stream.validate({}, 0.4)] * 4)]
    for k in range(8):
        stream.learn(made[k], 0.4, 0.2)
        made += stream.predict([stream.validate({}, 0.4)])
    status = stream.status()
    assert status.late == 8
    assert (status.share, bool(status.lateness)) == (float(protect == "nothing"), protect == "loss")
    assert made[-1].value == 0.4 or protect == "nothing"
    again = Stream.from_bytes(stream.to_bytes(), name="s", spec=stream.spec)
    assert again.status() == status


def test_a_stream_built_anew_takes_the_stored_forecasts_for_its_own() -> None:
    spec = SPECS["probability"]
    [stored] = Stream("s", spec).predict([ValidCase({"carrier": "A", "origin": None}, 0.5, None)])
    again = Stream("s", spec)
    [made] = again.predict([ValidCase({"carrier": "A", "origin": None}, 0.5, None)])
    assert made.outside() == stored.outside()
    assert made.sealed == stored.sealed
    again.learn(stored.outside(), 0.5, 1.0)
    other = Stream("t", spec)
    other.predict([ValidCase({"carrier": "A", "origin": None}, 0.5, None)])
    with pytest.raises(sc.UnknownForecast):
        other.learn(stored.outside(), 0.5, 1.0)


@pytest.mark.parametrize("name", SPECS)
def test_stored_forecasts_come_back_and_changed_ones_do_not(name: str) -> None:
    stream = Stream("s", SPECS[name])
    for made in stream.predict(list(_cases(stream, 20))):
        packed = pack(made, stream.identity)
        back = unpack(packed, stream.identity)
        assert back == made
        assert (back.sealed, back.to_dict()) == (made.sealed, made.to_dict())
        for k in range(0, len(packed), 7):
            changed = packed[:k] + bytes([packed[k] ^ 1]) + packed[k + 1 :]
            with pytest.raises(sc.UnknownForecast):
                unpack(changed, stream.identity)
        with pytest.raises(sc.UnknownForecast):
            unpack(packed, Stream("t", SPECS[name]).identity)


def test_tables_of_another_version_end_the_start(tmp_path: Path) -> None:
    import asyncio
    import sqlite3

    from swapcal.service.config import Config, Service
    from swapcal.service.server import Server

    path = tmp_path / "newer.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()

    async def start() -> None:
        async with Server(Config(Service(store=str(path))), Sqlite(str(path))).running():
            raise AssertionError("it must not start")

    with pytest.raises(sc.InvalidInput, match="version 99"):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("order", "settle", "blank"),
    [
        ("forecast", 3, 0.0),
        ("forecast", 25, 0.0),
        ("forecast", 400, 0.0),
        ("arrival", None, 0.1),
        ("forecast", None, 0.1),
    ],
)
def test_its_numbers_are_those_of_a_recorded_stream(order: Any, settle: int | None, blank: float) -> None:
    """As `Forecaster.run` with weights, delays, order and deadline, where NaN is forgotten; with a snapshot in it."""
    rng, n = np.random.default_rng(3), 400
    y, hints = (rng.random(n) < 0.3).astype(float), rng.random(n).round(2)
    known = np.arange(n) + 1.0 + rng.geometric(0.1 + 0.4 * y)
    y[rng.random(n) < blank] = np.nan
    weights = rng.choice([0.25, 0.7, 1.0], n)
    if settle is not None:
        known[rng.random(n) < 0.05] = np.nan
    spec = StreamSpec(groups=["carrier"], seed=1, pending=1000, outcome_order=order, settle=settle)
    cases: list[dict[str, Any]] = [{"carrier": "AB"[k % 2]} for k in range(n)]
    plain = sc.Forecaster(sc.Probability(), sc.Groups(["carrier"], limit=200), seed=1, max_pending=1000)
    expected = plain.run(cases, y, hints, weights=weights, known=known, order=order, settle=settle, missing="skip")
    stream, made = Stream("s", spec), list[sc.Forecast]()
    for k in range(n):
        for row in np.flatnonzero((known == k) & ~np.isnan(y)).tolist():
            stream.learn(made[row], float(hints[row]), float(y[row]))
        if k == n // 2:
            stream = Stream.from_bytes(stream.to_bytes(), name="s", spec=spec)
        made += stream.predict([stream.validate(cases[k], float(hints[k]), float(weights[k]))])
        if np.isnan(y[k]):
            stream.forget(made[-1])
    assert [one.value for one in made] == expected.tolist()
    status, held = stream.status(), 0 if stream.order is None else len(stream.order)
    assert status.forgotten == np.isnan(y).sum()
    assert held + status.outcomes == int(((known < n) & ~np.isnan(y)).sum())


def _late(*, told: bool) -> StreamStatus:
    rng, late = np.random.default_rng(5), 400
    stream, made = Stream("s", StreamSpec(groups=["a"], seed=1, monitor=False)), list[Any]()
    for k in range(6000):
        a, hint = int(rng.integers(0, 4)), round(float(rng.uniform(0.2, 0.8)), 2)
        [forecast] = stream.predict([stream.validate({"a": a}, hint)])
        y = float(rng.random() < hint + (0.25 if a == 0 else 0.0)) if rng.random() > 0.15 else None
        made.append((forecast, hint, y))
        if k >= late and (told or made[k - late][2] is not None):
            stream.close(*made[k - late])
    return stream.status()


def test_corrections_are_shown_where_somebody_says_what_will_not_come() -> None:
    """A model that is wrong by 0.25 for a quarter of the cases; outcomes come late, and one in seven never."""
    told, silent = (_late(told=told) for told in (True, False))
    assert (told.pending, silent.forgotten) == (400, 0)
    assert told.mean_share > 0.3 > 2.0 * silent.mean_share
    assert None not in (told.loss_before, told.loss_after)
    assert told.loss_after < 0.99 * told.loss_before  # type: ignore[operator]


@pytest.mark.parametrize("order", ["arrival", "forecast"])
@pytest.mark.parametrize("where", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_whoever_plays_the_log_again_gets_the_same_bits(
    where: str, order: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All of a transaction, some of one, or none are forgotten; weights, alarms and what is held come along."""
    address = str(tmp_path / "swapcal.db") if where == "sqlite" else request.getfixturevalue(where)
    with contextlib.closing(open_store(address)) as store:
        store.open()
        registry = Registry(store, 10)
        watch = MonitorSpec(tolerance=0.05, alpha=0.1)
        registry.create("late", StreamSpec(groups=["carrier"], seed=1, outcome_order=order, monitor=watch))
        for k in range(0, 200, 5):
            cases = [Case(f"c{j}", {"carrier": "AB"[j % 2]}, 0.9, (0.5, 1.0)[j % 2]) for j in range(k, k + 5)]
            # Of the cases of ten rounds ago, the first, the fourth, or all of them will have no outcome.
            late = range(k - 50, k - 45) if k >= 50 else range(0)
            told = [Outcome(f"c{j}", None if j % 3 == 0 or k % 4 == 0 else j % 2) for j in late]
            jobs: list[Any] = [ForecastJob("late", cases), *([OutcomeJob("late", told)] if told else [])]
            store.commit(play(jobs, registry, float(k + 1), 10**9).commits)
        stream = registry.get("late")
        registry.forget("late")
        again = registry.get("late")
        assert again is not stream
        assert again.status() == stream.status()
        assert [one.to_bytes() for one in again.monitors.values()] == [
            one.to_bytes() for one in stream.monitors.values()
        ]
        assert again.status().model_alarms > 0
        assert again.status().forgotten == sum(j % 3 == 0 or (j // 5 * 5 + 50) % 4 == 0 for j in range(150))
        assert again.status().outcomes + again.status().forgotten == 150
        following = [stream.validate({"carrier": "A"}, 0.4)] * 20
        assert [one.value for one in again.predict(following)] == [one.value for one in stream.predict(following)]


def test_transactions_are_told_apart_whatever_the_clock_says(tmp_path: Path) -> None:
    """A clock that stands, and requests between them that leave nothing in the log."""
    with contextlib.closing(open_store(str(tmp_path / "swapcal.db"))) as store:
        store.open()
        registry = Registry(store, 10)
        registry.create("late", StreamSpec(seed=1, monitor=MonitorSpec(tolerance=0.05, every=50)))

        def sent(*jobs: Any) -> None:
            commits = play(jobs, registry, 7.0, 10**9).commits
            if commits:
                store.commit(commits)

        sent(ForecastJob("late", [Case(f"c{k}", {}, 0.9) for k in range(300)]))
        for k in range(0, 300, 3):
            sent(OutcomeJob("late", [Outcome(f"c{k + j}", float(j == 1)) for j in range(3)]))
            # Refused, and seen before: neither is an event.
            sent(OutcomeJob("late", [Outcome("nobody", 1.0)]), ForecastJob("late", [Case("c0", {}, 0.9)]))
        stream = registry.get("late")
        alarms = [one.to_bytes() for one in stream.monitors.values()]
        registry.forget("late")
        assert [one.to_bytes() for one in registry.get("late").monitors.values()] == alarms
        assert stream.status().alarms > 0


def test_a_clock_that_jumps_ahead_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapcal.service.writer.PRUNE_EVERY", 0.0)

    async def play() -> None:
        config = Config(Service(store=str(tmp_path / "x.db"), auth=False), streams={"late": StreamSpec()})
        server = Server(config, Sqlite(config.service.store))
        async with server.running():
            await server.writer.submit(ForecastJob("late", [Case("a", {}, 0.5)]))
            years = time.time() + 10 * 365 * 86_400.0
            monkeypatch.setattr("swapcal.service.writer.time.time", lambda: years)
            await server.writer.submit(ForecastJob("late", [Case("b", {}, 0.5)]))
            server.writer.registry.streams["late"].snapshot_seq = 2
            # Twice, as what is old is deleted after a query.
            for _ in range(2):
                found = await server.query(lambda registry: registry.store.find("late", ["a", "b"]))
            assert (sorted(found), server.metrics.pruned) == (["a", "b"], 0)

    asyncio.run(play())
