"""Commands from the outside: every option with every task is taken, or refused by its sentence; columns, exit codes.

What the numbers are is asked elsewhere; here, that intervals, classes and keys are those of the models behind them.
"""

import json
import re
from dataclasses import fields
from html import unescape
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
from swapcal.learners import GradientDescent
from swapcal.tasks.config import CONFLICTS, TaskConfig
from swapcal.tasks.result import from_json

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
    return None if why is None else f"cannot be combined with --{name if (task, name) in pairs else task}: {why}"


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("task", ASKED)
def test_an_option_is_taken_or_refused_by_its_sentence(desk: Path, task: str, name: str) -> None:
    """Whatever is not in the table of conflicts works, and writes the columns of its task."""
    table(90).to_csv("in.csv", index=False)
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
    assert written["row"].tolist() == list(range(1, 91))
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


@pytest.mark.parametrize("task", ASKED)
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


# What is printed, written and returned.


def share(task: str) -> str:
    """The share of outcomes that an output claims, as the file has it, in the words of the command."""
    data, out = pd.read_csv("in.csv"), pd.read_csv("out.csv")
    if task == "interval":
        inside = (out["lower"] <= data["y"]) & (data["y"] <= out["upper"])
        return f"{100 * inside[out['lower'].notna()].mean():.1f} % of the outcomes are covered"
    return f"came up in {100 * (out['top'] == data['c']).mean():.1f} %"


@pytest.mark.usefixtures("few_diagrams")
@pytest.mark.parametrize("task", ASKED)
def test_a_run_is_told_written_and_shown(desk: Path, task: str) -> None:
    asked = ("run", "in.csv", *ASKED[task], "--groups", "g", "--seed", "1")
    page = ("--report", "page.html") if task == "interval" else ()
    told = swapcal(*asked, "--out", "out.csv", *page)
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    assert told.stdout.endswith(f"Wrote out.csv ({N} rows).\n")
    assert max(map(len, told.stdout.splitlines())) <= 80
    if task != "scalar":
        assert share(task) in " ".join(swapcal(*asked, "-v").stdout.split())
    before = sorted(desk.iterdir())
    outcome = swapcal(*asked, "--json")
    result = json.loads(outcome.stdout)["result"]
    assert sorted(desk.iterdir()) == before, "without --out there is only what is printed"
    assert result["counts"]["rows"] == N
    assert result["seed"] == result["config"]["seed"] == 1
    assert {row["group"] for row in result["group_table"]} == {"all", "g=u", "g=v"}
    if page:
        assert "Wrote page.html\n" in told.stdout
        assert result["verdict"]["headline"] in unescape(Path("page.html").read_text(encoding="utf-8"))


def test_the_verdict_comes_first_and_in_plain_words(desk: Path) -> None:
    rng = np.random.default_rng(0)
    name = rng.choice(["AA", "a carrier whose name is much longer than a narrow table allows"], 3000)
    p = rng.beta(2, 4, 3000).round(4)
    y = (rng.random(3000) < np.clip(p + 0.3 * (name != "AA"), 0, 1)).astype(int)
    pd.DataFrame({"y": y, "p": p, "carrier": name, "hour": rng.integers(0, 24, 3000)}).to_csv("long.csv", index=False)
    told = swapcal("audit", "long.csv", "--y", "y", "--p", "p", "--groups", "carrier,hour,carrier*hour")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    lines = told.stdout.splitlines()
    assert lines[0].startswith("BIASED  ")
    assert len(lines) <= 20
    assert told.stdout.isascii()
    first = told.stdout
    assert not any(word in first for word in ("swap error", "T^(1/3)", "multicalibration", "cell"))
    assert max(map(len, lines)) <= 80
    assert (
        swapcal("audit", "long.csv", *ASKED_OF_LONG, "-q").stdout.split() == " ".join(lines[: lines.index("")]).split()
    )
    every = swapcal("audit", "long.csv", *ASKED_OF_LONG, "--all").stdout
    assert every.count("carrier=AA & hour=") > 20
    more = swapcal("audit", "long.csv", *ASKED_OF_LONG, "-v").stdout
    assert more.startswith(told.stdout)
    assert "swap multicalibration error" in more


ASKED_OF_LONG = ("--y", "y", "--p", "p", "--groups", "carrier,hour,carrier*hour")


@pytest.mark.usefixtures("few_diagrams")
def test_json_goes_into_a_page_and_sources_are_all_one(desk: Path) -> None:
    asked = ("--y", "y", "--p", "p", "--groups", "g", "--json")
    direct = swapcal("audit", "in.csv", *asked, "--report", "direct.html")
    again = swapcal("report", "-", "--out", "page.html", "--json", stdin=direct.stdout.encode())
    assert json.loads(again.stdout) == {"page": "page.html"}
    assert Path("page.html").read_text() == Path("direct.html").read_text()
    table().to_parquet("in.parquet")
    expected = from_json(direct.stdout)
    for outcome in (
        swapcal("audit", "-", *asked, stdin=Path("in.csv").read_bytes()),
        swapcal("audit", "in.parquet", *asked),
    ):
        result = from_json(outcome.stdout)
        assert result.before.swap_error == pytest.approx(expected.before.swap_error)
        assert (result.kind, result.first.groups) == ("audit", expected.first.groups)


MODELS = ("audit", "in.csv", "--y", "y", "--p", "p,pb")


@pytest.mark.parametrize(
    "asked", [(*MODELS[:-1], "pb"), MODELS, *(("run", "in.csv", *task) for task in ASKED.values())]
)
def test_a_threshold_ends_with_1_and_the_result_is_printed_all_the_same(desk: Path, asked: tuple[str, ...]) -> None:
    assert swapcal(*asked, "--fail-above", "200").exit_code == 0
    outcome = swapcal(*asked, "--json", "--fail-above", "rms:0")
    assert outcome.exit_code == 1
    assert all("above --fail-above 0" in line for line in outcome.stderr.splitlines())
    assert from_json(outcome.stdout).counts.rows == N


@pytest.mark.usefixtures("little_room")
def test_standard_input_stops_and_goes_on(desk: Path) -> None:
    """The same data is piped again, with more behind it: what is done is passed over."""
    lines = Path("in.csv").read_bytes().splitlines(keepends=True)
    settings = ("run", "-", *ASKED["scalar"], "--state", "run.state", "--out", "out.csv", "--json")
    assert swapcal(*settings, stdin=b"".join(lines[:101])).exit_code == 0
    outcome = swapcal(*settings, stdin=b"".join(lines))
    assert (outcome.exit_code, outcome.stderr) == (0, "going on after row 100\n")
    again = swapcal(*settings, stdin=b"".join(lines))
    assert again.stderr == f"nothing to do: all {N} rows of standard input are done\n"
    assert again.stdout == outcome.stdout
    assert pd.read_csv("out.csv")["row"].tolist() == list(range(1, N + 1))


def test_two_thousand_groups_and_outcomes_outside_the_range(desk: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(6000).round(3)
    many = pd.DataFrame(
        {"y": (rng.random(6000) < p).astype(float), "p": p, "city": [f"g{k % 2000}" for k in range(6000)]}
    )
    many.to_csv("many.csv", index=False)
    asked = ("audit", "many.csv", "--y", "y", "--p", "p")
    result = from_json(swapcal(*asked, "--groups", "city", "--json").stdout)
    assert (len(result.first.groups), result.verdict.kind) == (2001, "TOO FEW ROWS")
    assert len(result.before.curves) <= 30
    cramped = swapcal(*asked, "--groups", "city", "--limit", "100")
    assert (cramped.exit_code, cramped.stderr.count("\n")) == (0, 1)
    assert cramped.stderr.startswith("warning: ")
    many.loc[5990:, "y"] = 7.0
    many.to_csv("many.csv", index=False)
    assert swapcal(*asked).stderr == "", "the range is that of all rows"
    cut = swapcal(*asked, "--low", "0", "--high", "1")
    assert cut.stderr.startswith("warning: row 5991 of ")
    assert (cut.exit_code, cut.stderr.count("\n")) == (0, 1)
    assert "10 outcomes outside the range" in swapcal(*asked, "--low", "0", "--high", "1", "-v").stdout


# What is refused, in one sentence.

AUDIT = ("audit", "in.csv", "--y", "y", "--p", "p")
RUN = ("run", "in.csv", "--y", "y", "--p", "p", "--groups", "g")
REFUSED: dict[tuple[str, ...], str] = {
    ("audit", "empty.csv", *AUDIT[2:]): "empty.csv is empty",
    ("audit", "words.csv", *AUDIT[2:]): "'y' .*--positive",
    ("audit", "percent.csv", *AUDIT[2:]): "'p' .*50.*divide by 100",
    ("audit", "equal.csv", *AUDIT[2:]): "7 to 7.*--low",
    ("audit", "nothing.csv", *AUDIT[2:]): "'y'.*no outcome|no outcome.*'y'",
    ("audit", "unforecast.csv", *AUDIT[2:]): "'p' .*no forecast",
    ("audit", ".", *AUDIT[2:]): "folder",
    ("run", "absent.csv", *RUN[2:]): "absent.csv",
    ("audit", "in.csv", "--y", "yy", "--p", "p"): "did you mean 'y'",
    ("audit", "in.csv", "--y", "y", "--p", "g"): "row 1, column 'g'",
    (*AUDIT, "--groups", "pc"): "no column 'pc'.*did you mean",
    (*AUDIT, "--groups", "g,,s"): "g,,s",
    (*AUDIT, "--linear", "g"): "'g'",
    (*AUDIT, "--weight", "g"): "'g'",
    (*AUDIT, "--property", "mode"): "quantile:0.9.*'mode'",
    (*AUDIT, "--property", "quantile:90"): "0.9",
    (*AUDIT, "--property", "moment:inf"): "the order of a moment is a whole number",
    (*AUDIT, "--property", "moment:nan"): "the order of a moment is a whole number",
    (*AUDIT, "--positive", "late"): "'late'.*--positive",
    (*AUDIT, "--report", "no/such/folder/page.html"): "page.html",
    (*RUN, "--low", "2", "--high", "1"): "low must",
    (*RUN, "--low", "nan"): "low must",
    (*RUN, "--low", "-1.7e308", "--high", "1.7e308"): "squares are no numbers",
    (*RUN, "--low", "0", "--high", "1e200"): "squares are no numbers",
    (*RUN, "--r", "0.5"): "r must",
    (*RUN, "--r", "nan"): "r must be a finite number",
    (*RUN, "--bins", str(10**18)): "bins must be 100,000 at most",
    (*RUN, "--bins", str(10**30)): "bins must be 100,000 at most",
    (*RUN, "--levels", str(10**18)): "levels must be 10,000 at most",
    (*RUN, "--no-learn", "--linear", "x"): "--learn",
    (*RUN, "--out", "better.xlsx"): "must end in .csv, .jsonl, .ndjson or .parquet",
    (*RUN, "--out", "no/where.csv"): "cannot be written",
    (*RUN, "--out", "words.csv"): "words.csv is there already",
    (*RUN, "--state", "no/where.state"): "no/where.state cannot be written",
    (*RUN, "--state", "words.csv"): "words.csv is not a state file of swapcal run, and is left as it is",
    (*RUN, "--outcomes", "words.csv", "--state", "s"): "--id COLUMN",
    (*RUN, "--later"): "--state",
    (*MODELS, "--discover"): "one model",
    ("report", "words.csv", "--out", "page.html"): "give what swapcal audit",
    ("report", "absent.json", "--out", "page.html"): "absent.json",
}
"""A command, and what its sentence says."""


@pytest.mark.parametrize("asked", REFUSED, ids=" ".join)
def test_what_is_refused_is_refused_in_one_sentence(desk: Path, asked: tuple[str, ...]) -> None:
    files = {"empty": "", "words": "y,p\nyes,0.5\nno,0.1\n", "percent": "y,p\n1,50\n0,20\n", "equal": "y,p\n7,7\n7,7\n"}
    for name, content in (files | {"nothing": "y,p\n,0.5\n,0.1\n", "unforecast": "y,p\n1,\n0,\n"}).items():
        Path(f"{name}.csv").write_text(content)
    before = sorted(desk.iterdir())
    outcome = swapcal(*asked)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1), outcome.output
    assert re.search(REFUSED[asked], outcome.stderr), outcome.stderr
    assert sorted(desk.iterdir()) == before


def test_every_option_is_in_the_help() -> None:
    options = {each.name for each in fields(TaskConfig)} - {"prefix", "max_pending"}
    options = {{"hypotheses": "class"}.get(name, name).replace("_", "-") for name in options}
    shown = CliRunner().invoke(app, ["run", "--help-all"], env={"COLUMNS": "200"}).stdout
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
        shown = CliRunner().invoke(app, [command, "--help-all"], env={"COLUMNS": "200"}).stdout
        assert all(f"--{name}" in shown for name in ("y", "p, --hint", "groups", "property", "cluster", "config"))


def test_every_conflict_is_said_and_names_real_options() -> None:
    values: dict[str, Any] = {"known": "k", "delay": "5", "classes": True, "interval": 0.8, "by": "s", "linear": ("x",)}
    values |= {"low": 0.0, "high": 1.0, "property": "median", "positive": "1", "costs": "1:2", "jitter": 0.1, "bins": 9}
    values |= {
        "trust": 0.1,
        "levels": 3,
        "r": 1.5,
        "horizon": 9,
        "id": "i",
        "later": True,
        "against": ("refit",),
        "learner": GradientDescent(2),
        "weight": "w",
    }
    for one, other, why in CONFLICTS:
        with pytest.raises(InvalidInput, match="cannot be combined with") as error:
            TaskConfig("y", **{one: values[one], other: values[other]})
        assert str(error.value) == f"--{one} cannot be combined with --{other}: {why}"


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x"])
def test_options_of_a_wrong_kind_are_refused_by_their_name(value: Any) -> None:
    """Whoever reads options, a file or a service, gets to hear which of them is wrong."""
    for name in {each.name for each in fields(TaskConfig)} - {
        "groups",
        "linear",
        "categories",
        "against",
        "keep",
        "learner",
    }:
        with pytest.raises(InvalidInput, match=f"^{name} must"):
            TaskConfig.from_mapping({"y": "y", name: value})
    more = {"bins": 0, "seed": -1, "jitter": -0.5, "interval": 1.5, "classes": 1, "delay": 5, "groups": 5, "prefix": 0}
    for name, wrong in more.items():
        with pytest.raises(InvalidInput, match=f"^{name} must"):
            TaskConfig.from_mapping({"y": "y", name: wrong})
    for name, part in {"quantile": "quantile:0.9", "quantile:high": "'high' is no", "moment:1.5": "moment:2"}.items():
        with pytest.raises(InvalidInput, match=part):
            TaskConfig("y", property=name)
    with pytest.raises(InvalidInput, match="linear must be names"):
        TaskConfig("y", linear=[3])  # type: ignore[list-item]
