"""Writes and reads the files of the tests of records."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapcal.tables.records import read

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

N = 1000
RNG = np.random.default_rng(0)
COLUMNS: dict[str, list[Any]] = {
    "city": [None if k % 11 == 0 else ["Oslo", "Rome", "New York"][k % 3] for k in range(N)],
    "age": [None if k % 13 == 0 else int(20 + k % 50) for k in range(N)],
    "p": [float(value) for value in RNG.random(N).round(6)],
    "y": [int(value) for value in RNG.integers(0, 2, N)],
}


def as_csv(delimiter: str = ",", end: str = "\n") -> bytes:
    rows = [tuple(COLUMNS), *zip(*COLUMNS.values(), strict=True)]
    lines = [delimiter.join("" if value is None else str(value) for value in row) for row in rows]
    return (end.join(lines) + end).encode()


def saved(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def parquet(path: Path, **options: Any) -> str:
    pq.write_table(pa.table(COLUMNS), path, **options)
    return str(path)


def read_through(path: Any, numbers: list[str], texts: list[str] | None = None, **options: Any) -> None:
    for batch in read(path, columns=[*numbers, *(texts or [])], **options):
        for name in numbers:
            batch.numbers(name)
        for name in texts or []:
            batch.column(name)
