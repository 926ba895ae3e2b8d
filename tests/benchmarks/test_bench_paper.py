"""`swapcal bench paper` at sizes that take seconds: every claim has its rows, and verdicts follow the numbers."""

import io
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import scipy.stats
from rich.console import Console
from typer.testing import CliRunner

import swapcal as sc
from swapcal.cli import app
from swapcal.engine.published import Plan
from swapcal.errors import InvalidInput
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.paper.algorithm1 import Algorithm1
from swapcal.roles import Elicitable, Row
from swapcal.typing import Float64Array
from swapcal_benchmarks import cores as bench_jobs
from swapcal_benchmarks import paper
from swapcal_benchmarks.exponents import exponent, exponents, student_interval
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper import (
    against_far,
    claim_tables,
    class_growth,
    examples,
    figure,
    inequalities,
    rates,
    regrets,
    slow_learners,
)
from swapcal_benchmarks.paper.cases import PaperCase, all_cases, finite, gradient, weights
from swapcal_benchmarks.paper.deviation import bins_of, explicit_bound
from swapcal_benchmarks.paper.known_laws import binary_scene, narrow_scene, wide_scene
from swapcal_benchmarks.paper.one_run import Outcome, Run

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
def report() -> paper.Report:
    return paper.measure(paper.plan(TINY), workers=1)


class Stubborn(Algorithm1):
    """Says the same thing whatever happens, as no algorithm with a guarantee would."""

    def plan(self, row: Row, hint: float | None) -> Plan:
        return Plan((self.grid.forecast(0),), (1.0,), ((0, 1.0),))


class WrongSide(Algorithm1):
    """Puts all mass where the weighted gain is largest."""

    def plan(self, row: Row, hint: float | None) -> Plan:
        phi = self.phi(row)
        j = self.grid.horizon if phi[-1] > 0.0 else 0
        return Plan((self.grid.forecast(self.grid.bin(j)),), (1.0,), ((j, 1.0),))


class Deaf:
    """A learner that answers 1 forever, and promises the regret of one that learns."""

    n, odd, dual = 4, False, "max"

    def start(self) -> Float64Array:
        return np.zeros(1)

    def predict(self, state: Float64Array, row: Row) -> float:
        return 1.0

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        state[0] += 1.0

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        return np.sqrt(n_rounds)

    def spec(self) -> dict[str, Any]:
        return {"kind": "Deaf"}


def stubborn(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> Algorithm1:
    return Stubborn(property, n, horizon=horizon, r=r, seed=seed)


def wrong_side(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> Algorithm1:
    return WrongSide(property, n, horizon=horizon, r=r, seed=seed)


def broken(make: Any, name: str = "mean") -> PaperCase:
    case = next(c for c in all_cases() if c.property_name.startswith(name) and c.algorithm == "Alg. 1, finite")
    return replace(case, make=make)


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


def test_a_bound_that_is_not_kept_against_far_is_told() -> None:
    jobs = [against_far.Duel("Alg. 1, finite", "groups", n, seed) for n in (27, 64) for seed in (0, 1)]
    found = [against_far.DuelOutcome({1.0: n, 1.5: n, 2.0: n}, 1.5) for n in (27.0, 27.0, 64.0, 64.0)]
    rows = against_far.duel_rows(jobs, found)
    assert [row.holds for row in rows] == [False] * 4
    assert all(math.isclose(row.measured, 1.0) for row in rows[:3])


def test_the_exponents_of_theorem_3() -> None:
    for r in (1.0, 1.25, 1.5, 2.0, 3.0, 4.0):
        assert slow_learners.exponent_with(r, 0.5) == rates.claimed_exponent(r) == slow_learners.exponent_with(r, 0.0)
        for alpha in (0.5, 0.6, 0.75, 0.9):
            # The two terms that grow with N = T^(1/(r+1)): rounding, and N bins with the regret of T/N rounds each.
            n_bins = 1.0 / (max(r, 2.0) + 1.0)
            regret = 1.0 + (n_bins + alpha * (1.0 - n_bins) - 1.0) * r
            expected = max(1.0 - n_bins * r, regret) if r >= 2.0 else max(1.0 - r / 3.0, regret)
            assert math.isclose(float(slow_learners.exponent_with(r, alpha)), expected)


def test_slow_learners_are_as_slow_as_they_declare() -> None:
    for alpha in slow_learners.ALPHAS:
        sc.checks.check_learner(slow_learners.SlowWeights(4, alpha))
        regrets_found, bounds = slow_learners.SlowGame(alpha, (100, 1600), 0)()
        assert all(a <= b for a, b in zip(regrets_found, bounds, strict=True))
        slope = math.log(regrets_found[1] / regrets_found[0]) / math.log(16.0)
        assert abs(slope - alpha) < 0.08
    # At one half it is Algorithm 3.
    usual, slow = MultiplicativeWeights(4), slow_learners.SlowWeights(4, 0.5)
    a, b, rng = usual.start(), slow.start(), np.random.default_rng(0)
    for _ in range(50):
        row, kappa = Row(np.arange(4), rng.uniform(-1.0, 1.0, 4)), float(rng.uniform(-1.0, 1.0))
        usual.update(a, row, kappa)
        slow.update(b, row, kappa)
        assert np.allclose(a, b, rtol=1e-12, atol=0.0)


def test_the_engine_with_a_slow_learner_keeps_its_guarantee() -> None:
    stage = binary_scene(1000, n=4, seed=5)
    for alpha in slow_learners.ALPHAS:
        oracle = sc.Oracle(slow_learners.SlowWeights(4, alpha))
        forecaster = sc.Forecaster(sc.Mean(), oracle, horizon=1000, seed=1)
        forecaster.run(stage.x, stage.y)
        usual = sc.Forecaster(sc.Mean(), sc.Oracle(MultiplicativeWeights(4)), horizon=1000, seed=1)
        usual.run(stage.x, stage.y)
        assert forecaster.error() < forecaster.guarantee(0.05)
        assert usual.guarantee(0.05) < forecaster.guarantee(0.05)


def test_results_are_the_same_again_and_in_other_processes(report: paper.Report) -> None:
    costs: list[float] = []
    jobs = paper.plan(TINY)
    again = paper.measure(jobs, workers=2, done=costs.append)
    assert again.rows == report.rows
    assert math.isclose(sum(costs), jobs.cost)


def test_an_algorithm_that_does_not_learn_fails_the_rates_and_the_lemma() -> None:
    runs = rates.rate_runs([broken(stubborn)], {2.0: (3, 5, 7)}, 3)
    outcomes = [run() for run in runs]
    found = rates.curves(runs, outcomes)
    assert [row.holds for row in rates.rate_rows(found)] == [False, False, False]
    constants = [row for row in inequalities.lemma_rows(runs, outcomes) if "growth" in row.claim]
    assert [row.holds for row in constants] == [False]


def test_a_steeper_power_within_the_logarithms_is_left_open() -> None:
    horizons = np.array([125.0, 512.0, 4096.0])
    curve = rates.ErrorCurve(broken(finite), 2.0, horizons, np.array([horizons**0.38, 1.1 * horizons**0.381]))
    assert 0.38 < rates.exponent_with_logarithms(curve) < 0.55
    assert rates.rate_rows([curve])[0].holds is None


def test_a_rule_on_the_wrong_side_fails_proposition_1() -> None:
    watches = [inequalities.Watch(broken(wrong_side), 400, seed) for seed in (0, 1)]
    assert [row.holds for row in inequalities.proposition_rows(watches, [w() for w in watches])] == [False]


def test_proposition_1_for_quantiles_holds_in_the_mean_and_not_for_the_worst_label() -> None:
    case = next(c for c in all_cases() if c.algorithm == "Alg. 2, linear" and c.property_name.startswith("quantile"))
    watches = [inequalities.Watch(case, 512, 0)]
    mean, worst = inequalities.proposition_rows(watches, [w() for w in watches])
    assert (mean.holds, worst.holds) == (True, False)
    assert mean.measured <= 1.0 < worst.measured


def test_runs_above_the_bound_are_counted() -> None:
    runs = rates.rate_runs([broken(finite)], {2.0: (3, 4)}, 2)
    ratios = [0.5, 0.5, 0.5, 1.5]
    outcomes = [Outcome({1.0: 1.0, 1.5: 1.0, 2.0: 1.0}, 0.5, ratio, 0.1) for ratio in ratios]
    worst, share, _ = inequalities.lemma_rows(runs, outcomes)
    assert (share.measured, share.holds, worst.holds) == (0.25, False, False)


def test_a_violated_remark_is_seen() -> None:
    run = Run(broken(finite), 27, 2.0, 0)
    outcome = Outcome({1.0: 1.0, 1.5: 1.0, 2.0: 1.0}, 1.01, 0.1, 0.1)
    assert rates.remark_rows([run], [outcome], [])[0].holds is False


def test_a_learner_that_does_not_learn_fails_its_bound_and_its_rate() -> None:
    contests = [regrets.LearnerGame("deaf", Deaf(), "contrary", (16, 64, 256), seed) for seed in (0, 1)]
    rows = regrets.regret_rows(contests, [contest() for contest in contests])
    assert [row.holds for row in rows] == [False, False]


def test_growth_beyond_the_claim_is_seen() -> None:
    sizes = (2, 16, 256)
    classes = [class_growth.ClassSize("Alg. 1, finite", finite, n, 27, seed) for n in sizes for seed in (0, 1)]
    assert class_growth.class_rows(classes, [math.log(c.n_functions) ** 2 for c in classes])[0].holds is False
    assert class_growth.class_rows(classes, [math.log(c.n_functions) for c in classes])[0].holds is True
    densities = [
        class_growth.Density("Alg. 1, finite", finite, rho, 27, seed) for rho in (1.0, 2.0, 4.0) for seed in (0, 1)
    ]
    assert class_growth.density_rows(densities, [d.rho**3 for d in densities])[0].holds is False
    assert class_growth.density_rows(densities, [d.rho**1.5 for d in densities])[0].holds is True


def test_swap_regret_demonstration_against_the_definition() -> None:
    for loss in examples.LOSSES.values():
        for y, level in ((0.5, 0.7), (0.25, 0.2)):
            below, above = examples.constant_sequences(loss, y, level, 50)
            assert below.p < y <= above.p
            assert min(below.swap_regret, above.swap_regret) == 0.0
            assert math.isclose(below.error, 50 * level**2)
            assert math.isclose(above.error, 50 * (1.0 - level) ** 2)


def test_variance_demonstration_says_what_the_footnote_should() -> None:
    variance, mean = examples.variance_rows()
    assert (variance.paper_value, variance.measured, mean.measured) == (0.5, 0.25, 0.0)
    assert "0.25" in variance.note


@pytest.mark.parametrize(
    "stage", [wide_scene(300, n=4, seed=1, level=0.7), narrow_scene(300, n=4, seed=1, level=0.7, density=4.0)]
)
def test_mean_identification_is_the_mean_over_many_draws(stage: Any) -> None:
    rng = np.random.default_rng(0)
    low, middle, high = stage.knots[17]
    u = rng.random(200_000)
    y = np.where(u < 0.7, low + u / 0.7 * (middle - low), middle + (u - 0.7) / 0.3 * (high - middle))
    for elicitable in (sc.Mean(), sc.Quantile(0.4), sc.Expectile(0.8)):
        for p in (0.0, 0.3, float(middle), 0.9):
            expected = float(np.mean(elicitable.identification(p, y)))
            assert abs(stage.mean_identification(elicitable, 17, p) - expected) < 0.005


def test_scene_has_the_declared_density_and_stays_in_range() -> None:
    assert math.isclose(narrow_scene(100, n=2, seed=0, level=0.7, density=8.0).density, 8.0)
    stage = wide_scene(5000, n=4, seed=0, level=0.7, linear=True)
    assert stage.y.min() >= 0.0
    assert stage.y.max() <= 1.0
    assert np.allclose(np.linalg.norm(stage.x, axis=1), 1.0)
    assert abs(np.mean(stage.y <= stage.knots[:, 1]) - 0.7) < 0.02
    chance = binary_scene(100, n=1, seed=0)
    assert math.isclose(chance.mean_identification(sc.Mean(), 3, 0.25), 0.25 - chance.knots[3, 1])


@pytest.mark.parametrize("make", [finite, weights, gradient])
def test_bins_add_up_to_the_error_and_the_bound_grows(make: Any) -> None:
    stage = binary_scene(216, n=4, seed=3, linear=make is gradient)
    method = make(sc.Mean(), 4, 216, 2.0, 3)
    p = method.run(stage.x, stage.y)
    counts, deviations = bins_of(method, stage.x, stage.y, p)
    assert counts.sum() == 216
    error = sc.swap_multicalibration_error(stage.y, p, stage.x, hypotheses=method.hypotheses)
    seen = counts > 0
    assert math.isclose(float(np.sum(deviations[seen] ** 2 / counts[seen])), error)
    tight = explicit_bound(method, counts, rho=1.0, lipschitz=True, delta=0.05)
    assert (tight < explicit_bound(method, counts, rho=1.0, lipschitz=True, delta=0.001)).all()
    assert (tight < explicit_bound(method, counts + 10.0, rho=1.0, lipschitz=True, delta=0.05)).all()


def test_fitting() -> None:
    sizes = np.array([10.0, 100.0, 1000.0])
    assert np.allclose(exponents(sizes, np.array([3.0 * sizes**0.4, sizes**-1.0])), [0.4, -1.0])
    for n in (2, 5, 31, 60):
        values = np.random.default_rng(n).normal(size=n)
        low, high = scipy.stats.t.interval(0.95, n - 1, values.mean(), scipy.stats.sem(values))
        fit = student_interval(values)
        assert np.allclose([fit.low, fit.high], [low, high], rtol=2e-3, atol=1e-3)
    with pytest.raises(InvalidInput, match="positive"):
        exponent(sizes, np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="two sizes"):
        exponent(sizes[:1], np.ones((2, 1)))
    with pytest.raises(InvalidInput, match="finite"):
        student_interval(np.array([math.nan]))


class Failing:
    cost = 1.0

    def __call__(self) -> int:
        raise InvalidInput("this job fails")


class Interrupted:
    cost = 1.0

    def __call__(self) -> int:
        raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_and_interrupts_in_jobs_reach_the_caller(workers: int) -> None:
    with pytest.raises(InvalidInput, match="this job fails"):
        bench_jobs.run_jobs([Failing(), Failing()], workers=workers)
    if workers == 1:
        with pytest.raises(KeyboardInterrupt):
            bench_jobs.run_jobs([Interrupted()], workers=1)


@dataclass(frozen=True)
class Sleeping:
    """Says who it is, and takes long."""

    path: str
    cost: float = 1.0

    def __call__(self) -> None:
        Path(self.path).write_text(str(os.getpid()))
        time.sleep(60.0)


def _sleep(paths: list[str]) -> None:
    bench_jobs.run_jobs([Sleeping(path) for path in paths], workers=2)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes where Linux shows them")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    parent = multiprocessing.get_context("spawn").Process(target=_sleep, args=([str(each) for each in files],))
    parent.start()
    try:
        assert _soon(lambda: all(each.exists() and each.read_text() for each in files))
    finally:
        parent.kill()
        parent.join()
    workers = [int(each.read_text()) for each in files]
    assert _soon(lambda: not any(_runs(pid) for pid in workers))


def _soon(met: Callable[[], bool], seconds: float = 50.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not met():
        time.sleep(0.05)
    return met()


def _runs(pid: int) -> bool:
    """Whether a process is there and no mere entry that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


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


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_fits_a_terminal(report: paper.Report, width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(claim_tables.tables(report.rows))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    assert "paper 1/3" in text


def test_the_figure_is_written(report: paper.Report, tmp_path: Path) -> None:
    figure.save(report.curves, tmp_path / "paper.png")
    assert (tmp_path / "paper.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.draw(report.curves).axes) == 9


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paper, "DEFAULT", TINY)
    runner, out = CliRunner(), tmp_path / "results"
    done = runner.invoke(app, ["bench", "paper", "--out", str(out), "--workers", "1", "--json"])
    assert done.exit_code == 0, done.output
    rows = claim_tables.from_json(done.stdout)
    assert json.loads((out / "paper.json").read_text()) == [row.to_dict() for row in rows]
    assert claim_tables.from_csv((out / "paper.csv").read_text()) == rows
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
