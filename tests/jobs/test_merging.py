"""Audits of many files: their sum is the audit of all rows, whoever adds them up."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from swapcal.cli.app import app
from swapcal.errors import InvalidInput
from swapcal.tasks import audit
from swapcal.tasks.audit import merge_audits, merged_sentences
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.merged_result import merged_result

QUESTION = TaskConfig("late", "score", ["city", "age"], low=0.0, high=1.0)


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
    question = TaskConfig("late", "score", ["city"], low=0.0, high=1.0)
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
        merge_audits(parts, TaskConfig("late", "score", linear=["age"]))


def test_small_tables_need_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [written(tmp_path, f"{k}.csv", table(50)) for k in range(2)]
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert audit._processes(files) == 1
    assert audit._processes([*files, str(tmp_path / "not there.csv")]) == 3
    monkeypatch.setattr(audit, "_SMALL", 100)
    assert audit._processes(files) == 3


def test_bands_come_from_the_first(tmp_path: Path) -> None:
    rows = table(2000)
    first = merge_audits([written(tmp_path, "a.csv", rows[:1000])], QUESTION, save=tmp_path / "a.audit")
    both = merge_audits([str(tmp_path / "a.audit"), written(tmp_path, "b.csv", rows[1000:])], QUESTION)
    assert both.n_rounds == 2000
    bands = [name for name in first.function_names if name.startswith("age ")]
    assert bands == [name for name in both.function_names if name.startswith("age ")]


@pytest.mark.usefixtures("few_diagrams")
def test_the_command(tmp_path: Path) -> None:
    rows = table(600)
    files = [written(tmp_path, f"{k}.csv", rows[300 * k : 300 * (k + 1)]) for k in range(2)]
    asked = ["--y", "late", "--p", "score", "--groups", "city"]
    told = CliRunner().invoke(app, ["audit", *files, "--merge", *asked, "--save", str(tmp_path / "sum.audit")])
    assert told.exit_code == 0, told.output
    assert "2 files: mean of late, 600 rows" in told.output
    assert "This is a sum of audits" in told.output
    page = tmp_path / "sum.html"
    saved = ["audit", str(tmp_path / "sum.audit"), "--merge", *asked]
    again = CliRunner().invoke(app, [*saved, "--json", "--report", str(page), "--fail-above", "90"])
    assert again.exit_code == 0, again.output
    alone = json.loads(again.stdout)["result"]
    assert alone["n_rounds"] == 600
    assert alone["verdict"]["headline"] in page.read_text()
    assert CliRunner().invoke(app, [*saved, "--fail-above", "0.1"]).exit_code == 1
    tails = CliRunner().invoke(app, ["audit", *files, "--merge", *asked, "--property", "quantile:0.9"])
    assert "600 rows of 2 files" in tails.output
    for wrong in ([*files, *asked], [*files, "--merge", "--cluster", "city", *asked]):
        refused = CliRunner().invoke(app, ["audit", *wrong])
        assert refused.exit_code == 2


@pytest.mark.parametrize("whole_numbers", [True, False])
def test_the_verdict_of_a_sum_is_that_of_all_rows(tmp_path: Path, whole_numbers: bool) -> None:
    rng = np.random.default_rng(3)
    rows = table(3000)
    for row in rows:
        row["score"] = float(rng.random())
        rate = min(0.8 * row["score"] + 0.1 * (row["age"] < 40), 1.0)
        row["late"] = float(rng.random() < rate) if whole_numbers else round(rate * float(rng.random()), 3)
    question = TaskConfig("late", "score", ["city", "age"], low=0.0, high=1.0, bins=32, prefix=3000)
    # Bands come from the first part there, and from all rows here: they are made the same by one part of all rows.
    one = audit.audit(written(tmp_path, "whole.csv", rows), question)
    empty = merge_audits([str(tmp_path / "whole.csv")], replace(question, prefix=10_000))
    parts = [sc.Audit(empty.property, empty.hypotheses, bins=32) for _ in range(3)]
    for k, part in enumerate(parts):
        some = rows[1000 * k : 1000 * (k + 1)]
        x = {name: [row[name] for row in some] for name in ("city", "age")}
        part.update_many([row["late"] for row in some], [row["score"] for row in some], x)
    total = parts[2]
    total.merge(parts[0])
    total.merge(parts[1])
    two = merged_result(total, source="3 parts", config=question.settings())
    assert two.verdict.kind == one.verdict.kind
    assert two.verdict.headline == one.verdict.headline
    assert two.verdict.sentences[0] == one.verdict.sentences[0]
    mine, theirs = two.before, one.before
    assert mine is not None
    assert theirs is not None
    for name in ("swap_error", "overall_error", "group_error", "typical", "constant_loss", "ideal_loss", "slope"):
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name
    assert (mine.n_cells, mine.n_biased, mine.n_material) == (theirs.n_cells, theirs.n_biased, theirs.n_material)
    assert mine.witness == theirs.witness
    assert mine.histogram == pytest.approx(theirs.histogram)
    assert mine.loss == pytest.approx(theirs.loss, abs=0.25 / 32**2)
    assert mine.known_groups.low == pytest.approx(theirs.known_groups.low[: len(mine.known_groups.low)], abs=1e-9)
    assert mine.curves.keys() == (theirs.curves.keys() if whole_numbers else set())
    for name, curve in mine.curves.items():
        assert curve.outcome == pytest.approx(theirs.curves[name].outcome, nan_ok=True)


def test_a_verdict_needs_sums_that_tell_outcomes() -> None:
    edges = sc.Audit(sc.Probability(), bins=[0.0, 0.5, 1.0])
    tails = sc.Audit(sc.Quantile(0.9))
    for each in (edges, tails):
        each.update_many([0.0, 1.0], [0.4, 0.6])
        with pytest.raises(InvalidInput, match="sums"):
            merged_result(each, source="rows")
    plain = sc.Audit(sc.Probability(), bins=4)
    plain.update_many([0.0, 1.0, 1.0], [0.4, 0.6, 0.6])
    assert merged_result(plain, source="rows").first.groups == ("all",)
