"""One verdict on every road: audit, run, a run by key, sums of files and the service say the same of the same rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import run
from swapcal.audits.column import Column
from swapcal.tasks.audit import audit, merge_audits, mergeable_column, merged_result
from swapcal.tasks.by_key import run_by_key
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig


def rows(seed: int, shock: float, bias: float) -> dict[str, Any]:
    """Two hundred weeks of thirty rows that share a shock; one of ten stores is off."""
    rng = np.random.default_rng(seed)
    week, store = np.repeat(np.arange(200), 30), rng.integers(0, 10, 6000)
    p = rng.uniform(0.2, 0.7, 6000)
    pi = np.clip(p + rng.normal(0.0, shock, 200)[week] + bias * (store == 3), 0.0, 1.0)
    day = (np.datetime64("2024-01-01") + 7 * week).astype(str)
    y = (rng.random(6000) < pi).astype(float)
    return {"y": y, "p": np.round(p, 3), "store": [f"s{k}" for k in store], "made": day, "key": (store % 3).astype(str)}


def written(path: Path, table: dict[str, Any], part: slice) -> str:
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*(table[each][part] for each in table), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(("shock", "bias"), [(0.15, 0.0), (0.05, 0.12), (0.0, 0.0)])
def test_every_road_says_the_same_of_the_model(shock: float, bias: float, tmp_path: Path) -> None:
    table = rows(1, shock, bias)
    whole = written(tmp_path / "whole.csv", table, slice(None))
    parts = [written(tmp_path / f"{k}.csv", table, slice(1500 * k, 1500 * (k + 1))) for k in range(4)]
    question = TaskConfig("y", "p", ["store"], time="made", learn=False)
    keyed = TaskConfig("y", "p", ["store"], time="made", learn=False, by="key", seed=1)
    results = {
        "audit": audit(whole, question),
        "run": run(table, question, seed=1),
        "merge": merged_result(merge_audits(parts, question, processes=1), source="4 files", config=question),
        "by key": run_by_key(whole, keyed, processes=1).result(whole, keyed),
    }
    said = {}
    for name, result in results.items():
        found = result.verdict.decision.before
        assert result.clusters is not None
        assert (result.clusters.count, result.clusters.by_day) == (200, True), name
        said[name] = (found.biased, found.reason, sorted(found.groups), found.few_rows, found.few_clusters)
        groups = dict(zip(result.before.groups.name, result.before.groups.low.tolist(), strict=True))
        assert groups["store=s3"] == pytest.approx(
            results["audit"].before.groups.low[list(results["audit"].before.groups.name).index("store=s3")]
        )
    assert len({json.dumps(each) for each in said.values()}) == 1, said
    assert said["audit"][0] == (bias > 0)
    assert ("store=s3" in said["audit"][2]) == (bias > 0)


@pytest.mark.parametrize(("seed", "bias"), [(1, 0.0), (2, 0.12), (3, 0.0), (4, 0.1)])
def test_the_service_and_spark_say_the_same(seed: int, bias: float) -> None:
    """Where there are no times: the page of a stream, and the parts of a DataFrame as Spark's workers add them up."""
    pa: Any = pytest.importorskip("pyarrow")
    pytest.importorskip("msgspec")
    from swapcal.compat.spark import workers
    from swapcal.compat.spark.frames import judged
    from swapcal.service.report import LearnedCases, recorded_result
    from swapcal.service.spec import StreamSpec

    table = rows(seed, 0.0, bias)
    y, p = np.asarray(table["y"]), np.asarray(table["p"])
    whole = audit(table, TaskConfig("y", "p", ["store"]))
    groups = sc.Groups(["store"], limit=20)
    cases = LearnedCases(y, p, p, groups.rows({"store": table["store"]}, len(y)), None, 0.0, 1.0)
    names = ("pending", "held", "expired", "forgotten", "forecasts", "outcomes", "late", "mean_share", "alarms")
    status = dict.fromkeys(names, 0)
    served = recorded_result("late", StreamSpec(groups=["store"]), groups, cases, status)
    empty = mergeable_column(sc.Probability(), sc.Groups(["store"], limit=20), None).to_bytes()
    frames = [
        pa.table({name: np.asarray(table[name])[part] for name in ("y", "p", "store")})
        for part in np.split(np.arange(6000), 5)
    ]
    parts = [workers.partial_audit([frame], empty, "p", "y", ("store",)) for frame in frames]
    spark = judged(Column.from_bytes(workers.merged_audits(parts) or b""))
    said = []
    for result in (whole, served, spark):
        found = result.verdict.decision.before
        said.append((found.overall, sorted(found.groups), found.biased, found.few_rows))
    assert said[1:] == [said[0]] * 2
    assert ("store=s3" in said[0][1]) == (bias > 0)


def test_few_clusters_name_nobody() -> None:
    """Fifteen weeks that share a shock: nothing can be said of any group, and the verdict says that."""
    table = {name: each[:450] for name, each in rows(2, 0.2, 0.0).items()}
    found = audit(table, TaskConfig("y", "p", ["store"], time="made"))
    decision = found.verdict.decision
    assert decision is not None
    assert decision.before is not None
    assert (found.verdict.kind, decision.reason, decision.before.groups) == ("TOO FEW ROWS", "few clusters", ())
    rowwise = audit(table, TaskConfig("y", "p", ["store"], time="made", cluster=""))
    assert rowwise.clusters is None


def test_losses_and_biases_are_of_the_numbers_as_they_are() -> None:
    """A file whose outcomes move from 50 to 300 after its first rows: nothing is cut to the range of these."""
    rng = np.random.default_rng(0)
    n = 3000
    level = np.where(np.arange(n) < 600, 50.0, 300.0)
    y, g = level + rng.normal(0.0, 5.0, n), rng.integers(0, 3, n)
    p = level - 4.0 * (g == 1)
    table = {"y": y, "p": p, "g": [f"g{k}" for k in g]}
    with pytest.warns(RangeWarning, match="outside"):
        result = run(table, TaskConfig("y", "p", ["g"], prefix=500), seed=1)
    assert result.before is not None
    assert result.before.loss == pytest.approx(float(((y - p) ** 2).mean()))
    width = result.range.high - result.range.low
    means = dict(zip(result.before.groups.name, width * result.before.groups.mean, strict=True))
    for k in range(3):
        assert means[f"g=g{k}"] == pytest.approx(float((p - y)[g == k].mean()), abs=1e-9)
