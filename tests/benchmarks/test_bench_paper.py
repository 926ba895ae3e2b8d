"""`swapcal bench paper` at sizes that take seconds: every claim has its rows, in tables, a figure and the command."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typer.testing import CliRunner

from swapcal.cli import app
from swapcal.errors import InvalidInput
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal_benchmarks import paper
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper import (
    against_far,
    claim_tables,
    figure,
    rates,
)

TINY = paper.PaperSizes(
    roots=MappingProxyType({2.0: (3, 4), 3.0: (2, 3), 4.0: (2, 3)}),
    n_seeds=2,
    watch_rounds=64,
    class_sizes=(4, 16),
    class_rounds=27,
    densities=(1.0, 4.0),
    density_rounds=64,
    looks=(16, 64),
)


@pytest.fixture(scope="module")
def costs() -> list[float]:
    """Of the jobs that have finished."""
    return []


@pytest.fixture(scope="module")
def report(costs: list[float]) -> paper.Report:
    return paper.measure(paper.plan(TINY), workers=1, done=costs.append)


def test_every_claim_has_rows_with_finite_numbers(report: paper.Report) -> None:
    assert {row.claim[0] for row in report.rows} == set("123456789")
    for row in report.rows:
        assert math.isfinite(row.measured), row
        assert math.isfinite(row.paper_value), row
        assert (row.low is None) == (row.high is None)
        if row.low is not None and row.high is not None:
            assert row.low <= row.measured <= row.high
    settings = [(row.claim, row.setting) for row in report.rows]
    assert len(set(settings)) == len(settings)


def test_all_algorithms_properties_and_powers_have_a_rate(report: paper.Report) -> None:
    rows = [row for row in report.rows if row.claim == rates.RATE]
    assert len(rows) == 3 * 3 * 5
    claims = {row.setting.rsplit("r = ", 1)[1]: row.paper for row in rows}
    assert claims == {"1": "2/3", "1.5": "1/2", "2": "1/3", "3": "1/4", "4": "1/5"}


def test_what_is_proved_for_every_run_holds(report: paper.Report) -> None:
    for row in report.rows:
        sure = (
            "2 ",
            "3 Lemma 2: worst",
            "3 Lemma 3: worst",
            "5 Remark 1: SMCal_1",
            "6",
            "7 learner's regret / declared",
        )
        quantile_gap = "quantile" in row.setting and "max over labels" in row.setting
        if row.claim.startswith(sure) and not quantile_gap:
            assert row.holds is True, row


def test_against_far_the_functions_matter_and_the_bounds_hold(report: paper.Report) -> None:
    rows = [row for row in report.rows if row.claim.startswith("8 rate")]
    assert len(rows) == 3 * 2 * 3
    assert {row.paper for row in rows} == {"2/3", "1/2", "1/3"}
    assert all(row.holds for row in report.rows if row.claim.startswith("8 worst"))
    # Against functions with signs Algorithm 1 loses more than against groups, from a few hundred rounds on.
    slopes = {}
    for pool in against_far.POOLS:
        short, long = (
            sum(against_far.Duel("Alg. 1, finite", pool, n**3, seed)().errors[1.0] for seed in range(3))
            for n in (5, 10)
        )
        slopes[pool] = math.log(long / short) / math.log(8.0)
    assert slopes["groups"] < 0.6 < slopes["signs"]


def test_what_is_told_of_every_job_adds_up_to_the_plan(report: paper.Report, costs: list[float]) -> None:
    assert math.isclose(sum(costs), paper.plan(TINY).cost)


def test_json_and_csv_round_trip(report: paper.Report) -> None:
    rows = list(report.rows)
    assert claim_tables.from_json(claim_tables.to_json(rows)) == rows
    assert claim_tables.from_csv(claim_tables.to_csv(rows)) == rows


@pytest.mark.parametrize("text", ["", "[1]", '[{"claim": "x"}]', "{"])
def test_foreign_tables_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        claim_tables.from_json(text)
    with pytest.raises(InvalidInput):
        claim_tables.from_csv(text)


def test_a_row_refuses_what_is_not_finite() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        Measurement(claim="c", setting="s", paper="1", paper_value=1.0, measured=math.nan)


def test_the_tables_fit_a_terminal(report: paper.Report) -> None:
    grid, others = claim_tables.tables(report.rows)
    text = f"{grid.text()}\n{others.text()}"
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    assert grid.rows[0] == ("paper", "2/3", "1/2", "1/3", "1/4", "1/5")
    assert len(others.rows) == len(report.rows) - 45 + len({row.claim for row in report.rows} - {rates.RATE})


def test_the_figure_has_a_panel_for_every_algorithm_and_property(report: paper.Report) -> None:
    assert len(figure.draw(report.curves).axes) == 9


def test_the_command_says_the_same_again_and_in_other_processes(
    report: paper.Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paper, "DEFAULT", TINY)
    out = tmp_path / "results"
    done = CliRunner().invoke(app, ["bench", "paper", "--out", str(out), "--workers", "2", "--json"])
    assert done.exit_code == 0, done.output
    rows = claim_tables.from_json(done.stdout)
    assert rows == list(report.rows)
    assert json.loads((out / "paper.json").read_text()) == [row.to_dict() for row in rows]
    assert claim_tables.from_csv((out / "paper.csv").read_text()) == rows
    assert (out / "paper.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "paper.png").stat().st_size > 10_000


@pytest.mark.parametrize("command", [[], ["bench"], ["bench", "paper"], ["demo"]])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    assert "Example: swapcal" in done.output


@pytest.mark.parametrize("options", [["--sedes", "3"], ["--seeds", "1"], ["--seeds", "many"], ["--workers", "0"]])
def test_bad_options_are_explained(options: list[str]) -> None:
    done = CliRunner().invoke(app, ["bench", "paper", *options])
    assert done.exit_code == 2
    assert options[0] in done.output
    assert "Traceback" not in done.output


def test_an_output_that_is_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = CliRunner().invoke(app, ["bench", "paper", "--out", str(tmp_path / "taken")])
    assert done.exit_code == 2
    assert "directory" in done.output


def test_an_interrupt_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "measure", interrupted)
    done = CliRunner().invoke(app, ["bench", "paper", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert "interrupted" in done.output


def test_learners_of_the_plan_are_the_papers() -> None:
    learners = {contest.learner.spec()["kind"] for contest in paper.plan(TINY).contests}
    assert learners == {MultiplicativeWeights.__name__, GradientDescent.__name__}
    with pytest.raises(InvalidInput, match="2 or more"):
        replace(TINY, n_seeds=1)
