"""Records from files, streams, frames and lists: the same batches, bounded memory, one sentence for an error."""

import csv
import gzip
import importlib
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

from commands import run
from effort import crossed, some
from swapcal.errors import DataError, InvalidInput, MissingExtra
from swapcal.hypotheses import Groups
from swapcal.tables import sources
from swapcal.tables.batch import Batch, Coded
from swapcal.tables.records import RereadableSource, read
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig

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


def as_json_lines() -> bytes:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


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


@pytest.mark.parametrize(("kind", "skip"), crossed(SOURCES, [1, 149, 450, 999, 1000, 5000]))
def test_rows_can_be_skipped(kind: str, skip: int, tmp_path: Path) -> None:
    batches = list(read(SOURCES[kind](tmp_path), columns=["p"], skip=skip, batch_rows=200))
    numbers = np.concatenate([np.zeros(0), *(batch.numbers("p") for batch in batches)])
    assert np.array_equal(numbers, COLUMNS["p"][skip:])
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
    monkeypatch.setattr(sources, "BLOCK", 1 << 14)
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
    assert peak < 8 * sources.BLOCK


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (as_csv(), as_json_lines(), gzip.compress(as_csv())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        records = read("-", columns=["y"])
        assert records.name == "standard input"
        assert records.bytes_total is None
        assert sum(batch.numbers("y").sum() for batch in records) == sum(COLUMNS["y"])


def test_what_can_be_read_once_is_read_twice() -> None:
    rows = ({"y": float(t), "p": 0.5} for t in range(5_000))
    with RereadableSource(rows, ["y", "p"]) as passes:
        for _ in range(2):
            assert np.array_equal(np.concatenate([batch.numbers("y") for batch in passes.batches()]), np.arange(5_000))


def texts(column: Any) -> list[str | None]:
    assert isinstance(column, Coded)
    return [None if code < 0 else column.values[code] for code in column.codes]


def test_values_from_csv_stay_text_and_missing_is_missing(tmp_path: Path) -> None:
    data = b'code,n\n01,1\n1, 2\n"a,b",3.5e0\n"two\nlines",NA\n" 1",null\nNA,\n"",-4\n"NA","5"\n NA ,"NA"\n2" pipe,"5"'
    (batch,) = read(saved(tmp_path / "t.csv", data))
    assert texts(batch.column("code")) == ["01", "1", "a,b", "two\nlines", "1", None, None, "NA", None, '2" pipe']
    expected = [1.0, 2.0, 3.5, np.nan, np.nan, np.nan, -4.0, 5.0, np.nan, 5.0]
    assert np.array_equal(batch.numbers("n"), expected, equal_nan=True)
    (batch,) = read(saved(tmp_path / "t.csv", data.replace(b'pipe,"5"', b"pipe,5")))
    assert batch.n == 10


@settings(max_examples=some(150))
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
        patch.setattr(sources, "BLOCK", size)
        batches = list(read(io.BytesIO(written.getvalue().encode())))
    for name, column in zip("uv", zip(*table, strict=True), strict=True):
        cells = [cell for batch in batches for cell in texts(batch.column(name))]
        assert cells == [cell.strip() or None for cell in column]


@pytest.mark.parametrize("size", [5, 11, 64, 1 << 20])
def test_a_stray_quotation_mark_is_a_character(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", size)
    rows = b'2" pipe,1\n"two\nlines",2\n"in ""marks""",3\nplain,4\n"open" end,5\n' * 5
    batches = list(read(io.BytesIO(b"what,n\n" + rows)))
    assert np.array_equal(np.concatenate([batch.numbers("n") for batch in batches]), [1, 2, 3, 4, 5] * 5)
    with pytest.raises(DataError, match="row 26: a quotation mark is opened and never closed"):
        read_through(io.BytesIO(b"what,n\n" + rows + b'"lost,1\nx,2\n'), numbers=["n"])
    with pytest.raises(DataError, match="row 26: it has 1 cells where the header has 2"):
        read_through(io.BytesIO(b"what,n\n" + rows + b"lost\nx,2\n"), numbers=["n"])


@pytest.mark.parametrize(("tail", "rows"), [('1,0.5,"a b', 3), ("1,0.5", 3), ('1,0.5,"x\ny"\n1,0.25,"', 4), ("", 3)])
def test_quotation_marks_at_the_end_of_a_file_that_grows(tmp_path: Path, tail: str, rows: int) -> None:
    path = saved(tmp_path / "q.csv", ("y,p,g\n0,0.5,a\n1,0.75,b\n0,0.25,a\n" + tail).encode())
    records = read(path, whole_lines=True)
    assert sum(batch.n for batch in records) == rows
    assert (records.held is None) == (tail == "")


def test_a_program_may_end_before_its_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.csv", b"x,y\n" + b"abcdefgh,1\n" * 600_000)
    program = "import sys; from swapcal.tables.records import read; next(read(sys.argv[1], batch_rows=9)); sys.exit(7)"
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")


def test_a_column_may_change_its_face_after_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 1 << 12)
    rows = [f"{'' if k < 3000 else k},{k if k < 3000 else 'A' + str(k % 3)}" for k in range(5000)]
    path = saved(tmp_path / "t.csv", ("late,code\n" + "\n".join(rows)).encode())
    batches = list(read(path, batch_rows=500))
    late = np.concatenate([batch.numbers("late") for batch in batches])
    assert np.isnan(late[:3000]).all()
    assert np.array_equal(late[3000:], np.arange(3000, 5000))
    assert batches[-1].column("code").values == ("A0", "A1", "A2")
    with pytest.raises(DataError, match=r"t\.csv, row 3001, column 'code': 'A0' is not a number"):
        read_through(path, numbers=["code"], batch_rows=500)


CSV = b"age,income,city\n"

WRONG: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", r"t\.csv is empty; it needs a line of column names and at least one row"),
    "blank": ("t.csv", b" \n\n", r"t\.csv is empty"),
    "header only": ("t.csv", CSV, r"t\.csv has no rows"),
    "empty lines": ("t.csv", CSV + b"\n" * 50, r"t\.csv has no rows"),
    "near column": ("t.csv", b"age,incomes,city\n1,2,3\n", r"no column 'income' in .*t\.csv; did you mean 'incomes'\?"),
    "far column": ("t.csv", b"q,w\n1,2\n", r"no column 'age' in .*t\.csv; there are 'q', 'w'"),
    "twice": ("t.csv", b"age,age,income,city\n1,2,3,4\n", r"several columns 'age' in .*; rename all but one"),
    "text": ("t.csv", CSV + b"1,2,x\n3,old,x\n", r"t\.csv, row 2, column 'income': 'old' is not a number; correct it"),
    "underscore": ("t.csv", CSV + b"1,2,x\n3,1_0,x\n", r"t\.csv, row 2, column 'income': '1_0' is not a number"),
    "other digits": (
        "t.csv",
        CSV + "1,\u0663,x\n".encode(),
        r"t\.csv, row 1, column 'income': '\u0663' is not a number",
    ),
    "json underscore": ("t.jsonl", b'{"age": 1, "income": "1_0", "city": 1}', "row 1, column 'income': '1_0' is not a"),
    "beyond": ("t.csv", CSV + b"1,-1e101,x\n", r"row 1, column 'income': the number is beyond 1e\+100"),
    "infinite": ("t.csv", CSV + b"1,-inf,x\n", r"row 1, column 'income': the number is infinite"),
    "short row": ("t.csv", CSV + b"1,2,x\n3,4\n", r"t\.csv, row 2: it has 2 cells where the header has 3"),
    "long row": ("t.csv", CSV + b"1,2,x\n\n3,4,a,b\n", r"t\.csv, row 2: it has 4 cells where the header has 3"),
    "open quote": ("t.csv", CSV + b'1,2,x\n3,4,"x\n' + b"5,6,y\n" * 9, "row 2: a quotation mark is opened and never"),
    "long cell": ("t.csv", CSV + b'1,2,x\n3,4,"x\n' + b"5,6,y\n" * 3_000_000, "a quotation mark that is not closed"),
    "latin short": ("t.csv", CSV + b"1,2,x\n3,Z\xfcrich\n", r"t\.csv, row 2: it has 2 cells where the header has 3"),
    "latin": ("t.csv", CSV + b"1,2,x\n3,4,Z\xfcrich\n", r"row 2, column 'city': the bytes b'Z\\xfcrich' are no text"),
    "latin header": ("t.csv", b"\xe4ge,income,city\n1,2,3\n", "begins with text that is not UTF-8"),
    "latin number": ("t.csv", CSV + b"1,\xfc,x\n", r"row 1, column 'income': the bytes .* save the file as UTF-8"),
    "utf-16": ("t.csv", "age,income,city\n1,2,3".encode("utf-16"), "is text in UTF-16; save it as UTF-8"),
    "excel": ("t.csv", b"PK\x03\x04rest", "an Excel workbook; save the sheet as CSV"),
    "binary": ("t.csv", b"\x00\x01\x02\n", "bytes that are no text"),
    "cut gzip": ("t.csv.gz", gzip.compress(CSV + b"1,2,x\n" * 99_999)[:-900], r"t\.csv\.gz cannot be read to its end"),
    "bad gzip": ("t.csv.gz", b"\x1f\x8b" + b"x" * 100, "cannot be read to its end"),
    "no parquet": ("t.parquet", b"age,income\n", r"t\.parquet is not a whole Parquet file"),
    "empty parquet": ("t.parquet", b"", r"t\.parquet is empty"),
    "half parquet": ("t.dat", b"PAR1" + b"\x00" * 300, "is not a whole Parquet file"),
    "json text": (
        "t.jsonl",
        b'{"age": 1, "income": "old", "city": 1}',
        "row 1, column 'income': 'old' is not a number",
    ),
    "json list": ("t.jsonl", b'{"age": 1, "income": [2], "city": 1}', r"row 1, column 'income': \[2\] is not a number"),
    "no json": ("t.jsonl", b'{"age": 1, "income": 2, "city": 3}\n{"age"\n', "row 2: it is not one JSON object"),
    "json number": ("t.jsonl", b'{"age": 1, "income": 2, "city": 3}\n7\n', "row 2: it must be a mapping from column"),
    "json array": ("t.json", b'[{"age": 1}]', "is one JSON array; write one object a line"),
    "json column": ("t.jsonl", b'{"age": 1, "incom": 2, "city": 3}\n', "did you mean 'incom'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_wrong_gives_one_sentence(case: str, tmp_path: Path) -> None:
    name, data, sentence = WRONG[case]
    path = saved(tmp_path / name, data)
    with pytest.raises(DataError, match=sentence) as caught:
        read_through(path, numbers=["age", "income"], texts=["city"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_parquet_file_broken_in_the_middle(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", row_group_size=100, compression="snappy")
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    Path(path).write_bytes(bytes(data))
    with pytest.raises(DataError, match=r"t\.parquet is broken behind row \d+ "):
        read_through(path, numbers=["p"], batch_rows=50)


def test_a_parquet_file_without_rows_and_one_of_lists(tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    with pytest.raises(DataError, match="has no rows"):
        read(tmp_path / "none.parquet")
    pq.write_table(pa.table({"y": [1.0], "l": [[1, 2]]}), tmp_path / "lists.parquet")
    assert read(tmp_path / "lists.parquet").columns == ("y",)
    with pytest.raises(DataError, match=r"column 'l' of .* holds list"):
        read(tmp_path / "lists.parquet", columns=["l"])


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nowhere.csv", r"there is no file nowhere\.csv; check the name"),
        (".", r"\. is a folder"),
        ("a\0b.csv", "cannot be opened"),
        ({"y": []}, "the mapping has no rows"),
        ([], "the list of records has no rows"),
        (pd.DataFrame({"y": []}), "the pandas frame has no rows"),
        ({"y": [1, 2], "x": [1]}, "column 'x' of the mapping has 1 rows and 'y' has 2"),
        ({"y": "text"}, "must be a flat array or list"),
        ([3], "row 1: it must be a mapping from column to value; got 3"),
        (3.5, "records come from a path"),
        (io.StringIO("y\n1\n"), "open it as a binary stream"),
    ],
)
def test_sources_that_hold_nothing_or_are_none(source: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read(source)


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInput, match="skip must be a whole number"):
        read(COLUMNS, skip=-1)
    with pytest.raises(InvalidInput, match="batch_rows must be a whole number, 1 or more"):
        read(COLUMNS, batch_rows=0)
    with pytest.raises(DataError, match="columns must be a list of names"):
        read(COLUMNS, columns="y")
    with pytest.raises(DataError, match="there is no column 'z' in the mapping"):
        next(read(COLUMNS)).numbers("z")


def test_frames_with_odd_columns() -> None:
    frame = pd.DataFrame(
        {
            "mixed": ["a", 1, None],
            "when": pd.to_datetime(["2013-01-01", None, "2013-01-02"]),
            "kind": pd.Categorical(["u", None, "v"]),
            "flag": [True, False, True],
        }
    )
    batch = next(read(frame))
    assert [batch.column(name).codes.tolist() for name in ("mixed", "when", "kind")] == [
        [0, 1, -1],
        [0, -1, 1],
        [0, -1, 1],
    ]
    assert batch.numbers("flag").tolist() == [1.0, 0.0, 1.0]
    for name, shown in (("mixed", "'a'"), ("when", "2013"), ("kind", "'u'")):
        with pytest.raises(DataError, match=f"the pandas frame, row 1, column '{name}': .*{shown}.* is not a number"):
            batch.numbers(name)


QUESTION = TaskConfig("y", "p", groups=["g"], low=0, high=1, prefix=100)
ROWS: dict[str, Any] = {"y": RNG.random(300), "p": RNG.random(300)}


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_dictionaries_with_unsigned_indices(tmp_path: Path, kind: str) -> None:
    names = ["a", "b", None] * 100
    codes = pa.array([{"a": 0, "b": 1, None: None}[name] for name in names], pa.type_for_alias(kind))
    coded = pa.table({**ROWS, "g": pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]))})
    pq.write_table(coded, tmp_path / "coded.parquet")
    plain = audit({**ROWS, "g": names}, QUESTION)
    for source in (coded, tmp_path / "coded.parquet"):
        result = audit(source, QUESTION)
        assert result.first.groups == plain.first.groups == ("all", "g=a", "g=b", "g=missing")
        assert result.before.swap_error == plain.before.swap_error
    run(coded, QUESTION, state=tmp_path / "s")
    numbers = pa.DictionaryArray.from_arrays(codes, pa.array([0.0, 1.0]))
    assert audit(pa.table({**ROWS, "y": numbers, "g": names}), QUESTION).counts.without_outcome == 100


def test_frames_that_nobody_foresaw(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    categories = pl.Series(["a", "b", None] * 100, dtype=pl.Categorical)
    assert audit(pl.DataFrame({**ROWS, "g": categories}), QUESTION).first.groups == ("all", "g=a", "g=b", "g=missing")
    periods = frame.assign(g=pd.period_range("2020-01", periods=300, freq="M"))
    assert audit(periods, QUESTION).first.groups[1] == "g=2020-01"
    assert run(frame.assign(g=pd.cut(frame.y, 3)), QUESTION).counts.scored == 300
    truth = [{"y": bool(y > 0.5), "p": p, "g": "a"} for y, p in zip(*ROWS.values(), strict=True)]
    lines = saved(tmp_path / "t.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in truth))
    assert audit(lines, QUESTION).before.loss == audit(truth, QUESTION).before.loss, "truth values in JSON are numbers"
    for odd, words in (
        (frame.assign(g=[[1, 2]] * 300), "column 'g' of the pandas frame holds list"),
        (frame.assign(g=[{"a": 1}] * 300), "column 'g' of the pandas frame holds struct"),
        (frame.assign(g="a", y=[[1.0]] * 300), "column 'y' of the pandas frame holds list"),
        (pd.concat([frame, frame[["y"]]], axis=1).assign(g="a"), "several columns of the same name"),
        (frame.assign(g="a").rename(columns={"g": 7}), "there is no column 'g' in the pandas frame"),
        (pa.Table.from_arrays([*pa.table(ROWS).columns] * 2, names=["y", "p", "y", "g"]), "of the same name"),
    ):
        for ask in (audit, run):
            with pytest.raises(DataError, match=words):
                ask(odd, QUESTION)


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = saved(tmp_path / "t.csv", as_csv()), importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name.startswith(("pyarrow", "narwhals")):
            raise ModuleNotFoundError(name, name=name.partition(".")[0])
        return real(name, *rest)

    def broken(name: str) -> Any:
        raise ImportError("pyarrow requires NumPy 2.0 or newer, found 1.26.4", name="pyarrow.lib")

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtra, match=r"reading CSV needs the package pyarrow; .* 'swapcal\[files\]'"):
        read(path)
    with pytest.raises(MissingExtra, match="needs the package narwhals"):
        read(pd.DataFrame(COLUMNS))
    assert next(read(COLUMNS)).numbers("y").sum() == sum(COLUMNS["y"])
    assert len(list(read([{"y": 1}]))) == 1
    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(MissingExtra, match=r"cannot be loaded: pyarrow requires NumPy 2\.0 or newer, found 1\.26\.4"):
        sources.package("pyarrow", "reading CSV")


def test_a_batch_by_hand() -> None:
    batch = Batch("here", 10, 2, {"x": np.ma.masked_array([1, 2], [True, False]), "y": np.array([1, 0], dtype=bool)})
    assert np.array_equal(batch.numbers("x"), [np.nan, 2.0], equal_nan=True)
    assert batch.numbers("y").tolist() == [1.0, 0.0]
    assert batch["y"].values == (False, True)
    with pytest.raises(DataError, match="here, row 12, column 'z': 'b' is not a number"):
        Batch("here", 10, 2, {"z": ["1", "b"]}).numbers("z")
