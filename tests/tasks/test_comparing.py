"""Several models beside each other: differences recomputed in pandas, what intervals bear out, and the command."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import swapcal
from streams import models
from swapcal.errors import InvalidInput
from swapcal.report import page
from swapcal.tasks.audit import audit, compare
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import LossDifference, Result, from_json, group_rows, to_json

N = 6_000


def table() -> pd.DataFrame:
    return pd.DataFrame(models(N))


def differences(result: Result) -> dict[str, LossDifference]:
    return {one.title: one.difference for one in result.sections if one.difference is not None}


@pytest.mark.parametrize("weight", [None, "w"])
def test_differences_are_those_of_pandas(weight: str | None) -> None:
    data = table()
    data.loc[::50, "good"] = np.nan
    data.loc[7::60, "y"] = np.nan
    with pytest.warns(RangeWarning, match="no forecast in column 'good'"):
        found = compare(data, TaskConfig("y", groups=["g"], weight=weight), ["bad", "good", "flat"])
    whole = data.dropna()
    w = whole["w"] if weight else pd.Series(1.0, whole.index)
    assert found.counts.scored == len(whole)
    for model in ("good", "flat"):
        difference = (whole[model] - whole["y"]) ** 2 - (whole["bad"] - whole["y"]) ** 2
        overall = found.paired[model]
        assert overall.difference == pytest.approx((w * difference).sum() / w.sum())
        assert overall.before == pytest.approx((w * (whole["bad"] - whole["y"]) ** 2).sum() / w.sum())
        for group in "abc":
            here = whole["g"] == group
            mean = (w * difference)[here].sum() / w[here].sum()
            assert differences(found)[model].mean[f"g={group}"] == pytest.approx(mean)
            low, high = (getattr(differences(found)[model], end)[f"g={group}"] for end in ("low", "high"))
            assert low < mean < high
    assert differences(found)["good"].sure("g=a") == -1, "the others of g have the same forecasts"
    assert differences(found)["good"].sure("g=b") == 0


def test_each_audit_is_the_one_alone() -> None:
    data, question = table(), TaskConfig("y", groups=["g"])
    found = compare(data, question, ["bad", "good"])
    alone = audit(data, TaskConfig("y", "good", groups=["g"]))
    together = json.loads(to_json(found))["result"]["sections"][1]
    single = json.loads(to_json(alone))["result"]
    section = single["sections"][0]
    assert together["before"].pop("label") == together.pop("title") == "good"
    section["before"].pop("label")
    assert together.pop("difference")["mean"].keys() == {"all", "g=a", "g=b", "g=c"}
    assert [together.pop(name) for name in ("verdict", "counts")] == [single[name] for name in ("verdict", "counts")]
    for name in ("title", "difference", "verdict", "counts"):
        section.pop(name)
    assert together == section
    assert to_json(from_json(to_json(found))) == to_json(found)


def test_a_model_is_called_better_where_intervals_bear_it_out() -> None:
    data, question = table(), TaskConfig("y", groups=["g"])
    noise = np.random.default_rng(0).normal(0.0, 1e-3, N)
    data["twin"] = np.clip(data["good"] + noise, 0.0, 1.0)
    ends = {
        (a, b): compare(data, question, [a, b]).paired[b]
        for a, b in (("bad", "good"), ("good", "bad"), ("good", "twin"))
    }
    assert ends["bad", "good"].high < 0 < ends["good", "bad"].low
    assert ends["good", "twin"].low < 0 < ends["good", "twin"].high
    assert [line["group"] for line in group_rows(compare(data, question, ["good", "bad"]))][:2] == ["all", "g=a"]
    with pytest.raises(InvalidInput, match="two columns"):
        compare(data, question, ["good"])


def test_other_properties_and_clusters() -> None:
    rng = np.random.default_rng(1)
    center = rng.gamma(3.0, 5.0, N)
    data = pd.DataFrame({"y": center * rng.lognormal(0.0, 0.3, N), "a": 1.4 * center, "b": 1.5 * center})
    data["day"] = np.repeat(np.arange(N // 20), 20)
    plain = compare(data, TaskConfig("y", property="quantile:0.9"), ["a", "b"])
    by_day = compare(data, TaskConfig("y", property="quantile:0.9", cluster="day"), ["a", "b"])
    assert differences(plain)["b"].mean["all"] == pytest.approx(differences(by_day)["b"].mean["all"])
    loss = {p: np.maximum(0.9 * (data["y"] - data[p]), -0.1 * (data["y"] - data[p])).mean() for p in "ab"}
    assert differences(plain)["b"].mean["all"] == pytest.approx(loss["b"] - loss["a"])


@pytest.mark.usefixtures("few_diagrams")
def test_the_command_and_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table().rename(columns={"flat": "<b>flat"}).to_csv("scores.csv", index=False)
    asked = ("audit", "scores.csv", "--y", "y", "--p", "bad,<b>flat", "--groups", "g")
    shown = swapcal(*asked, "--report", "page.html")
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.stdout.splitlines())) <= 80
    html = Path("page.html").read_text(encoding="utf-8")
    assert ("<b>flat" in html, "&lt;b&gt;flat" in html) == (False, True)
    result: dict[str, Any] = json.loads(swapcal(*asked, "--json").stdout)["result"]
    verdict = result["verdict"]
    assert shown.stdout.startswith(f"{verdict['kind']}  {verdict['headline'][:60]}")
    assert (result["kind"], [line["title"] for line in result["section_table"]]) == (
        "comparison",
        ["bad", "<b>flat"],
    )
    failed = swapcal(*asked, "--fail-above", "2")
    assert (failed.exit_code, "bad" in failed.stderr) == (1, True)
    found = compare(table(), TaskConfig("y"), ["bad", "good"])
    with pytest.raises(InvalidInput, match="two models"):
        page.html(replace(found, sections=found.sections[:1]))
