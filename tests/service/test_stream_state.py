"""A stream's state: the same bits however the events come, whole in its snapshot, and readable from today's file on."""

import dataclasses
import gzip
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal import state
from swapcal.monitor import Monitor
from swapcal.service.registry import Registry
from swapcal.service.schemas import Problem
from swapcal.service.spec import MonitorSpec, StreamSpec
from swapcal.service.sqlite import Sqlite
from swapcal.service.store import pack, unpack
from swapcal.service.stream import Stream, ValidCase, check, groups_row

DATA = Path(__file__).parent / "data"
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


def _play(stream: Stream, sizes: list[int], *, reload_after: int | None = None) -> tuple[Stream, list[Any]]:
    """Forecast in groups of these sizes, learn each group's outcomes in another order; what came out."""
    out, cases = list[Any](), _cases(stream, sum(sizes))
    rng = random.Random(9)
    for number, size in enumerate(sizes):
        group = [next(cases) for _ in range(size)]
        made = stream.predict(group)
        out += [(one.value, one.other, one.probability, one.context) for one in made]
        for k in sorted(range(size), key=lambda k: -k):
            stream.learn(made[k], group[k].hint, round(rng.uniform(stream.spec.low, stream.spec.high)))
        if number == reload_after:
            stream = Stream.from_bytes(stream.to_bytes(), name=stream.name, spec=stream.spec)
    before, after = stream.scores.audits()
    return stream, [*out, before.audit.to_bytes(), after.audit.to_bytes(), stream.scores.totals, _watched(stream)]


@pytest.mark.parametrize("name", SPECS)
def test_saved_and_loaded_in_the_middle_it_goes_on_bit_for_bit(name: str) -> None:
    sizes = [1, 30, 2, 15, 100, 1, 1, 40]
    _, straight = _play(Stream("s", SPECS[name]), sizes)
    _, loaded = _play(Stream("s", SPECS[name]), sizes, reload_after=4)
    assert loaded == straight


@pytest.mark.parametrize("name", SPECS)
def test_forecasts_in_groups_are_those_of_one_by_one(name: str) -> None:
    many, single = Stream("s", SPECS[name]), Stream("s", SPECS[name])
    cases = list(_cases(many, 200))
    together = many.predict(cases)
    apart = [single.predict([case])[0] for case in cases]
    assert [(a.value, a.context) for a in together] == [(b.value, b.context) for b in apart]
    assert many.groups.names == single.groups.names


def test_positions_of_groups_give_what_a_forecaster_over_groups_gives() -> None:
    spec = SPECS["probability"]
    stream = Stream("s", spec)
    plain = sc.Forecaster(sc.Probability(), sc.Groups(["carrier", ("carrier", "origin")], limit=200), seed=1)
    for case in _cases(stream, 300):
        [ours] = stream.predict([case])
        theirs = plain.predict(case.context, case.hint)
        assert (ours.value, ours.context) == (theirs.value, theirs.context)
        stream.learn(ours, case.hint, 1.0)
        plain.update(theirs, 1.0)


def test_audits_are_those_of_the_rounds_one_by_one() -> None:
    stream = Stream("s", SPECS["probability"])
    expected = sc.Audit(sc.Probability(), stream.groups, bins=33), sc.Audit(sc.Probability(), stream.groups, bins=33)
    for k, case in enumerate(_cases(stream, 300)):
        [made] = stream.predict([case])
        y = float(k % 3 == 0)
        stream.learn(made, case.hint, y)
        row = stream.groups.peek(case.context)
        if case.hint is not None:
            expected[0].update(y, case.hint, row)
        expected[1].update(y, made.value, row)
    assert [column.audit.to_bytes() for column in stream.scores.audits()] == [audit.to_bytes() for audit in expected]


def _watched(stream: Stream) -> Any:
    return [monitor.to_bytes() for monitor in stream.monitors.values()]


def test_every_group_is_watched_and_alarms_name_the_one_that_is_off() -> None:
    """The watch is told that 0.5 was forecast to all: one group's outcomes are 0, the other's are 0.5 on average."""
    spec = StreamSpec(groups=["carrier"], seed=1, bins=11, monitor=MonitorSpec(tolerance=0.1, alpha=0.01))
    stream = Stream("s", spec)
    for k in range(200):
        stream.begin(float(k + 1))
        made = stream.predict([stream.validate({"carrier": carrier}, None) for carrier in "AB"])
        for one, y in zip(made, (0.0, float(k % 2)), strict=True):
            stream.monitors["watch"].add(y, 0.5, groups_row(one, stream.groups.n))
        stream.end()
    first = stream.monitors["watch"].alarms[0]
    assert (first.group, first.side) == ("carrier=A", "too high")
    assert "carrier=A: forecasts are too high by more than 0.1" in first.alarm
    assert {one.group for one in stream.monitors["watch"].alarms} <= {"carrier=A", "all"}
    assert stream.status().alarms == stream.monitors["watch"].raised == len(stream.monitors["watch"].alarms)
    assert first.at == first.group_outcomes, "in the transaction of the outcome that made it sure"


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_the_monitor_is_the_packages_own(tolerance: float | None) -> None:
    spec = StreamSpec(property="mean", low=-5, high=5, groups=["carrier"], seed=1, monitor=MonitorSpec(tolerance))
    stream = Stream("s", spec)
    plain = Monitor(stream.property, stream.groups, tolerance=0.2 if tolerance is None else tolerance, alpha=0.05)
    rng, cases = random.Random(1), _cases(stream, 300)
    for k in range(30):
        stream.begin(float(k))
        group = list(itertools.islice(cases, 10))
        made = stream.predict(group)
        y = [rng.uniform(-5, 5) for _ in made]
        for case, one, outcome in zip(group, made, y, strict=True):
            stream.learn(one, case.hint, outcome)
        stream.end()
        plain.update_many(y, [one.value for one in made], [case.context for case in group])
    assert stream.monitors["watch"].monitor.to_bytes() == plain.to_bytes()


def test_no_monitor_where_nobody_wants_one() -> None:
    stream = Stream("s", StreamSpec(seed=1, monitor=False))
    assert not stream.monitors
    assert not stream.status().watched
    assert Stream.from_bytes(stream.to_bytes(), name="s", spec=stream.spec).monitors == {}
    with pytest.raises(sc.InvalidInput, match="alpha or every"):
        check(StreamSpec(monitor=MonitorSpec(alpha=0.1, every=100)))


@pytest.mark.parametrize("settle", [3, 25, 400])
def test_outcomes_in_the_order_of_forecasts_are_those_of_a_recorded_stream(settle: int) -> None:
    """The same numbers as `Forecaster.run` with the same delays, order and deadline."""
    rng, n = np.random.default_rng(settle), 400
    y, hints = (rng.random(n) < 0.3).astype(float), rng.random(n).round(2)
    known = np.arange(n) + 1.0 + rng.geometric(0.1 + 0.4 * y)
    known[rng.random(n) < 0.05] = np.nan
    spec = StreamSpec(groups=["carrier"], seed=1, pending=1000, outcome_order="forecast", settle=settle)
    stream = Stream("s", spec)
    cases: list[dict[str, Any]] = [{"carrier": "AB"[k % 2]} for k in range(n)]
    plain = sc.Forecaster(sc.Probability(), sc.Groups(["carrier"], limit=200), seed=1, max_pending=1000)
    expected = plain.run(cases, y, hints, known=known, order="forecast", settle=settle)
    made: list[sc.Forecast] = []
    for k in range(n):
        for row in np.flatnonzero(known == k).tolist():
            stream.learn(made[row], float(hints[row]), float(y[row]))
        if k == n // 2:
            stream = Stream.from_bytes(stream.to_bytes(), name="s", spec=spec)
        made += stream.predict([stream.validate(cases[k], float(hints[k]))])
    assert [one.value for one in made] == expected.tolist()
    assert stream.order is not None
    assert len(stream.order) + stream.status().outcomes == int((known < n).sum())


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


@pytest.mark.parametrize("stand_back", [True, False])
def test_where_outcomes_come_late_a_stream_stands_back_and_says_so(stand_back: bool) -> None:
    stream = Stream("s", StreamSpec(property="mean", seed=1, stand_back=stand_back))
    made = [*stream.predict([stream.validate({}, 0.4)] * 4)]
    for k in range(8):
        stream.learn(made[k], 0.4, 0.2)
        made += stream.predict([stream.validate({}, 0.4)])
    status = stream.status()
    assert status.late == 8
    assert status.standing_back == stand_back == bool(status.lateness)
    assert made[-1].value == 0.4 or not stand_back
    again = Stream.from_bytes(stream.to_bytes(), name="s", spec=stream.spec)
    assert again.status() == status


def test_a_stream_built_anew_takes_the_stored_forecasts_for_its_own() -> None:
    spec = SPECS["probability"]
    [stored] = Stream("s", spec).predict([ValidCase({"carrier": "A"}, 0.5, None)])
    again = Stream("s", spec)
    [made] = again.predict([ValidCase({"carrier": "A"}, 0.5, None)])
    assert made.outside() == stored.outside()
    assert made.sealed == stored.sealed
    again.learn(stored.outside(), 0.5, 1.0)
    other = Stream("t", spec)
    other.predict([ValidCase({"carrier": "A"}, 0.5, None)])
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


def test_damaged_and_foreign_snapshots_are_named() -> None:
    stream = Stream("s", SPECS["probability"])
    whole = stream.to_bytes()
    for broken in (whole[:-10], b"", b"x" * 100, stream.forecaster.to_bytes()):
        with pytest.raises(sc.StateFileError, match="the snapshot of stream 's' cannot be read"):
            Stream.from_bytes(broken, name="s", spec=stream.spec)
    saved = stream.to_state()
    for name in ("scores", "forecaster", "watch"):
        parts = {**saved.parts, name: saved.parts["model_watch"] if name != "watch" else b"nothing"}
        with pytest.raises(sc.StateFileError, match="cannot be read"):
            Stream.from_bytes(state.pack("stream", saved._replace(parts=parts)), name="s", spec=stream.spec)


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


def test_a_state_of_the_first_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "swapcal.db"
    path.write_bytes(gzip.decompress((DATA / "state-1.db.gz").read_bytes()))
    store = Sqlite(str(path))
    store.open()
    try:
        with pytest.raises(Problem, match=r"cannot be loaded: the snapshot of stream .* cannot be read"):
            Registry(store, 10).get(next(iter(json.loads((DATA / "state-1.json").read_text()))))
    finally:
        store.close()
