"""Commands and the world around them: signals, pipes, terminals, help, and tables that nobody foresaw."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import ASKED, lines_of, process, refused, swapcal, table
from effort import part
from swapcal.tables import records, sources
from swapcal.tables.grouping import parse_columns, parse_groups
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import from_json
from swapcal.tasks.scalar import ScalarTask
from swapcal.text.numbers import cleaned, printable

pa: Any = pytest.importorskip("pyarrow")

parquet: Any = pytest.importorskip("pyarrow.parquet")


def columns(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"y": rng.random(n), "p": rng.random(n)}


AUDIT = ("audit", "in.csv", "--y", "y", "--p", "p")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with in.csv, which is the working directory."""
    table(tmp_path / "in.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Signals


def test_ctrl_c_ends_cleanly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes in the middle of the third batch; that batch is finished, kept, and the way to go on is said."""
    whole = swapcal("run", "in.csv", *ASKED, "--seed", "1", "--out", "whole.csv", "--against", "none")
    advance, batches = ScalarTask.advance, []

    def interrupted(state: ScalarTask, batch: Any) -> Any:
        batches.append(batch)
        if len(batches) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(state, batch)

    monkeypatch.setattr(records, "read", functools.partial(records.read, batch_rows=100))
    monkeypatch.setattr(ScalarTask, "advance", interrupted)
    asked = ("run", "in.csv", *ASKED, "--seed", "1", "--out", "out.csv", "--state", "my run.state")
    monkeypatch.setattr(sys, "argv", ["swapcal", *asked, "--fresh"])
    handler = signal.getsignal(signal.SIGINT)
    assert refused(*asked, "--fresh", code=130) == (
        "stopped after row 300 of in.csv; go on with  swapcal run in.csv --y y --hint p --groups g --seed 1 --out "
        "out.csv --state 'my run.state'"
    )
    assert signal.getsignal(signal.SIGINT) is handler
    assert len((folder / "out.csv").read_text().splitlines()) == 301
    outcome = swapcal(*asked)
    assert outcome.exit_code == 0, outcome.output
    assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert outcome.stdout == whole.stdout.replace("whole.csv", "out.csv")
    batches.clear()
    assert refused("run", "in.csv", *ASKED, "--out", "third.parquet", code=130) == (
        "stopped after row 300 of in.csv; the rows so far are in third.parquet, and without --state it cannot go on "
        "from there"
    )
    assert parquet.read_table(folder / "third.parquet").num_rows == 300


def test_ctrl_c_in_csv_parsing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes while pyarrow parses, which used to make an error of its own of it."""
    csv: Any = pytest.importorskip("pyarrow.csv")
    parse, parsed = csv.read_csv, []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        parsed.append(1)
        if len(parsed) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return parse(*arguments, **named)

    table(folder / "in.csv", 5_000)
    monkeypatch.setattr(sources, "BLOCK", 1 << 14)
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
    """Signals at random moments of a process that has begun: 130 each time, unless it was done before."""
    table(folder / "in.csv", 400_000)
    rng, codes, n = np.random.default_rng(0), [], part(60, 15)
    begun = "from swapcal.cli import main; print(flush=True); main()"
    command = [sys.executable, "-c", begun, "audit", "in.csv", "--y", "y", "--p", "p", "--groups", "g"]
    for _ in range(n):
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
    assert codes.count(130) >= n // 3


def start(*arguments: str) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-m", "swapcal.cli", *arguments], subprocess.PIPE
    return subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_process_that_reads_is_stopped_by_ctrl_c() -> None:
    process = start("audit", "-", "--y", "y", "--p", "p")
    # More than a pipe holds: when it is written, the process is reading.
    process.stdin.write("y,p\n" + "1,0.5\n0,0.25\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=1200)
    assert (process.returncode, out, err.count("\n")) == (130, "", 1), err
    assert err.startswith("stopped ")


def test_processes_end_as_they_should(folder: Path) -> None:
    """On standard input, where a file is missing, and where the reader of what they print has gone."""
    done = process("run", "-", *ASKED, "--out", "out.jsonl", input=(folder / "in.csv").read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads((folder / "out.jsonl").read_text().splitlines()[0]).keys() == {"row", "before", "forecast"}
    missing = process("audit", "absent.csv", "--y", "y", "--p", "p")
    assert (missing.returncode, missing.stdout, missing.stderr.count(b"\n")) == (2, b"", 1)
    leaving = start(*AUDIT, "--groups", "g,w,g*w", "--json")
    leaving.stdout.close()
    leaving.stdout = None
    _, err = leaving.communicate(timeout=1200)
    assert (leaving.returncode, "Traceback" in err) == (1, False)


def test_what_nobody_thought_of_and_ctrl_c_are_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swapcal.tasks import audit as auditing

    def interrupted(*_: Any, progress: Callable[[int], None], **__: Any) -> None:
        progress(12_345)
        raise KeyboardInterrupt

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(auditing, "audit", interrupted)
    assert refused(*AUDIT, code=130) == "stopped after row 12,345 of in.csv; nothing was written"
    monkeypatch.setattr(auditing, "audit", broken)
    outcome = swapcal(*AUDIT)
    assert (outcome.exit_code, outcome.stderr.count("\n")) == (2, 1)
    assert all(words in outcome.stderr for words in ("ZeroDivisionError: by zero", "SWAPCAL_TRACEBACK"))
    monkeypatch.setenv("SWAPCAL_TRACEBACK", "1")
    assert isinstance(swapcal(*AUDIT).exception, ZeroDivisionError)


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
    assert "Wrote [red]page.html" in outputs[0].stdout
    assert "[bold]in" in outputs[0].stdout
    assert any("\x9b" in name for name in from_json(outputs[3].stdout).first.groups)


def test_words_are_left_as_they_are() -> None:
    assert printable("Zürich 日本 “quoted” 🙂") == "Zürich 日本 “quoted” 🙂"
    assert cleaned({"a\x07": ["\x1b", 1, None]}) == {"a\\x07": ["\\x1b", 1, None]}


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


def test_cells_that_nobody_foresaw(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(float(y), float(p)) for y, p in rng.random((300, 2))]
    (folder / "large.csv").write_text("y,p\n" + "".join(f"{1.7e308 * y},{1.7e308 * p}\n" for y, p in rows))
    (folder / "deep.jsonl").write_text('{"y": 1, "p": 0.5, "g": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    (folder / "halves.jsonl").write_text(
        "".join(json.dumps({"y": y, "p": p, "g": "\ud800" + "ab"[y > 0.5]}) + "\n" for y, p in rows)
    )
    assert "its square no number" in refused("audit", "large.csv", "--y", "y", "--p", "p")
    assert "nested too deeply" in refused("audit", "deep.jsonl", "--y", "y", "--p", "p", "--groups", "g")
    for more in (("--json",), ("--report", "page.html"), ()):
        outcome = swapcal("run", "halves.jsonl", *ASKED, "--low", "0", "--high", "1", *more)
        assert outcome.exit_code == 0, outcome.output
        (outcome.stdout + outcome.stderr).encode()
    done = process("audit", "halves.jsonl", "--y", "y", "--p", "p", "--groups", "g", "--json")
    assert done.returncode == 0, done.stderr
    assert any("\ud800" in name for name in from_json(done.stdout.decode()).first.groups)


# Help, and what is not there


@pytest.mark.parametrize("command", ["audit", "report", "run"])
def test_every_command_has_help_with_an_example_and_exit_codes(command: str) -> None:
    done = swapcal(command, "--help")
    assert done.exit_code == 0
    whole = done.output + (swapcal(command, "--help-all").output if "--help-all" in done.output else "")
    assert all(part in whole for part in ("Example: swapcal", "--json", "Exit codes:", "130"))


def test_help_needs_only_typer() -> None:
    code = "import atexit, sys; sys.argv[1:] = ['--help']; from swapcal.cli import main; heavy = 'numpy', 'rich'"
    code += "; atexit.register(lambda: print([name for name in heavy if name in sys.modules])); main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("arguments", [["bench"], ["bench", "--help"], ["bench", "speed", "--quick"]])
def test_without_the_benchmarks_a_sentence_says_how_to_get_them(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["swapcal.cli.app"], "find_spec", lambda name: None)
    assert "pip install ./benchmarks" in refused(*arguments)


def test_everything_behind_bench_is_for_the_benchmarks() -> None:
    pytest.importorskip("swapcal_benchmarks")
    listed = swapcal("bench", "--help")
    assert all(name in listed.output for name in ("paper", "rivals", "speed", "streams"))
    assert "--quick" in swapcal("bench", "speed", "--help").output
    wrong = swapcal("bench", "speed", "--only", "nonsense")
    assert (wrong.exit_code, "there is no section nonsense" in wrong.output) == (2, True)
    assert swapcal("bench", "nonsense").exit_code == 2
