"""Parts of a stream, in any cut and order, are the whole: sums of audits, summaries of columns, verdicts of files."""

import csv
import html
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import refused, swapcal
from swapcal.audits.column import PARTS, USUAL, Column
from swapcal.audits.summary import ColumnSummary
from swapcal.errors import InvalidInput
from swapcal.tasks import audit
from swapcal.tasks.audit import merge_audits, mergeable_column, merged_result
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import _plain as plain_data
from swapcal.typing import Float64Array, IntArray

N, N_PARTS = 1600, 8
QUESTION = TaskConfig("late", "score", ["city", "age"], low=0.0, high=1.0)


def groups() -> sc.Groups:
    return sc.Groups(["city", ("city", "sex"), "age >= 60"], limit=200)


def stream(exact: bool = True) -> tuple[dict[str, list[Any]], Float64Array, Float64Array]:
    """Groups, forecasts and outcomes; exact ones have sums that are so in any order."""
    rng = np.random.default_rng(0)
    city = [f"city {k}" if k < 6 else None for k in rng.zipf(1.3, N).clip(0, 6).tolist()]
    x = {"city": city, "sex": rng.choice(["f", "m"], N).tolist(), "age": rng.integers(18, 90, N).tolist()}
    p = rng.integers(0, 9, N) / 8.0 if exact else rng.random(N)
    return x, p, (rng.random(N) < 0.4 + 0.2 * (p > 0.5)).astype(float)


def rows_at(x: dict[str, list[Any]], at: IntArray) -> dict[str, list[Any]]:
    return {name: [values[t] for t in at.tolist()] for name, values in x.items()}


def added_up(parts: list[Any], order: str) -> Any:
    """The sum of audits or columns, each sent as bytes first."""
    parts = [type(part).from_bytes(part.to_bytes()) for part in parts]
    if order == "backwards":
        parts.reverse()
    elif order == "shuffled":
        parts = [parts[k] for k in np.random.default_rng(3).permutation(len(parts))]
    while order == "by tree" and len(parts) > 1:
        for one, other in zip(parts[::2], parts[1::2], strict=True):
            one.merge(other)
        parts = parts[::2]
    for part in parts[1:]:
        parts[0].merge(part)
    return parts[0]


# Audits.


def by_name(audit: sc.Audit) -> dict[str, Any]:
    table = audit.table()
    return {
        name: [table.value.tolist(), *(getattr(table, s)[:, j].tolist() for s in ("xv", "active", "weight", "xvxv"))]
        for j, name in enumerate(audit.function_names)
    }


def test_adding_changes_neither_part_and_room_is_made() -> None:
    def one(city: str) -> sc.Audit:
        audit = sc.Audit(sc.Probability(), sc.Groups(["city"], limit=4))
        audit.update_many([1.0, 0.0], [0.5, 0.5], {"city": [city, None]})
        return audit

    first, second = one("Paris"), one("Rome")
    both = first + second
    for k in range(5):
        both = both + one(f"town {k}")
    assert first.function_names == ("all", "city=Paris", "city=missing")
    assert second.function_names == ("all", "city=Rome", "city=missing")
    assert set(both.function_names) >= {"all", "city=Paris", "city=Rome", "city=missing", "city=town 4"}
    assert both.table().active.sum() == 4 * 7
    assert by_name(sc.Audit.from_bytes(both.to_bytes())) == by_name(both)
    both.update(1.0, 0.5, {"city": "Rome"})
    assert both.table().active[0, both.function_names.index("city=Rome")] == 2


def test_bands_must_be_the_same() -> None:
    def one(shift: int) -> sc.Audit:
        bands = sc.Groups(["age"])
        bands.fit({"age": [float(k + shift) for k in range(100)]})
        audit = sc.Audit(sc.Probability(), bands)
        audit.update_many([1.0], [0.5], {"age": [30.0]})
        return audit

    one(0).merge(one(0))
    with pytest.raises(InvalidInput, match="settings; theirs differ in hypotheses"):
        one(0).merge(one(7))


# Columns.


def filled(empty: Column, x: dict[str, list[Any]], p: Float64Array, y: Float64Array, **more: Any) -> Column:
    column = Column.from_bytes(empty.to_bytes())
    column.add(y, p, column.functions.rows(x, len(y)), **more)
    return column


def told(summary: ColumnSummary, names: tuple[str, ...]) -> dict[str, Any]:
    """All that a summary says, groups by their names and not by where they are."""
    plain = plain_data(summary)
    table = plain.pop("groups")
    for name in ("name", "exact", "clusters", "anytime", "few_clusters"):
        plain[name] = table.pop(name)
    plain["groups"] = {
        name: [column[j] for column in table.values()] for j, name in enumerate(plain.pop("name")) if table["rows"][j]
    }
    for name in ("bias", "counts"):
        columns = np.array(plain.pop(name), dtype=float).T
        plain[name] = {each: columns[j].tolist() for j, each in enumerate(names)}
    plain["worst"] = [cell["contribution"] for cell in plain["worst"]]
    return dict(plain)


def assert_alike(one: Any, other: Any, at: str = "") -> None:
    """The same but for the rounding of sums; NaN is NaN."""
    assert type(one) is type(other), at
    if isinstance(one, dict):
        assert one.keys() == other.keys(), at
        for name in one:
            assert_alike(one[name], other[name], f"{at}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), at
        for k, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            assert_alike(mine, theirs, f"{at}/{k}")
    elif isinstance(one, float):
        # Chance is drawn group by group, in the order in which they have come up.
        near = 0.1 if "chance" in at else 1e-7
        assert one == pytest.approx(other, rel=near, abs=1e-9, nan_ok=True), at
    else:
        assert one == other, at


@pytest.mark.parametrize(
    ("property", "bins", "order"),
    [
        (sc.Probability(), 32, "backwards"),
        (sc.Probability(), None, "by tree"),
        (sc.Mean(), [0.0, 0.3, 0.6, 1.0], "shuffled"),
        (sc.Mean(low=0.0, high=2.0), 16, "as they are"),
        (sc.Quantile(0.8), 8, "backwards"),
        (sc.Expectile(0.7), 8, "shuffled"),
    ],
    ids=str,
)
def test_columns_of_parts_have_the_summary_of_the_whole(property: Any, bins: Any, order: str) -> None:
    x, p, y = stream()
    if isinstance(property, sc.Quantile | sc.Expectile):
        y = np.round(np.random.default_rng(1).random(N) * (0.5 + p / 2), 3)
    empty = mergeable_column(property, groups(), bins, y[:100])
    whole = filled(empty, x, p, y)
    cuts = np.split(np.arange(N), np.sort(np.random.default_rng(2).choice(N, N_PARTS - 1, replace=False)))
    total = added_up([filled(empty, rows_at(x, at), p[at], y[at]) for at in cuts], order)
    assert total.binary == whole.binary
    assert_alike(told(total.summary(), total.names), told(whole.summary(), whole.names))
    # Scores of events need every forecast value by itself, or fine bins.
    events = property.domain == (0.0, 1.0) and isinstance(property, sc.Probability | sc.Mean)
    assert (total.summary().scores is not None) == events


def test_weights_clusters_means_a_constant_and_a_linear_class_add_up_too() -> None:
    x, p, y = stream(exact=False)
    rng = np.random.default_rng(5)
    z, w, days = rng.normal(size=(N, 2)), rng.random(N), np.repeat(np.arange(N // 8), 8)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0)
    edges = np.linspace(0.0, 1.0, 9)
    audits = sc.Audit(sc.Mean(), groups(), bins=edges), sc.Audit(sc.Mean(), sc.Linear(2), bins=edges)
    settings: dict[str, Any] = {"first": y, "constant": 0.4, "fine": edges[1:-1], "means": ("width",)}
    empty = Column(*audits, label="the model", **settings, parts=(*USUAL, "clusters"))

    def part(at: IntArray) -> Column:
        numbers = (w[at] + 1.0,)
        linear = sc.Linear(2).rows(z[at], len(at))
        return filled(
            empty, rows_at(x, at), p[at], y[at], linear=linear, weights=w[at], clusters=days[at], numbers=numbers
        )

    whole = part(np.arange(N))
    total, other = part(np.arange(800)), part(np.arange(800, N))
    before = other.to_bytes()
    assert total.merge(other) == ("timeline", "sample")
    assert other.to_bytes() == before
    assert [name for name in PARTS if getattr(total, name) is None] == ["timeline", "sample"]
    mine, theirs = told(total.summary(), total.names), told(whole.summary(), whole.names)
    for name in ("chance_mean", "chance_high", "histories", "since"):
        mine.pop(name), theirs.pop(name)
    assert_alike(mine, theirs)
    widths = [
        dict(zip(each.audit.function_names, each.means.of("width"), strict=False))
        for each in (total, whole)
        if each.means is not None
    ]
    assert widths[0] == pytest.approx(widths[1])
    # An empty column takes over all that another has, in its own order of groups.
    copy = empty.emptied()
    assert copy.merge(whole) == ()
    assert_alike(told(copy.summary(), copy.names), told(whole.summary(), whole.names))


def test_what_does_not_fit_is_refused_or_falls_away() -> None:
    x, p, y = stream()

    def one(**settings: Any) -> Column:
        return filled(Column(sc.Audit(sc.Mean(), groups()), label="the model", **settings), x, p, y)

    with pytest.raises(InvalidInput, match="same linear class and constant"):
        one().merge(one(constant=0.5))
    with pytest.raises(InvalidInput, match="bins of forecasts"):
        one().merge(one(shown=10))
    with pytest.raises(InvalidInput, match="bins of outcomes"):
        one().merge(one(first=np.arange(3) / 2))
    fine = one(fine=np.array([0.5]), parts=("histograms",))
    assert fine.merge(one(fine=np.array([0.4]), parts=("histograms",))) == ("scores",)
    assert one(parts=()).merge(one()) == ()
    with pytest.raises(InvalidInput, match="summed up"):
        one(parts=()).summary()


def test_a_group_that_one_part_did_not_follow_has_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapcal.audits.histograms.MOST_CURVES", 2)
    empty = mergeable_column(sc.Probability(), sc.Groups(["city"]), 8)
    parts = [
        filled(empty, {"city": city}, np.full(6, 0.5), np.array([0.0, 1, 0, 1, 0, 1]))
        for city in (["a"] * 6, ["a"] * 4 + ["b"] * 2, ["b"] * 4 + ["c"] * 2)
    ]
    total = added_up(parts, "as they are")
    assert total.histograms.of_group(total.names.index("all")).sum() == 18
    assert total.histograms.of_group(total.names.index("city=c")) is None
    assert total.groups().rows.tolist() == [18, 10, 6, 2]
    assert list(total.summary().curves) in (["all"], ["all", "city=a"])


# Files.


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
            "age": float(rng.integers(18, 90)) + 0.5,
        }
        for _ in range(n)
    ]


def test_files_and_saved_columns_add_up_to_the_whole(tmp_path: Path) -> None:
    rows = table(3000)
    parts = [written(tmp_path, f"{k}.csv", rows[1000 * k : 1000 * (k + 1)]) for k in range(3)]
    question = TaskConfig("late", "score", ["city"], low=0.0, high=1.0)
    whole = merge_audits([written(tmp_path, "whole.csv", rows)], question, processes=1)
    assert whole.n_rounds == 3000
    together = merge_audits(parts, question, processes=2)
    assert by_name(together.audit) == by_name(whole.audit)
    merge_audits(parts[1:2], question, save=tmp_path / "one.audit")
    saved = merge_audits([str(tmp_path / "one.audit"), parts[2], parts[0]], question, save=tmp_path / "all.audit")
    for each in (saved, Column.load(tmp_path / "all.audit")):
        assert_alike(told(each.summary(), each.names), told(whole.summary(), whole.names))
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


@pytest.mark.usefixtures("few_diagrams")
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = table(600)
    files = [written(tmp_path, f"{k}.csv", rows[300 * k : 300 * (k + 1)]) for k in range(2)]
    asked = ("--merge", "--y", "late", "--p", "score", "--groups", "city,age")
    answer = swapcal("audit", *files, *asked, "-v", "--save", "sum.audit")
    assert answer.exit_code == 0, answer.output
    assert all(words in answer.output for words in ("2 files: mean of late, 600 rows", "This is a sum of audits"))
    saved = ("audit", "sum.audit", *asked)
    again = swapcal(*saved, "--json", "--report", "sum.html", "--fail-above", "90")
    assert again.exit_code == 0, again.output
    alone = json.loads(again.stdout)["result"]
    assert alone["counts"]["scored"] == 600
    assert alone["verdict"]["headline"] in html.unescape((tmp_path / "sum.html").read_text())
    assert swapcal(*saved, "--fail-above", "0.1").exit_code == 1
    tails = swapcal("audit", *files, *asked, "--property", "quantile:0.9", "--json")
    assert json.loads(tails.stdout)["result"]["sections"][0]["before"]["curves"]["all"]["count"]
    swapcal("audit", files[0], *asked, "--save", "first.audit")
    first, both = (merge_audits(each, QUESTION) for each in (["first.audit"], ["first.audit", files[1]]))
    bands = [name for name in first.names if name.startswith("age ")]
    assert bands == [name for name in both.names if name.startswith("age ")], "bands come from the first"
    for wrong in ((*files, *asked[1:]), (*files, *asked, "--costs", "1:5")):
        assert refused("audit", *wrong)


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
    empty = merge_audits([str(tmp_path / "whole.csv")], replace(question, prefix=10_000)).emptied()
    parts = []
    for some in (rows[2000:], rows[:1000], rows[1000:2000]):
        x = {name: [row[name] for row in some] for name in ("city", "age")}
        parts.append(filled(empty, x, *(np.array([row[name] for row in some]) for name in ("score", "late"))))
    two = merged_result(added_up(parts, "as they are"), source="3 parts", config=question)
    said = [(each.verdict.kind, each.verdict.headline, each.verdict.sentences[0]) for each in (one, two)]
    assert said[0] == said[1]
    mine, theirs = two.sections[0].before, one.sections[0].before
    for name in ("swap_error", "overall_error", "group_error", "typical", "constant_loss", "ideal_loss", "slope"):
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name
    for name in ("n_cells", "n_biased", "together", "witness"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert mine.histogram == pytest.approx(theirs.histogram)
    assert mine.loss == pytest.approx(theirs.loss, abs=0.25 / 32**2)
    assert mine.groups.low == pytest.approx(theirs.groups.low[: len(mine.groups.low)], abs=1e-9)
    assert mine.curves.keys() == theirs.curves.keys()
    for name, curve in mine.curves.items():
        assert curve.outcome == pytest.approx(theirs.curves[name].outcome, nan_ok=True)
