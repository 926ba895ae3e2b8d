"""What is said of forecasts: from records with holes to words, and back from JSON."""

import json
import math
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from streams import table
from swapcal.audits.scores import Paired
from swapcal.errors import DataError, InvalidInput
from swapcal.properties import from_text
from swapcal.tasks.audit import audit
from swapcal.tasks.columns import RangeWarning
from swapcal.tasks.config import TaskConfig, parse_groups
from swapcal.tasks.result import Range, Result, from_json, to_json
from swapcal.text.verdict import explained, verdict

# Words.


def test_nothing_to_correct() -> None:
    result = audit(table(6000), TaskConfig("y", "p", ["g", "h", ("g", "h")]))
    assert result.verdict.kind == "fine"
    assert result.first.groups[0] == "all"
    assert len(result.first.groups) == 1 + 3 + 4 + 12
    assert result.before is not None
    assert result.before.swap_error < (result.before.chance_high or 0)
    assert "would have been seen" in " ".join(result.verdict.sentences)


def test_recalibrate() -> None:
    result = audit(table(20_000, shift=0.2), TaskConfig("y", "p", ["g", "h"]))
    assert result.verdict.kind == "recalibrate"
    assert result.before is not None
    assert result.before.worst[0].high < 0, "forecasts are too low, beyond doubt"
    assert "are too low for" in result.before.witness
    assert "worst g=a: too low by" in result.verdict.headline


def test_bias_of_one_group_is_found_though_all_is_well_overall() -> None:
    data = table(20_000)
    sign = np.where(data["g"] == "a", 1.0, np.where(data["g"] == "b", -1.0, 0.0))
    rng = np.random.default_rng(9)
    data["y"] = (rng.random(20_000) < np.clip(data["p"] + 0.15 * sign, 0, 1)).astype(float)
    assert audit(data, TaskConfig("y", "p")).verdict.kind == "fine"
    assert audit(data, TaskConfig("y", "p", ["g"])).verdict.kind == "recalibrate"


def test_refit() -> None:
    rng = np.random.default_rng(4)
    noise = {"y": (rng.random(8000) < 0.3).astype(float), "p": rng.random(8000)}
    result = audit(noise, TaskConfig("y", "p"))
    assert result.verdict.kind == "refit"
    assert result.before is not None
    assert (explained(result.before) or 0.0) < 0.01
    upside_down = table(8000)
    upside_down["p"] = 1.0 - upside_down["p"]
    result = audit(upside_down, TaskConfig("y", "p"))
    assert result.verdict.kind == "refit"
    assert "upside down" in " ".join(result.verdict.sentences)


def test_one_constant_forecast() -> None:
    data = table(5000)
    data["p"] = np.full(5000, 0.9)
    result = audit(data, TaskConfig("y", "p", ["g"]))
    assert result.verdict.kind == "refit"
    assert "all 0.9" in result.first.binning
    honest = audit(data | {"p": np.full(5000, data["y"].mean())}, TaskConfig("y", "p"))
    assert honest.verdict.kind == "fine"
    assert "a constant would do as well" in " ".join(honest.verdict.sentences)


def test_too_few_rows_are_called_that() -> None:
    result = audit({"y": [1, 0, 1], "p": [0.2, 0.9, 0.4]}, TaskConfig("y", "p"))
    assert result.verdict.kind == "fine"
    assert "too few rows" in result.verdict.headline


def test_bias_below_what_is_worth_it_is_let_be() -> None:
    """Half a percent of bias is seen with 2 million rows, and is still no reason to act."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    p = rng.integers(1, 10, n) / 10
    data = {"y": (rng.random(n) < p + 0.005).astype(float), "p": p}
    result = audit(data, TaskConfig("y", "p"))
    assert result.before is not None
    assert result.before.swap_error > (result.before.chance_high or 0)
    assert (result.before.n_biased, result.verdict.kind) != (0, "recalibrate")
    assert result.verdict.kind == "fine"


@pytest.mark.parametrize("property", ["quantile:0.9", "expectile:0.8", "median", "moment:2"])
def test_other_properties_are_judged_too(property: str) -> None:
    rng = np.random.default_rng(2)
    n = 15_000
    base = rng.uniform(0, 40, n)
    g = rng.choice(["a", "b"], n)
    y = np.minimum(base + rng.uniform(0, 20, n), 60.0)
    elicited = from_text(property, 0.0, 60.0)
    spread = np.linspace(0, 20, 2001)
    squares = base**2 + base * 20 + 400 / 3
    p = squares if property == "moment:2" else base + elicited.value(spread)
    question = TaskConfig("y", "p", ["g"], property=property, low=0.0, high=60.0)
    assert audit({"y": y, "p": p, "g": g}, question).verdict.kind == "fine"
    off = np.where(g == "a", p * 0.7, p)
    result = audit({"y": y, "p": off, "g": g}, question)
    assert result.verdict.kind == "recalibrate"
    assert result.before is not None
    assert "are too low for" in result.before.witness
    if property == "quantile:0.9":
        assert "instead of 90 %" in result.before.witness


def test_verdicts_of_runs() -> None:
    before = audit(table(6000, shift=0.3), TaskConfig("y", "p", ["g"])).before
    after = audit(table(6000), TaskConfig("y", "p", ["g"])).before
    assert before is not None
    assert after is not None
    pair = Paired(before.loss, after.loss, after.loss - before.loss, -0.1, -0.05, 0.95)
    said = verdict(before, after, wording=sc.Mean().wording, paired=pair)
    assert said.kind == "recalibrate"
    share = f"{100 * 0.1 / before.loss:.1f}"
    assert f"interval \u2212{share} % to" in " ".join(said.sentences)
    assert verdict(after, after, wording=sc.Mean().wording).kind == "fine"
    assert verdict(None, after, wording=sc.Mean().wording).kind == "fine"
    assert verdict(None, before, wording=sc.Mean().wording).kind == "recalibrate"
    with pytest.raises(InvalidInput, match="needs forecasts"):
        verdict(None, None, wording=sc.Mean().wording)


# Records with holes.


def test_missing_outcomes_and_forecasts_are_counted_and_not_scored() -> None:
    data = table(4000)
    full = audit(data, TaskConfig("y", "p", ["g"], low=0, high=1))
    holes = {name: np.repeat(column, 2) for name, column in data.items()}
    holes["y"][1::4] = np.nan
    holes["p"][3::4] = np.nan
    with pytest.warns(RangeWarning, match="row 4 of .* has no forecast in column 'p'"):
        part = audit(holes, TaskConfig("y", "p", ["g"], low=0, high=1))
    assert (part.counts.scored, part.counts.without_outcome, part.counts.without_forecast) == (4000, 2000, 2000)
    assert part.before is not None
    assert full.before is not None
    assert part.before.overall_error == pytest.approx(full.before.overall_error, rel=0.2)
    with pytest.raises(DataError, match="no outcome in all 4,000 rows"):
        audit(data | {"y": np.full(4000, np.nan)}, TaskConfig("y", "p"))
    with pytest.raises(DataError, match="has no forecast at all"):
        audit(data | {"p": np.full(4000, np.nan)}, TaskConfig("y", "p"))


def of_range(result: Result) -> Range:
    assert result.range is not None
    return result.range


def test_ranges() -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(5, 9, 400)
    y[300:] += 1.0
    data = {"y": y, "p": np.clip(y, 6, 8)}
    result = audit(data, TaskConfig("y", "p", prefix=300))
    assert (of_range(result).low, of_range(result).high, result.counts.outcomes_outside) == (y.min(), y.max(), 0)
    assert "all 400 rows" in of_range(result).origin
    with pytest.warns(RangeWarning, match=r"row \d+ of .* in column 'y', outside \[5") as said:
        cut = audit(data, TaskConfig("y", "p", low=5.0, high=9.0))
    assert len(said) == 1
    assert cut.counts.outcomes_outside == np.count_nonzero(y > 9.0)
    fixed = audit(data, TaskConfig("y", "p", low=0.0, high=20.0))
    assert (of_range(fixed).low, of_range(fixed).high, fixed.counts.outcomes_outside) == (0.0, 20.0, 0)
    assert "as given" in of_range(fixed).origin
    half = audit(data, TaskConfig("y", "p", low=0.0))
    assert (of_range(half).low, of_range(half).high) == (0.0, y.max())
    object_given = audit(data, TaskConfig("y", "p", property=sc.Quantile(0.5, low=4.0, high=11.0)))
    assert (of_range(object_given).low, of_range(object_given).high) == (4.0, 11.0)
    with pytest.raises(DataError, match="3 to 3, which is empty"):
        audit({"y": [3.0, 3.0], "p": [3.0, 3.0]}, TaskConfig("y", "p"))
    with pytest.raises(DataError, match=r"outside \[0, 1\], such as 35; .* divide by 100"):
        audit({"y": [1, 0, 1], "p": [35, 20, 1]}, TaskConfig("y", "p"))
    with pytest.raises(DataError, match="infinite"):
        audit({"y": [1.0, np.inf], "p": [0.5, 0.5]}, TaskConfig("y", "p"))


def test_outcomes_in_words() -> None:
    data = {"y": ["yes", "no", None, "yes"] * 50, "p": [0.9, 0.1, 0.5, 0.8] * 50}
    result = audit(data, TaskConfig("y", "p", positive="yes"))
    assert (of_range(result).low, of_range(result).high, result.counts.scored, result.counts.without_outcome) == (
        0.0,
        1.0,
        150,
        50,
    )
    with pytest.raises(DataError, match=r"holds text .*'yes'.* positive='yes'"):
        audit(data, TaskConfig("y", "p"))
    with pytest.raises(DataError, match=r"no value of column 'y' .* equals 'Yes'"):
        audit(data, TaskConfig("y", "p", positive="Yes"))
    numbers = audit({"y": [2.0, 1.0] * 50, "p": [0.9, 0.1] * 50}, TaskConfig("y", "p", positive="2"))
    assert numbers.before is not None
    assert numbers.before.loss == pytest.approx(0.01)


def test_weights_come_from_a_column() -> None:
    data = table(2000)
    plain = audit(data, TaskConfig("y", "p", ["g"]))
    same = audit(data | {"w": np.full(2000, 7.0)}, TaskConfig("y", "p", ["g"], weight="w"))
    assert plain.before is not None
    assert same.before is not None
    assert same.before.swap_error == pytest.approx(plain.before.swap_error)
    heavy = np.ones(2000)
    heavy[1500] = 50.0
    late = audit(data | {"w": heavy}, TaskConfig("y", "p", ["g"], weight="w", prefix=1000))
    assert late.counts.weights_outside == 0
    assert late.before is not None
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
    assert audit(data, TaskConfig("y", "p")).verdict.kind == "fine"
    result = audit(data, TaskConfig("y", "p", linear="z"))
    assert result.verdict.kind == "recalibrate"
    assert result.first.groups == ("all", "constant", "z")
    assert result.before is not None
    assert "on z" in result.before.witness


def test_the_history_does_not_depend_on_batches() -> None:
    data = table(3000)
    whole = audit(data, TaskConfig("y", "p", ["g"]))
    assert whole.first.history is not None
    assert whole.first.history.before is not None
    assert whole.first.history.rounds[[0, 1, -1]].tolist() == [100, 125, 3000]
    assert whole.before is not None
    assert whole.first.history.before[-1] == whole.before.swap_error
    part = TaskConfig("y", "p", ["g"])
    reference = audit({name: column[:100] for name, column in data.items()}, part)
    assert reference.before is not None
    assert len(whole.first.history.rounds) == len(set(whole.first.history.rounds))


def test_progress_is_told() -> None:
    told: list[int] = []
    audit(table(500), TaskConfig("y", "p"), progress=told.append)
    assert told[-1] == 500


# Questions.


def test_questions() -> None:
    question = TaskConfig("y", "p", parse_groups("a, b,a*b,age >= 60"), linear=["z"], weight="w")
    assert question.columns is not None
    assert set(question.columns) == {"y", "p", "a", "b", "age", "z", "w"}
    assert TaskConfig("y", groups={"old": lambda row: row["age"] > 60}).columns is None
    assert TaskConfig("y", groups=[("old", lambda row: row["age"] > 60)]).columns is None
    assert question.settings()["groups"] == ["a", "b", "a*b", "age >= 60"]
    assert from_text("Quantile:0.9", -1.0, 2.0) == sc.Quantile(0.9, low=-1.0, high=2.0)
    assert from_text("probability", 0.0, 1.0) == sc.Probability()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"y": 3}, "y must be the name"),
        ({"p": 0.5}, "p must be the name"),
        ({"property": "quantile"}, "quantile:0.9"),
        ({"property": "quantile:high"}, "'high' is no number"),
        ({"property": "quantile:1.5"}, "strictly between"),
        ({"property": "moment:1.5"}, "moment:2"),
        ({"low": 3.0, "high": 1.0}, "low must be smaller"),
        ({"low": math.nan}, "low must be a finite"),
        ({"r": 0.5}, "r must be a number from 1"),
        ({"prefix": 0}, "prefix must be a whole number"),
        ({"bins": 0}, "bins must be a whole number"),
        ({"linear": [3]}, "linear must be names"),
        ({"groups": 5}, "groups must be"),
    ],
)
def test_bad_questions_are_refused(change: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        TaskConfig(**({"y": "y"} | change))


def test_bad_groups_on_the_command_line() -> None:
    for text in ("", "a,", "a*", ",a"):
        with pytest.raises(InvalidInput, match="column names"):
            parse_groups(text)
    with pytest.raises(InvalidInput, match="column of forecasts"):
        audit({"y": [1]}, TaskConfig("y"))


# Storage.


def test_results_survive_json() -> None:
    result = audit(table(2000, shift=0.1), TaskConfig("y", "p", ["g", ("g", "h")]))
    text = to_json(result)
    again = from_json(text)
    assert to_json(again) == text
    assert again.before is not None
    assert result.before is not None
    np.testing.assert_array_equal(again.before.bias, result.before.bias)
    assert again.verdict == result.verdict
    assert again.before.worst == result.before.worst
    older = json.loads(text)
    del older["result"]["sections"][0]["before"]["chance_mean"]
    assert from_json(json.dumps(older)).before.chance_mean is None


@pytest.mark.parametrize("property", ["mean", "quantile:0.9", "expectile:0.8", "moment:2"])
def test_a_stored_result_knows_its_property(property: str) -> None:
    result = audit(table(150), TaskConfig("y", "p", property=property, low=0.0, high=2.0))
    again = from_json(to_json(result))
    assert (again.property, again.wording) == (result.property, result.wording)


def test_of_a_property_of_the_users_own_a_stored_result_keeps_the_name() -> None:
    own = sc.Property(identification=lambda p, y: p - y, name="my mean")
    result = audit(table(300), TaskConfig("y", "p", property=own))
    again = from_json(to_json(result))
    assert result.property == again.property == repr(own)
    assert again.wording == own.wording
    assert again.wording.name == "my mean"
    assert to_json(from_json(to_json(again))) == to_json(again)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"format": "swapcal.result"}', "\x00", '"a"'])
def test_foreign_files_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="give what swapcal audit"):
        from_json(text)


def test_damaged_results_are_refused() -> None:
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


def test_a_run_with_a_price_that_heals_little_is_not_recommended() -> None:
    """Rare events, one group off, too few of them: forecasts that cost log loss are not called better."""
    rng = np.random.default_rng(5)
    n = 20_000
    g = rng.choice(["a", "b"], n, p=[0.97, 0.03])
    p = np.clip(rng.gamma(0.3, 0.02, n), 0.0, 0.5)
    y = (rng.random(n) < p + 0.03 * (g == "b")).astype(float)
    before = audit({"y": y, "p": p, "g": g}, TaskConfig("y", "p", groups=["g"])).before
    assert before is not None
    assert before.scores is not None
    assert before.groups is not None
    assert before.groups.n_significant == 1
    dear = replace(before, scores=replace(before.scores, log_loss=1.02 * before.scores.log_loss))
    said = verdict(before, dear, wording=sc.Mean().wording)
    assert said.headline.startswith("Not yet better: the model is off")
    assert "log loss is 2.0 % higher" in said.headline
    unhealed = verdict(before, before, wording=sc.Mean().wording)
    assert "less than half of that is gone" in unhealed.headline
    right = replace(
        before.groups, mean=np.zeros_like(before.groups.mean), significant=np.zeros_like(before.groups.significant)
    )
    calm = replace(before, groups=right, swap_error=0.0, n_worth_correcting=0)
    assert verdict(before, calm, wording=sc.Mean().wording).headline.startswith("Use the recalibrated forecasts")
