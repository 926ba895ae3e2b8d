"""Files that were damaged at random, given to the commands; and what must be true then."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from commands import swapcal

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

__all__ = ["attack_files"]

CELLS = [
    "", " ", "x", "1e999", "-1e400", "nan", "NaN", "inf", "0x10", "1_0", "\u0663", "1,5", '"', '""', "'", "\x00", "-1",
    "1e308", "5e-324", "2", "0.5", "true", "null", "\ufeff1", "\u2028", "a" * 300, "2020-13-45", "1e18", "{}", "[",
    "\\",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, [], {}, [1], "", "x", "0.5", 10**400, 2**63, -1, 1e308, "\ud800", "\x1b[31m", 0.5, 2, "1e999", [[[]]],
]  # fmt: skip
NAMES = ("y", "p", "g", "w", "t", "k", "c", "pa", "pb", "id")
FORMS = [
    ("audit", "--y", "y", "--p", "p", "--groups", "g"),
    ("audit", "--y", "y", "--p", "p", "--weight", "w", "--discover"),
    ("run", "--y", "y", "--hint", "p", "--groups", "g", "--weight", "w"),
    ("run", "--y", "y", "--hint", "p", "--time", "t", "--known", "k"),
    ("run", "--y", "y", "--hint", "p", "--later", "--id", "id"),
    ("run", "--y", "y", "--hint", "p", "--interval", "0.8"),
    ("run", "--y", "c", "--p", "a=pa,b=pb", "--classes"),
    ("run", "--y", "y", "--hint", "p", "--groups", "g", "--learn"),
    ("watch", "--y", "y", "--p", "p", "--groups", "g"),
]


def _rows(rng: random.Random, n: int = 60) -> list[dict[str, Any]]:
    rows = []
    for t in range(n):
        p = round(rng.random(), 3)
        row: dict[str, Any] = {"y": int(rng.random() < p), "p": p, "g": rng.choice("ab"), "w": rng.randint(0, 3)}
        rows.append(row | {"t": 10 * t, "k": 10 * t + 25, "c": "ab"[row["y"]], "pa": p, "pb": round(1 - p, 3), "id": t})
    return rows


def _damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Some of them changed, lost, repeated, or all behind a place cut off."""
    at, n = rng.randrange(len(data) + 1), rng.randint(1, 40)
    how = rng.randrange(4)
    if how == 3:
        return data[:at]
    return data[:at] + (b"", rng.randbytes(n), data[at : at + n] * 50)[how] + data[at + n :]


def _file(rng: random.Random, folder: Path) -> Path:
    """A table with a few odd cells or damaged bytes in it, in one of the forms."""
    rows, ending = _rows(rng), rng.choice(["csv", "csv", "jsonl", "parquet"])
    path = folder / f"in.{ending if rng.random() < 0.97 else rng.choice(['csv', 'jsonl', 'parquet', 'gz', 'dat'])}"
    odd = [(rng.randrange(len(rows)), rng.choice(NAMES)) for _ in range(rng.choice([0, 1, 1, 2, 5]))]
    if ending == "csv":
        for t, name in odd:
            rows[t] = {**rows[t], name: rng.choice(CELLS)}
        lines = [",".join(NAMES), *(",".join(str(row[name]) for name in NAMES) for row in rows)]
        data = "\n".join(lines).encode("utf-8", "surrogatepass") + rng.choice([b"\n", b"", b"\n\n", b"\r\n"])
    elif ending == "jsonl":
        for t, name in odd:
            rows[t] = {**rows[t], name: rng.choice(VALUES)}
        data = "\n".join(map(json.dumps, rows)).encode() + b"\n"
    else:
        columns = {name: pa.array([row[name] for row in rows]) for name in NAMES}
        for _, name in odd:
            n, values = len(rows), columns[name].to_pylist()
            strange: list[Any] = [
                pa.nulls(n), pa.array([None] * n, pa.float64()), pa.array([[1]] * n), pa.array([b"\xff"] * n),
                pa.array([float("inf")] * n), pa.array([*map(str, values)]), pa.array([{"a": 1}] * n),
                pa.array([10**6] * n, pa.timestamp("us")),
            ]  # fmt: skip
            columns[name] = rng.choice(strange)
        parquet.write_table(pa.table(columns), path)
        data = path.read_bytes()
    path.write_bytes(_damaged_bytes(rng, data) if rng.random() < 0.4 else data)
    return path


def attack_files(folder: Path, n: int, seed: int = 1) -> Counter[str]:
    """Give so many files to a command; a count by what came of it, or an AssertionError for what must not be.

    Each is taken, or refused with one sentence. The file has the bytes that it had, and beside it lies what was asked
    for and nothing else.
    """
    counts: Counter[str] = Counter()
    for number in range(n):
        rng, place = random.Random(f"{seed} {number}"), folder / str(number)
        place.mkdir()
        path = _file(rng, place)
        before, (command, *asked) = path.read_bytes(), rng.choice(FORMS)
        files = ["--out", str(place / "out.csv"), "--state", str(place / "state")] if command == "run" else []
        by = (
            ["--by", "g", "--processes", "1"]
            if command == "run" and "--later" not in asked and number % 20 == 0
            else []
        )
        ended = swapcal(command, str(path), *asked, *files, *by)
        said = (number, command, asked, ended.output[-500:], ended.exception)
        assert ended.exit_code in ((0, 1, 2) if command == "watch" else (0, 2)), said  # 1: an alarm
        assert "Traceback" not in ended.output, said
        assert "unforeseen" not in ended.output, said
        refused = ended.exit_code == 2
        if refused:
            *notes, sentence = ended.stderr.splitlines()
            assert 20 < len(sentence) < 1000, said
            assert all(note.startswith(("warning: ", "the last line of ")) for note in notes), said
        assert path.read_bytes() == before, said
        assert {each.name for each in place.iterdir()} <= {path.name, "out.csv", "state"}, said
        counts["refused" if refused else "taken"] += 1
        for each in place.iterdir():
            each.unlink()
        place.rmdir()
    return counts
