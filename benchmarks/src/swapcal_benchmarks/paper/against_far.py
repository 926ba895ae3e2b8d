"""Claim 8: the rates against an adversary, `swapcal.simulate.adversaries.Far`, who answers what was forecast."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swapcal.audits import swap_multicalibration_error
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.properties import Mean
from swapcal.simulate.adversaries import Arena, Far, groups, play, signed
from swapcal.typing import Float64Array
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.cases import ALGORITHMS, PROPERTIES, PaperCase, functions_of
from swapcal_benchmarks.paper.deviation import bins_of, explicit_bound
from swapcal_benchmarks.paper.one_run import DELTA, powers_of
from swapcal_benchmarks.paper.rates import ErrorCurve, rate_rows

__all__ = ["ENGINE", "POOLS", "Duel", "DuelOutcome", "duel_rows", "duels"]

POOLS: dict[str, Callable[[int, int], Float64Array]] = {"groups": groups, "signs": signed}
"""Groups hold everybody and overlapping others; of the signs no function is always 1, so that a forecast may stay wrong
in the mean as long as no function notices."""

ENGINE = "engine, finite"
"""`swapcal.Forecaster`, for comparison: it is no claim of the paper."""

_NAMES = ("Alg. 1, finite", "Alg. 2, finite", ENGINE)
_N_FUNCTIONS = 4


@dataclass(frozen=True, slots=True)
class DuelOutcome:
    """SMCal_r by r, and the worst bin's deviation over the lemma's explicit bound (None for the engine)."""

    errors: dict[float, float]
    explicit: float | None


@dataclass(frozen=True, slots=True)
class Duel:
    """An algorithm for the mean against `Far`, who says 0 if the expected forecast is above 1/2, and 1 otherwise."""

    algorithm: str
    pool: str
    n_rounds: int
    seed: int

    @property
    def cost(self) -> float:
        """Rounds, weighted as in `Run`."""
        weight = {"Alg. 1, finite": 0.03, ENGINE: 0.0}.get(self.algorithm, 0.15)
        return self.n_rounds * (0.3 + weight * math.pow(self.n_rounds, 1.0 / 3.0))

    def __call__(self) -> DuelOutcome:
        """Play, and score."""
        adversary = Far(Arena(POOLS[self.pool](_N_FUNCTIONS, self.seed), seed=self.seed))
        if self.algorithm == ENGINE:
            forecaster = Forecaster(Mean(), Finite(_N_FUNCTIONS), horizon=self.n_rounds, seed=self.seed)
            played, explicit = play(forecaster, adversary, self.n_rounds), None
        else:
            method = ALGORITHMS[self.algorithm](Mean(), _N_FUNCTIONS, self.n_rounds, 2.0, self.seed)
            played = play(method, adversary, self.n_rounds, functions_of(method))
            counts, deviations = bins_of(method, played.x, played.y, played.p)
            bounds = explicit_bound(method, counts, rho=1.0, lipschitz=True, delta=DELTA)
            explicit = float(np.max(deviations / bounds))
        errors = {r: swap_multicalibration_error(played.y, played.p, played.x, r=r) for r in powers_of(2.0)}
        return DuelOutcome(errors, explicit)


def duels(roots: Sequence[int], n_seeds: int) -> list[Duel]:
    """Every algorithm and pool at T = n^3, n from `roots`."""
    return [Duel(name, pool, n**3, seed) for name in _NAMES for pool in POOLS for n in roots for seed in range(n_seeds)]


def duel_rows(jobs: Sequence[Duel], outcomes: Sequence[DuelOutcome]) -> list[Measurement]:
    """The exponents by algorithm, pool and r, and the worst bin beside the explicit bound of the lemmas."""
    table: dict[tuple[str, str], dict[int, list[DuelOutcome]]] = {}
    shares: dict[str, list[float]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        table.setdefault((job.algorithm, job.pool), {}).setdefault(job.n_rounds, []).append(outcome)
        if outcome.explicit is not None:
            shares.setdefault(job.algorithm, []).append(outcome.explicit)
    rows = []
    for (algorithm, pool), by_horizon in table.items():
        horizons = np.array(list(by_horizon), dtype=np.float64)
        # The maker is not called: what a curve needs of its case is the name and the number of functions.
        case = PaperCase(algorithm, "mean", ALGORITHMS["Alg. 1, finite"], PROPERTIES["mean"], n=_N_FUNCTIONS)
        for r in powers_of(2.0):
            errors = np.array([[each.errors[r] for each in found] for found in by_horizon.values()]).T
            [row] = rate_rows([ErrorCurve(case, r, horizons, errors)])
            rows.append(replace(row, claim="8 rate of SMCal_r against Far", setting=f"{algorithm}, {pool}, r = {r:g}"))
    rows.extend(_share_row(algorithm, found) for algorithm, found in shares.items())
    return rows


def _share_row(algorithm: str, found: Sequence[float]) -> Measurement:
    return Measurement(
        claim="8 worst bin / lemma's bound against Far",
        setting=f"{algorithm}, {len(found)} runs, worst",
        paper="<= 1",
        paper_value=1.0,
        measured=max(found),
        holds=sum(each > 1.0 for each in found) <= DELTA * len(found),
        note="the explicit constants are so large that exponents at these T do not refute the claims they prove",
    )
