"""`swapcal bench paper` at sizes that take seconds: every claim has its rows, in tables, a figure and the command."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typer.testing import CliRunner

from effort import ALL
from swapcal.cli import app
from swapcal.errors import InvalidInput
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal_benchmarks import paper
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper import against_far, claim_tables, rates

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


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report() -> paper.Report:
    costs: list[float] = []
    made = paper.measure(paper.plan(TINY), workers=2, done=costs.append)
    assert math.isclose(sum(costs), paper.plan(TINY).cost)
    return made


def test_every_claim_has_rows_with_finite_numbers(report: paper.Report) -> None:
    assert {int(row.claim.split()[0]) for row in report.rows} == set(range(1, 11))
    for row in report.rows:
        assert math.isfinite(row.measured), row
        assert math.isfinite(row.paper_value), row
        assert (row.low is None) == (row.high is None)
        if row.low is not None and row.high is not None:
            assert row.low <= row.measured <= row.high
    settings = [(row.claim, row.setting) for row in report.rows]
    assert len(set(settings)) == len(settings)
    rows = [row for row in report.rows if row.claim == rates.RATE]
    assert len(rows) == 3 * 3 * 5
    claims = {row.setting.rsplit("r = ", 1)[1]: row.paper for row in rows}
    assert claims == {"1": "2/3", "1.5": "1/2", "2": "1/3", "3": "1/4", "4": "1/5"}


def test_what_is_proved_for_every_run_holds(report: paper.Report) -> None:
    for row in report.rows:
        sure = (
            "2 ", "3 Lemma 2: worst", "3 Lemma 3: worst", "5 Remark 1: SMCal_1", "6", "7 learner's regret / declared",
        )  # fmt: skip
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


def test_the_command_says_the_same_again_and_in_other_processes(
    report: paper.Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paper, "DEFAULT", TINY)
    if not ALL:  # played again in `make thorough`
        monkeypatch.setattr(paper, "measure", lambda *_, **__: report)
    out = tmp_path / "results"
    done = CliRunner().invoke(app, ["bench", "paper", "--out", str(out), "--workers", "2", "--json"])
    assert done.exit_code == 0, done.output
    rows = claim_tables.from_json(done.stdout)
    assert rows == list(report.rows)
    assert json.loads((out / "paper.json").read_text()) == [row.to_dict() for row in rows]
    assert claim_tables.from_csv((out / "paper.csv").read_text()) == rows
    assert (out / "paper.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--sedes", "3"], 2, "--sedes"), (["--seeds", "1"], 2, "--seeds"), (["--seeds", "many"], 2, "--seeds"),
        (["--workers", "0"], 2, "--workers"), (["--out", __file__], 2, "directory"), ([], 130, "interrupted"),
    ],
)  # fmt: skip
def test_what_ends_early_says_why(
    options: list[str], code: int, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "measure", interrupted)
    done = CliRunner().invoke(app, ["bench", "paper", "--out", str(tmp_path), *options])
    assert done.exit_code == code
    assert sentence in done.output
    assert "Traceback" not in done.output


def test_learners_of_the_plan_are_the_papers() -> None:
    learners = {contest.learner.spec()["kind"] for contest in paper.plan(TINY).contests}
    assert learners == {MultiplicativeWeights.__name__, GradientDescent.__name__}
    with pytest.raises(InvalidInput, match="2 or more"):
        replace(TINY, n_seeds=1)
    with pytest.raises(InvalidInput, match="finite"):
        Measurement(claim="c", setting="s", paper="1", paper_value=1.0, measured=math.nan)
