"""`swapcal run`: every option with every task is taken, or refused by its sentence; columns, exit codes, `--config`.

What the numbers are is asked elsewhere; here, that intervals, classes and keys are those of the models behind them.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import swapcal as sc
from commands import refused, swapcal
from swapcal.cli import app
from swapcal.engine.kernels import seed_for
from swapcal.errors import InvalidInput
from swapcal.intervals import Interval
from swapcal.tasks.config import CONFLICTS, TaskConfig

N = 160
ASKED: dict[str, tuple[str, ...]] = {
    "scalar": ("--y", "y", "--p", "p"),
    "interval": ("--y", "y", "--p", "p", "--interval", "0.8"),
    "classes": ("--y", "c", "--p", "a=pa,b=pb", "--classes"),
}
COLUMNS = {
    "scalar": ["row", "before", "forecast"],
    "interval": ["row", "before", "lower", "upper"],
    "classes": ["row", "p_a", "p_b", "top", "confidence"],
}
OPTIONS: dict[str, tuple[str, ...]] = {
    "groups": ("--groups", "g,g*s"),
    "categories": ("--groups", "s", "--categories", "s"),
    "linear": ("--linear", "x"),
    "property": ("--property", "median"),
    "low": ("--low", "-2"),
    "high": ("--high", "9"),
    "positive": ("--y", "e", "--positive", "1"),
    "weight": ("--weight", "w"),
    "learn": ("--no-learn",),
    "horizon": ("--horizon", "500"),
    "time": ("--time", "t"),
    "known": ("--time", "t", "--known", "k"),
    "delay": ("--delay", "7"),
    "order": ("--delay", "7", "--order", "forecast"),
    "later": ("--later", "--state", "run.state"),
    "id": ("--id", "i", "--state", "run.state"),
    "seed": ("--seed", "4"),
    "trust": ("--trust", "0.2"),
    "levels": ("--levels", "3"),
    "jitter": ("--jitter", "0.1"),
    "bins": ("--bins", "9"),
    "r": ("--r", "1.5"),
    "costs": ("--y", "e", "--costs", "1:3"),
    "limit": ("--limit", "50"),
    "by": ("--by", "s", "--processes", "1"),
}
"""An option of `run`, as it is given."""


def table(n: int = N) -> pd.DataFrame:
    """Outcomes that are numbers in [0, 1] and names of classes, a model's forecasts of both, and all else."""
    rng = np.random.default_rng(3)
    p = rng.random(n).round(4)
    columns: dict[str, Any] = {"i": [f"r{t}" for t in range(n)], "t": np.arange(n), "p": p, "x": rng.normal(size=n)}
    columns |= {"k": np.arange(n) + rng.integers(0, 9, n), "g": rng.choice(["u", "v"], n), "s": rng.integers(1, 4, n)}
    columns |= {"w": rng.integers(1, 4, n), "pa": p, "pb": (1 - p).round(4), "c": np.where(rng.random(n) < p, "a", "b")}
    return pd.DataFrame(
        columns | {"e": (rng.random(n) < p).astype(int), "y": np.clip(p + 0.2 * rng.normal(size=n), 0, 1).round(4)}
    )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the table."""
    monkeypatch.chdir(tmp_path)
    table().to_csv("in.csv", index=False)
    return tmp_path


def sentence_for(task: str, name: str) -> str | None:
    """Why an option is refused; None where it is taken."""
    pairs = {(one, other): why for one, other, why in CONFLICTS}
    why = pairs.get((task, name)) or pairs.get((name, task))
    return None if why is None else f"goes without --{name if (task, name) in pairs else task}: {why}"


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("task", ASKED)
def test_an_option_is_taken_or_refused_by_its_sentence(desk: Path, task: str, name: str) -> None:
    """Whatever is not in the table of conflicts works, and writes the columns of its task."""
    asked = ("run", "in.csv", *ASKED[task], *OPTIONS[name], "--out", "out.csv")
    why = sentence_for(task, name)
    if why is not None:
        assert why in refused(*asked)
        assert not Path("out.csv").exists()
        return
    outcome = swapcal(*asked)
    assert outcome.exit_code == 0, outcome.output
    written = pd.read_csv("out.csv")
    assert list(written.columns) == COLUMNS[task]
    assert written["row"].tolist() == list(range(1, N + 1))
    assert written.iloc[-1].notna().all()


@pytest.mark.parametrize("task", ASKED)
def test_a_key_takes_all_that_a_stream_takes(desk: Path, task: str) -> None:
    late: tuple[str, ...] = ("--time", "t", "--known", "k", "--order", "forecast", "--groups", "g")
    late += () if task == "scalar" else ("--weight", "w")  # sums of weighted rows have no verdict
    keys = ("--by", "s", "--processes", "1", "--seed", "5", "--state", "keys.state", "--json")
    pd.read_csv("in.csv").head(100).to_csv("first.csv", index=False)
    for name in ("first.csv", "in.csv"):
        outcome = swapcal("run", name, *ASKED[task], *late, *keys, "--out", "out.csv")
        assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["result"]["counts"]["keys"] == 3
    whole = swapcal("run", "in.csv", *ASKED[task], *late, *keys[:6], "--out", "whole.csv")
    assert whole.exit_code == 0, whole.output
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_intervals_of_a_key_are_those_of_a_model_alone_with_its_rows(desk: Path) -> None:
    asked = ("run", "in.csv", *ASKED["interval"], "--by", "s", "--seed", "5", "--time", "t", "--known", "k")
    assert swapcal(*asked, "--weight", "w", "--out", "out.csv", "--processes", "1").exit_code == 0
    data, written = table(), pd.read_csv("out.csv")
    for key, rows in data.groupby("s"):
        interval = Interval(
            0.8, sc.Finite(1, names=["all"]), seed=seed_for(5, "key", json.dumps(str(key))), max_pending=4096
        )
        times = {"known": rows["k"].to_numpy(float), "times": rows["t"].to_numpy(float)}
        weights = rows["w"].to_numpy(float) / data["w"].max()
        ends = interval.run(np.ones((len(rows), 1)), rows["y"], rows["p"], weights=weights, **times)
        ends[~np.isfinite(ends).all(axis=1)] = np.nan
        np.testing.assert_array_equal(written.loc[rows.index, ["lower", "upper"]].to_numpy(), ends)


@pytest.mark.parametrize("task", ["interval", "classes"])
def test_outcomes_that_come_later_are_learned_once(desk: Path, task: str) -> None:
    """In the file itself or by a second one; rows that were forecast keep their forecasts."""
    y, data = ASKED[task][1], table()
    blank = data.copy()
    blank[y] = blank[y].where(np.arange(N) % 5 > 0)
    blank.to_csv("blank.csv", index=False)
    data[["i", y]].to_csv("outcomes.csv", index=False)
    asked = (*ASKED[task], "--id", "i", "--seed", "2", "--out", "out.csv", "--state", "run.state")
    assert swapcal("run", "blank.csv", *asked).exit_code == 0
    before = Path("out.csv").read_bytes()
    second = swapcal("run", "blank.csv", *asked, "--outcomes", "outcomes.csv", "--json")
    assert second.exit_code == 0, second.output
    assert f"learned from {N // 5} outcomes" in second.stderr
    assert Path("out.csv").read_bytes() == before
    again = swapcal("run", "blank.csv", *asked, "--outcomes", "outcomes.csv")
    assert "nothing to do" in again.stderr
    scored = json.loads(second.stdout)["result"]["counts"]
    early = scored["without_interval"] if task == "interval" else 0
    assert scored["scored"] + early == N


def test_a_file_of_options_is_the_options(desk: Path) -> None:
    asked = ("--y", "y", "--p", "p", "--groups", "g,g*s", "--delay", "5", "--seed", "3", "--no-learn")
    lines = ['y = "y"', 'hint = "p"', 'groups = ["g", ["g", "s"]]', 'delay = "5"', "seed = 4", "learn = false"]
    Path("run.toml").write_text("\n".join(lines) + "\n")
    assert swapcal("run", "in.csv", *asked, "--out", "a.csv").exit_code == 0
    assert swapcal("run", "in.csv", "--config", "run.toml", "--seed", "3", "--out", "b.csv").exit_code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    Path("audit.toml").write_text('y = "y"\np = "p,pb"\ngroups = "g"\n')
    both = [
        swapcal("audit", "in.csv", *options, "--json")
        for options in (("--config", "audit.toml"), ("--y", "y", "--p", "p,pb", "--groups", "g"))
    ]
    assert both[0].exit_code == 0, both[0].output
    assert both[0].stdout == both[1].stdout
    Path("odd.toml").write_text("weights = 1\n")
    assert "there is no setting 'weights'" in refused("run", "in.csv", "--config", "odd.toml")
    Path("odd.toml").write_text("y\n")
    assert "is not TOML" in refused("run", "in.csv", "--config", "odd.toml")
    assert "the column of outcomes is missing" in refused("run", "in.csv")


def test_exit_codes(desk: Path) -> None:
    assert swapcal("run", "in.csv", *ASKED["scalar"]).exit_code == 0
    assert swapcal("audit", "in.csv", "--y", "y", "--p", "pb", "--fail-above", "rms:0.001").exit_code == 1
    assert "nothing.csv" in refused("run", "nothing.csv", *ASKED["scalar"])
    assert refused("run", "in.csv", "--y", "nothing")
    assert swapcal("run", "in.csv", "--y", "y", "--horizon", "0").exit_code == 2


def test_every_option_is_in_the_help() -> None:
    options = {each.name for each in fields(TaskConfig)} - {"cluster", "prefix", "max_pending"}
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).stdout
    assert all(f"--{name}" in shown for name in options)
    for name in (
        "out",
        "overwrite",
        "state",
        "fresh",
        "outcomes",
        "processes",
        "report",
        "json",
        "fail-above",
        "config",
    ):
        assert f"--{name}" in shown
    for command in ("audit", "watch"):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
        assert all(f"--{name}" in shown for name in ("y", "p, --hint", "groups", "property", "cluster", "config"))


def test_every_conflict_is_said_and_names_real_options() -> None:
    values: dict[str, Any] = {"known": "k", "delay": "5", "classes": True, "interval": 0.8, "by": "s", "linear": ("x",)}
    values |= {"low": 0.0, "high": 1.0, "property": "median", "positive": "1", "costs": "1:2", "jitter": 0.1, "bins": 9}
    values |= {"trust": 0.1, "levels": 3, "r": 1.5, "horizon": 9, "id": "i", "later": True}
    for one, other, why in CONFLICTS:
        with pytest.raises(InvalidInput, match="goes without") as error:
            TaskConfig("y", **{one: values[one], other: values[other]})
        assert str(error.value) == f"--{one} goes without --{other}: {why}"


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x"])
def test_options_of_a_wrong_kind_are_refused_by_their_name(value: Any) -> None:
    """Whoever reads options, a file or a service, gets to hear which of them is wrong."""
    for name in {each.name for each in fields(TaskConfig)} - {"groups", "linear", "categories"}:
        with pytest.raises(InvalidInput, match=f"^{name} must"):
            TaskConfig.from_mapping({"y": "y", name: value})
    for name, wrong in (("bins", 0), ("seed", -1), ("jitter", -0.5), ("interval", 1.5), ("classes", 1), ("delay", 5)):
        with pytest.raises(InvalidInput, match=f"^{name} must"):
            TaskConfig.from_mapping({"y": "y", name: wrong})
