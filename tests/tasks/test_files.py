"""What was in files, and what a run does to it: nothing is lost, mixed up, read twice, or written in two places."""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from commands import ASKED, lines_of, process, refused, run, swapcal, table
from effort import part
from file_attack import attack_files
from swapcal.errors import DataError, InvalidInput, StateFileError
from swapcal.state import atomic_write
from swapcal.tables.batch import Batch, Fingerprint
from swapcal.tables.records import read
from swapcal.tasks import checkpoint, outputs
from swapcal.tasks.checkpoint import Checkpoint, StateLock, lock_of
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.runner import Stopped
from swapcal.tasks.scalar import ScalarTask

parquet: Any = pytest.importorskip("pyarrow.parquet")

QUESTION = TaskConfig("y", "p", groups=["g"], prefix=100)

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with in.csv, which is the working directory."""
    table(tmp_path / "in.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a directory."""
    return {str(each.relative_to(folder)): each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


# Pipes are read once


@posix
@pytest.mark.parametrize("way", ["pipe.csv", "/dev/stdin"])
def test_a_pipe_gives_every_row(folder: Path, way: str) -> None:
    """The estimate of rows used to open a pipe with a name again, and to eat up to a megabyte."""
    text = "".join(lines_of(20_000)).encode()  # four times what a pipe holds, so that two readers would share it
    if way == "pipe.csv":
        os.mkfifo(folder / way)
        threading.Thread(target=(folder / way).write_bytes, args=(text,)).start()
    source = {} if way == "pipe.csv" else {"input": text}
    done = process("run", way, *ASKED, "--out", "out.csv", "--json", timeout=1200, **source)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["counts"]["scored"] == 20_000
    assert len((folder / "out.csv").read_text().splitlines()) == 20_001


def test_only_the_file_that_was_opened_is_looked_at_again(folder: Path) -> None:
    """A file that happens to be called as messages call standard input says nothing of its rows."""
    table(folder / "standard input", 5_000)
    outcome = swapcal("run", "-", *ASKED, "--json", stdin="".join(lines_of(600)).encode())
    assert json.loads(outcome.stdout)["result"]["config"]["horizon"] is None
    with open(folder / "in.csv", "rb") as stream:
        assert run(stream, QUESTION).config.horizon is None


@posix
def test_parquet_in_a_pipe_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe.parquet")
    threading.Thread(target=lambda: (folder / "pipe.parquet").write_bytes(b"PAR1" + bytes(100)), daemon=True).start()
    assert "cannot be read from a pipe" in refused("run", "pipe.parquet", *ASKED)


# An output is known by what is in it


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_unrelated_file_of_the_same_name_is_not_truncated(folder: Path, ending: str) -> None:
    for name in "ab":
        (folder / name).mkdir()
    assert swapcal("run", "in.csv", *ASKED, "--out", f"a/out.{ending}", "--state", "s").exit_code == 0
    (folder / "b" / f"out.{ending}").write_text("dear diary\n")
    before = contents(folder)
    assert "is not that" in refused("run", "in.csv", *ASKED, "--out", f"b/out.{ending}", "--state", "s")
    said = refused("run", "in.csv", *ASKED, "--out", f"b/out.{ending}", "--state", "s", "--fresh")
    assert "is there already" in said
    assert contents(folder) == before


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_output_is_known_by_its_digest_and_may_move(folder: Path, ending: str) -> None:
    out, moved = folder / f"out.{ending}", folder / "elsewhere" / f"out.{ending}"
    run(folder / "in.csv", QUESTION, out=out, state=folder / "s", horizon=1200)
    moved.parent.mkdir()
    shutil.move(out, moved)
    table(folder / "in.csv", 900)
    result = run(folder / "in.csv", QUESTION, out=moved, state=folder / "s", horizon=1200)
    assert result.counts.rows == 900
    assert not out.exists()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_was_changed_is_not_cut(folder: Path, ending: str) -> None:
    """Lines that somebody appended to a finished output, or a digit that was changed, stop the run."""
    out = folder / f"out.{ending}"
    run(folder / "in.csv", QUESTION, out=out, state=folder / "s")
    written = out.read_bytes()
    table(folder / "in.csv", 900)
    for changed in (written + b"a note\n", written[:-9] + bytes([written[-9] ^ 1]) + written[-8:]):
        out.write_bytes(changed)
        with pytest.raises(StateFileError, match="put back the file as it was"):
            run(folder / "in.csv", QUESTION, out=out, state=folder / "s")
        with pytest.raises(InvalidInput, match="is there already"):
            run(folder / "in.csv", QUESTION, out=out, state=folder / "s", fresh=True)
        assert out.read_bytes() == changed
    out.unlink()
    with pytest.raises(StateFileError, match="is gone"):
        run(folder / "in.csv", QUESTION, out=out, state=folder / "s")


# No file is taken for another


@pytest.mark.parametrize("way", ["plain", "link", "hard link"])
def test_the_input_is_not_destroyed(folder: Path, way: str) -> None:
    same = "in.csv"
    if way != "plain":
        same = "other.csv"
        (folder / same).symlink_to("in.csv") if way == "link" else os.link("in.csv", same)
    before = contents(folder)
    for more in (
        ("--state", same),
        ("--state", same, "--fresh"),
        ("--out", same),
        ("--out", same, "--overwrite"),
        ("--report", same),
        ("--out", "x.csv", "--state", same, "--fresh", "--overwrite"),
        ("--out", "x.csv", "--state", "x.csv"),
        ("--out", "x.csv", "--report", "x.csv"),
        ("--state", "x.html", "--report", "./x.html"),
        ("--state", "x", "--report", "x.lock"),
        ("--out", "x.parquet", "--state", "x.parquet.rows"),
    ):
        said = refused("run", "in.csv", *ASKED, *more)
        assert "same file" in said or "is there already and is no page" in said, said
        assert "--fresh" not in said
        assert contents(folder) == before
    for more in (("--report", same), ("--report", "in.csv")):
        assert "is there already" in refused("audit", "in.csv", "--y", "y", "--p", "p", *more)
    assert contents(folder) == before


def test_standard_input_is_a_file_too(folder: Path) -> None:
    before = contents(folder)
    with open("in.csv", "rb") as stream:
        done = process("run", "-", *ASKED, "--out", "in.csv", "--overwrite", stdin=stream)
    assert done.returncode == 2
    assert b"the input and the output are the same file" in done.stderr
    assert contents(folder) == before


def test_files_of_others_are_left_alone(folder: Path) -> None:
    """A file that has the name of the rows, a lock of somebody else's, a state or page that is none."""
    (folder / "x.parquet.rows").write_text("ten years of work")
    (folder / "s.lock").write_text("my own notes")
    (folder / "notes.html").write_text("<!doctype html><p>my notes")
    (folder / "empty.state").write_text("")
    before = contents(folder)
    for more, words in {
        ("--out", "x.parquet"): "is there already",
        ("--out", "x.parquet", "--overwrite"): "not made by swapcal",
        ("--state", "s"): "is no lock of swapcal",
        ("--report", "notes.html"): "is no page of swapcal",
        ("--state", "notes.html", "--fresh"): "is not a state file of swapcal run, and is left as it is",
        ("--state", "empty.state", "--fresh"): "is not a state file of swapcal run, and is left as it is",
        ("--state", "x.parquet.rows", "--fresh"): "is not a state file",
    }.items():
        assert words in refused("run", "in.csv", *ASKED, *more)
        left = {name: data for name, data in contents(folder).items() if not name.endswith(".state.lock")}
        assert left == before


@pytest.mark.usefixtures("few_diagrams")
def test_a_page_replaces_a_page(folder: Path) -> None:
    pytest.importorskip("jinja2")
    assert swapcal("audit", "in.csv", "--y", "y", "--p", "p", "--report", "page.html").exit_code == 0
    (folder / "result.json").write_text(swapcal("audit", "in.csv", "--y", "y", "--p", "p", "--json").stdout)
    assert swapcal("report", "result.json", "--out", "page.html").exit_code == 0
    before = contents(folder)
    assert "same file" in refused("report", "result.json", "--out", "result.json")
    assert "no page of swapcal" in refused("report", "result.json", "--out", "in.csv")
    assert contents(folder) == before


# One run at a time


def test_two_processes_on_one_state(folder: Path) -> None:
    """The second one is told who holds the state, and changes nothing; the first one goes on undisturbed."""
    run("in.csv", QUESTION, out=folder / "whole.csv", seed=1)
    said: list[str] = []

    def progress(_: int) -> None:
        if not said:
            said.append(refused("run", "in.csv", *ASKED, "--out", "out.csv", "--state", "s"))

    run("in.csv", QUESTION, out=folder / "out.csv", state=folder / "s", progress=progress, seed=1)
    assert re.search(f"the state s is in use by process {os.getpid()} on .*, since 2", said[0])
    assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert not (folder / "s.lock").exists()


def test_many_processes_at_once(folder: Path) -> None:
    """Of processes that start together some get the state, one after the other; the output has every row once."""
    table(folder / "in.csv", 3_000)
    command = [sys.executable, "-m", "swapcal.cli", "run", "in.csv", *ASKED, "--out", "out.csv", "--state", "s"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    said = [each.communicate(timeout=1200)[1] for each in runs]
    codes = [each.returncode for each in runs]
    assert set(codes) <= {0, 2}
    assert 0 in codes
    for code, words in zip(codes, said, strict=True):
        assert code == 0 or b"in use by" in words
    rows = [line.split(b",")[0] for line in (folder / "out.csv").read_bytes().splitlines()[1:]]
    assert rows == [str(k).encode() for k in range(1, 3_001)]


def test_the_lock_of_a_killed_run_is_taken_over(folder: Path) -> None:
    lock = StateLock(lock_of(folder / "s"), "s")
    with pytest.raises(InvalidInput, match="in use by process"):
        StateLock(lock_of(folder / "s"), "s")
    os.close(lock._handle)  # as the system does for a process that is killed
    assert (folder / "s.lock").exists()
    assert swapcal("run", "in.csv", *ASKED, "--state", "s").exit_code == 0
    assert not (folder / "s.lock").exists()


def test_two_runs_without_a_state_write_to_one_output(folder: Path) -> None:
    def progress(_: int) -> None:
        with pytest.raises(InvalidInput, match="another run is writing to"):
            run(folder / "in.csv", QUESTION, out=folder / "out.csv", overwrite=True)

    run(folder / "in.csv", QUESTION, out=folder / "out.csv", progress=progress)
    assert len((folder / "out.csv").read_text().splitlines()) == 601


# A state belongs to its rows and settings


@pytest.mark.parametrize("column", ["y", "p", "g", "w", "x"])
def test_any_used_column_that_changed_is_noticed(folder: Path, column: str) -> None:
    rng = np.random.default_rng(0)
    columns = {"y": rng.random(800), "p": rng.random(800), "g": rng.integers(0, 3, 800).astype(str)}
    columns |= {"w": 1.0 + np.arange(800) % 3, "x": rng.normal(size=800), "unused": rng.random(800)}
    question = TaskConfig("y", "p", groups=["g"], linear=["x"], weight="w", low=0, high=1, prefix=100)
    asked: dict[str, Any] = {"state": folder / "s", "out": folder / "out.csv", "learn": True, "seed": 1}
    run({name: each[:700] for name, each in columns.items()}, question, **asked)
    for row in (50, 699):
        changed = {**columns, column: columns[column].copy()}
        changed[column][row] = "zz"[: columns[column].dtype.itemsize // 4] if column == "g" else 0.123
        with pytest.raises(StateFileError, match=r"not those that|does not begin with the rows"):
            run(changed, question, **asked)
    other = {**columns, "unused": rng.random(800)}
    assert run(other, question, **asked).counts.rows == 800


def test_what_a_state_does_not_belong_to_is_refused(folder: Path) -> None:
    frame, state = pd.read_csv("in.csv"), folder / "run.state"
    out: dict[str, Any] = {"out": folder / "out.csv", "state": state}
    run(frame, QUESTION, seed=1, **out)
    before = (folder / "out.csv").read_bytes(), state.read_bytes()
    late = frame.assign(y=np.where(np.arange(600) == 500, 1 - frame["y"], frame["y"]))
    changes: list[tuple[Any, dict[str, Any], str]] = [
        (frame, {"seed": 2}, "with seed=1, and this one has seed=2"),
        (frame, {"out": folder / "other.csv"}, r"with out='out.csv', and this one has out='other.csv'"),
        (frame, {"groups": ("w",)}, "with groups="),
        (late, {}, r"the first 600 rows of .* are not those"),
        (frame[::-1], {}, "does not begin with the rows"),
        (frame[:400], {}, r"has 400 rows, and the state file .* has 600 of them done"),
    ]
    for source, change, sentence in changes:
        with pytest.raises(StateFileError, match=sentence):
            run(source, QUESTION, **{"seed": 1, **out, **change})
    state.write_bytes(before[1][:1000])
    with pytest.raises(StateFileError, match="is not a whole state file"):
        run(frame, QUESTION, seed=1, **out)
    assert (folder / "out.csv").read_bytes() == before[0]


@pytest.mark.parametrize("kind", ["list", "array", "csv", "dictionary", "parquet"])
def test_the_fingerprint_is_of_rows_not_of_batches(kind: str) -> None:
    rng = np.random.default_rng(0)
    hint = rng.random(100)
    hint[::7] = np.nan
    pa: Any = pytest.importorskip("pyarrow")
    texts = [None if t % 5 == 0 else "abc"[: t % 4] for t in range(100)]
    made: dict[str, Any] = {
        "list": {"y": hint.tolist(), "g": texts},
        "array": {"y": hint, "g": np.array([text or "" for text in texts])},
        "csv": {"y": pa.array([str(h).encode() for h in hint]), "g": pa.array(texts, pa.binary())},
        "dictionary": {"y": pa.array(hint), "g": pa.array(texts).dictionary_encode()},
        "parquet": {"y": pa.array(hint, from_pandas=True), "g": pa.array(texts)},
    }
    batch = Batch("rows", 0, 100, made[kind])
    one, two, other = (Fingerprint(["y", "g"]) for _ in range(3))
    one.add(batch)
    for start, stop in ((0, 13), (13, 13), (13, 80), (80, 100)):
        two.add(batch.cut(start, stop))
        assert len(two.value()) == 32
    other.add(batch.cut(0, 99))
    assert one.value() == two.value() != other.value()
    assert Fingerprint.of([batch, batch], 100, ["y", "g"]) == one.value() != Fingerprint.of([batch], 100, ["g", "y"])


# A file that grows, or is mended


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_half_written_last_line_waits(folder: Path, ending: str) -> None:
    lines = lines_of(600)
    if ending == "jsonl":
        names = lines[0].strip().split(",")
        rows = [line.strip().split(",") for line in lines[1:]]
        lines = [json.dumps(dict(zip(names, [int(y), float(p), g, int(w)], strict=True))) + "\n" for y, p, g, w in rows]
    source, settings = folder / f"grows.{ending}", (*ASKED, "--out", "out.csv", "--state", "s", "--horizon", "1000")
    text = "".join(lines)
    half = len("".join(lines[:400])) + 4
    source.write_text(text[:half])
    outcome = swapcal("run", source, *settings)
    assert outcome.exit_code == 0, outcome.output
    assert "has no line end yet and waits for it" in outcome.stderr
    done = len((folder / "out.csv").read_text().splitlines())
    source.write_text(text)
    outcome = swapcal("run", source, *settings)
    assert outcome.exit_code == 0, outcome.output
    assert f"going on after row {done - 1:,}" in outcome.stderr
    assert len((folder / "out.csv").read_text().splitlines()) == 601
    # Without a state nobody comes back for it, so that it counts.
    source.write_text(text.rstrip("\n"))
    assert json.loads(swapcal("run", source, *ASKED, "--json").stdout)["result"]["counts"]["scored"] == 600


@pytest.mark.parametrize(("ending", "n"), [("csv", 60), ("parquet", 300)])
def test_rows_that_were_added_since_are_next(folder: Path, ending: str, n: int) -> None:
    """Also where the first rows, which settle the range and the bands, were fewer than usual."""
    lines, asked = lines_of(600), TaskConfig("y", "p", groups=["w"], prefix=100)
    files: dict[str, Any] = {"out": folder / f"out.{ending}", "state": folder / "run.state"}
    (folder / "in.csv").write_text("".join(lines[: n + 1]))
    run("in.csv", asked, **files, horizon=600, seed=1)
    (folder / "in.csv").write_text("".join(lines))
    result = run("in.csv", asked, **files, horizon=600, seed=1)
    assert result.counts.rows == result.counts.scored == 600
    whole = run("in.csv", asked, prefix=min(n, 100), out=folder / f"whole.{ending}", horizon=600, seed=1)
    assert files["out"].read_bytes() == (folder / f"whole.{ending}").read_bytes()
    assert result.after.swap_error == pytest.approx(whole.after.swap_error, rel=1e-12)


def test_a_mistake_in_the_file_can_be_mended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows before the mistake are kept; after its correction the run goes on."""
    monkeypatch.setattr(checkpoint, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "COMMIT_SHARE", 0.0)
    whole = (folder / "in.csv").read_text()
    lines = whole.splitlines(keepends=True)
    (folder / "in.csv").write_text("".join([*lines[:401], "1,oops,g1,1\n", *lines[402:]]))
    files: dict[str, Any] = {"out": folder / "out.csv", "state": folder / "run.state", "seed": 1}
    with pytest.raises(DataError, match="row 401, column 'p': 'oops' is not a number"):
        run(read("in.csv", columns=QUESTION.columns, batch_rows=100), QUESTION, **files)
    (folder / "in.csv").write_text(whole)
    run("in.csv", QUESTION, **files)
    run("in.csv", QUESTION, out=folder / "expected.csv", seed=1)
    assert (folder / "out.csv").read_bytes() == (folder / "expected.csv").read_bytes()


def test_functions_of_your_own_survive_a_stop(folder: Path) -> None:
    asked = TaskConfig("y", "p", groups=["g", ("heavy", lambda row: float(float(row["w"]) > 1.5))], prefix=200, seed=1)
    files: dict[str, Any] = {"out": folder / "out.csv", "state": folder / "run.state"}
    with pytest.raises(Stopped):
        run(read("in.csv", batch_rows=200), asked, stop=lambda: True, **files)
    assert "heavy" in run("in.csv", asked, **files).first.groups
    run("in.csv", asked, out=folder / "whole.csv")
    assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()


# What is written lasts, and is the same bytes


def test_a_rename_is_synced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a file gets its name its bytes are on the disk, and after that the folder is."""
    calls: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            calls.append(name)
            return call(*arguments)

        return called

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2))
    checkpointed = checkpoint.Checkpoint({}, 0, "", None, None, False, {}, b"")
    forecaster.save(folder / "f")
    assert calls == ["fsync", "replace", "fsync"]
    checkpoint.write(folder / "s", checkpointed)
    assert calls == ["fsync", "replace", "fsync"] * 2


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.state"
    checkpoint.write(path, Checkpoint({"y": "y"}, 17, "ab", None, None, False, {}, b""))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StateFileError, match=r"cannot be written \(no space left on device\)"):
        checkpoint.write(path, Checkpoint({"y": "y"}, 99, "ab", None, None, False, {}, b""))
    assert path.read_bytes() == before


@posix
def test_temporary_names_follow_no_links(folder: Path) -> None:
    """Names that could be guessed led through links into other files."""
    (folder / "precious").write_text("precious")
    for name in ("s.new", "out.csv.new", "out.parquet.new", "f.new", "s.tmp"):
        (folder / name).symlink_to("precious")
    run(folder / "in.csv", QUESTION, out=folder / "out.parquet", state=folder / "s")
    sc.Forecaster(sc.Mean(), sc.Finite(2)).save(folder / "f")
    assert (folder / "precious").read_text() == "precious"
    (folder / "t.lock").symlink_to("precious")
    with pytest.raises(StateFileError, match="cannot be written"):
        run(folder / "in.csv", QUESTION, state=folder / "t")
    names = set()
    for _ in range(3):
        with atomic_write(folder / "x") as file:
            names.add(next(each.name for each in folder.iterdir() if each.name.endswith(".part")))
            file.write(b"1")
    assert len(names) == 3


def test_an_output_that_is_a_link_to_nothing(folder: Path) -> None:
    (folder / "out.csv").symlink_to(folder / "elsewhere.csv")
    assert "is there already" in refused("run", "in.csv", *ASKED, "--out", "out.csv")
    assert not (folder / "elsewhere.csv").exists()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_bytes_do_not_depend_on_when_commits_were(folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(outputs, "_GROUP_ROWS", 900)
    table(folder / "in.csv", 2_500)
    written = set()
    for number, seconds in enumerate((0.0, 1e9)):
        for batch_rows in (300, 65_536):
            monkeypatch.setattr(checkpoint, "COMMIT_SECONDS", seconds)
            monkeypatch.setattr(checkpoint, "COMMIT_SHARE", 0.0)
            out = folder / f"out{number}-{batch_rows}.{ending}"
            records = read(folder / "in.csv", columns=QUESTION.columns, batch_rows=batch_rows)
            run(records, QUESTION, out=out, state=folder / f"{out.name}.s", seed=1)
            written.add(out.read_bytes())
    run(folder / "in.csv", QUESTION, out=folder / f"plain.{ending}", seed=1)
    written.add((folder / f"plain.{ending}").read_bytes())
    assert len(written) == 1


def test_every_format_has_the_numbers_to_the_last_digit(folder: Path) -> None:
    for ending in ("csv", "jsonl", "parquet"):
        run("in.csv", QUESTION, out=folder / f"out.{ending}", seed=1)
    head, *lines = (folder / "out.csv").read_text().splitlines()
    rows = [dict(zip(head.split(","), map(float, line.split(",")), strict=True)) for line in lines]
    assert [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()] == rows
    assert parquet.read_table(folder / "out.parquet").to_pylist() == rows


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_forged_positions_are_refused_and_touch_nothing(folder: Path, ending: str) -> None:
    """Also where the digest fits: a position that is not behind the rows that are done would lose or repeat some."""
    files: dict[str, Any] = {"out": folder / f"out.{ending}", "state": folder / "run.state", "seed": 1}
    calls = iter([False, True])
    with pytest.raises(Stopped):
        run(read("in.csv", columns=QUESTION.columns, batch_rows=200), QUESTION, stop=lambda: next(calls), **files)
    saved = Checkpoint.load(files["state"])
    assert saved.output is not None
    inner, rows = (saved.output["rows"], ".rows") if ending == "parquet" else (saved.output, "")
    data = (folder / f"out.{ending}{rows}").read_bytes()
    changes: list[dict[str, Any]] = [{"bytes": size} for size in (-1, -(10**30), 10**30, 1.5, True, None, "9", [9])]
    cuts = {cut: hashlib.blake2b(data[:cut], digest_size=16) for cut in (0, len(data) // 2, data.find(b"\n") + 1)}
    changes += [{"bytes": cut, "digest": digest.hexdigest()} for cut, digest in cuts.items()]
    forged = [replace(saved, rows=saved.rows - 100), replace(saved, rows=saved.rows + 1)]
    for change in changes:
        position = {**inner, **change}
        forged.append(replace(saved, output={**saved.output, "rows": position} if rows else position))
    for each in forged:
        each.save(files["state"])
        before = contents(folder)
        with pytest.raises(StateFileError):
            run("in.csv", QUESTION, **files)
        assert contents(folder) == before
    saved.save(files["state"])
    run("in.csv", QUESTION, **files)
    run("in.csv", QUESTION, out=folder / f"whole.{ending}", seed=1)
    assert files["out"].read_bytes() == (folder / f"whole.{ending}").read_bytes()


def test_row_groups_are_of_one_size_and_none_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(outputs, "_GROUP_ROWS", 4)
    for n, sizes in {8: [4, 4], 9: [4, 4, 1], 0: []}.items():
        path = tmp_path / f"{n}.parquet"
        output = outputs.open_output(path, outputs.kinds_of(("row", "forecast")))
        output.append({"row": np.arange(n), "forecast": np.linspace(0.0, 1.0, n)})
        output.finish()
        output.clear()
        output.close()
        data = parquet.read_metadata(path)
        assert [data.row_group(k).num_rows for k in range(data.num_row_groups)] == sizes


# Files that are damaged, and files that change while they are read


def test_damaged_files_are_taken_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """A part of what `make bad` gives to every command."""
    counts = attack_files(tmp_path, part(5000, 60))
    assert min(counts["taken"], counts["refused"]) > part(500, 6)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("change", ["cut", "other rows", "more rows", "gone"])
def test_an_input_that_changes_while_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str, change: str
) -> None:
    """What was read counts, or a sentence says what is wrong; who goes on notices, and nothing is mixed up."""
    n = 4000
    frame = pd.DataFrame({"y": np.arange(n) % 2, "p": np.arange(n) % 97 / 97, "g": ["ab"[k % 2] for k in range(n)]})

    def write(frame: pd.DataFrame) -> None:
        if ending == "parquet":
            frame.to_parquet("beside", row_group_size=500)
        elif ending == "jsonl":
            frame.to_json("beside", orient="records", lines=True)
        else:
            frame.to_csv("beside", index=False)
        # In the same file: one that was replaced under its name would be read as it was.
        with open(f"in.{ending}", "r+b" if os.path.exists(f"in.{ending}") else "wb") as file:
            file.truncate(0)
            file.write(Path("beside").read_bytes())
        os.remove("beside")

    (folder / "in.csv").unlink()
    write(frame)
    monkeypatch.setattr("swapcal.tables.records.read", functools.partial(read, batch_rows=500))
    (folder / "run.toml").write_text("prefix = 100\nseed = 1\n")
    monkeypatch.setattr("swapcal.tables.sources.BLOCK", 1 << 12)
    advance, batches = ScalarTask.advance, list[Any]()

    def changing(state: ScalarTask, batch: Any) -> Any:
        batches.append(batch)
        if len(batches) == 3:
            if change == "gone":
                os.remove(f"in.{ending}")
            elif change == "cut":
                os.truncate(f"in.{ending}", os.path.getsize(f"in.{ending}") // 2)
            else:
                write(frame.assign(p=0.5) if change == "other rows" else pd.concat([frame, frame]))
        return advance(state, batch)

    monkeypatch.setattr(ScalarTask, "advance", changing)
    command = ("run", f"in.{ending}", *ASKED, "--config", "run.toml", "--out", "out.csv", "--state", "state")
    first = swapcal(*command)
    assert first.exit_code in (0, 2), first.output
    write(frame)
    again = swapcal(*command)
    assert len(batches) > 3
    for ended in (first, again):
        assert "unforeseen" not in ended.output
        assert "Traceback" not in ended.output
    if again.exit_code:
        assert "are not those that" in again.stderr or "start over" in again.stderr.lower(), again.stderr
    else:
        assert swapcal(*command[:-4], "--out", "whole.csv").exit_code == 0
        assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()
