"""Outputs that can be cut back to what was committed, and the state file that keeps where that is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from swapcal.errors import InvalidInput, StateFileError
from swapcal.tables.batch import Batch, Fingerprint
from swapcal.tasks import checkpoint, outputs
from swapcal.tasks.checkpoint import Checkpoint

parquet: Any = pytest.importorskip("pyarrow.parquet")

NAMES = ("row", "before", "forecast")
ENDINGS = ("csv", "jsonl", "parquet")


def part(first: int, n: int) -> dict[str, npt.NDArray[Any]]:
    rows = np.arange(first, first + n)
    before = np.where(rows % 3 == 0, np.nan, rows / 7.0)
    return {"row": rows, "before": before, "forecast": 1.0 / rows}


def rows_of(path: Path) -> list[tuple[int, float | None, float]]:
    if path.suffix == ".parquet":
        table = parquet.read_table(path).to_pydict()
        return list(zip(*(table[name] for name in NAMES), strict=True))
    lines = path.read_text().splitlines()
    if path.suffix == ".jsonl":
        return [tuple(json.loads(line)[name] for name in NAMES) for line in lines]
    assert lines[0] == "row,before,forecast"
    cells = (line.split(",") for line in lines[1:])
    return [(int(row), float(before) if before else None, float(forecast)) for row, before, forecast in cells]


def expected(n: int) -> list[tuple[int, float | None, float]]:
    return [(k, None if k % 3 == 0 else k / 7.0, 1.0 / k) for k in range(1, n + 1)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_come_back_to_the_last_digit(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    output = outputs.open_output(path, NAMES)
    for first in (1, 5, 9):
        output.append(part(first, 4))
    output.append(part(13, 0))
    output.finish()
    output.clear()
    output.close()
    assert rows_of(path) == expected(12)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_no_commit_knows_of_is_cut_off(tmp_path: Path, ending: str) -> None:
    """A run that was killed after rows that it did not commit goes on as if it had never written them."""
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    one = outputs.open_output(whole, NAMES)
    one.append(part(1, 20))
    one.finish()
    one.close()
    killed = outputs.open_output(path, NAMES)
    killed.append(part(1, 8))
    position = json.loads(json.dumps(killed.commit()))
    killed.append(part(9, 3))
    killed.commit()  # on the disk, but the state file still has the position before
    killed.close()
    for _ in range(2):
        again = outputs.open_output(path, NAMES, position)
        again.append(part(9, 6))
        later = again.commit()
        again.append(part(100, 6))
        again.close()
    last = outputs.open_output(path, NAMES, later)
    last.append(part(15, 6))
    last.finish()
    last.close()
    assert rows_of(path) == expected(20)
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_finished_output_can_grow(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    output = outputs.open_output(path, NAMES)
    output.append(part(1, 5))
    position = output.finish()
    output.clear()
    output.close()
    untouched = outputs.open_output(path, NAMES, position)
    assert untouched.finish() == position
    untouched.close()
    killed = outputs.open_output(path, NAMES, position)
    position = killed.reopened()  # kept before rows are appended, as they may be cut off again
    killed.append(part(6, 2))
    killed.commit()
    killed.close()
    again = outputs.open_output(path, NAMES, position)
    again.append(part(6, 5))
    middle = again.commit()
    again.close()
    last = outputs.open_output(path, NAMES, middle)
    last.append(part(11, 1))
    last.finish()
    last.clear()
    last.close()
    assert rows_of(path) == expected(11)


def test_row_groups_do_not_depend_on_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_GROUP_ROWS", 10)
    monkeypatch.setattr(outputs, "_PART_ROWS", 16)
    written = []
    for every in (1, 3, 100):
        path = tmp_path / f"out{every}.parquet"
        output = outputs.open_output(path, NAMES)
        for k in range(12):
            output.append(part(1 + 3 * k, 3))
            if k % every == 0:
                output.commit()
        output.finish()
        written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]
    file = parquet.ParquetFile(tmp_path / "out1.parquet")
    assert [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] == [10, 10, 10, 6]
    file.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_output_that_was_changed_is_not_continued(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    output = outputs.open_output(path, NAMES)
    output.append(part(1, 5))
    position = output.commit()
    output.close()
    if ending == "parquet":
        (tmp_path / "out.parquet.parts" / "000000.parquet").unlink()
    else:
        path.write_text("row,bef\n")
    with pytest.raises(StateFileError, match="put back the file as it was"):
        outputs.open_output(path, NAMES, position)
    done = {**position, "merged": True} if ending == "parquet" else position
    with pytest.raises(StateFileError, match="is gone"):
        outputs.open_output(tmp_path / f"nowhere.{ending}", NAMES, done)


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'out.xlsx' must end in .csv, .jsonl, .ndjson or .parquet"):
        outputs.open_output(tmp_path / "out.xlsx", NAMES)
    for ending in ENDINGS:
        with pytest.raises(InvalidInput, match="cannot be written"):
            outputs.open_output(tmp_path / "no" / "where" / f"out.{ending}", NAMES)


def a_checkpoint(**changes: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "asked": {"y": "late", "groups": ["a", ["a", "b"]], "seed": 3},
        "rows": 17,
        "digest": "abc",
        "out": "out.csv",
        "output": {"bytes": 5},
        "finished": False,
        "plain": {"n_missing": 2, "low": 0.1},
        "forecaster": b"\x00\x01 bytes",
        "arrays": {"before.sums": np.arange(6.0).reshape(2, 3), "flags": np.array([1.0, 2.0])},
    }
    return Checkpoint(**{**fields, **changes})


def test_a_state_file_holds_what_was_put_in(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    assert checkpoint.read_checkpoint(path) is None
    checkpoint.write(path, a_checkpoint())
    checkpoint.write(path, a_checkpoint(rows=18, output=None, finished=True))
    assert [item.name for item in tmp_path.iterdir()] == ["run.state"]
    back = checkpoint.read_checkpoint(path)
    assert back is not None
    assert (back.rows, back.digest, back.output, back.finished) == (18, "abc", None, True)
    assert back.asked == a_checkpoint().asked
    assert back.plain == a_checkpoint().plain
    assert back.forecaster == a_checkpoint().forecaster
    assert back.arrays.keys() == {"before.sums", "flags"}
    for name, array in a_checkpoint().arrays.items():
        assert back.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(back.arrays[name], array)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.state"
    checkpoint.write(path, a_checkpoint())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StateFileError, match=r"cannot be written \(no space left on device\)"):
        checkpoint.write(path, a_checkpoint(rows=99))
    assert path.read_bytes() == before


def test_damaged_and_foreign_state_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    checkpoint.write(path, a_checkpoint())
    whole = path.read_bytes()
    for cut in range(0, len(whole), 41):
        path.write_bytes(whole[:cut])
        words = "a whole state file" if cut else "a state file of swapcal run, and is left as it is"
        with pytest.raises(StateFileError, match=rf"run\.state is not {words}"):
            checkpoint.read_checkpoint(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(StateFileError, match="checksum is wrong"):
        checkpoint.read_checkpoint(path)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(StateFileError, match="is not a state file of swapcal run"):
        checkpoint.read_checkpoint(tmp_path / "other.npz")
    path.write_bytes(whole[:4] + b"\x07" + whole[5:])
    with pytest.raises(StateFileError, match="saved in format 7"):
        checkpoint.read_checkpoint(path)


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    asked = {"y": "late", "groups": ("a", ("a", "b")), "seed": 3}
    checkpoint.check_same(a_checkpoint().asked, asked, "run.state")
    with pytest.raises(StateFileError, match=r"run\.state belongs to a run with seed=3, and this one has seed=4"):
        checkpoint.check_same(a_checkpoint().asked, {**asked, "seed": 4}, "run.state")


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
