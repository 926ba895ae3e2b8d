"""A stream's state: the same bits however the events come, whole in its snapshot, and readable from today's file on."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swapcal as sc
from swapcal.service.registry import Registry
from swapcal.service.served_stream import Asked, ServedStream
from swapcal.service.spec import MonitorSpec, StreamSpec
from swapcal.service.sqlite import Sqlite

DATA = Path(__file__).parent / "data"
SPECS = {
    "probability": StreamSpec(groups=["carrier", ["carrier", "origin"]], seed=1),
    "quantile": StreamSpec(property="quantile", level=0.9, low=-5, high=5, groups=["carrier"], seed=2, jitter=0.1),
    "learning": StreamSpec(property="mean", hint="learn", features=["hour"], groups=["carrier", "hour >= 12"], seed=3),
    "clipping": StreamSpec(property="expectile", level=0.7, outside="clip", group_limit=4, seed=4, bins=11),
}
pytestmark = pytest.mark.filterwarnings("ignore::swapcal.GroupsWarning", "ignore::swapcal.AtomsWarning")


def _cases(stream: ServedStream, n: int) -> Iterator[Asked]:
    rng = random.Random(8)
    low, high = stream.property.domain
    for _ in range(n):
        context: dict[str, Any] = {
            "carrier": rng.choice("ABCDE"),
            "origin": rng.randrange(3),
            "hour": rng.randrange(24),
        }
        yield stream.asked(context, rng.choice([None, rng.uniform(low, high)]))


def _play(stream: ServedStream, sizes: list[int], *, reload_after: int | None = None) -> tuple[ServedStream, list[Any]]:
    """Forecast in groups of these sizes, learn each group's outcomes in another order; what came out."""
    out, cases = list[Any](), _cases(stream, sum(sizes))
    rng = random.Random(9)
    for number, size in enumerate(sizes):
        group = [next(cases) for _ in range(size)]
        made = stream.predict(group)
        out += [(one.value, one.other, one.probability, one.context) for one in made]
        for k in sorted(range(size), key=lambda k: -k):
            stream.learn(made[k], group[k].hint, round(rng.uniform(stream.spec.low, stream.spec.high)), 0.0)
        if number == reload_after:
            stream = ServedStream.load(stream.name, stream.spec, stream.dump())
    before, after = stream.audits()
    return stream, [*out, before.to_dict(), after.to_dict(), stream.totals]


@pytest.mark.parametrize("name", SPECS)
def test_saved_and_loaded_in_the_middle_it_goes_on_bit_for_bit(name: str) -> None:
    sizes = [1, 30, 2, 15, 100, 1, 1, 40]
    _, straight = _play(ServedStream("s", SPECS[name]), sizes)
    _, loaded = _play(ServedStream("s", SPECS[name]), sizes, reload_after=4)
    assert loaded == straight


@pytest.mark.parametrize("name", SPECS)
def test_forecasts_in_groups_are_those_of_one_by_one(name: str) -> None:
    many, single = ServedStream("s", SPECS[name]), ServedStream("s", SPECS[name])
    cases = list(_cases(many, 200))
    together = many.predict(cases)
    apart = [single.predict([case])[0] for case in cases]
    assert [(a.value, a.context) for a in together] == [(b.value, b.context) for b in apart]
    assert many.groups.names == single.groups.names


def test_positions_of_groups_give_what_a_forecaster_over_groups_gives() -> None:
    spec = SPECS["probability"]
    stream = ServedStream("s", spec)
    plain = sc.Forecaster(sc.Probability(), sc.Groups(["carrier", ("carrier", "origin")], limit=200), seed=1)
    for case in _cases(stream, 300):
        [ours] = stream.predict([case])
        theirs = plain.predict(case.context, case.hint)
        assert (ours.value, ours.context) == (theirs.value, theirs.context)
        stream.learn(ours, case.hint, 1.0, 0.0)
        plain.update(theirs, 1.0)


def test_audits_are_those_of_the_rounds_one_by_one() -> None:
    stream = ServedStream("s", SPECS["probability"])
    expected = sc.Audit(sc.Probability(), stream.groups, bins=33), sc.Audit(sc.Probability(), stream.groups, bins=33)
    for k, case in enumerate(_cases(stream, 300)):
        [made] = stream.predict([case])
        y = float(k % 3 == 0)
        stream.learn(made, case.hint, y, 0.0)
        row = stream.groups.peek(case.context)
        if case.hint is not None:
            expected[0].update(y, case.hint, row)
        expected[1].update(y, made.value, row)
    assert [audit.to_dict() for audit in stream.audits()] == [audit.to_dict() for audit in expected]


class Counting:
    """A monitor that raises an alarm at every tenth outcome."""

    def __init__(self, property: Any, groups: Any, tolerance: float = 0.0, alpha: float = 0.05, n: int = 0) -> None:
        self.n = n

    def update(self, y: float, p: float, x: Any) -> list[str]:
        self.n += 1
        return [f"outcome {self.n}"] if self.n % 10 == 0 else []

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n}

    @classmethod
    def from_dict(cls, state: dict[str, Any], property: Any, groups: Any) -> "Counting":
        return cls(property, groups, n=state["n"])


def test_any_monitor_can_be_plugged_in_and_is_part_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "monitor_of", lambda spec, kind, groups: Counting(kind, groups))
    spec = StreamSpec(monitor=MonitorSpec(), seed=1)
    stream, _ = _play(ServedStream("s", spec), [30, 25], reload_after=0)
    assert [(one["seq"], one["alarm"]) for one in stream.alarms] == [
        (40, "outcome 10"),
        (50, "outcome 20"),
        (60, "outcome 30"),
        (95, "outcome 40"),
        (105, "outcome 50"),
    ]


def test_damaged_and_foreign_snapshots_are_named() -> None:
    import zlib

    import msgspec

    stream = ServedStream("s", SPECS["probability"])
    whole = stream.dump()
    for broken in (whole[:-10], b"", b"x" * 100):
        with pytest.raises(sc.StateFileError, match="damaged"):
            ServedStream.load("s", stream.spec, broken)
    newer = zlib.compress(msgspec.msgpack.encode({"schema_version": 99, "swapcal": "9.9"}))
    with pytest.raises(sc.StateFileError, match="version 99"):
        ServedStream.load("s", stream.spec, newer)


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


def test_a_state_of_version_one_is_read_and_goes_on(tmp_path: Path) -> None:
    """The file was written by the first version of the service; keep it, and keep this test, for good."""
    expected = json.loads((DATA / "state-1.json").read_text())
    path = tmp_path / "swapcal.db"
    path.write_bytes(gzip.decompress((DATA / "state-1.db.gz").read_bytes()))
    store = Sqlite(str(path))
    store.open()
    try:
        registry = Registry(store, 10)
        for name, known in expected.items():
            stream = registry.get(name)
            assert (stream.seq, stream.totals.outcomes) == (known["seq"], known["outcomes"])
            made = stream.predict([stream.asked(case["context"], case["hint"]) for case in known["next"]])
            assert [one.value for one in made] == [case["forecast"] for case in known["next"]]
            case = store.find(name, ["case-3"])["case-3"]
            stream.learn(case.forecast(), case.asked().used(), known["y"], 0.0)
    finally:
        store.close()
