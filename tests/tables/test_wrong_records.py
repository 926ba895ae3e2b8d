"""Files that are wrong, sources that hold nothing, extras that are missing: one sentence each."""

import builtins
import gzip
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from record_files import COLUMNS, as_csv, parquet, read_through, saved
from swapcal.errors import DataError, InvalidInput, MissingExtra
from swapcal.tables.batch import Batch
from swapcal.tables.records import read

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")


CSV = b"age,income,city\n"
WRONG: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", r"t\.csv is empty; it needs a line of column names and at least one row"),
    "blank": ("t.csv", b" \n\n", r"t\.csv is empty"),
    "header only": ("t.csv", CSV, r"t\.csv has no rows"),
    "empty lines": ("t.csv", CSV + b"\n" * 50, r"t\.csv has no rows"),
    "near column": ("t.csv", b"age,incomes,city\n1,2,3\n", r"no column 'income' in .*t\.csv; did you mean 'incomes'\?"),
    "far column": ("t.csv", b"q,w\n1,2\n", r"no column 'age' in .*t\.csv; it has 'q', 'w'"),
    "twice": ("t.csv", b"age,age,income,city\n1,2,3,4\n", r"several columns 'age' in .*; rename all but one"),
    "text": ("t.csv", CSV + b"1,2,x\n3,old,x\n", r"t\.csv, row 2, column 'income': 'old' is not a number; correct it"),
    "infinite": ("t.csv", CSV + b"1,-inf,x\n", r"row 1, column 'income': the number is infinite"),
    "short row": ("t.csv", CSV + b"1,2,x\n3,4\n", r"t\.csv, row 2: it has 2 cells where the header has 3"),
    "long row": ("t.csv", CSV + b"1,2,x\n\n3,4,a,b\n", r"t\.csv, row 2: it has 4 cells where the header has 3"),
    "open quote": ("t.csv", CSV + b'1,2,x\n3,4,"x\n' + b"5,6,y\n" * 9, "row 2: a quotation mark is opened and never"),
    "long cell": ("t.csv", CSV + b'1,2,x\n3,4,"x\n' + b"5,6,y\n" * 3_000_000, "a quotation mark that is not closed"),
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
    assert [batch.column(name).codes.tolist() for name in ("mixed", "when", "kind")] == [  # type: ignore[union-attr]
        [0, 1, -1],
        [0, -1, 1],
        [0, -1, 1],
    ]
    assert batch.numbers("flag").tolist() == [1.0, 0.0, 1.0]
    for name, shown in (("mixed", "'a'"), ("when", "2013"), ("kind", "'u'")):
        with pytest.raises(DataError, match=f"the pandas frame, row 1, column '{name}': .*{shown}.* is not a number"):
            batch.numbers(name)


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "t.csv", as_csv())
    real = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name.startswith(("pyarrow", "narwhals")):
            raise ModuleNotFoundError(name, name=name.partition(".")[0])
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtra, match=r"reading CSV needs the package pyarrow; .* 'swapcal\[files\]'"):
        read(path)
    with pytest.raises(MissingExtra, match="needs the package narwhals"):
        read(pd.DataFrame(COLUMNS))
    assert next(read(COLUMNS)).numbers("y").sum() == sum(COLUMNS["y"])
    assert builtins.len(list(read([{"y": 1}]))) == 1


def test_a_batch_by_hand() -> None:
    batch = Batch("here", 10, 2, {"x": np.ma.masked_array([1, 2], [True, False]), "y": np.array([1, 0], dtype=bool)})
    assert np.array_equal(batch.numbers("x"), [np.nan, 2.0], equal_nan=True)
    assert batch.numbers("y").tolist() == [1.0, 0.0]
    assert batch["y"].values == (False, True)  # type: ignore[union-attr]
    with pytest.raises(DataError, match="here, row 12, column 'z': 'b' is not a number"):
        Batch("here", 10, 2, {"z": ["1", "b"]}).numbers("z")
