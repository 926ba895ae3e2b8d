"""Records from files, streams, frames and lists: the same batches, bounded memory, one sentence for an error."""

import csv
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from record_files import COLUMNS, N, as_csv, parquet, read_through, saved
from swapcal.errors import DataError
from swapcal.hypotheses import Groups
from swapcal.tables import text
from swapcal.tables.coded import Coded
from swapcal.tables.records import Records, read
from swapcal.tables.sources import Piece

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")


def as_json_lines() -> bytes:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": lambda d: saved(d / "t.csv", as_csv()),
    "path": lambda d: Path(saved(d / "t.csv", as_csv())),
    "semicolons": lambda d: saved(d / "t.csv", as_csv(";")),
    "tsv": lambda d: saved(d / "t.tsv", as_csv("\t")),
    "windows": lambda d: saved(d / "t.csv", b"\xef\xbb\xbf" + as_csv(end="\r\n")),
    "csv.gz": lambda d: saved(d / "t.csv.gz", gzip.compress(as_csv())),
    "two gz members": lambda d: saved(d / "t.gz", gzip.compress(as_csv()[:5000]) + gzip.compress(as_csv()[5000:])),
    "jsonl": lambda d: saved(d / "t.jsonl", as_json_lines()),
    "ndjson.gz": lambda d: saved(d / "t.ndjson.gz", gzip.compress(as_json_lines())),
    "parquet": lambda d: parquet(d / "t.parquet", row_group_size=150),
    "parquet by another name": lambda d: parquet(d / "t.dat", use_dictionary=False),
    "stream": lambda d: io.BytesIO(as_csv()),
    "json stream": lambda d: io.BytesIO(as_json_lines()),
    "parquet stream": lambda d: io.BytesIO(Path(parquet(d / "t.parquet")).read_bytes()),
    "pandas": lambda d: pd.DataFrame(COLUMNS),
    "polars": lambda d: pl.DataFrame(COLUMNS),
    "lazy polars": lambda d: pl.LazyFrame(COLUMNS),
    "pyarrow": lambda d: pa.table(COLUMNS),
    "mapping": lambda d: COLUMNS,
    "arrays": lambda d: {
        "city": np.array(COLUMNS["city"], dtype=object),
        **{name: np.array(COLUMNS[name], dtype=float) for name in ("age", "p", "y")},
    },
    "list": lambda d: [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    "generator": lambda d: (dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_batches_numbers_and_groups(kind: str, tmp_path: Path) -> None:
    groups, wanted = (Groups(["city", ("city", "y"), "age", "p >= 0.5"]) for _ in range(2))
    fitted, wanted_fit = (Groups(["city", "p", "age"]) for _ in range(2))
    firsts, ages, ys, indices = [], [], [], []
    with read(SOURCES[kind](tmp_path), columns=["y", "p", "age", "city"], batch_rows=300) as records:
        assert records.columns == ("y", "p", "age", "city")
        for batch in records:
            if not batch.first:
                fitted.fit(batch)
            firsts.append((batch.first, batch.n, len(batch)))
            ages.append(batch.numbers("age"))
            ys.append(batch.numbers("y"))
            indices.append(groups.rows(batch, batch.n).indices)
            fitted.rows(batch, batch.n)
    assert firsts == [(0, 300, 300), (300, 300, 300), (600, 300, 300), (900, 100, 100)]
    expected = [np.nan if value is None else value for value in COLUMNS["age"]]
    assert np.array_equal(np.concatenate(ages), expected, equal_nan=True)
    assert np.array_equal(np.concatenate(ys), COLUMNS["y"])
    assert all(part.dtype == np.float64 for part in ages + ys)
    assert np.array_equal(np.concatenate(indices), wanted.rows(COLUMNS, N).indices)
    assert groups.names == wanted.names
    wanted_fit.fit({name: values[:300] for name, values in COLUMNS.items()})
    wanted_fit.rows(COLUMNS, N)
    assert fitted.edges == wanted_fit.edges
    assert fitted.names == wanted_fit.names


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("skip", [1, 149, 450, 999, 1000, 5000])
def test_rows_can_be_skipped(kind: str, skip: int, tmp_path: Path) -> None:
    batches = list(read(SOURCES[kind](tmp_path), columns=["p"], skip=skip, batch_rows=200))
    found = np.concatenate([np.zeros(0), *(batch.numbers("p") for batch in batches)])
    assert np.array_equal(found, COLUMNS["p"][skip:])
    assert not batches or batches[0].first == skip


def test_sizes_and_progress(tmp_path: Path) -> None:
    body = b"x,y\n" + b"".join(b"%x,1\n" % x for x in np.random.default_rng(0).integers(0, 2**60, 250_000).tolist())
    for name, data in (("t.csv", body), ("t.csv.gz", gzip.compress(body, 1))):
        records = read(saved(tmp_path / name, data), columns=["y"])
        done = [records.bytes_done for _ in records]
        assert records.bytes_total == len(data)
        assert records.n_rows is None
        assert done == sorted(done)
        assert 0 < done[0] < len(data) / 2
        assert 0.9 * len(data) <= done[-1] <= len(data)
    records = read(parquet(tmp_path / "t.parquet", row_group_size=100), batch_rows=100)
    assert (records.n_rows, records.columns) == (N, tuple(COLUMNS))
    done = [records.bytes_done for _ in records]
    assert done[-1] == records.bytes_total
    assert done == sorted(done)
    assert read(COLUMNS).n_rows == N
    assert read(COLUMNS).name == "the mapping"


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_file(packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 1 << 14)
    rows = b"".join(b"city%d,%d\n" % (k % 20, k) for k in range(200_000))
    data = b"city,k\n" + rows
    source: Any = io.BytesIO(gzip.compress(data, 1)) if packed else saved(tmp_path / "t.csv", data)
    before, peak, total = pa.total_allocated_bytes(), 0, 0.0
    for batch in read(source, batch_rows=1000):
        total += float(batch.numbers("k").sum())
        batch.column("city")
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert total == 200_000 * 199_999 / 2
    # The whole file would be 160 blocks.
    assert peak < 8 * text.BLOCK


def test_one_batch_is_alive_at_a_time() -> None:
    alive, most = 0, 0

    class Column(list[Any]):
        def __init__(self, *values: Any) -> None:
            nonlocal alive, most
            super().__init__(*values)
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    pieces = map(lambda k: Piece(10, {"x": Column(range(10))}), range(50))  # noqa: C417 - a generator would keep one
    table = read({"x": [1]})._table._replace(pieces=pieces)
    n = 0
    for batch in Records(table, 0, 10):
        n += int(batch.numbers("x").size)
        del batch
    assert n == 500
    assert most == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (as_csv(), as_json_lines(), gzip.compress(as_csv())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        records = read("-", columns=["y"])
        assert records.name == "standard input"
        assert records.bytes_total is None
        assert sum(batch.numbers("y").sum() for batch in records) == sum(COLUMNS["y"])


def test_values_from_csv_stay_text_and_missing_is_missing(tmp_path: Path) -> None:
    data = b'code,n\n01,1\n1, 2\n"a,b",3.5e0\n"two\nlines",NA\n" 1",null\nNA,\n"",-4\n2" pipe,"5"'
    (batch,) = read(saved(tmp_path / "t.csv", data))
    codes = batch.column("code")
    assert isinstance(codes, Coded)
    found = [None if k < 0 else codes.values[k] for k in codes.codes]
    assert found == ["01", "1", "a,b", "two\nlines", "1", None, None, '2" pipe']
    assert np.array_equal(batch.numbers("n"), [1.0, 2.0, 3.5, np.nan, np.nan, np.nan, -4.0, 5.0], equal_nan=True)
    (batch,) = read(saved(tmp_path / "t.csv", data.replace(b'"5"', b"5")))
    assert batch.n == 8


@settings(max_examples=some(150), deadline=None)
@given(
    table=st.lists(st.tuples(*[st.text('ab",;\n 1', max_size=8)] * 2), min_size=1, max_size=30),
    size=st.integers(1, 60),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_rows_are_cut_where_they_end(table: list[tuple[str, str]], size: int, quoting: Any, end: str) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator=end, quoting=quoting).writerows([("u", "v"), *table])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK", size)
        batches = list(read(io.BytesIO(written.getvalue().encode())))
    for name, column in zip("uv", zip(*table, strict=True), strict=True):
        found: list[str | None] = []
        for batch in batches:
            coded = batch.column(name)
            assert isinstance(coded, Coded)
            found += [None if code < 0 else coded.values[code] for code in coded.codes]
        assert found == [cell.strip() or None for cell in column]


@pytest.mark.parametrize("size", [5, 11, 64, 1 << 20])
def test_a_stray_quotation_mark_is_a_character(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    rows = b'2" pipe,1\n"two\nlines",2\n"in ""marks""",3\nplain,4\n"open" end,5\n' * 5
    batches = list(read(io.BytesIO(b"what,n\n" + rows)))
    assert np.array_equal(np.concatenate([batch.numbers("n") for batch in batches]), [1, 2, 3, 4, 5] * 5)
    with pytest.raises(DataError, match="row 26: a quotation mark is opened and never closed"):
        read_through(io.BytesIO(b"what,n\n" + rows + b'"lost,1\nx,2\n'), numbers=["n"])
    with pytest.raises(DataError, match="row 26: it has 1 cells where the header has 2"):
        read_through(io.BytesIO(b"what,n\n" + rows + b"lost\nx,2\n"), numbers=["n"])


def test_a_program_may_end_before_its_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.csv", b"x,y\n" + b"abcdefgh,1\n" * 600_000)
    program = "import sys; from swapcal.tables.records import read; next(read(sys.argv[1], batch_rows=9)); sys.exit(7)"
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")


def test_a_column_may_change_its_face_after_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 1 << 12)
    rows = [f"{'' if k < 3000 else k},{k if k < 3000 else 'A' + str(k % 3)}" for k in range(5000)]
    path = saved(tmp_path / "t.csv", ("late,code\n" + "\n".join(rows)).encode())
    batches = list(read(path, batch_rows=500))
    late = np.concatenate([batch.numbers("late") for batch in batches])
    assert np.isnan(late[:3000]).all()
    assert np.array_equal(late[3000:], np.arange(3000, 5000))
    assert batches[-1].column("code").values == ("A0", "A1", "A2")  # type: ignore[union-attr]
    with pytest.raises(DataError, match=r"t\.csv, row 3001, column 'code': 'A0' is not a number"):
        read_through(path, numbers=["code"], batch_rows=500)
