"""`swapcal bench speed` at sizes that take seconds: the yardsticks are what they are said to be, and misses show."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from swapcal.cli import app
from swapcal.engine import kernels
from swapcal_benchmarks.speed import (
    SpeedSizes,
    TargetRow,
    driver,
    events,
    instructions,
    long_streams,
    memory,
    peers,
    sections,
    speed_command,
    threads,
)
from swapcal_benchmarks.speed import whole_streams as runs
from swapcal_benchmarks.speed.ratio import compare, median
from swapcal_benchmarks.speed.yardsticks import compiled

TINY = SpeedSizes(rounds=300, events=60, slow_events=20, short=100, long=300, repeats=2, starts=1)
MET = TargetRow(section="run", what="a thing", against="another", measured=1.5, target=2.0, low=1.4, high=1.6)
MISSED = TargetRow(section="peers", what="a peer", against="ours", measured=3.0, target=10.0, least=True)
SKIPPED = TargetRow(section="peers", what="no peer", target=10.0, least=True, note="it is not installed")

needs_kernels = pytest.mark.skipif(kernels.native is None or compiled is None, reason="the yardsticks are compiled")


class Clock:
    """Goes on by what the work says it takes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_ratio_takes_turns_warms_up_and_does_not_time_what_makes_ready() -> None:
    clock, order = Clock(), []

    def side(name: str, seconds: float) -> Any:
        def ready() -> Any:
            clock.now += 100.0

            def work() -> None:
                order.append(name)
                clock.now += seconds

            return work

        return ready

    ratio = compare(side("ours", 3.0), side("theirs", 2.0), 3, scale=10.0, clock=clock)
    assert (ratio.measured, ratio.low, ratio.high) == (15.0, 15.0, 15.0)
    assert order == ["ours", "theirs"] * 2 + ["theirs", "ours"] + ["ours", "theirs"]
    assert median([2.0, 2.0, 2.0, 2.0, 50.0]).measured == 2.0


def naive_search(X: Any, rows: Any) -> float:
    total = 0.0
    for x in X:
        left, right = 0, len(rows) - 1
        at_left, at_right = (np.cumsum(rows[i] * x)[-1] for i in (left, right))
        while right - left > 1:
            middle = (left + right) // 2
            at = np.cumsum(rows[middle] * x)[-1]
            if (at > 0.0) == (at_left > 0.0):
                left, at_left = middle, at
            else:
                right, at_right = middle, at
        total += at_right
        rows[left] += x * (-0.125 if at_left > 0.0 else 0.125)
    return total


@needs_kernels
@pytest.mark.parametrize("n_rows", [1, 2, 35])
def test_the_bare_loop_searches_and_updates_as_the_page_says(n_rows: int) -> None:
    rng = np.random.default_rng(3)
    X, rows = rng.uniform(-1, 1, (50, 10)), rng.uniform(-1, 1, (n_rows, 10))
    expected, total = rows.copy(), compiled.bare_loop(X, rows)
    assert total == naive_search(X, expected)
    np.testing.assert_array_equal(rows, expected)


@needs_kernels
@pytest.mark.parametrize(
    ("measure", "n_rows", "targets"),
    [
        (runs.measure, 17, [2.5, *[None] * 5, 2.5, None, None, 2.5, None, *[1.2] * 6]),
        (events.measure, 14, [12.0, 20.0, 12.0, 20.0, *[1.1] * 3, *[1.6] * 2, 3.0, 1.6, 3.0, 1.5, 1.0]),
        (long_streams.measure, 3, [1.1, 1.1, 1.1]),
        (threads.measure, 2, [None, None]),
    ],
    ids=["run", "events", "growth", "threads"],
)
def test_questions_have_their_rows_and_targets(measure: Any, n_rows: int, targets: list[float | None]) -> None:
    rows = measure(TINY)
    assert len(rows) == n_rows
    assert [row.target for row in rows] == targets
    assert all(row.measured is not None and row.low <= row.measured <= row.high for row in rows)
    assert all(row.measured > 0.0 for row in rows)


@pytest.mark.parametrize("kind", memory.KINDS)
def test_peak_memory_is_that_of_a_process_that_held_its_inputs(kind: str) -> None:
    found = memory.play(kind, 2_000)
    assert found["inputs"] >= 8 * 2_000 * 6
    assert found["peak"] >= found["before"] > found["inputs"]


def test_a_peer_that_is_not_installed_is_named_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    rows = peers.measure(TINY)
    assert [row.met for row in rows] == [None] * 3
    assert {row.note for row in rows} == {"river is not installed", "online-cp is not installed"}


def test_the_driver_is_compiled_as_the_package_is() -> None:
    text = (driver.SOURCES.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "-ffp-contract" in line)
    for flag in line.split("PRIVATE")[1].strip(" )").split():
        assert flag in driver.FLAGS


COUNTS = {"compiler": "cc 1", "vectors": "avx2", "instructions_per_round": dict.fromkeys(driver.WORKLOADS, 1_000.0)}


@pytest.mark.parametrize(
    ("before", "met", "word"),
    [
        (None, None, ""),
        (COUNTS, True, "change +0.0 %"),
        (COUNTS | {"instructions_per_round": dict.fromkeys(driver.WORKLOADS, 900.0)}, False, "change +11.1 %"),
        (COUNTS | {"compiler": "cc 2"}, None, "another compiler"),
        (COUNTS | {"vectors": "default"}, None, "another compiler"),
    ],
)
def test_a_change_of_instructions_is_judged_only_like_with_like(before: Any, met: bool | None, word: str) -> None:
    kept = instructions.kept()
    assert kept is not None
    assert kept["instructions_per_round"].keys() == driver.WORKLOADS.keys()
    for row in instructions.rows(COUNTS, before):
        assert row.met is met
        assert word in row.note


def answered(monkeypatch: pytest.MonkeyPatch, *rows: TargetRow) -> None:
    section = sections.Section("run", "Run", lambda sizes: list(rows), 1.0)
    monkeypatch.setattr(sections, "SECTIONS", (section,))


@needs_kernels
@pytest.mark.parametrize(("row", "code"), [(MET, 0), (MISSED, 1), (SKIPPED, 0)])
def test_the_command_fails_where_a_target_is_missed(
    row: TargetRow, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(monkeypatch, row)
    result = CliRunner().invoke(app, ["bench", "speed", "--quick", "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == code
    data = json.loads(result.stdout)
    assert data == json.loads((tmp_path / "out" / "speed.json").read_text(encoding="utf-8"))
    assert data["met"] is (code == 0)
    assert data["rows"][0]["what"] == row.what
    assert not (tmp_path / "out" / instructions.FILE).exists()  # nothing was counted, so nothing is remembered
    for arguments, sentence in (
        (["--only", "nonsense"], "there is no section nonsense"),
        (["--only", "run", "--docs", "somewhere"], "--docs needs all sections"),
    ):
        wrong = CliRunner().invoke(app, ["bench", "speed", *arguments])
        assert (wrong.exit_code, sentence in wrong.stderr) == (2, True)
    with kernels.using("python"), pytest.raises(sc.InvalidInput, match="without the compiled kernels"):
        speed_command.speed_report()
