"""Tables whose outcomes come late: what is learned when, what is said, what is refused, and runs that are killed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from commands import run
from swapcal.cli import app
from swapcal.errors import DataError, InvalidInput
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import from_json, to_json

N = 900


def table(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, N)
    day = np.datetime64("2026-01-01") + (np.arange(N) // 30).astype("timedelta64[D]")
    return {"y": (rng.random(N) < p**2).astype(float), "p": p, "g": rng.integers(0, 3, N), "day": day.astype(str)}


def test_a_delay_in_rows_is_that_of_the_forecaster() -> None:
    columns = table()
    result = run(columns, TaskConfig("y", "p", delay="50"), seed=4, out=None)
    forecaster = sc.Forecaster(sc.Mean(), sc.Groups([]), seed=4)
    known = np.arange(N) + 50.0
    shown = forecaster.run(columns, columns["y"], columns["p"], known=known)
    assert result.after is not None
    assert result.after.loss == pytest.approx(np.mean((shown - columns["y"]) ** 2))
    assert result.lateness is not None
    assert result.lateness.n_pending == 50
    assert result.lateness is not None
    assert result.lateness.n_late == N - 50


def test_delay_column_and_rows_are_one_thing(tmp_path: Path) -> None:
    """A day later by --delay 1d, and by a column that says so."""
    columns = table()
    known = (columns["day"].astype("datetime64[D]") + np.timedelta64(1, "D")).astype(str)
    found = []
    for k, question in enumerate(
        (TaskConfig("y", "p", time="day", delay="1d"), TaskConfig("y", "p", time="day", known="known"))
    ):
        out = tmp_path / f"{k}.csv"
        run({**columns, "known": known}, question, seed=4, out=out)
        found.append(out.read_bytes())
    assert found[0] == found[1]


def test_sentences_reach_the_verdict_json_and_terminal(tmp_path: Path) -> None:
    columns = table()
    path = tmp_path / "in.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    at_once = run(str(path), TaskConfig("y", "p"), seed=1)
    assert "--time day and --delay 2d" in at_once.verdict.sentences[-1]
    assert "taken as known at once" in at_once.verdict.sentences[-1]
    late = run(str(path), TaskConfig("y", "p", delay="880"), seed=1)
    said = late.verdict.sentences
    assert any(each.startswith("20 outcomes were learned after later rows, after 879 later rows") for each in said)
    assert any(each.startswith("Standing back since row 2:") for each in said)
    assert from_json(to_json(late)).verdict == late.verdict
    shown = CliRunner().invoke(app, ["run", str(path), "--y", "y", "--p", "p", "--delay", "880", "--seed", "1"])
    assert shown.exit_code == 0, shown.output
    assert "Standing back since row 2" in " ".join(shown.output.split())


def test_dependent_delays_are_said() -> None:
    columns = table()
    known = np.arange(1, N + 1) + np.where(columns["y"] > 0.5, 2.0, 120.0)
    result = run({**columns, "k": known}, TaskConfig("y", "p", known="k"), seed=1)
    assert any(each.startswith("Outcomes that come late are not like") for each in result.verdict.sentences)
    assert result.lateness is not None
    assert result.lateness.dependent_since is not None


@pytest.mark.parametrize(
    ("change", "question", "sentence"),
    [
        (
            {"day": ["2026-01-02"] * 5 + ["2026-01-01"] * (N - 5)},
            {"time": "day", "delay": "1d"},
            "row 6 of .* an earlier",
        ),
        ({"day": ["2026-01-02", *["soon"] * (N - 1)]}, {"time": "day", "delay": "1d"}, "'soon', which is no time"),
        ({"k": [1.0] * N}, {"known": "k"}, "row 2 of .* is known before the row itself"),
        ({}, {"delay": "1d"}, "add --time COLUMN"),
        ({}, {"delay": "tomorrow"}, "a delay is a number of rows"),
        ({"k": [1.0] * N}, {"known": "k", "delay": "5"}, "not both"),
    ],
)
def test_impossible_times_get_a_sentence(change: dict[str, Any], question: dict[str, Any], sentence: str) -> None:
    with pytest.raises((DataError, InvalidInput), match=sentence):
        run({**table(), **change}, TaskConfig("y", "p", **question), seed=1)


def test_unknown_times_wait_and_nothing_is_lost() -> None:
    columns = table()
    known = np.where(np.arange(N) % 7 == 0, np.nan, np.arange(1, N + 1) + 3.0)
    result = run({**columns, "k": known}, TaskConfig("y", "p", known="k"), seed=1)
    never = np.count_nonzero(np.isnan(known))
    assert result.lateness is not None
    assert result.lateness.n_pending == never + np.count_nonzero(known > N)
    assert result.lateness is not None
    assert result.lateness.n_expired == 0


def test_outcomes_are_learned_in_the_order_of_the_forecasts_if_asked(tmp_path: Path) -> None:
    """By row numbers from 1 on, as `Forecaster.run(order="forecast")` does, and not as by arrival."""
    rng = np.random.default_rng(4)
    n = 1_500
    x, y = rng.random(n) < 0.4, rng.random(n) < 0.5
    known = np.arange(n) + 1 + np.where(y, 300, 5)
    columns = {"y": y.astype(float), "g": x, "known": known}
    asked = TaskConfig("y", groups=["g"], low=0.0, high=1.0, known="known", order="forecast")
    said = {}
    for question in (asked, replace(asked, order="arrival")):
        file = tmp_path / f"{question.order}.csv"
        found = run(columns, question, learn=False, seed=3, out=file)
        assert found.config.order == question.order
        said[question.order] = np.loadtxt(file, delimiter=",", skiprows=1)[:, 1]
        forecaster = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=3)
        contexts = np.column_stack([np.ones(n), ~x, x]).astype(float)
        made = forecaster.run(contexts, columns["y"], known=known - 1.0, order=question.order)
        np.testing.assert_array_equal(said[question.order], made)
    assert not np.array_equal(said["forecast"], said["arrival"])
    with pytest.raises(InvalidInput, match="add --known or --delay"):
        TaskConfig("y", order="forecast")
    with pytest.raises(InvalidInput, match="order must be"):
        TaskConfig("y", delay="5", order="sideways")
