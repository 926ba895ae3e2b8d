"""The commands `swapcal audit` and `swapcal report`: what they print, and how they end."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import swapcal
from swapcal.cli import app
from swapcal.cli.output import view
from swapcal.tasks.result import Guarantee, above, from_json, parse_threshold
from swapcal.text.numbers import number
from swapcal.text.verdict import Verdict

SCORES = ["--y", "late", "--p", "score"]


def write_scores(path: Path, n: int = 3000, shift: float = 0.3, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(2, 4, n), 4)
    carrier = rng.choice(["AA", "a carrier whose name is much longer than a narrow table allows"], n)
    late = rng.random(n) < np.clip(score + shift * (carrier != "AA"), 0, 1)
    lines = [
        f"{int(y)},{p},{c},{hour}" for y, p, c, hour in zip(late, score, carrier, rng.integers(0, 24, n), strict=True)
    ]
    path.write_text("\n".join(["late,score,carrier,hour", *lines]) + "\n")
    return path


def run(*arguments: Any, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], input=text)


def test_the_verdict_comes_first_and_fits_the_screen(tmp_path: Path) -> None:
    done = run("audit", write_scores(tmp_path / "scores.csv"), *SCORES, "--groups", "carrier,hour,carrier*hour")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith(" RECALIBRATE  Forecasts are too low by")
    first = lines[: lines.index(next(line for line in lines if line.startswith("Worst ranges")))]
    assert any("Groups, the worst first" in line for line in first)
    assert not any(word in "".join(first) for word in ("swap error", "T^(1/3)", "multicalibration", "cell")), (
        "no word needs the paper"
    )
    assert max(map(len, lines)) <= 80
    for part in (
        "worst group's error",
        "T^(1/3)",
        "Worst ranges",
        "carrier=a carrier",
        "off beyond doubt",
        "Next: swapcal run",
        "Brier",
    ):
        assert part in done.stdout, part
    heads = next(line for line in lines if line.startswith(" forecast   group"))
    assert heads.split()[-5:] == ["rows", "points", "95", "%", "interval"]
    assert done.stderr == ""


@pytest.mark.usefixtures("few_diagrams")
def test_json_goes_into_a_page(tmp_path: Path) -> None:
    pytest.importorskip("swapcal.report.page")
    scores = write_scores(tmp_path / "scores.csv", 400)
    done = run("audit", scores, *SCORES, "--groups", "carrier", "--json", "--report", tmp_path / "direct.html")
    assert done.exit_code == 0, done.output
    result = from_json(done.stdout)
    assert (result.kind, result.counts.scored, result.config.y) == ("audit", 400, "late")
    assert "<html" in (tmp_path / "direct.html").read_text()
    (tmp_path / "result.json").write_text(done.stdout)
    made = run("report", tmp_path / "result.json", "--out", tmp_path / "page.html", "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout) == {"page": str(tmp_path / "page.html")}
    assert (tmp_path / "page.html").read_text() == (tmp_path / "direct.html").read_text()
    piped = run("report", "-", "--out", tmp_path / "piped.html", text=done.stdout)
    assert (piped.exit_code, piped.stdout) == (0, f"The page is {tmp_path / 'piped.html'}\n")


def test_fail_above_is_for_pipelines(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "scores.csv", 1000)
    command = ["audit", scores, *SCORES, "--groups", "carrier", "--json"]
    assert run(*command, "--fail-above", "1000").exit_code == 0
    failed = run(*command, "--fail-above", "0.01")
    assert failed.exit_code == 1
    assert "above --fail-above 0.01" in failed.stderr
    assert from_json(failed.stdout).counts.scored == 1000, "the result is printed all the same"
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("property", "name"),
    [
        ("quantile:0.5", "median"),
        ("quantile:0.9", "0.9 quantile"),
        ("expectile:0.3", "0.3 expectile"),
        ("moment:2", "moment of order 2"),
        ("median", "median"),
    ],
)
def test_other_properties(tmp_path: Path, property: str, name: str) -> None:
    done = run("audit", write_scores(tmp_path / "s.csv", 500), "--y", "hour", "--p", "hour", "--property", property)
    assert done.exit_code == 0, done.output
    assert f"{name} of hour" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_every_source(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "scores.csv", 300)
    expected = from_json(run("audit", scores, *SCORES, "--groups", "carrier", "--json").stdout)
    piped = run("audit", "-", *SCORES, "--groups", "carrier", "--json", text=scores.read_text())
    polars.read_csv(scores).write_parquet(tmp_path / "scores.parquet")
    stored = run("audit", tmp_path / "scores.parquet", *SCORES, "--groups", "carrier", "--json")
    for done in (piped, stored):
        found = from_json(done.stdout)
        assert found.before is not None
        assert expected.before is not None
        assert found.before.swap_error == pytest.approx(expected.before.swap_error)
        assert found.first.groups == expected.first.groups


@pytest.mark.parametrize("width", [80, 200])
def test_before_and_after_stand_beside_each_other(tmp_path: Path, width: int) -> None:
    before, after = (
        from_json(run("audit", write_scores(tmp_path / "s.csv", 800, shift), *SCORES, "--json").stdout)
        for shift in (0.4, 0.0)
    )
    assert after.before is not None
    new = replace(after.before, label="swapcal")
    both = replace(
        before,
        kind="run",
        sections=(replace(before.first, after=new),),
        guarantee=Guarantee(123.0),
        verdict=Verdict("fine", "All is well.", ("Really.",)),
    )
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view(both))
    lines = console.export_text().splitlines()
    assert before.before is not None
    swap = next(line for line in lines if line.startswith(" swap error"))
    assert swap.split()[-5:-3] == [number(before.before.swap_error), number(new.swap_error)]
    assert any(line.split() == ["guaranteed", "at", "most", "123"] for line in lines)
    assert max(map(len, lines)) <= width
    assert above(both, parse_threshold("rms:1000")) is None
    assert "swapcal" in (above(both, parse_threshold("rms:0")) or "")


# Whatever is wrong is said in one sentence.


def bad_files(folder: Path) -> dict[str, Path]:
    files = {
        "empty": b"",
        "header": b"late,score\n",
        "word": b"late,score\n1,0.5\n0,abc\n",
        "words": b"late,score\nyes,0.5\nno,0.1\n",
        "percent": b"late,score\n1,50\n0,20\n",
        "equal": b"late,score\n7,7\n7,7\n",
        "nothing": b"late,score\n,0.5\n,0.1\n",
        "unforecast": b"late,score\n1,\n0,\n",
        "bytes": bytes(range(256)),
        "ragged": b"late,score\n1,0.5\n0\n",
        "infinite": b"late,score\n1,inf\n0,0.2\n",
    }
    paths = {name: folder / f"{name}.csv" for name in files}
    for name, content in files.items():
        paths[name].write_bytes(content)
    paths["broken"] = folder / "broken.parquet"
    paths["broken"].write_bytes(b"PAR1 and then nothing of use PAR1")
    paths["folder"], paths["absent"] = folder, folder / "absent.csv"
    return paths


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("empty", ["empty.csv", "empty"]),
        ("header", ["header.csv", "row"]),
        ("word", ["word.csv", "row 2", "'score'", "'abc'"]),
        ("words", ["words.csv", "'late'", "--positive"]),
        ("percent", ["percent.csv", "'score'", "50", "divide by 100"]),
        ("equal", ["equal.csv", "7 to 7", "--low"]),
        ("nothing", ["nothing.csv", "'late'", "no outcome"]),
        ("unforecast", ["unforecast.csv", "'score'", "no forecast"]),
        ("bytes", ["bytes.csv"]),
        ("ragged", ["ragged.csv", "row 2"]),
        ("infinite", ["infinite.csv", "row 1", "'score'"]),
        ("broken", ["broken.parquet", "Parquet"]),
        ("folder", ["folder"]),
        ("absent", ["absent.csv"]),
    ],
)
def test_bad_files_are_explained(tmp_path: Path, name: str, parts: list[str]) -> None:
    done = run("audit", bad_files(tmp_path)[name], *SCORES)
    _explained(done, parts)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--y", "lat", "--p", "score"], ["'lat'", "did you mean 'late'"]),
        (["--y", "late", "--p", "skore"], ["'skore'", "did you mean 'score'"]),
        (["--y", "late", "--p", "carrier"], ["row 1", "'carrier'"]),
        ([*SCORES, "--groups", "carier"], ["'carier'", "did you mean 'carrier'"]),
        ([*SCORES, "--groups", "carrier,,hour"], ["carrier,,hour"]),
        ([*SCORES, "--linear", "carrier"], ["'carrier'"]),
        ([*SCORES, "--weight", "carrier"], ["'carrier'"]),
        ([*SCORES, "--property", "mode"], ["'mode'", "quantile:0.9"]),
        ([*SCORES, "--property", "quantile:90"], ["0.9"]),
        ([*SCORES, "--low", "2", "--high", "1"], ["low"]),
        ([*SCORES, "--r", "0.5"], ["r must"]),
        ([*SCORES, "--positive", "late"], ["'late'", "--positive"]),
        ([*SCORES, "--low", "nan"], ["low must"]),
        ([*SCORES, "--report", "no/such/folder/page.html"], ["page.html"]),
    ],
)
def test_bad_options_are_explained(tmp_path: Path, options: list[str], parts: list[str]) -> None:
    _explained(run("audit", write_scores(tmp_path / "scores.csv", 60), *options), parts)


def _explained(done: Result, parts: list[str]) -> None:
    assert done.exit_code == 2, (done.output, done.exception)
    assert "Traceback" not in done.output
    sentence = done.stderr.strip()
    assert "\n" not in sentence
    for part in parts:
        assert part in sentence, sentence


def test_foreign_results_are_explained(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    for path in (other, write_scores(tmp_path / "scores.csv", 5), tmp_path / "absent.json", tmp_path):
        done = run("report", path, "--out", tmp_path / "page.html")
        assert done.exit_code == 2, done.output
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "page.html").exists()


def test_labels_outside_the_range_are_warned_about_once(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    rows = ["0.5,0.4"] * 6000 + ["0.1,0.3"] * 6000 + ["7,0.5"] * 3
    path.write_text("\n".join(["late,score", *rows]))
    assert run("audit", path, *SCORES).stderr == "", "the range is that of all rows"
    done = run("audit", path, *SCORES, "--low", "0", "--high", "1")
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("warning: row 12001 of ")
    assert done.stderr.count("\n") == 1
    assert "3 outcomes outside the range" in done.stdout


def test_two_thousand_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "many.csv"
    rows = [
        f"{int(rng.random() < p)},{p:.3f},g{g}" for p, g in zip(rng.random(6000), np.arange(6000) % 2000, strict=True)
    ]
    path.write_text("\n".join(["late,score,city", *rows]))
    done = run("audit", path, *SCORES, "--groups", "city", "--json")
    assert done.exit_code == 0, done.output
    result = from_json(done.stdout)
    assert len(result.first.groups) == 2001
    assert result.before is not None
    assert len(result.before.curves) <= 30
    assert result.verdict.kind == "fine"
    cramped = run("audit", path, *SCORES, "--groups", "city", "--limit", "100")
    assert cramped.exit_code == 0
    assert "warning: " in cramped.stderr
    assert cramped.stderr.count("\n") == 1


def test_one_constant_forecast(tmp_path: Path) -> None:
    path = tmp_path / "constant.csv"
    path.write_text("late,score\n" + "1,0.9\n0,0.9\n0,0.9\n" * 500)
    done = run("audit", path, *SCORES)
    assert done.exit_code == 0
    assert done.stdout.startswith(" REFIT ")


def test_what_nobody_thought_of_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swapcal.tasks import audit as auditing

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(auditing, "audit", broken)
    scores = write_scores(tmp_path / "scores.csv", 10)
    _explained(run("audit", scores, *SCORES), ["ZeroDivisionError: by zero", "SWAPCAL_TRACEBACK"])
    monkeypatch.setenv("SWAPCAL_TRACEBACK", "1")
    assert isinstance(run("audit", scores, *SCORES).exception, ZeroDivisionError)


def test_ctrl_c_says_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swapcal.tasks import audit as auditing

    def interrupted(*_: Any, progress: Callable[[int], None], **__: Any) -> None:
        progress(12_345)
        raise KeyboardInterrupt

    monkeypatch.setattr(auditing, "audit", interrupted)
    scores = write_scores(tmp_path / "scores.csv", 10)
    done = run("audit", scores, *SCORES)
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr == f"stopped after row 12,345 of {scores}; nothing was written\n"


@pytest.mark.parametrize("command", [["audit"], ["report"]])
def test_every_command_has_help_with_an_example_and_exit_codes(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.exit_code == 0
    for part in ("Example: swapcal", "--json", "Exit codes:", "130"):
        assert part in done.output


# Real processes.


def environment() -> dict[str, str]:
    source = str(Path(swapcal.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]), "COLUMNS": "80"}


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "swapcal.cli", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment(), **(pipes | options))


def test_in_a_process(tmp_path: Path) -> None:
    process = start("audit", "-", "--y", "late", "--p", "score")
    out, err = process.communicate(write_scores(tmp_path / "scores.csv", 200).read_text())
    assert (process.returncode, err) == (0, "")
    assert "Brier score" in out
    process = start("audit", str(tmp_path / "absent.csv"), "--y", "late", "--p", "score")
    out, err = process.communicate()
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)


def test_ctrl_c_in_a_process() -> None:
    process = start("audit", "-", "--y", "late", "--p", "score")
    assert process.stdin is not None
    # More than a pipe holds: when it is written, the process is reading.
    process.stdin.write("late,score\n" + "1,0.5\n0,0.25\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 130, err
    assert err.startswith("stopped ")
    assert err.count("\n") == 1
    assert out == ""


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "scores.csv", 2000)
    process = start("audit", str(scores), *SCORES, "--groups", "carrier*hour", "--json")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=1200)
    assert "Traceback" not in err
    assert process.returncode == 1


def test_help_needs_only_typer() -> None:
    code = (
        "import atexit, sys; sys.argv[1:] = ['--help']; from swapcal.cli import main; late = 'numpy', 'rich'; "
        "atexit.register(lambda: print([name for name in late if name in sys.modules])); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    assert "Commands:" in done.stdout
    assert done.stdout.endswith("[]\n")
