"""`swapcal run --interval` and `swapcal run --classes` from the outside."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from swapcal.cli import app

N = 1500


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with demand.csv and flights.csv, which is the working directory."""
    rng = np.random.default_rng(1)
    store = rng.choice(["north", "south"], N)
    center = rng.normal(20.0, 3.0, N)
    y = center + rng.normal(0.0, 1.0 + 2.0 * (store == "south"))
    frame = pd.DataFrame({"store": store, "y": y, "f": center, "lo": center - 1.5, "hi": center + 1.5})
    frame.to_csv(tmp_path / "demand.csv", index=False)
    p = rng.dirichlet([2.0, 1.0, 0.2], N)
    label = np.array(["early", "on time", "late"])[(p.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1)]
    said = p**2 / (p**2).sum(axis=1, keepdims=True)
    named = {f"p_{name}": said[:, k] for k, name in enumerate(["early", "on time", "late"])}
    pd.DataFrame({"store": store, "y": label, **named}).to_csv(tmp_path / "flights.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swapcal(*arguments: str) -> Outcome:
    return CliRunner().invoke(app, ["run", *arguments])


INTERVALS = ("demand.csv", "--y", "y", "--interval", "0.9", "--p", "lo,hi", "--groups", "store", "--seed", "1")
CLASSES = (
    "flights.csv",
    "--y",
    "y",
    "--classes",
    "--p",
    "p_early,p_on time,p_late",
    "--groups",
    "store",
    "--seed",
    "1",
)


def test_intervals_are_told_written_and_shown(folder: Path) -> None:
    outcome = swapcal(*INTERVALS, "--out", "out.csv", "--report", "page.html")
    assert outcome.exit_code == 0, outcome.output
    table, out = pd.read_csv("demand.csv"), pd.read_csv("out.csv")
    assert list(out.columns) == ["row", "before", "before_lower", "before_upper", "lower", "upper"]
    covered = (out["lower"] <= table["y"]) & (table["y"] <= out["upper"])
    south = covered[table["store"] == "south"].mean()
    for number in (f"is {100 * covered.mean():.1f} %", f"{100 * south:.1f} %", "store=south", "RECALIBRATE"):
        assert number in " ".join(outcome.stdout.split())
    page = Path("page.html").read_text(encoding="utf-8")
    assert f"{100 * south:.1f} %" in page
    assert "Interval score" in page


def test_classes_are_told_written_and_shown(folder: Path) -> None:
    outcome = swapcal(*CLASSES, "--out", "out.jsonl", "--report", "page.html")
    assert outcome.exit_code == 0, outcome.output
    table, out = pd.read_csv("flights.csv"), pd.read_json("out.jsonl", lines=True)
    assert list(out.columns) == ["row", "p_early", "p_on time", "p_late", "top", "confidence"]
    right = (out["top"] == table["y"]).mean()
    assert f"came up in {100 * right:.1f} %" in " ".join(outcome.stdout.split())
    assert f"{100 * right:.1f} %" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("asked", [INTERVALS, CLASSES])
def test_json_has_the_same_numbers(folder: Path, asked: tuple[str, ...]) -> None:
    outcome = swapcal(*asked, "--json")
    told = json.loads(outcome.stdout)["result"]
    assert told["counts"]["scored"] == N
    assert told["seed"] == told["config"]["seed"] == 1
    assert told["group_table"][0]["group"] == "all"
    assert {row["group"] for row in told["group_table"]} == {"all", "store=north", "store=south"}


@pytest.mark.parametrize("asked", [INTERVALS, CLASSES])
def test_a_threshold_ends_with_1(folder: Path, asked: tuple[str, ...]) -> None:
    assert swapcal(*asked, "--fail-above", "60").exit_code == 0
    outcome = swapcal(*asked[:-2], "--horizon", "3", "--seed", "1", "--no-learn", "--fail-above", "rms:0")
    assert outcome.exit_code == 1
    assert "above --fail-above 0" in outcome.stderr
