"""Audits of many files: their sum is the audit of all rows, whoever adds them up."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from swapcal.cli.app import app
from swapcal.errors import InvalidInput
from swapcal.jobs.merging import merge_audits, merged_sentences
from swapcal.jobs.question import Question

QUESTION = Question("late", "score", ["city", "age"], low=0.0, high=1.0)


def written(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    with (folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(folder / name)


def table(n: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "late": int(rng.random() < 0.3),
            "score": float(rng.integers(0, 9)) / 8,
            "city": f"city {rng.zipf(1.4)}"[:8],
            "age": float(rng.integers(18, 90)),
        }
        for _ in range(n)
    ]


def named(audit: sc.Audit) -> dict[str, list[Any]]:
    found = audit.table()
    return {name: found.xv[:, j].tolist() + found.active[:, j].tolist() for j, name in enumerate(audit.function_names)}


def test_files_and_saved_audits_add_up_to_the_whole(tmp_path: Path) -> None:
    rows = table(3000)
    whole = merge_audits([written(tmp_path, "whole.csv", rows)], QUESTION, processes=1)
    assert whole.n_rounds == 3000
    parts = [written(tmp_path, f"{k}.csv", rows[1000 * k : 1000 * (k + 1)]) for k in range(3)]
    question = Question("late", "score", ["city"], low=0.0, high=1.0)
    whole = merge_audits([str(tmp_path / "whole.csv")], question, processes=1)
    together = merge_audits(parts, question, processes=2)
    assert named(together) == named(whole)
    merge_audits(parts[1:2], question, save=tmp_path / "one.audit")
    saved = merge_audits([str(tmp_path / "one.audit"), parts[2], parts[0]], question, save=tmp_path / "all.audit")
    assert named(saved) == named(whole)
    assert named(sc.Audit.from_bytes((tmp_path / "all.audit").read_bytes())) == named(whole)
    assert merged_sentences(saved, 3)[0].startswith("3,000 rows of 3 files")
    with pytest.raises(InvalidInput, match=r"ends in \.audit"):
        merge_audits(parts[:1], question, save=tmp_path / "one.csv")
    with pytest.raises(InvalidInput, match="without --linear"):
        merge_audits(parts, Question("late", "score", linear=["age"]))


def test_bands_come_from_the_first(tmp_path: Path) -> None:
    rows = table(2000)
    first = merge_audits([written(tmp_path, "a.csv", rows[:1000])], QUESTION, save=tmp_path / "a.audit")
    both = merge_audits([str(tmp_path / "a.audit"), written(tmp_path, "b.csv", rows[1000:])], QUESTION)
    assert both.n_rounds == 2000
    bands = [name for name in first.function_names if name.startswith("age ")]
    assert bands == [name for name in both.function_names if name.startswith("age ")]


def test_the_command(tmp_path: Path) -> None:
    rows = table(600)
    files = [written(tmp_path, f"{k}.csv", rows[300 * k : 300 * (k + 1)]) for k in range(2)]
    asked = ["--y", "late", "--p", "score", "--groups", "city"]
    told = CliRunner().invoke(app, ["audit", *files, "--merge", *asked, "--save", str(tmp_path / "sum.audit")])
    assert told.exit_code == 0, told.output
    assert "600 rows of 2 files" in told.output
    again = CliRunner().invoke(app, ["audit", str(tmp_path / "sum.audit"), "--merge", *asked])
    assert "600 rows of 1 files" in again.output
    refused = CliRunner().invoke(app, ["audit", *files, *asked])
    assert refused.exit_code == 2
