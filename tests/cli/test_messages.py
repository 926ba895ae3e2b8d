"""Odd tables, signals and options at the command: one sentence each, and nothing of a file steers the terminal."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import ASKED, lines_of, process, refused, run, swapcal, table
from swapcal.errors import DataError, MissingExtra
from swapcal.learners import GradientDescent
from swapcal.tables import sources
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig, parse_columns, parse_groups
from swapcal.tasks.result import from_json
from swapcal.text.numbers import cleaned, printable

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
QUESTION = TaskConfig("y", "p", groups=["g"], low=0, high=1, prefix=100)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with in.csv, which is the working directory."""
    table(tmp_path / "in.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def columns(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"y": rng.random(n), "p": rng.random(n)}


# Dictionaries with unsigned indices


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_dictionaries_with_unsigned_indices(folder: Path, kind: str) -> None:
    texts = ["a", "b", None] * 100
    codes = pa.array([{"a": 0, "b": 1, None: None}[text] for text in texts], pa.type_for_alias(kind))
    coded = pa.table({**columns(), "g": pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]))})
    parquet.write_table(coded, folder / "coded.parquet")
    plain = audit({**columns(), "g": texts}, QUESTION)
    for source in (coded, folder / "coded.parquet"):
        result = audit(source, QUESTION)
        assert result.first.groups == plain.first.groups == ("all", "g=a", "g=b", "g=missing")
        assert result.before is not None
        assert plain.before is not None
        assert result.before.swap_error == plain.before.swap_error
    run(coded, QUESTION, state=folder / "s")
    numbers = pa.DictionaryArray.from_arrays(codes, pa.array([0.0, 1.0]))
    assert audit(pa.table({**columns(), "y": numbers, "g": texts}), QUESTION).counts.without_outcome == 100


def test_categories_of_polars() -> None:
    polars: Any = pytest.importorskip("polars")
    frame = polars.DataFrame({**columns(), "g": polars.Series(["a", "b", None] * 100, dtype=polars.Categorical)})
    assert audit(frame, QUESTION).first.groups == ("all", "g=a", "g=b", "g=missing")


# Ctrl-C in CSV parsing


def test_ctrl_c_in_csv_parsing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes while pyarrow parses, which used to make an error of its own of it."""
    csv: Any = pytest.importorskip("pyarrow.csv")
    parse, parsed = csv.read_csv, []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        parsed.append(1)
        if len(parsed) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return parse(*arguments, **named)

    table(folder / "in.csv", 200_000)
    monkeypatch.setattr(csv, "read_csv", interrupted)
    for command in (("run", "in.csv", *ASKED, "--state", "s"), ("audit", "in.csv", "--y", "y", "--p", "p")):
        parsed.clear()
        assert refused(*command, code=130).startswith("stopped ")
    # Also where somebody has left pyarrow its own way of listening.
    pa.enable_signal_handlers(True)
    try:
        parsed.clear()
        with pytest.raises(KeyboardInterrupt):
            audit(folder / "in.csv", TaskConfig("y", "p"))
    finally:
        pa.enable_signal_handlers(False)


@pytest.mark.slow
def test_ctrl_c_at_any_moment(folder: Path) -> None:
    """60 signals at random moments of a process that has begun: 130 each time, unless it was done before."""
    table(folder / "in.csv", 400_000)
    rng, codes = np.random.default_rng(0), []
    begun = "from swapcal.cli import main; print(flush=True); main()"
    command = [sys.executable, "-c", begun, "audit", "in.csv", "--y", "y", "--p", "p", "--groups", "g"]
    for _ in range(60):
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(float(rng.uniform(0.0, 0.5)))
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=1200)[1]
        assert b"unforeseen" not in said
        codes.append(running.returncode)
    # A process that has not yet begun to listen dies of the signal itself, which shells call 130 too.
    assert set(codes) <= {0, 130, -signal.SIGINT}
    assert codes.count(130) >= 20


# A learner that fails in update


class Failing(GradientDescent):
    """Fails in each third update, as a learner of a user's own may."""

    calls = 0

    def update(self, state: Any, row: Any, label: float) -> None:
        Failing.calls += 1
        if Failing.calls % 3 == 0:
            raise RuntimeError("no")
        super().update(state, row, label)


def test_a_learner_that_fails_leaves_no_trace() -> None:
    """The learning hint had learned the round already, and once more with each retry."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Oracle(Failing(2)), hint=sc.OnlineRegression(), seed=1)
    rng, failures = np.random.default_rng(0), 0
    for _ in range(60):
        x = rng.uniform(-0.5, 0.5, 2)
        forecast, y = forecaster.predict(x), float(rng.random())
        for _ in range(5):
            counters, arrays = forecaster.state.snapshot()
            try:
                forecaster.update(forecast, y)
                break
            except RuntimeError:
                failures += 1
                again, after = forecaster.state.snapshot()
                assert again == counters
                for name, array in arrays.items():
                    np.testing.assert_array_equal(after[name], array, err_msg=name)
    assert failures >= 20
    assert forecaster.n_rounds == 60


# What files say reaches the terminal


def test_terminal_injection(folder: Path) -> None:
    lines = [line.replace(",g", ",\x1b[31m\x9b2J\u202eg") for line in lines_of(600)[1:]]
    odd = "[bold]in\x1b[2J.csv"
    (folder / odd).write_text("".join(["y,p,g,w\n", *lines]))
    page = "[red]page.html"
    outputs = [
        swapcal("audit", odd, "--y", "y", "--p", "p", "--groups", "g", "--report", page),
        swapcal("run", odd, *ASKED, "--out", "[b]out\x1b.csv", "--state", "s\x1b"),
        swapcal("audit", odd, "--y", "\x1b[5m", "--p", "p"),
        swapcal("audit", odd, "--y", "y", "--p", "p", "--groups", "g", "--json"),
        swapcal("run", odd, "--y", "y", "--hint", "p", "--high", "0.9", "--low", "0"),
    ]
    assert [each.exit_code for each in outputs] == [0, 0, 2, 0, 0]
    for outcome in outputs:
        assert not set("\x1b\x9b\u202e") & set(outcome.stdout + outcome.stderr)
    assert "The page is [red]page.html" in outputs[0].stdout
    assert "[bold]in" in outputs[0].stdout
    assert any("\x9b" in name for name in from_json(outputs[3].stdout).first.groups)


def test_words_are_left_as_they_are() -> None:
    assert printable("Zürich 日本 “quoted” 🙂") == "Zürich 日本 “quoted” 🙂"
    assert cleaned({"a\x07": ["\x1b", 1, None]}) == {"a\\x07": ["\\x1b", 1, None]}


# An import that fails for another reason than that the package is missing


def test_the_real_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: str) -> Any:
        raise ImportError("pyarrow requires NumPy 2.0 or newer, found 1.26.4", name="pyarrow.lib")

    def missing(module: str) -> Any:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(MissingExtra, match=r"cannot be loaded: pyarrow requires NumPy 2\.0 or newer, found 1\.26\.4"):
        sources.package("pyarrow", "reading CSV")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match="needs the package pyarrow; install it with"):
        sources.package("pyarrow", "reading CSV")


# Columns that cannot be named


def test_columns_with_signs_in_their_names(folder: Path) -> None:
    names = ["a,b", "a*b", "age >= 60", "all", "it's", "plain"]
    rng = np.random.default_rng(0)
    frame = {**columns(), **{name: rng.integers(0, 2, 300) for name in names}}
    csv: Any = pytest.importorskip("pyarrow.csv")
    csv.write_csv(pa.table(frame), folder / "odd.csv")
    groups = "\"a,b\",'a*b','age >= 60','all',\"it's\",plain,'a*b'*'all','age >= 60' == 1"
    outcome = swapcal("audit", "odd.csv", "--y", "y", "--p", "p", "--groups", groups, "--json")
    assert outcome.exit_code == 0, outcome.output
    result = from_json(outcome.stdout)
    found = set(result.first.groups)
    for name in names:
        assert {f"{name}=0", f"{name}=1"} <= found
    assert "a*b=0 & all=1" in found
    assert any(name.startswith("'age >= 60' == 1") for name in found)
    # What was asked can be asked again.
    assert parse_groups(",".join(result.settings["groups"])) == parse_groups(groups)
    assert "in double quotes" in refused("audit", "odd.csv", "--y", "y", "--p", "p", "--groups", "all")
    linear = swapcal("audit", "odd.csv", "--y", "y", "--p", "p", "--linear", "'a,b',plain", "--json")
    assert from_json(linear.stdout).first.groups == ("all", "constant", "a,b", "plain")
    assert parse_columns("'a,b', plain") == ("a,b", "plain")
    stopped = swapcal("run", "odd.csv", "--y", "y", "--hint", "p", "--groups", groups, "--state", "s")
    assert stopped.exit_code == 0, stopped.output
    assert (
        "nothing to do"
        in swapcal("run", "odd.csv", "--y", "y", "--hint", "p", "--groups", groups, "--state", "s").stderr
    )


# "something unforeseen"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--property", "moment:inf"), "the order of a moment is a whole number"),
        (("--property", "moment:nan"), "the order of a moment is a whole number"),
        (("--bins", str(10**18)), "bins must be 100,000 at most"),
        (("--bins", str(10**30)), "bins must be 100,000 at most"),
        (("--low", "-1.7e308", "--high", "1.7e308"), "squares are no numbers"),
        (("--low", "0", "--high", "1e200"), "squares are no numbers"),
        (("--r", "nan"), "r must be a finite number"),
    ],
)
def test_options_that_nobody_foresaw(folder: Path, more: tuple[str, ...], words: str) -> None:
    assert words in refused("audit", "in.csv", "--y", "y", "--p", "p", *more)
    assert words in refused("run", "in.csv", *ASKED, *more)


def test_levels(folder: Path) -> None:
    assert "levels must be 10,000 at most" in refused("run", "in.csv", *ASKED, "--levels", str(10**18))


def test_cells_that_nobody_foresaw(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(float(y), float(p)) for y, p in rng.random((300, 2))]
    (folder / "large.csv").write_text("y,p\n" + "".join(f"{1.7e308 * y},{1.7e308 * p}\n" for y, p in rows))
    (folder / "deep.jsonl").write_text('{"y": 1, "p": 0.5, "g": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    (folder / "halves.jsonl").write_text(
        "".join(json.dumps({"y": y, "p": p, "g": "\ud800" + "ab"[y > 0.5]}) + "\n" for y, p in rows)
    )
    assert "squares are no numbers" in refused("audit", "large.csv", "--y", "y", "--p", "p")
    assert "nested too deeply" in refused("audit", "deep.jsonl", "--y", "y", "--p", "p", "--groups", "g")
    for more in (("--json",), ("--report", "page.html"), ()):
        outcome = swapcal("run", "halves.jsonl", *ASKED, "--low", "0", "--high", "1", *more)
        assert outcome.exit_code == 0, outcome.output
        (outcome.stdout + outcome.stderr).encode()
    done = process("audit", "halves.jsonl", "--y", "y", "--p", "p", "--groups", "g", "--json")
    assert done.returncode == 0, done.stderr
    assert any("\ud800" in name for name in from_json(done.stdout.decode()).first.groups)


def test_frames_that_nobody_foresaw() -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns())
    periods = frame.assign(g=pandas.period_range("2020-01", periods=300, freq="M"))
    assert audit(periods, QUESTION).first.groups[1] == "g=2020-01"
    assert run(frame.assign(g=pandas.cut(frame.y, 3)), QUESTION).counts.scored == 300
    twice = pandas.concat([frame, frame[["y"]]], axis=1).assign(g="a")
    unnamed = frame.assign(g="a").rename(columns={"g": 7})
    for odd, words in (
        (frame.assign(g=[[1, 2]] * 300), "column 'g' of the pandas frame holds list"),
        (frame.assign(g=[{"a": 1}] * 300), "column 'g' of the pandas frame holds struct"),
        (frame.assign(g="a", y=[[1.0]] * 300), "column 'y' of the pandas frame holds list"),
        (twice, "several columns of the same name"),
        (unnamed, "there is no column 'g' in the pandas frame"),
        (pa.Table.from_arrays([*pa.table(columns()).columns] * 2, names=["y", "p", "y", "g"]), "of the same name"),
    ):
        for ask in (audit, run):
            with pytest.raises(DataError, match=words):
                ask(odd, QUESTION)
