"""One line from a frame to forecasts and to a verdict."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars
import pytest

import swapcal as sc
from commands import swapcal
from swapcal.tasks.config import TaskConfig


def table(n: int = 3000) -> dict[str, Any]:
    """A score that is right for nobody: too high for the free plan, too low for the paid one."""
    rng = np.random.default_rng(0)
    paid, score = rng.random(n) < 0.4, rng.uniform(0.2, 0.6, n)
    left = (rng.random(n) < score + np.where(paid, 0.3, -0.15)).astype(float)
    return {"plan": np.where(paid, "paid", "free"), "score": score, "left": left}


@pytest.mark.parametrize("kind", [pd.DataFrame, polars.DataFrame])
def test_a_column_of_better_forecasts_is_that_of_the_loop(kind: Any) -> None:
    columns = table()
    result = sc.recalibrate(kind(columns), "left", "score", "plan", learn=False, seed=1)
    out = result.frame
    assert isinstance(out, kind)
    assert list(out.columns) == ["plan", "score", "left", "forecast"]
    after, left = out["forecast"].to_numpy(), columns["left"]
    for plan in ("free", "paid"):
        # The first rows show the score itself, while nothing is known of it.
        inside = (columns["plan"] == plan) & (np.arange(len(left)) >= 500)
        assert abs(np.mean((after - left)[inside])) < 0.08 < abs(np.mean((columns["score"] - left)[inside]))
    groups = sc.Groups(["plan"])
    groups.fit(columns)
    loop = sc.Forecaster(sc.Mean(), groups, outside="clip", seed=1)
    for plan, score, outcome, number in zip(columns["plan"], columns["score"], left, after, strict=True):
        forecast = loop.predict({"plan": plan}, hint=float(score))
        assert float(forecast) == number
        loop.update(forecast, float(outcome))


def test_the_next_row_comes_from_a_forecaster_that_has_seen_the_frame() -> None:
    frame = pd.DataFrame(table())
    frame.loc[5, "left"] = np.nan  # teaches nothing
    forecaster = sc.forecaster_for(frame, y="left", hint="score", groups=["plan"], seed=1)
    assert forecaster.n_rounds == len(frame) - 1
    assert forecaster.predict(frame.iloc[0], hint=0.4) > 0.5 or frame["plan"][0] == "free"
    with pytest.raises(sc.InvalidInput, match="no column 'nobody'"):
        sc.forecaster_for(frame, y="nobody")
    with pytest.raises(sc.InvalidInput, match="no outcome"):
        sc.forecaster_for(frame.assign(left=np.nan), y="left")


def test_hints_in_other_units_are_refused() -> None:
    rng = np.random.default_rng(0)
    percent = rng.random(200) * 100
    y = rng.random(200) * 100 < percent
    with pytest.raises(
        sc.errors.InvalidInput, match=r"most forecasts in column 'score' are outside \[0, 1\], such as .*percent"
    ):
        sc.forecaster_for(pd.DataFrame({"late": y, "score": percent}), y="late", hint="score")
    few = np.where(np.arange(200) % 10 == 0, percent, percent / 100)
    assert sc.forecaster_for(pd.DataFrame({"late": y, "score": few}), y="late", hint="score").n_rounds == 200
    with pytest.raises(sc.SwapcalError, match="percent"):
        sc.recalibrate(pd.DataFrame({"late": y, "score": percent}), "late", "score")


def test_a_call_gives_what_the_command_gives(tmp_path: Path) -> None:
    frame = pd.DataFrame(table())
    frame.to_csv(tmp_path / "scores.csv", index=False)
    done = swapcal(
        *("run", tmp_path / "scores.csv", "--y", "left", "--p", "score", "--groups", "plan", "--seed", "3"),
        *("--delay", "200", "--out", tmp_path / "better.csv"),
    )
    assert done.exit_code == 0, done.output
    written = pd.read_csv(tmp_path / "better.csv")
    for given in (frame, tmp_path / "scores.csv", polars.from_pandas(frame)):
        result = sc.recalibrate(given, "left", "score", ["plan"], delay="200", seed=3)
        assert np.array_equal(np.asarray(result.frame["forecast"]), written["forecast"])
        assert result.verdict.headline.split(":")[0] in " ".join(done.output.split())


@pytest.mark.parametrize("groups", ["plan,plan*tall,score>=0.4", ["plan", "plan*tall", "score>=0.4"]])
def test_groups_have_one_grammar(groups: Any) -> None:
    frame = pd.DataFrame(table()).assign(tall=np.arange(3000) % 2 == 0)
    named = set(sc.audit(frame, "left", "score", groups).by_group["group"])
    assert {"all", "plan=free", "plan=paid & tall=True", "score >= 0.4"} <= named
    assert named <= set(sc.Groups(groups).names) | set(_fitted(groups, frame).names)
    assert _fitted(groups, frame).names == _fitted(["plan", ("plan", "tall"), "score>=0.4"], frame).names


def _fitted(groups: Any, frame: pd.DataFrame) -> sc.Groups:
    found = sc.Groups(groups)
    found.fit(frame)
    return found


def test_what_is_said_of_groups_is_what_the_table_says() -> None:
    frame = pd.DataFrame(table())
    result = sc.audit(frame, "left", "score", "plan")
    by_group = result.by_group.set_index("group")
    for plan, rows in frame.groupby("plan"):
        row = by_group.loc[f"plan={plan}"]
        assert row["rows"] == len(rows)
        assert row["bias"] == pytest.approx(100.0 * (rows["score"] - rows["left"]).mean())
        assert row["low"] < row["bias"] < row["high"]
    assert result.overall["bias"] == pytest.approx(100.0 * (frame["score"] - frame["left"]).mean())
    assert result.frame.equals(result.by_group)


def test_two_models_are_compared() -> None:
    frame = pd.DataFrame(table()).assign(other=0.5)
    result = sc.audit(frame, "left", ["score", "other"], "plan")
    assert result.kind == "comparison"
    assert {section.title for section in result.sections} == {"score", "other"}


def test_outcomes_that_are_taken_as_known_at_once_are_said_once() -> None:
    frame = pd.DataFrame(table()).assign(day=lambda t: pd.date_range("2024-01-01", periods=len(t), freq="h"))
    with pytest.warns(sc.OutcomesWarning, match="known=") as caught:
        sc.recalibrate(frame, "left", "score", time="day", seed=1)
    assert len(caught) == 1
    known = frame.assign(then=frame["day"] + pd.Timedelta(days=2))
    late = sc.recalibrate(known, "left", "score", time="day", known="then", seed=1)
    same = sc.recalibrate(frame, "left", "score", time="day", delay="2d", seed=1)
    assert np.array_equal(late.frame["forecast"], same.frame["forecast"])


def test_the_rest_is_said_by_a_configuration() -> None:
    frame = pd.DataFrame(table())
    asked = TaskConfig("left", "score", "plan", protect="nothing", seed=4)
    ours = sc.recalibrate(frame, "left", "score", config=asked)
    assert ours.config.protect == "nothing"
    assert [*ours.config.groups] == ["plan"]
    other = sc.recalibrate(frame, "left", "score", "plan", seed=4)
    assert not np.array_equal(ours.frame["forecast"], other.frame["forecast"])


def test_intervals_and_classes_come_as_columns() -> None:
    frame = pd.DataFrame(table()).assign(size=lambda t: 10.0 * t["score"] + t["left"], kind=lambda t: t["left"] + 1)
    with_ends = sc.recalibrate(frame, "size", groups="plan", interval=0.9, seed=1).frame
    assert {"lower", "upper"} <= set(with_ends.columns)
    inside = (with_ends["lower"] <= frame["size"]) & (frame["size"] <= with_ends["upper"])
    assert 0.85 < inside[500:].mean() < 0.95
    classes = sc.recalibrate(frame, "kind", groups="plan", classes=True, seed=1).frame
    chances = classes.filter(like="p_")
    assert chances.shape[1] == 2
    assert np.allclose(chances.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["groups", "reliability", "time", "loss"])
def test_every_figure_takes_and_returns_axes(kind: str) -> None:
    result = sc.recalibrate(pd.DataFrame(table()), "left", "score", "plan", seed=1)
    _, ax = plt.subplots()
    assert result.plot(kind, ax=ax) is ax
    assert ax.lines or ax.collections
    plt.close("all")
    with pytest.raises(sc.InvalidInput, match="kind must be"):
        result.plot("pie")


def test_losses_over_time_add_up_to_those_of_the_verdict() -> None:
    result = sc.recalibrate(pd.DataFrame(table()), "left", "score", "plan", seed=1)
    figure = sc.report.loss_over_time(result).frame("pandas")
    assert figure["model"].mean() == pytest.approx(result.change.before)
    assert figure["swapcal"].mean() == pytest.approx(result.change.after)
    assert figure["refit"].mean() == pytest.approx(result.against["refit"].after)
    assert figure["row"].iloc[-1] == 3000


def test_the_page_is_one_file(tmp_path: Path) -> None:
    path = sc.audit(table(), "left", "score", "plan").to_html(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_forecaster_takes_groups_and_a_name() -> None:
    short = sc.Forecaster("probability", groups=["plan"], seed=1)
    long = sc.Forecaster(sc.Probability(), sc.Groups(["plan"]), seed=1)
    rng = np.random.default_rng(0)
    for t in range(200):
        x, hint, y = {"plan": "a" if t % 3 else "b"}, rng.random(), float(rng.random() < 0.4)
        one, other = short.predict(x, hint=hint), long.predict(x, hint=hint)
        assert float(one) == float(other)
        short.update(one, y)
        long.update(other, y)
    with pytest.raises(sc.InvalidInput, match="for whom"):
        sc.Forecaster("probability")
