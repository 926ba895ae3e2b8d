"""`swapcal run` from the outside: what it prints, writes and returns, and what it says when something is wrong."""

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from swapcal.cli import app
from swapcal.tables import records
from swapcal.tasks.result import from_json
from swapcal.tasks.scalar import ScalarTask

pa: Any = pytest.importorskip("pyarrow")
csv: Any = pytest.importorskip("pyarrow.csv")
parquet: Any = pytest.importorskip("pyarrow.parquet")


def table(n: int = 1200) -> Any:
    rng = np.random.default_rng(3)
    p, g = rng.random(n).round(3), rng.integers(0, 3, n)
    y = (rng.random(n) < np.clip(0.6 * p + 0.1 * (g == 1), 0, 1)).astype(int)
    return pa.table({"late": y, "score": p, "origin": np.array(["EWR", "JFK", "LGA"])[g], "x": rng.normal(size=n)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with scores.csv and scores.parquet, which is the working directory."""
    csv.write_csv(table(), tmp_path / "scores.csv")
    parquet.write_table(table(), tmp_path / "scores.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ASKED = ("--y", "late", "--hint", "score", "--groups", "origin")


def swapcal(*arguments: str, stdin: bytes | None = None) -> Outcome:
    return CliRunner().invoke(app, ["run", *arguments], input=stdin)


def sentence(outcome: Outcome, code: int = 2) -> str:
    """What a command that failed said: one line on standard error, and nothing else."""
    assert outcome.exit_code == code, outcome.output
    lines = outcome.stderr.strip().splitlines()
    assert len(lines) == 1, outcome.stderr
    assert "Traceback" not in outcome.output
    return str(lines[0])


def test_the_summary(folder: Path) -> None:
    outcome = swapcal("scores.csv", *ASKED, "--out", "better.csv")
    assert outcome.exit_code == 0, outcome.output
    assert "Use the recalibrated forecasts:" in outcome.stdout
    for words in ("the model", "swapcal", "swap", "guaranteed", "Brier score", "interval", "Worst ranges", "by chance"):
        assert words in outcome.stdout
    assert outcome.stdout.endswith("The forecasts of all 1,200 rows are in better.csv\n")
    assert outcome.stderr == ""
    better = csv.read_csv(folder / "better.csv")
    assert better.column_names == ["row", "before", "forecast"]
    assert better["before"].to_pylist() == table()["score"].to_pylist()


def test_without_out_there_is_only_the_summary(folder: Path) -> None:
    before = sorted(folder.iterdir())
    outcome = swapcal("scores.parquet", *ASKED)
    assert outcome.exit_code == 0
    assert "forecasts of all" not in outcome.stdout
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "more",
    [
        ("--property", "quantile:0.9", "--low", "0", "--high", "1", "--jitter", "0.1"),
        ("--learn", "--linear", "x"),
        ("--horizon", "5000", "--seed", "7", "--trust", "0", "--levels", "0"),
        ("--weight", "score"),
        ("--positive", "1"),
    ],
)
def test_options(folder: Path, more: tuple[str, ...]) -> None:
    outcome = swapcal("scores.csv", *ASKED, *more, "--json")
    assert outcome.exit_code == 0, outcome.output
    result = from_json(outcome.stdout)
    assert (result.kind, result.counts.scored) == ("run", 1200)
    if "--seed" in more:
        assert {name: getattr(result.config, name) for name in ("horizon", "seed", "trust", "levels")} == {
            "horizon": 5000,
            "seed": 7,
            "trust": 0.0,
            "levels": 0,
        }


@pytest.mark.usefixtures("few_diagrams")
def test_a_page(folder: Path) -> None:
    outcome = swapcal("scores.csv", *ASKED, "--report", "page.html")
    assert outcome.exit_code == 0, outcome.output
    assert "The page is page.html" in outcome.stdout
    assert "recalibrated" in (folder / "page.html").read_text()


def test_a_threshold_for_pipelines(folder: Path) -> None:
    assert swapcal("scores.csv", *ASKED, "--fail-above", "100").exit_code == 0
    outcome = swapcal("scores.csv", *ASKED, "--json", "--fail-above", "rms:0.001")
    assert "above --fail-above 0.001" in sentence(outcome, code=1)
    assert json.loads(outcome.stdout)["format"] == "swapcal.result"


@pytest.mark.usefixtures("little_room")
def test_standard_input_stops_and_goes_on(folder: Path) -> None:
    """The same data is piped again, with more behind it: what is done is passed over."""
    lines = (folder / "scores.csv").read_bytes().splitlines(keepends=True)
    settings = (*ASKED, "--state", "run.state", "--out", "better.csv", "--json")
    assert swapcal("-", *settings, stdin=b"".join(lines[:701])).exit_code == 0
    outcome = swapcal("-", *settings, stdin=b"".join(lines))
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stderr == "going on after row 700\n"
    assert from_json(outcome.stdout).counts.scored == 1200
    again = swapcal("-", *settings, stdin=b"".join(lines))
    assert again.stderr == "nothing to do: all 1,200 rows of standard input are done\n"
    assert again.stdout == outcome.stdout
    assert csv.read_csv(folder / "better.csv")["row"].to_pylist() == list(range(1, 1201))


def test_ctrl_c_ends_cleanly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes in the middle of the third batch; that batch is finished, kept, and the way to go on is said."""
    whole = swapcal("scores.csv", *ASKED, "--out", "whole.csv")
    advance, batches = ScalarTask.advance, []

    def interrupted(state: ScalarTask, batch: Any) -> Any:
        batches.append(batch)
        if len(batches) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(state, batch)

    monkeypatch.setattr(records, "read", functools.partial(records.read, batch_rows=200))
    monkeypatch.setattr(ScalarTask, "advance", interrupted)
    settings = ("scores.csv", *ASKED, "--out", "better.csv")
    monkeypatch.setattr(sys, "argv", ["swapcal", "run", *settings, "--state", "my run.state", "--fresh"])
    handler = signal.getsignal(signal.SIGINT)
    said = sentence(swapcal(*settings, "--state", "my run.state", "--fresh"), code=130)
    assert said == (
        "stopped after row 600 of scores.csv; go on with  swapcal run scores.csv --y late --hint score --groups origin "
        "--out better.csv --state 'my run.state'"
    )
    assert signal.getsignal(signal.SIGINT) is handler
    assert len((folder / "better.csv").read_text().splitlines()) == 601
    outcome = swapcal(*settings, "--state", "my run.state")
    assert outcome.exit_code == 0, outcome.output
    assert (folder / "better.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert outcome.stdout == whole.stdout.replace("whole.csv", "better.csv")
    batches.clear()
    said = sentence(swapcal("scores.csv", *ASKED, "--out", "third.parquet"), code=130)
    assert said == (
        "stopped after row 600 of scores.csv; the rows so far are in third.parquet, and without --state it cannot go "
        "on from there"
    )
    assert parquet.read_table(folder / "third.parquet").num_rows == 600


def test_what_goes_wrong_is_one_sentence(folder: Path) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("late,score,origin\n")
    (folder / "text.csv").write_text("late,score,origin\n1,0.5,EWR\n0,high,JFK\n")
    (folder / "constant.csv").write_text("late,score,origin\n" + "1,0.5,EWR\n" * 50)
    (folder / "broken.parquet").write_bytes((folder / "scores.parquet").read_bytes()[:-100])
    cases = {
        ("nowhere.csv", *ASKED): "nowhere.csv",
        ("scores.csv", "--y", "latte", "--hint", "score"): "did you mean 'late'?",
        ("empty.csv", *ASKED): "empty.csv",
        ("header.csv", *ASKED): "header.csv",
        ("text.csv", *ASKED): "row 2, column 'score': 'high' is not a number",
        ("broken.parquet", *ASKED): "broken.parquet is not a whole Parquet file",
        ("scores.csv", *ASKED, "--out", "better.xlsx"): "must end in .csv, .jsonl, .ndjson or .parquet",
        ("scores.csv", *ASKED, "--out", "no/where.csv"): "cannot be written",
        ("scores.csv", *ASKED, "--state", "no/where.state"): "no/where.state cannot be written",
        ("scores.csv", *ASKED, "--out", "scores.parquet"): "scores.parquet is there already",
        (
            "scores.csv",
            *ASKED,
            "--state",
            "scores.parquet",
        ): "scores.parquet is not a state file of swapcal run, and is left as it is",
        ("scores.csv", *ASKED, "--property", "mode"): "the property must be",
        ("scores.csv", *ASKED, "--no-learn", "--linear", "x"): "--learn",
    }
    for arguments, words in cases.items():
        assert words in sentence(swapcal(*arguments))
    assert not list(folder.glob("better*"))
    assert swapcal("constant.csv", *ASKED).exit_code == 0


def test_help_has_an_example() -> None:
    outcome = swapcal("--help")
    assert outcome.exit_code == 0
    for words in ("Example: swapcal run scores.csv", "--state", "--fresh", "Exit codes"):
        assert words in outcome.stdout


def test_the_command_in_a_process_of_its_own(folder: Path) -> None:
    command = [sys.executable, "-m", "swapcal.cli", "run", "-", *ASKED, "--out", "better.jsonl"]
    done = subprocess.run(command, input=(folder / "scores.csv").read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    first = json.loads((folder / "better.jsonl").read_text().splitlines()[0])
    assert first.keys() == {"row", "before", "forecast"}
