"""Groups decide the verdict; thresholds, searches and watches that rest on the same numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run
from effort import some
from swapcal.errors import InvalidInput
from swapcal.tables.records import RereadableSource, growing_batches, read
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import above, parse_threshold
from swapcal.tasks.watch import watch


def stream(n: int, seed: int = 0, n_groups: int = 16, bias: float = 0.0, whom: Any = ()) -> dict[str, Any]:
    """Calibrated forecasts, but for the groups `whom`, for whom they are too low by `bias`."""
    rng = np.random.default_rng(seed)
    g, p = rng.integers(0, n_groups, n), rng.beta(2.0, 6.0, n)
    y = rng.random(n) < np.clip(p + bias * np.isin(g, whom), 0.0, 1.0)
    return {"y": y.astype(float), "p": p, "g": [f"g{k}" for k in g]}


def test_groups_that_are_off_are_named_and_never_fine() -> None:
    result = audit(stream(60_000, bias=0.07, whom=(3, 5)), TaskConfig("y", "p", ["g"]))
    assert result.verdict.kind == "recalibrate"
    assert "2 of 16 groups are off" in result.verdict.headline
    assert "g=g3" in result.verdict.headline or "g=g5" in result.verdict.headline
    assert "g=g3" in " ".join(result.verdict.sentences)
    assert "g=g5" in " ".join(result.verdict.sentences)


def test_a_bias_that_is_sure_but_small_is_told_in_the_headline() -> None:
    result = audit(stream(400_000, n_groups=2, bias=0.006, whom=(0, 1)), TaskConfig("y", "p", ["g"]))
    assert result.verdict.kind == "fine"
    assert result.verdict.headline.startswith("Nothing worth correcting: ")
    assert "point" in result.verdict.headline


def test_calibrated_forecasts_with_many_groups_are_fine() -> None:
    question, seeds = TaskConfig("y", "p", ["g"]), range(some(10, least=3))
    kinds = [audit(stream(20_000, seed, n_groups=100), question).verdict.kind for seed in seeds]
    assert len(kinds) - kinds.count("fine") <= len(kinds) // 10


def test_run_and_audit_say_the_same_of_the_model() -> None:
    for bias in (0.0, 0.12):
        data = stream(9_000, 1, n_groups=4, bias=bias, whom=(2,))
        one, two = audit(data, TaskConfig("y", "p", ["g"])), run(data, TaskConfig("y", "p", ["g"]))
        assert one.before is not None
        assert two.before is not None
        np.testing.assert_allclose(one.before.known_groups.mean, two.before.known_groups.mean, atol=1e-12)
        np.testing.assert_array_equal(one.before.known_groups.significant, two.before.known_groups.significant)
        assert one.verdict.kind == two.verdict.kind
        assert ("can be kept" in two.verdict.headline or "Keep" in two.verdict.headline) == (bias == 0.0)


def test_since_when() -> None:
    data = stream(40_000, 2, n_groups=4)
    late = (np.arange(40_000) >= 25_000) & (np.array(data["g"]) == "g1")
    rng = np.random.default_rng(9)
    data["y"] = np.where(late, rng.random(40_000) < np.clip(data["p"] + 0.2, 0, 1), data["y"])
    data["day"] = [f"2026-{1 + t // 4000:02d}-01" for t in range(40_000)]
    found = audit(data, TaskConfig("y", "p", ["g"], cluster="", time="day")).before
    assert found is not None
    assert found.since is not None
    assert abs(found.since["g=g1"] - 25_000) < 1_500
    rows = json.dumps(audit(data, TaskConfig("y", "p", ["g"])).verdict.sentences)
    assert "since row 2" in rows


def test_clusters_are_not_taken_for_independent_rows() -> None:
    """Shocks of days, 200 rows each, are no bias of a group that is a tenth of the days."""
    rng = np.random.default_rng(4)
    day = np.repeat(np.arange(300), 200)
    shock, member = rng.normal(0.0, 0.1, 300)[day], (np.arange(300) % 10 == 0)[day]
    p = rng.uniform(0.3, 0.7, len(day))
    y = rng.random(len(day)) < np.clip(p + shock, 0, 1)
    data = {"y": y.astype(float), "p": p, "g": member, "day": day}
    alone, together = (audit(data, TaskConfig("y", "p", ["g"], cluster=cluster)).before for cluster in (None, "day"))
    assert alone is not None
    assert together is not None
    widths = [float(np.ptp([each.known_groups.low[1], each.known_groups.high[1]])) for each in (alone, together)]
    assert widths[1] > 2 * widths[0]
    assert together.known_groups.n_significant == 0


def test_thresholds() -> None:
    result = audit(stream(60_000, bias=0.1, whom=(3,)), TaskConfig("y", "p", ["g"]))
    assert result.before is not None
    near = 100 * abs(result.before.known_groups.near).max()
    assert above(result, parse_threshold(f"{near - 0.1}")) is not None
    assert "g=g3" in str(above(result, parse_threshold("2")))
    assert above(result, parse_threshold(f"bias:{near + 0.1}")) is None
    assert above(result, parse_threshold("groups:0")) is not None
    assert above(result, parse_threshold("groups:16")) is None
    assert above(result, parse_threshold("rms:0.1")) is not None
    assert above(result, parse_threshold("rms:50")) is None
    for wrong in ("much", "groups:", "swap:3", "-1"):
        with pytest.raises(InvalidInput, match="--fail-above must be"):
            parse_threshold(wrong)


def test_a_search_finds_whom_nobody_listed_and_warns_of_leaks() -> None:
    data = stream(40_000, 5, n_groups=6)
    rng = np.random.default_rng(6)
    data["shift"] = rng.choice(["day", "night"], 40_000).tolist()
    hit = (np.array(data["g"]) == "g4") & (np.array(data["shift"]) == "night")
    data["y"] = np.where(hit, rng.random(40_000) < np.clip(data["p"] + 0.15, 0, 1), data["y"]).astype(float)
    data["closed"] = np.where(data["y"] > 0, "late", "in time").tolist()
    result = audit(data, TaskConfig("y", "p"), discover=True)
    assert result.discovery is not None
    assert result.verdict.kind == "recalibrate"
    confirmed = [one.name for one in result.discovery.confirmed]
    assert any("g=g4" in name and "shift=night" in name for name in confirmed)
    assert [leak.name for leak in result.discovery.leaks] == ["closed"]
    assert "closed" in " ".join(result.verdict.sentences)


def test_alarms_of_a_file_that_grows(tmp_path: Path) -> None:
    data = stream(12_000, 7, n_groups=3, bias=0.25, whom=(1,))
    lines = [f"{y:g},{p:.4f},{g}" for y, p, g in zip(data["y"], data["p"], data["g"], strict=True)]
    path = tmp_path / "growing.csv"
    path.write_text("y,p,g\n" + "\n".join(lines[:3_000]) + "\n" + lines[3_000][:5])
    pieces = [lines[3_000][5:] + "\n" + "\n".join(lines[3_001:8_000]) + "\n", "\n".join(lines[8_000:]) + "\n"]

    class Enough(Exception):
        pass

    def wait(_: float) -> None:
        if not pieces:
            raise Enough
        with path.open("a") as file:
            file.write(pieces.pop(0))

    question = TaskConfig("y", "p", ["g"], prefix=1_000)
    batches = growing_batches(str(path), question.columns, follow=True, wait=wait)
    found: list[dict[str, Any]] = []
    with pytest.raises(Enough):
        found.extend(watch(batches, question, alpha=0.01))
    whole = list(watch(read(path, columns=question.columns), question, alpha=0.01))
    sides = {each["group"]: each["side"] for each in found}
    assert sides["g=g1"] == "too low"
    assert set(sides) <= {"g=g1", "everybody"}, "nobody else is off"
    assert {each["group"] for each in found} == {each["group"] for each in whole}
    n_rows = sum(batch.n for batch in growing_batches(str(path), None, follow=False))
    assert n_rows == 12_000


def test_what_can_be_read_once_is_read_twice() -> None:
    data = stream(5_000, 8)
    rows = ({name: column[t] for name, column in data.items()} for t in range(5_000))
    with RereadableSource(rows, ["y", "p"]) as passes:
        first, second = ([batch.numbers("y") for batch in passes.batches()] for _ in range(2))
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))
    np.testing.assert_array_equal(np.concatenate(first), data["y"])
