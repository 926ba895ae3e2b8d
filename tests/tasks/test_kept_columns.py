"""What an output has beside forecasts: columns of the file, bit for bit; and rows with a wrong cell, passed over."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import run, swapcal
from swapcal.errors import DataError, InvalidInput
from swapcal.tasks.audit import audit
from swapcal.tasks.by_key import run_by_key
from swapcal.tasks.config import TaskConfig

N = 600


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, N)
    made = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(N) * 30, unit="min")
    return pd.DataFrame(
        {
            "id": [f"a, {k}" if k % 7 == 0 else f"00{k}" for k in range(N)],
            "count": rng.integers(0, 2**62, N),
            "score": p,
            "late": (rng.random(N) < p).astype(int),
            "made": made,
            "known": made + pd.to_timedelta(rng.integers(0, 500, N), unit="min"),
            "store": rng.choice(["x", "y"], N),
        }
    )


QUESTION = TaskConfig("late", "score", ["store"], seed=3, against=["none"], keep=["all"])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("by", [None, "store"])
def test_columns_of_the_file_stay_bit_for_bit(tmp_path: Path, ending: str, by: str | None) -> None:
    frame = table()
    source, out = tmp_path / "rows.parquet", tmp_path / f"out.{ending}"
    frame.to_parquet(source)
    if by is None:
        run(source, QUESTION, out=out)
    else:
        run_by_key(source, TaskConfig("late", "score", by=by, seed=3, keep=["all"]), out=out, processes=1)
    kinds: dict[str, Any] = {"id": str, "count": "int64", "store": str}
    if ending == "parquet":
        kept = pd.read_parquet(out)
    elif ending == "csv":
        kept = pd.read_csv(out, dtype=str).astype(kinds)
        kept[["score", "before"]] = kept[["score", "before"]].map(float)
        kept["late"] = kept["late"].astype(int)
        kept[["made", "known"]] = kept[["made", "known"]].apply(pd.to_datetime)
    else:
        kept = pd.DataFrame([json.loads(line) for line in out.read_text().splitlines()])
        kept[["made", "known"]] = kept[["made", "known"]].apply(pd.to_datetime)
    assert list(kept) == ["row", *frame, "before", "forecast"]
    for name in frame:
        assert kept[name].tolist() == frame[name].tolist(), name
    assert kept["before"].tolist() == frame["score"].tolist()


def test_texts_of_a_csv_file_stay_as_they_stand(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows = [f"{k % 2},0.{k + 100}0,{k:04d},{k}.50" for k in range(99)]
    path.write_text("\n".join(["late,score,code,price", *rows]) + "\n")
    run(path, TaskConfig("late", "score", seed=1, keep=["code", "price"]), out=out)
    head, *lines = out.read_text().splitlines()
    assert head == "row,code,price,before,forecast"
    assert [line.split(",")[1:3] for line in lines] == [row.split(",")[2:] for row in rows]


def test_a_name_of_the_output_is_refused(tmp_path: Path) -> None:
    frame = table().rename(columns={"count": "forecast"})
    with pytest.raises(InvalidInput, match="'forecast' as well"):
        run(frame, QUESTION, out=tmp_path / "out.csv")


def bad_rows(tmp_path: Path) -> Path:
    frame = table(1).astype(object)
    frame.loc[10, "score"] = "abc"
    frame.loc[20, "late"] = "inf"
    frame.loc[30, "known"] = pd.Timestamp("2020-01-01")
    frame.loc[40, "made"] = "soon"
    path = tmp_path / "bad.csv"
    frame.to_csv(path, index=False)
    return path


def test_bad_rows_are_passed_over_and_counted(tmp_path: Path) -> None:
    """They are forecast, not learned from and not scored: as if nobody had known their outcomes."""
    path, out, other = bad_rows(tmp_path), tmp_path / "out.csv", tmp_path / "other.csv"
    question = TaskConfig("late", "score", ["store"], time="made", known="known", seed=3, against=["none"])
    with pytest.raises(DataError, match=r"row 11|row 21|row 31|row 41"):
        run(path, question, out=other)
    other.unlink(missing_ok=True)
    found = run(path, replace(question, bad_rows="skip"), out=out)
    assert (found.counts.bad_rows, found.counts.scored, found.counts.rows) == (4, N - 4, N)
    assert "4 rows with a cell that is no number" in str(found)
    clean = table(1)
    clean.loc[10, "score"] = np.nan
    clean["late"] = clean["late"].astype(float)
    clean.loc[[10, 20, 30, 40], "late"] = np.nan
    clean.loc[40, "made"] = clean.loc[39, "made"]
    clean.loc[40, "known"] = max(clean.loc[40, "known"], clean.loc[40, "made"])
    clean["made"], clean["known"] = clean["made"].astype(str), clean["known"].astype(str)
    run(clean.to_dict("list"), question, out=other)
    assert out.read_text() == other.read_text()


def test_an_audit_counts_them_too(tmp_path: Path) -> None:
    path = bad_rows(tmp_path)
    question = TaskConfig("late", "score", ["store"], bad_rows="skip")
    found = audit(path, question)
    assert (found.counts.bad_rows, found.counts.scored) == (2, N - 2)
    with pytest.raises(DataError, match=r"not a number|infinite"):
        audit(path, TaskConfig("late", "score", ["store"]))


def test_a_run_by_key_says_a_verdict_with_losses(tmp_path: Path) -> None:
    """On the terminal as any run does: predicted and observed of groups, and the losses on the same rows."""
    frame = table(2)
    frame["late"] = (np.random.default_rng(5).random(N) < frame["score"] * np.where(frame["store"] == "x", 0.6, 1)) * 1
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    told = swapcal("run", str(path), "--y", "late", "--p", "score", "--groups", "store", "--by", "store", "--seed", "1")
    text = told.stdout
    assert "BIASED" in text or "CORRECTED" in text or "IMPROVED" in text
    assert "Brier score 0." in text
    assert "->" in text
    line = next(each for each in text.splitlines() if each.startswith(("  store=x ", "* store=x ")))
    shares = {name: 100 * float(part.mean()) for name, part in frame[frame["store"] == "x"][["score", "late"]].items()}
    assert f"{shares['score']:.1f} %" in line
    assert f"{shares['late']:.1f} %" in line
