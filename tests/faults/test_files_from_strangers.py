"""Faults 7, 11 and 19: files that somebody has made, with right checksums, to do harm."""

import io
import json
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resealed
import swapcal as sc
from effort import ALL
from odd_files import archived, entries, header_of, packed, with_header
from swapcal.errors import StateFileError
from swapcal.hypotheses import Finite
from swapcal.monitor import Monitor
from swapcal.tasks import checkpoint
from swapcal.tasks.checkpoint import Checkpoint

pytest.importorskip("pyarrow")


def saved(forecaster: sc.Forecaster) -> bytes:
    buffer = io.BytesIO()
    forecaster.save(buffer)
    return buffer.getvalue()


def played(n: int = 40) -> sc.Forecaster:
    forecaster = sc.Forecaster(sc.Mean(), sc.Groups(["g"], limit=8), seed=1)
    for t in range(n):
        forecaster.update(forecaster.predict({"g": "abc"[t % 3]}), t % 2)
    return forecaster


def load(file: bytes) -> sc.Forecaster:
    return sc.Forecaster.load(io.BytesIO(file))


# 7: counters that wrap


@pytest.mark.parametrize("issued", [2**63 - 1, 2**63, 2**62, -1, 10**30, 2.0**62, True, "40", None])
def test_fault_07_a_state_file_corrupts_the_heap(issued: Any) -> None:
    """The number of rounds wrapped in `predict`, and `run` wrote in front of an array."""
    parts = entries(saved(played()))
    header = header_of(parts)
    header["counters"]["issued"] = issued
    with pytest.raises(StateFileError):
        load(with_header(parts, header))


def test_fault_07_the_largest_counters_that_are_taken() -> None:
    """What passes is far from where anything wraps: rounds go on, one by one and many at a time."""
    parts = entries(saved(played()))
    header = header_of(parts)
    header["counters"]["issued"] = 2**61
    forecaster = load(with_header(parts, header))
    for _ in range(3):
        forecaster.update(forecaster.predict({"g": "a"}), 1.0)
    forecaster.run([{"g": "b"}] * 3000, np.zeros(3000))
    assert forecaster.state.pending.issued == 2**61 + 3003
    assert resealed.use(load(saved(forecaster)))


# 11: a small file takes much memory


def bomb(name: str) -> bytes:
    """A file of some kilobytes that would unpack to hundreds of megabytes, or ask for them."""
    parts = entries(saved(played()))
    if name in ("entries", "unasked"):
        zeros = packed(np.zeros((20, 1_000_000)))
        names = ("ledger.sums.npy", "ledger.rounding.npy") if name == "entries" else ("more.npy", "much more.npy")
        return archived({**parts, **dict.fromkeys(names, zeros)}, zipfile.ZIP_DEFLATED)
    if name == "header":
        spaces = packed(np.full(10**8, ord(" "), dtype=np.uint8))
        return archived({**parts, "header.npy": spaces}, zipfile.ZIP_DEFLATED)
    made = sc.Linear(2) if name == "wide" else sc.Oracle(sc.learners.GradientDescent(2))
    parts = entries(saved(sc.Forecaster(sc.Mean(), made)))
    header, row = header_of(parts), packed(np.zeros(10**6))
    if name == "wide":
        header["hypotheses"]["n"] = 10**6
    else:
        header["hypotheses"]["learner"]["n"] = 10**9 if name == "long" else 10**6
    forged = entries(with_header({**parts, "record.sums.npy": row, "record.squares.npy": row}, header))
    return archived(forged, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize("name", ["entries", "unasked", "header", "wide", "long", "learners"])
def test_fault_11_a_small_file_takes_much_memory(name: str, tmp_path: Path) -> None:
    """Each in a process of its own, as the most memory that a process ever had is what counts."""
    file = bomb(name)
    assert len(file) < 1_000_000
    (tmp_path / "bomb").write_bytes(file)
    script = (
        "import resource, sys, swapcal as sc\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    sc.Forecaster.load(sys.argv[1])\nexcept sc.StateFileError:\n    pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "bomb")], capture_output=True, check=True, timeout=60
    )
    assert int(done.stdout) < 300 * 1024


def test_fault_11_what_is_large_can_still_be_saved() -> None:
    """Large arrays are not packed, so that a file is never much smaller than what it becomes."""
    forecaster = sc.Forecaster(sc.Mean(), Finite(400_000), bins=2, seed=1)
    row: dict[int, float] = {0: 1.0, 399_999: -1.0}
    forecaster.update(forecaster.predict(row), 1.0)
    file = saved(forecaster)
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        kinds = {info.compress_type: info.file_size for info in archive.infolist()}
    assert kinds.keys() == {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    again = load(file)
    assert saved(again) == file


def checkpointed(path: Path) -> bytes:
    arrays = {"before.sums": np.arange(6.0)}
    checkpoint.write(path, Checkpoint({}, 1, "", None, None, False, {}, b"forecaster", arrays))
    return path.read_bytes()


def test_fault_11_entries_of_a_run_that_nobody_asked_for(tmp_path: Path) -> None:
    parts = entries(checkpointed(tmp_path / "s"))
    much = packed(np.zeros(10**7))
    for changed in (
        archived({**parts, "unasked.npy": much}, zipfile.ZIP_DEFLATED),
        archived({**parts, "readme.txt": b"hello"}),
        archived({**parts, "../../etc/passwd.npy": packed(np.zeros(3))}),
        archived({**parts, "more.npy": packed(np.array([1, 2]))}),
        archived({**parts, "more.npy": packed(np.array([np.nan]))}),
    ):
        (tmp_path / "s").write_bytes(changed)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(StateFileError):
            checkpoint.read_checkpoint(tmp_path / "s")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 * 1024


def test_fault_11_many_names_for_the_same_bytes(tmp_path: Path) -> None:
    """A file whose table of contents lists one entry a thousand times is small, and would not be when it is read."""
    parts = entries(checkpointed(tmp_path / "s"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {**parts, "a.npy": packed(np.zeros(10_000))}.items():
            archive.writestr(name, data)
        first = archive.getinfo("a.npy")
        for k in range(50):
            twin = zipfile.ZipInfo(f"{'b' * (k + 1)}.npy")
            twin.header_offset, twin.CRC = first.header_offset, first.CRC
            twin.file_size = twin.compress_size = first.file_size
            archive.filelist.append(twin)
    (tmp_path / "s").write_bytes(buffer.getvalue())
    with pytest.raises(StateFileError, match="holds what swapcal run does not write"):
        checkpoint.read_checkpoint(tmp_path / "s")


# 19: forged content that fails later


def test_fault_19_positions_of_a_vocabulary() -> None:
    parts = entries(saved(played()))
    original = header_of(parts)["hypotheses"]["vocabulary"]
    assert original["names"] == ["all", "g=a", "g=b", "g=c"]
    known = original["known"][0]
    for change in (
        {"known": [[[["a"], 999], *known[1:]]]},
        {"known": [[[["a"], -5], *known[1:]]]},
        {"known": [[[["a"], known[1][1]], *known[1:]]]},
        {"known": [[[["a", "b"], known[0][1]], *known[1:]]]},
        {"known": [[[[1], known[0][1]], *known[1:]]]},
        {"known": [known[1:]]},
        {"known": [known, known]},
        {"names": ["all", "g=a", "g=b"]},
        {"names": ["all", "g=b", "g=a", "g=c"]},
        {"names": [*original["names"], *("x" for _ in range(20))]},
        {"other": [2]},
        {"other": [2**70]},
        {"missing": [-7]},
        {"counts": [[[["z"], 10**9]]]},
    ):
        header = header_of(parts)
        header["hypotheses"]["vocabulary"] = {**original, **change}
        with pytest.raises(StateFileError):
            load(with_header(parts, header))
    odd: list[dict[str, list[float]]] = [{"g": [3.0, 1.0]}, {"g": []}, {"g": [float("nan")]}, {"other": [1.0]}]
    for edges in odd:
        header = header_of(parts)
        header["hypotheses"]["edges"] = edges
        with pytest.raises(StateFileError):
            load(with_header(parts, header))
    assert load(with_header(parts, header_of(parts))).n_rounds == 40


@pytest.mark.parametrize(
    "position",
    [
        {"bytes": 0, "digest": "", "whole": False},
        {"bytes": 0},
        {"bytes": -5, "digest": "", "whole": False},
        {"bytes": "x", "digest": "", "whole": True},
        {},
        {"parts": 3, "merged": False},
    ],
)
def test_fault_19_the_position_of_an_output(tmp_path: Path, position: dict[str, Any]) -> None:
    """A position that says that nothing was written yet made a run cut off what was there."""
    runs = resealed.Runs(tmp_path)
    parts = entries(runs.state)
    header = json.loads(parts["run.json"])
    header["output"] = position
    (tmp_path / "s").write_bytes(archived({**parts, "run.json": json.dumps(header).encode()}))
    with pytest.raises(StateFileError):
        runs.go()
    assert (tmp_path / "out.csv").read_bytes() == runs.out


def test_fault_19_impossible_sums_of_an_audit() -> None:
    audit = sc.Audit(hypotheses=Finite(2))
    rng = np.random.default_rng(0)
    audit.update_many(rng.random(200), rng.integers(0, 5, 200) / 5, rng.uniform(-1, 1, (200, 2)))
    stored = json.loads(json.dumps(audit.to_dict()))
    assert sc.Audit.from_dict(stored, hypotheses=Finite(2)).n_rounds == 200
    for name, number in (
        ("v", 1e6),
        ("v", -1e6),
        ("vv", -1.0),
        ("vv", 1e9),
        ("vv", 0.0),
        ("rounds", 2.5),
        ("rounds", 1e300),
        ("count", -1.0),
        ("xv", 1e9),
        ("active", -3.0),
        ("active", 1e9),
        ("active", 0.5),
        ("active", 0.0),
        ("weight", -1.0),
        ("xvxv", -1.0),
        ("xvxv", 0.0),
    ):
        forged = json.loads(json.dumps(stored))
        cell = forged["sums"][name]
        if isinstance(cell[0], list):
            cell[0][0] = number
        else:
            cell[0] = number
        with pytest.raises(StateFileError, match="sums of this stored audit"):
            sc.Audit.from_dict(forged, hypotheses=Finite(2))


def test_fault_19_impossible_wealth_of_a_monitor() -> None:
    rng = np.random.default_rng(0)
    promises: list[dict[str, Any]] = [{"alpha": 0.01}, {"every": 1000.0}]
    for promise in promises:
        monitor = Monitor(sc.Mean(), Finite(2), **promise)
        monitor.update_many(rng.random(600), rng.random(600), np.ones((600, 2)))
        stored = json.loads(json.dumps(monitor.to_dict()))
        assert Monitor.from_dict(stored, sc.Mean(), Finite(2)).n_rows == 600
        for name, number in (
            ("log_wealth", 1e6),
            ("rows", 1e9),
            ("rows", 0.5),
            ("turn", 1e9),
            ("sounded", 7.0),
            ("counts", 0.5),
            ("counts", 1e300),
            ("open", 5.0),
            ("open", -5.0),
        ):
            forged = json.loads(json.dumps(stored))
            at = forged["arrays"][name]
            while isinstance(at[0], list):
                at = at[0]
            at[0] = number
            with pytest.raises(StateFileError, match="stored monitor"):
                Monitor.from_dict(forged, sc.Mean(), Finite(2))


# All of it: 200 here, 20,000 in the slow lane


def thrown(n: int, seed: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, resealed.__file__, str(n), str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["megabytes"] < resealed.LIMIT_MB
    assert report["seconds"] < resealed.LIMIT_SECONDS
    assert report["taken"] + report["refused"] == n
    assert 0.05 < report["taken"] / n < 0.8  # else it would be blind
    return report


def test_resealed_files() -> None:
    thrown(200 if ALL else 100, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_resealed_files_by_the_thousand(seed: int) -> None:
    thrown(2_000, seed=100 + seed)


def test_fault_19_a_run_that_does_not_say_where_its_output_stands(tmp_path: Path) -> None:
    runs = resealed.Runs(tmp_path)
    parts = entries(runs.state)
    parts["run.json"] = json.dumps(json.loads(parts["run.json"]) | {"output": None}).encode()
    with pytest.raises(StateFileError, match="does not say where its output stands"):
        runs.attempt(archived(parts))


@pytest.mark.parametrize(("name", "number"), [("function", 14.0), ("stratum", 2.0**31 - 1.0), ("place", 60.0)])
def test_fault_19_a_sample_of_functions_or_places_that_there_are_not(tmp_path: Path, name: str, number: float) -> None:
    """The first ended a run with an IndexError after its last row; the second asked for 16 GB."""
    runs = resealed.Runs(tmp_path)
    parts = entries(runs.state)
    entry = f"before.sample.{name}.npy"
    array = np.load(io.BytesIO(parts[entry]))
    array[7] = number
    with pytest.raises(StateFileError, match="damaged"):
        runs.attempt(archived({**parts, entry: packed(array)}))


@pytest.mark.parametrize("learner", [sc.learners.GradientDescent(2), sc.learners.MultiplicativeWeights(2)], ids=repr)
def test_fault_19_learners_with_a_clock_that_runs_backwards(learner: Any) -> None:
    """Their next step was not a number."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Oracle(learner), seed=1)
    for t in range(40):
        forecaster.update(forecaster.predict([0.5, 0.1 * (t % 3)]), 0.5 * (t % 2))
    parts = entries(saved(forecaster))
    states = np.load(io.BytesIO(parts["evidence.states.npy"]))
    assert resealed.use(load(archived(parts)))
    for wrong in (-states, states * 2.0, states + 1.0):
        with pytest.raises(StateFileError, match="contradict"):
            load(archived({**parts, "evidence.states.npy": packed(wrong)}))


@pytest.mark.parametrize("due", [0.0, 3.0, 101.0, -7.0])
def test_fault_19_a_next_note_that_is_always_due(tmp_path: Path, due: float) -> None:
    """With 3 a run never came to its end: three rounds and a quarter of them are three again."""
    runs = resealed.Runs(tmp_path)
    parts = entries(runs.state)
    with pytest.raises(StateFileError, match="damaged"):
        runs.attempt(archived({**parts, "history.due.npy": packed(np.array([due]))}))
