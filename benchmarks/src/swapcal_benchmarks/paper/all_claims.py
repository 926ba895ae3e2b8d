"""All claims of the paper that can be measured, assembled."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from swapcal.learners import GradientDescent, Learner, MultiplicativeWeights
from swapcal_benchmarks.cores import Job, run_jobs
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper import (
    against_far,
    class_growth,
    examples,
    inequalities,
    norm_balls,
    rates,
    regrets,
    slow_learners,
)
from swapcal_benchmarks.paper.cases import ALGORITHMS, all_cases, narrow_cases
from swapcal_benchmarks.paper.one_run import Run
from swapcal_benchmarks.paper.paper_sizes import DEFAULT, PaperSizes

__all__ = ["Report", "measure", "plan"]

_N_WATCHES = 2
_FINITE = ("Alg. 1, finite", "Alg. 2, finite")


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The rows of the table, and the curves of the figure."""

    rows: tuple[Measurement, ...]
    curves: tuple[rates.ErrorCurve, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ClaimJobs:
    """Every job of a report, by the claim that it serves."""

    runs: list[Run]
    narrow: list[Run]
    watches: list[inequalities.Watch]
    classes: list[class_growth.ClassSize]
    densities: list[class_growth.Density]
    contests: list[regrets.LearnerGame]
    sizes: list[regrets.LearnerGame]
    duels: list[against_far.Duel]
    slow_games: list[slow_learners.SlowGame]
    slow_runs: list[slow_learners.SlowRun]
    ball_games: list[norm_balls.BallGame]
    ball_runs: list[norm_balls.BallRun]

    @property
    def groups(self) -> tuple[list[Any], ...]:
        """The lists of jobs."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def cost(self) -> float:
        """Of all jobs together."""
        return float(sum(job.cost for group in self.groups for job in group))


def plan(sizes: PaperSizes = DEFAULT) -> ClaimJobs:
    """The jobs for these sizes; every seed is fixed here."""
    cases, seeds = all_cases(), range(sizes.n_seeds)
    learners: dict[str, Learner] = {"Alg. 3": MultiplicativeWeights(16), "Alg. 4": GradientDescent(4)}
    return ClaimJobs(
        runs=rates.rate_runs(cases, sizes.roots, sizes.n_seeds),
        narrow=rates.rate_runs(narrow_cases(), {2.0: sizes.roots[2.0]}, sizes.n_seeds),
        watches=[inequalities.Watch(case, sizes.watch_rounds, s) for case in cases for s in range(_N_WATCHES)],
        classes=[
            class_growth.ClassSize(name, ALGORITHMS[name], n, sizes.class_rounds, seed)
            for name in _FINITE
            for n in sizes.class_sizes
            for seed in seeds
        ],
        densities=[
            class_growth.Density(name, ALGORITHMS[name], rho, sizes.density_rounds, seed)
            for name in _FINITE
            for rho in sizes.densities
            for seed in seeds
        ],
        contests=[
            regrets.LearnerGame(name, learner, sequence, sizes.looks, seed)
            for name, learner in learners.items()
            for sequence in regrets.SEQUENCES
            for seed in seeds
        ],
        sizes=[
            regrets.LearnerGame(
                "Alg. 3", MultiplicativeWeights(n), sequence, (min(sizes.looks[-1] // 4, 4096),), seed, n_repeats=2
            )
            for sequence in regrets.SEQUENCES
            for n in sizes.class_sizes
            for seed in seeds
        ],
        duels=against_far.duels(sizes.roots[2.0], sizes.n_seeds),
        slow_games=slow_learners.slow_games(sizes.looks, sizes.n_seeds),
        slow_runs=slow_learners.slow_runs(sizes.roots[2.0], sizes.n_seeds),
        ball_games=norm_balls.ball_games(sizes.looks, sizes.n_seeds),
        ball_runs=norm_balls.ball_runs(sizes.roots[2.0], sizes.n_seeds),
    )


def measure(
    jobs: ClaimJobs | None = None, *, workers: int | None = None, done: Callable[[float], None] | None = None
) -> Report:
    """Run all jobs and make the rows, in the order of the claims."""
    planned = plan() if jobs is None else jobs
    everything: list[Job[Any]] = [job for group in planned.groups for job in group]
    results = iter(run_jobs(everything, workers=workers, done=done))
    runs, narrow, watches, classes, densities, contests, sizes, duels, slow_games, slow_runs, *balls = (
        [next(results) for _ in group] for group in planned.groups
    )
    found = rates.curves(planned.runs, runs)
    rows = [
        *rates.rate_rows(found),
        *rates.narrow_rows(rates.curves(planned.narrow, narrow)),
        *inequalities.proposition_rows(planned.watches, watches),
        *inequalities.lemma_rows(planned.runs, runs),
        *class_growth.class_rows(planned.classes, classes),
        *class_growth.density_rows(planned.densities, densities),
        *rates.remark_rows(planned.runs, runs, found),
        *examples.variance_rows(),
        *examples.swap_regret_rows(),
        *regrets.regret_rows(planned.contests, contests),
        *regrets.size_rows(planned.sizes, sizes),
        *against_far.duel_rows(planned.duels, duels),
        *slow_learners.slow_rows(planned.slow_games, slow_games, planned.slow_runs, slow_runs),
        *norm_balls.ball_rows(planned.ball_games, balls[0], planned.ball_runs, balls[1]),
    ]
    return Report(tuple(rows), tuple(found))
