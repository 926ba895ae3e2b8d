"""Files as people have them: odd names, words for outcomes, times that are none; each with a sentence that helps."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from commands import refused, swapcal
from swapcal.report import page
from swapcal.text.numbers import precise


def claims(n: int = 3000) -> pd.DataFrame:
    """One of four regions is underpredicted; outcomes are "yes" and "no"."""
    rng = np.random.default_rng(27)
    p, region = rng.beta(2, 5, n), rng.choice([10, 20, 31, 47], n)
    paid = rng.random(n) < np.clip(p + 0.12 * (region == 47), 0, 1)
    filed = pd.date_range("2024-01-03", periods=n, freq="97min")
    return pd.DataFrame({"Paid?": np.where(paid, "yes", "no"), "P(paid)": p, "Region, Code": region, "filed": filed})


def asked(path: Path, *more: str, task: str = "audit") -> tuple[str, ...]:
    return (task, str(path), "--y", "Paid?", "--p", "P(paid)", *more)


def told(path: Path, *more: str, task: str = "audit") -> str:
    outcome = swapcal(*asked(path, *more, task=task))
    assert outcome.exit_code == 0, outcome.output
    return str(outcome.output)


def written(frame: pd.DataFrame, path: Path, **more: Any) -> Path:
    frame.to_csv(path, index=False, **more)
    return path


def test_the_next_command_can_be_copied_whatever_names_hold(tmp_path: Path) -> None:
    """A name with a comma stands in quotes, which no line ends inside of."""
    path = written(claims().rename(columns={"Region, Code": "Region, Code of the branch's office"}), tmp_path / "a.csv")
    named = '"Region, Code of the branch\'s office"'
    assert "In --groups it stands in double quotes" in refused(*asked(path, "--groups", "Region", "--positive", "yes"))
    said = told(path, "--groups", named, "--positive", "yes")
    assert "1 of 4 groups is biased" in said.split("\n\n")[0]
    command = shlex.split(said.split("Next: ")[1].replace("\\\n", " "))
    assert command[:2] == ["swapcal", "run"]
    assert swapcal(*command[1:-1], tmp_path / "better.csv").output.startswith("IMPROVED")


def test_truth_values_are_numbers_in_a_file_as_in_a_frame(tmp_path: Path) -> None:
    frame = claims().assign(**{"Paid?": lambda f: f["Paid?"] == "yes"})
    path = written(frame, tmp_path / "a.csv")
    one, other = (sc.audit(data, "Paid?", "P(paid)", [("Region, Code",)]) for data in (path, frame))
    pd.testing.assert_frame_equal(one.by_group, other.by_group)
    assert one.overall["observed"] == pytest.approx(frame["Paid?"].mean())


def test_words_that_differ_in_capitals_alone_are_refused(tmp_path: Path) -> None:
    frame = claims()
    frame.loc[::7, "Paid?"] = frame["Paid?"].str.upper()
    path = written(frame, tmp_path / "a.csv")
    assert "holds 'YES' beside 'yes'" in refused(*asked(path, "--positive", "yes"))


def test_numbers_with_commas_get_advice_on_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"Paid?": [1488.92, 1133.83] * 200, "P(paid)": [1182.44, 1308.57] * 200})
    for path in (
        written(frame, tmp_path / "a.csv", sep=";", decimal=","),
        written(frame.map("{:,.2f}".format), tmp_path / "b.csv"),
    ):
        assert "write them with a point and nothing between thousands" in refused(*asked(path))


@pytest.mark.parametrize("task", ["audit", "run"])
def test_times_that_are_none_are_refused_and_rows_out_of_order_in_a_run(tmp_path: Path, task: str) -> None:
    frame = claims()
    path = written(frame.assign(filed=frame["filed"].dt.strftime("%d/%m/%Y")), tmp_path / "a.csv")
    options = ("--positive", "yes", "--time", "filed")
    assert "'03/01/2024', which is no time" in refused(*asked(path, *options, task=task))
    path = written(frame.sample(frac=1.0, random_state=1), tmp_path / "b.csv")
    if task == "run":
        assert "sort the file by time" in refused(*asked(path, *options, task=task))
    # Without a time in the first row the others still tell the days; of numbers nobody knows which are of one day.
    days = told(written(frame.assign(filed=frame["filed"].mask(frame.index == 0)), path), *options, task=task)
    assert "rows of one day of filed count together (204)" in days.replace("\n", " ")
    one_by_one = told(written(frame.assign(filed=frame.index), path), *options, task=task)
    assert "every row counts by itself" in one_by_one.replace("\n", " ")


def test_whole_numbers_of_a_column_with_blanks_have_one_name_on_every_road(tmp_path: Path) -> None:
    """Pandas writes 47 as 47.0 where a column has blanks."""
    frame = claims().assign(region=lambda f: f["Region, Code"].mask(f.index % 10 == 0))
    path = written(frame, tmp_path / "a.csv")
    assert "47.0" in path.read_text()
    one, other = (sc.audit(data, "Paid?", "P(paid)", "region", positive="yes") for data in (path, frame))
    pd.testing.assert_frame_equal(one.by_group, other.by_group)
    assert set(one.by_group["group"]) == {"all", "region=missing", *(f"region={k}" for k in (10, 20, 31, 47))}


def test_a_run_names_what_it_is_good_for(tmp_path: Path) -> None:
    """No group was biased: the loss is the reason; and a model that knows nothing is not praised."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"Paid?": (rng.random(6000) < 0.3).astype(int), "P(paid)": rng.beta(3, 7, 6000)})
    path = written(frame.assign(plan=rng.choice(["basic", "pro"], 6000)), tmp_path / "a.csv")
    said = " ".join(told(path, "--groups", "plan", task="run").split())
    assert said.startswith("IMPROVED Use the corrected forecasts: the Brier score is")
    assert "until there is another model: this one says little more than a constant" in said
    assert told(path, "--groups", "plan").startswith("RETRAIN")


@pytest.mark.parametrize("task", ["audit", "run"])
def test_copies_of_rows_are_noticed(tmp_path: Path, task: str) -> None:
    """A table that was joined to itself; not one whose forecasts are rounded, or whose events are rare."""
    frame = claims()
    path = written(pd.concat([frame] * 3), tmp_path / "a.csv")
    more = ("--groups", '"Region, Code"', "--positive", "yes")
    assert "if they are copies, drop them" in told(path, *more, task=task)
    written(pd.concat([frame.assign(id=frame.index)] * 3), path)
    assert "if they are copies" not in told(path, *more, "--cluster", "id", task=task)
    rounded = frame.assign(**{"P(paid)": frame["P(paid)"].round(3)})
    rare = rounded.assign(**{"Paid?": np.where(np.arange(len(frame)) % 100, "no", "yes")})
    for each in (rounded, rare):
        assert "if they are copies" not in told(written(each, path), *more, task=task)


def test_the_page_says_on_which_side_the_worst_group_is_biased() -> None:
    table = claims().assign(late=lambda f: (f["Paid?"] == "yes").astype(float))
    run = sc.recalibrate(
        table, "late", "P(paid)", [("Region, Code",)], seed=1, config=sc.TaskConfig("late", budget=0.0)
    )
    for side in ("before", "after"):
        assert run.by_group.set_index("group").loc["Region, Code=47", f"{side}_off"]
    shown = page.html(run)
    assert "biased before and after" in shown
    assert "biased before and after" not in page.html(sc.audit(table, "late", "P(paid)", [("Region, Code",)]))
    assert f"{precise(run.change.before)} → {precise(run.change.after)}" in shown


@pytest.mark.parametrize("task", ["audit", "run"])
@pytest.mark.parametrize(
    ("no", "yes", "blank", "sentence"),
    [(-1, 1, None, "--positive 1"), (1, 2, None, "--positive 2"), (0, 1, -999, "leave the cell empty"), (0, 1, 2, "")],
)
def test_codes_are_not_taken_for_outcomes(
    tmp_path: Path, task: str, no: int, yes: int, blank: int | None, sentence: str
) -> None:
    """Beside probabilities; a third value may well be a count."""
    coded = np.where(claims()["Paid?"] == "yes", yes, no)
    if blank is not None:
        coded[:50] = blank
    path = written(claims().assign(**{"Paid?": coded}), tmp_path / "a.csv")
    if sentence:
        assert sentence in refused(*asked(path, task=task))
    else:
        told(path, task=task)
    if blank is None:
        assert "Brier score" in told(path, "--positive", str(yes), task=task)
    told(path, "--low", "-999", "--high", "2", task=task)


def test_a_run_without_a_regression_says_that_one_could_learn(tmp_path: Path) -> None:
    """Keys go without one by default; that model is not to be fitted again at once."""
    path = written(claims(8000).assign(key=lambda f: f.index % 4), tmp_path / "a.csv")
    more = ("--groups", '"Region, Code"', "--positive", "yes", "--by", "key", "--seed", "1")
    said = told(path, *more, task="run")
    assert "NOT CORRECTED" in said
    assert "Next: let a regression learn the groups as well (--learn), or fit" in " ".join(said.split())
    assert "IMPROVED" in told(path, *more, "--learn", task="run")


def test_a_small_group_without_events_is_no_finding_because_rows_are_counted_by_day(tmp_path: Path) -> None:
    """Events of 1 % in 150 groups: some have none, and none of them is biased; days have nothing to do with it."""
    rng, n = np.random.default_rng(3), 60_000
    p = np.round(rng.beta(2.0, 180.0, n), 3)
    rows = pd.DataFrame({"y": rng.random(n) < p, "p": p, "g": rng.integers(0, 150, n)})
    rows["day"] = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 300, n)), unit="D")
    assert (rows.groupby("g")["y"].sum() == 0).any()
    result = sc.audit(rows.assign(y=rows["y"].astype(int)), "y", "p", "g", time="day")
    assert result.clusters is not None
    assert result.verdict.kind == "TOO FEW ROWS", result.verdict.headline
