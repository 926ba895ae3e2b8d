"""Claim 4: how SMCal_2 grows with log |F| and with rho."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swapcal.audits import swap_multicalibration_error
from swapcal.properties import Mean, Quantile
from swapcal_benchmarks.exponents import exponent
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.cases import LEVEL, Maker, functions_of
from swapcal_benchmarks.paper.known_laws import binary_scene, narrow_scene

__all__ = ["ClassSize", "Density", "class_rows", "density_rows"]


@dataclass(frozen=True, slots=True)
class ClassSize:
    """SMCal_2 of the mean with |F| functions, random signs but for the first, which is 1."""

    algorithm: str
    make: Maker
    n_functions: int
    n_rounds: int
    seed: int

    @property
    def cost(self) -> float:
        """Rounds, weighted by the experts."""
        return self.n_rounds * (2.0 + 0.02 * self.n_functions)

    def __call__(self) -> float:
        """Play, and score."""
        stage = binary_scene(self.n_rounds, n=self.n_functions, seed=self.seed)
        method = self.make(Mean(), self.n_functions, self.n_rounds, 2.0, self.seed)
        p = method.run(stage.x, stage.y)
        return swap_multicalibration_error(stage.y, p, stage.x, hypotheses=functions_of(method))


@dataclass(frozen=True, slots=True)
class Density:
    """SMCal_2 of a quantile whose labels have density `rho`."""

    algorithm: str
    make: Maker
    rho: float
    n_rounds: int
    seed: int

    @property
    def cost(self) -> float:
        """Rounds."""
        return 2.0 * self.n_rounds

    def __call__(self) -> float:
        """Play, and score."""
        stage = narrow_scene(self.n_rounds, n=4, seed=self.seed, level=LEVEL, density=self.rho)
        quantile = Quantile(LEVEL)
        method = self.make(quantile, 4, self.n_rounds, 2.0, self.seed)
        p = method.run(stage.x, stage.y)
        return swap_multicalibration_error(stage.y, p, stage.x, property=quantile, hypotheses=functions_of(method))


def class_rows(jobs: Sequence[ClassSize], errors: Sequence[float]) -> list[Measurement]:
    """The exponent of SMCal_2 as a power of log |F|: 1 is linear growth, the most that is claimed."""
    rows = []
    for algorithm in dict.fromkeys(job.algorithm for job in jobs):
        mine = [(job, error) for job, error in zip(jobs, errors, strict=True) if job.algorithm == algorithm]
        sizes = sorted({job.n_functions for job, _ in mine})
        fit = exponent(np.log(sizes), _by_seed([(job.seed, job.n_functions, error) for job, error in mine]))
        rows.append(
            Measurement(
                claim="4 SMCal_2 as a power of log|F|",
                setting=f"{algorithm}, mean, |F| = {sizes[0]} to {sizes[-1]}, T = {mine[0][0].n_rounds}",
                paper="<= 1",
                paper_value=1.0,
                measured=fit.value,
                low=fit.low,
                high=fit.high,
                holds=fit.low <= 1.0,
            )
        )
    return rows


def density_rows(jobs: Sequence[Density], errors: Sequence[float]) -> list[Measurement]:
    """The exponent of SMCal_2 as a power of rho: 2 is the most that is claimed."""
    rows = []
    for algorithm in dict.fromkeys(job.algorithm for job in jobs):
        mine = [(job, error) for job, error in zip(jobs, errors, strict=True) if job.algorithm == algorithm]
        densities = sorted({job.rho for job, _ in mine})
        span = f"rho = {densities[0]:g} to {densities[-1]:g}"
        fit = exponent(np.array(densities), _by_seed([(job.seed, job.rho, error) for job, error in mine]))
        rows.append(
            Measurement(
                claim="4 SMCal_2 as a power of rho",
                setting=f"{algorithm}, quantile {LEVEL}, {span}, T = {mine[0][0].n_rounds}",
                paper="<= 2",
                paper_value=2.0,
                measured=fit.value,
                low=fit.low,
                high=fit.high,
                holds=fit.low <= 2.0,
                note="V is bounded, so the growth ends where rho / N is of order 1",
            )
        )
    return rows


def _by_seed(values: Sequence[tuple[int, float, float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Rows are seeds, columns sizes, both in increasing order."""
    seeds, sizes = sorted({seed for seed, _, _ in values}), sorted({size for _, size, _ in values})
    table = np.empty((len(seeds), len(sizes)))
    for seed, size, value in values:
        table[seeds.index(seed), sizes.index(size)] = value
    return table
