"""What is said of forecasts: from records with holes to a verdict, its numbers, and back from JSON.

Fifteen texts are compared word for word, with golden.txt; `python tests/tasks/test_verdicts.py` writes it anew. All
else is compared as data.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from commands import run
from streams import models, table
from swapcal.audits.decision import explained
from swapcal.audits.scores import Paired
from swapcal.errors import DataError, InvalidInput
from swapcal.properties import from_text
from swapcal.report import page
from swapcal.tables.grouping import parse_groups
from swapcal.tables.records import growing_batches, read
from swapcal.tasks.audit import audit, compare
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result, above, from_json, parse_threshold, to_json
from swapcal.tasks.watch import watch
from swapcal.text.numbers import number
from swapcal.text.summary import behind, summary
from swapcal.text.verdict import verdict


def stream(n: int, seed: int = 0, n_groups: int = 16, bias: float = 0.0, whom: Any = ()) -> dict[str, Any]:
    """Calibrated forecasts, but for the groups `whom`, for whom they are too low by `bias`."""
    rng = np.random.default_rng(seed)
    g, p = rng.integers(0, n_groups, n), rng.beta(2.0, 6.0, n)
    y = rng.random(n) < np.clip(p + bias * np.isin(g, whom), 0.0, 1.0)
    return {"y": y.astype(float), "p": p, "g": [f"g{k}" for k in g]}


GROUPS = TaskConfig("y", "p", ["g", "h"])


def with_p(columns: dict[str, Any], p: Any) -> dict[str, Any]:
    return columns | {"p": p}


def noise(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {"y": (rng.random(n) < 0.3).astype(float), "p": rng.random(n)}


def walk(n: int = 900) -> dict[str, Any]:
    """Outcomes whose model is off, thirty rows a day; `k` is late where nothing happened."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < p**2).astype(float)
    day = np.datetime64("2026-01-01") + (np.arange(n) // 30).astype("timedelta64[D]")
    return {"y": y, "p": p, "day": day.astype(str), "k": np.arange(1, n + 1) + np.where(y > 0.5, 2.0, 120.0)}


def heights(n: int = 15_000) -> dict[str, Any]:
    """Outcomes uniform above a base, and their 0.9 quantile, too low for one of two groups."""
    rng = np.random.default_rng(2)
    base, g = rng.uniform(0, 40, n), rng.choice(["a", "b"], n)
    return {"y": base + rng.uniform(0, 20, n), "p": np.where(g == "a", 0.7, 1.0) * (base + 18.0), "g": g}


def widths(n: int = 1500) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    center = rng.normal(size=n)
    return {"y": center + rng.normal(size=n), "lo": center - 1.645, "hi": center + 1.645}


def kinds(n: int = 1500) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([2.0, 1.0, 0.2], n)
    names = np.array(["early", "on time", "late"])
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    label = names[(p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)]
    return {"y": label, **{name: sharp[:, k] for k, name in enumerate(names)}}


CASES: dict[str, Callable[[], Result]] = {
    "nothing to correct": lambda: audit(table(6000), TaskConfig("y", "p", ["g", "h", ("g", "h")])),
    "recalibrate": lambda: audit(table(20_000, shift=0.2), GROUPS),
    "two groups are off": lambda: audit(stream(60_000, bias=0.07, whom=(3, 5)), TaskConfig("y", "p", ["g"])),
    "sure but small": lambda: audit(stream(400_000, n_groups=2, bias=0.006, whom=(0, 1)), TaskConfig("y", "p", ["g"])),
    "noise": lambda: audit(noise(8000), TaskConfig("y", "p")),
    "upside down": lambda: audit(with_p(table(8000), 1.0 - table(8000)["p"]), TaskConfig("y", "p")),
    "a constant": lambda: audit(with_p(table(5000), table(5000)["y"].mean().repeat(5000)), TaskConfig("y", "p")),
    "too few rows": lambda: audit({"y": [1, 0, 1], "p": [0.2, 0.9, 0.4]}, TaskConfig("y", "p")),
    "a quantile": lambda: audit(heights(), TaskConfig("y", "p", ["g"], property="quantile:0.9", low=0.0, high=60.0)),
    "a run": lambda: run(table(6000, shift=0.3), TaskConfig("y", "p", ["g"]), seed=1),
    "late": lambda: run(walk(), TaskConfig("y", "p", delay="880"), seed=1),
    "delays depend": lambda: run(walk(2500), TaskConfig("y", "p", known="k"), seed=1),
    "two models": lambda: compare(models(), TaskConfig("y", groups=["g"]), ["bad", "good"]),
    "intervals": lambda: run(widths(), TaskConfig("y"), interval=0.9, p=["lo", "hi"], seed=1),
    "classes": lambda: run(kinds(), TaskConfig("y"), classes=True, p=["early", "on time", "late"], seed=1),
}
FILE = Path(__file__).with_name("golden.txt")


@cache
def result(name: str) -> Result:
    return CASES[name]()


def text(name: str) -> str:
    found = result(name)
    witness = [found.before.witness] if found.before is not None else []
    return "\n".join([f"## {name}", found.verdict.kind, found.verdict.headline, *found.verdict.sentences, *witness, ""])


@pytest.mark.parametrize("name", CASES)
def test_texts_are_as_they_were(name: str) -> None:
    golden = {each.partition("\n")[0]: each for each in FILE.read_text(encoding="utf-8").split("## ")}
    assert text(name) == f"## {golden[name].rstrip()}\n"


# Verdicts


def test_the_numbers_behind_the_texts() -> None:
    fine, biased, small = result("nothing to correct"), result("recalibrate").before, result("sure but small").before
    assert (fine.first.groups[0], len(fine.first.groups)) == ("all", 1 + 3 + 4 + 12)
    assert fine.before.swap_error < (fine.before.chance_high or 0)
    assert biased.worst[0].high < 0, "forecasts are too low, beyond doubt"
    assert biased.swap_error > (biased.chance_high or 0)
    assert small.swap_error > (small.chance_high or 0)
    assert small.n_biased != 0
    off = result("two groups are off")
    names = {name for name, each in zip(off.first.groups, off.before.groups.biased, strict=True) if each}
    assert names == {"all", "g=g3", "g=g5"}
    assert (explained(result("noise").before) or 0.0) < 0.01  # type: ignore[arg-type]
    assert result("delays depend").lateness.dependent
    flat = audit(with_p(table(5000), np.full(5000, 0.9)), TaskConfig("y", "p", ["g"]))
    assert (flat.verdict.kind, "all 0.9" in flat.first.binning) == ("RETRAIN", True)


@pytest.mark.parametrize("property", ["quantile:0.9", "expectile:0.8", "median", "moment:2"])
def test_other_properties_are_judged_too(property: str) -> None:
    rng, n = np.random.default_rng(2), 15_000
    base, g = rng.uniform(0, 40, n), rng.choice(["a", "b"], n)
    y = np.minimum(base + rng.uniform(0, 20, n), 60.0)
    spread = from_text(property, 0.0, 60.0).value(np.linspace(0, 20, 2001))
    p = base**2 + base * 20 + 400 / 3 if property == "moment:2" else base + spread
    question = TaskConfig("y", "p", ["g"], property=property, low=0.0, high=60.0)
    right, off = (audit({"y": y, "p": each, "g": g}, question) for each in (p, np.where(g == "a", p * 0.7, p)))
    assert (right.verdict.kind, off.verdict.kind) == ("CALIBRATED", "BIASED")
    assert off.before.worst[0].high < 0


def test_verdicts_of_runs() -> None:
    before = audit(table(6000, shift=0.3), TaskConfig("y", "p", ["g"])).before
    after = audit(table(6000), TaskConfig("y", "p", ["g"])).before
    pair = Paired(before.loss, after.loss, after.loss - before.loss, -0.1, -0.05, 0.95)
    mean = sc.Mean().wording
    sides = [(before, after, pair), (after, after, None), (None, after, None), (None, before, None)]
    said = [verdict(one, two, wording=mean, paired=each).kind for one, two, each in sides]
    assert said == ["IMPROVED", "NO CHANGE NEEDED", "CALIBRATED", "BIASED"]
    with pytest.raises(InvalidInput, match="needs forecasts"):
        verdict(None, None, wording=mean)


def test_a_run_with_a_price_that_heals_little_is_not_recommended() -> None:
    """Rare events, one group off, too few of them: forecasts that cost log loss are not called better."""
    rng = np.random.default_rng(5)
    n = 20_000
    g = rng.choice(["a", "b"], n, p=[0.97, 0.03])
    p = np.clip(rng.gamma(0.3, 0.02, n), 0.0, 0.5)
    y = (rng.random(n) < p + 0.03 * (g == "b")).astype(float)
    before: Any = audit({"y": y, "p": p, "g": g}, TaskConfig("y", "p", groups=["g"])).before
    assert before.groups.n_biased == 1
    dear = replace(before, scores=replace(before.scores, log_loss=1.02 * before.scores.log_loss))
    said = verdict(before, dear, wording=sc.Mean().wording)
    assert (said.kind, said.decision.reason) == ("NOT CORRECTED", "log loss")
    assert "log loss is 2.0 % higher" in said.headline
    unhealed = verdict(before, before, wording=sc.Mean().wording)
    assert (unhealed.kind, unhealed.decision.reason) == ("NOT CORRECTED", "bias left")
    passed = verdict(before, before, wording=sc.Mean().wording, changed=0)
    assert (passed.kind, passed.decision.reason) == ("NOT CORRECTED", "unchanged")
    nothing = np.zeros_like(before.groups.mean)
    right = replace(before.groups, mean=nothing, low=nothing - 0.1, high=nothing + 0.1)
    calm = replace(before, groups=right, swap_error=0.0, n_biased=0, together=False)
    assert verdict(before, calm, wording=sc.Mean().wording).kind == "IMPROVED"


@pytest.mark.parametrize(
    ("n", "delay", "told", "step"),
    [
        (600, 590, "that it takes", "wait for more outcomes"),
        (600, 400, "needed to judge", "wait for more outcomes"),
        (6_000, 0, "", "use the corrected"),
    ],
)
def test_a_run_says_why_nothing_was_changed_and_what_that_needs(n: int, delay: int, told: str, step: str) -> None:
    data = stream(n, 1, n_groups=4, bias=0.2, whom=(0, 1, 2))
    lines = summary(run(data, TaskConfig("y", "p", ["g"], seed=1, delay=str(delay) if delay else None)))
    text = " ".join(" ".join(lines).split())
    assert len(lines) <= 20
    assert (" The model's own numbers are shown" in text) is bool(told)
    assert told in text
    assert f"Next: {step}" in text


def test_run_and_audit_say_the_same_of_the_model() -> None:
    for bias in (0.0, 0.12):
        data = stream(9_000, 1, n_groups=4, bias=bias, whom=(2,))
        one, two = audit(data, TaskConfig("y", "p", ["g"])), run(data, TaskConfig("y", "p", ["g"]))
        np.testing.assert_allclose(one.before.groups.mean, two.before.groups.mean, atol=1e-12)
        np.testing.assert_array_equal(one.before.groups.biased, two.before.groups.biased)
        assert one.verdict.kind == ("CALIBRATED" if bias == 0.0 else "BIASED")
        assert one.verdict.decision.before == two.verdict.decision.before


def test_since_when() -> None:
    data = stream(40_000, 2, n_groups=4)
    late = (np.arange(40_000) >= 25_000) & (np.array(data["g"]) == "g1")
    rng = np.random.default_rng(9)
    data["y"] = np.where(late, rng.random(40_000) < np.clip(data["p"] + 0.2, 0, 1), data["y"])
    data["day"] = [f"2026-{1 + t // 4000:02d}-01" for t in range(40_000)]
    found: Any = audit(data, TaskConfig("y", "p", ["g"], cluster="", time="day")).before
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
    widths = [float(np.ptp([each.groups.low[1], each.groups.high[1]])) for each in (alone, together)]
    assert widths[1] > 2 * widths[0]
    assert together.groups.n_biased == 0


def test_thresholds() -> None:
    result = audit(stream(60_000, bias=0.1, whom=(3,)), TaskConfig("y", "p", ["g"]))
    near = 100 * abs(result.before.groups.near).max()
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
    assert result.verdict.kind == "BIASED"
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
    assert set(sides) <= {"g=g1", "all rows"}, "nobody else is off"
    assert {each["group"] for each in found} == {each["group"] for each in whole}
    n_rows = sum(batch.n for batch in growing_batches(str(path), None, follow=False))
    assert n_rows == 12_000


@pytest.mark.usefixtures("few_diagrams")
def test_what_is_stored_drawn_and_printed() -> None:
    result = from_json(to_json(audit(table(8000, shift=0.4), TaskConfig("y", "p", ["g", "h", ("g", "h")], bins=12))))
    html, printed = page.html(result), "\n".join([*summary(result), *behind(result)])
    for value in (result.before.swap_error, result.before.group_error):
        assert number(value) in html
        assert number(value) in printed
    # One unit: points in the terminal, in the verdict and on the page.
    assert sc.Mean().wording.bias(result.before.worst[0].mean) in html
    assert "(points)" in printed


# Records with holes


def test_ranges() -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(5, 9, 400)
    y[300:] += 1.0
    data = {"y": y, "p": np.clip(y, 6, 8)}
    own = sc.Quantile(0.5, low=4.0, high=11.0)
    asked: list[tuple[dict[str, Any], tuple[float, float], str]] = [
        ({"prefix": 300}, (y.min(), y.max()), "all 400 rows"),
        ({"low": 0.0, "high": 20.0}, (0.0, 20.0), "as given"),
        ({"low": 0.0}, (0.0, y.max()), ""),
        ({"property": own}, (4.0, 11.0), ""),
    ]
    for settings, ends, origin in asked:
        found = audit(data, TaskConfig("y", "p", **settings))
        assert (found.range.low, found.range.high) == ends
        assert (origin in found.range.origin, found.counts.outcomes_outside) == (True, 0)
    with pytest.warns(RangeWarning, match=r"row \d+ of .* in column 'y', outside \[5") as said:
        cut = audit(data, TaskConfig("y", "p", low=5.0, high=9.0))
    assert (len(said), cut.counts.outcomes_outside) == (1, int((y > 9.0).sum()))
    wrong: list[tuple[dict[str, list[float]], str]] = [
        ({"y": [3.0, 3.0], "p": [3.0, 3.0]}, "3 to 3, which is empty"),
        ({"y": [1, 0, 1], "p": [35, 20, 1]}, r"outside \[0, 1\], such as 35; .* divide by 100"),
        ({"y": [1.0, np.inf], "p": [0.5, 0.5]}, "infinite"),
    ]
    for columns, sentence in wrong:
        with pytest.raises(DataError, match=sentence):
            audit(columns, TaskConfig("y", "p"))


def test_outcomes_in_words() -> None:
    data = {"y": ["yes", "no", None, "yes"] * 50, "p": [0.9, 0.1, 0.5, 0.8] * 50}
    found = audit(data, TaskConfig("y", "p", positive="yes"))
    assert (found.range.low, found.range.high) == (0.0, 1.0)
    assert (found.counts.scored, found.counts.without_outcome) == (150, 50)
    with pytest.raises(DataError, match=r"holds text .*'yes'.* positive='yes'"):
        audit(data, TaskConfig("y", "p"))
    with pytest.raises(DataError, match=r"no value of column 'y' .* equals 'Yes'"):
        audit(data, TaskConfig("y", "p", positive="Yes"))
    numbers = audit({"y": [2.0, 1.0] * 50, "p": [0.9, 0.1] * 50}, TaskConfig("y", "p", positive="2"))
    assert numbers.before.loss == pytest.approx(0.01)


def test_weights_come_from_a_column() -> None:
    data, heavy = table(2000), np.ones(2000)
    heavy[1500] = 50.0
    late = audit(data | {"w": heavy}, TaskConfig("y", "p", ["g"], weight="w", prefix=1000))
    assert late.counts.weights_outside == 0
    assert late.before.weight == pytest.approx(1999 / 50 + 1)
    with pytest.raises(DataError, match=r"row 3 .* has -1 in column 'w'"):
        audit(data | {"w": np.where(np.arange(2000) == 2, -1.0, 1.0)}, TaskConfig("y", "p", weight="w"))
    with pytest.raises(DataError, match="all weights"):
        audit(data | {"w": np.zeros(2000)}, TaskConfig("y", "p", weight="w"))


def test_linear_functions_find_what_groups_do_not() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    z, p = rng.normal(50.0, 20.0, n), rng.choice([0.4, 0.5, 0.6], n)
    y = (rng.random(n) < p + 0.1 * np.clip((z - 50) / 20, -2, 2)).astype(float)
    data = {"y": y, "p": p, "z": z}
    assert audit(data, TaskConfig("y", "p")).verdict.kind == "CALIBRATED"
    result = audit(data, TaskConfig("y", "p", linear="z"))
    assert result.verdict.kind == "BIASED"
    assert result.first.groups == ("all", "constant", "z")
    assert "on z" in result.before.witness


def test_the_history_begins_with_a_hundred_rows_and_progress_is_told() -> None:
    told: list[int] = []
    whole = audit(table(3000), TaskConfig("y", "p", ["g"]), progress=told.append)
    assert whole.first.history.rounds[[0, 1, -1]].tolist() == [100, 125, 3000]
    assert whole.first.history.before[-1] == whole.before.swap_error  # type: ignore[index]
    assert len(whole.first.history.rounds) == len(set(whole.first.history.rounds))
    assert told[-1] == 3000


# Questions


def test_questions() -> None:
    question = TaskConfig("y", "p", parse_groups("a, b,a*b,age >= 60"), linear=["z"], weight="w")
    assert set(question.columns or ()) == {"y", "p", "a", "b", "age", "z", "w"}
    assert TaskConfig("y", groups={"old": lambda row: row["age"] > 60}).columns is None
    assert TaskConfig("y", groups=[("old", lambda row: row["age"] > 60)]).columns is None
    assert question.settings()["groups"] == ["a", "b", "a*b", "age >= 60"]
    assert from_text("Quantile:0.9", -1.0, 2.0) == sc.Quantile(0.9, low=-1.0, high=2.0)
    assert from_text("probability", 0.0, 1.0) == sc.Probability()
    for text in ("", "a,", "a*", ",a"):
        with pytest.raises(InvalidInput, match="column names"):
            parse_groups(text)
    with pytest.raises(InvalidInput, match="column of forecasts"):
        audit({"y": [1]}, TaskConfig("y"))


# Storage


def test_results_survive_json() -> None:
    found = result("recalibrate")
    again = from_json(to_json(found))
    np.testing.assert_array_equal(again.before.bias, found.before.bias)
    assert (again.verdict, again.before.worst) == (found.verdict, found.before.worst)
    older = json.loads(to_json(found))
    del older["result"]["sections"][0]["before"]["chance_mean"]
    assert from_json(json.dumps(older)).before.chance_mean is None


OWN = sc.Property(identification=lambda p, y: p - y, name="my mean")


@pytest.mark.parametrize("property", ["mean", "quantile:0.9", "expectile:0.8", "moment:2", OWN], ids=str)
def test_a_stored_result_knows_its_property(property: Any) -> None:
    """Of one of the user's own, its name."""
    ends: dict[str, Any] = {"low": 0.0, "high": 2.0} if isinstance(property, str) else {}
    found = audit(table(150), TaskConfig("y", "p", property=property, **ends))
    again = from_json(to_json(found))
    assert (again.property, again.wording) == (found.property, found.wording)
    assert property is not OWN or (again.property, again.wording.name) == (repr(OWN), "my mean")
    assert to_json(from_json(to_json(again))) == to_json(again)


def test_foreign_and_damaged_results_are_refused() -> None:
    for foreign in ("", "{", "[]", "3", '{"format": "swapcal.result"}', "\x00", '"a"'):
        with pytest.raises(DataError, match="give what swapcal audit"):
            from_json(foreign)
    data = json.loads(to_json(audit(table(200), TaskConfig("y", "p"))))
    with pytest.raises(DataError, match="version 99"):
        from_json(json.dumps(data | {"version": 99}))
    optional = {
        field.name for field in fields(Result) if field.default is not MISSING or field.default_factory is not MISSING
    }
    for name in data["result"].keys() - {"group_table", "section_table"} - optional:
        damaged = {key: value for key, value in data["result"].items() if key != name}
        with pytest.raises(DataError, match="damaged"):
            from_json(json.dumps(data | {"result": damaged}))
    for part, value in (
        ("sections", [{"title": ""}]),
        ("sections", []),
        ("verdict", 5),
        ("kind", "party"),
        ("wording", []),
        ("counts", {"scored": "x", "rows": 3}),
    ):
        with pytest.raises(DataError, match="damaged"):
            from_json(json.dumps(data | {"result": data["result"] | {part: value}}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    FILE.write_text("\n".join(map(text, CASES)), encoding="utf-8")
