"""One run of an algorithm over a stream, and the few numbers that the claims need of it."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal.audits import swap_multicalibration_error
from swapcal_benchmarks.paper.cases import PaperCase, functions_of
from swapcal_benchmarks.paper.deviation import bins_of, explicit_bound, plain_bound

__all__ = ["DELTA", "Outcome", "Run", "powers_of"]

DELTA = 0.05


def powers_of(r: float) -> tuple[float, ...]:
    """The errors that one run answers for: the grid of r = 2 is also that of every smaller r."""
    return (1.0, 1.5, 2.0) if r == 2.0 else (r,)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a `Run`.

    Parameters
    ----------
    errors : dict
        SMCal_r by r.
    remark : float
        SMCal_1 / sqrt(T SMCal_2), of Remark 1.
    explicit : float
        The worst bin's deviation over the bound of Lemma 2 or 3 with explicit constants.
    constant : float
        The same over what stands inside the O~ of the lemma.
    """

    errors: dict[float, float]
    remark: float
    explicit: float
    constant: float


@dataclass(frozen=True, slots=True)
class Run:
    """A case, a horizon, an exponent r and a seed, to be played in any process."""

    case: PaperCase
    n_rounds: int
    r: float
    seed: int

    @property
    def cost(self) -> float:
        """Rounds, weighted by what a round costs beside one of Algorithm 1 with few bins."""
        n_bins = math.pow(self.n_rounds, 1.0 / (self.r + 1.0))
        weight = 0.03 if self.case.algorithm.startswith("Alg. 1") else 0.15
        return self.n_rounds * (1.0 + weight * n_bins)

    def __call__(self) -> Outcome:
        """Play, and score."""
        stage = self.case.scene(self.n_rounds, self.seed)
        method = self.case.method(self.n_rounds, self.r, self.seed)
        p = method.run(stage.x, stage.y)
        elicitable, functions = self.case.elicitable, functions_of(method)

        def error(r: float) -> float:
            return swap_multicalibration_error(stage.y, p, stage.x, property=elicitable, hypotheses=functions, r=r)

        lipschitz = elicitable.lipschitz is not None
        rho = elicitable.lipschitz or stage.density
        counts, deviations = bins_of(method, stage.x, stage.y, p)
        explicit = explicit_bound(method, counts, rho=rho, lipschitz=lipschitz, delta=DELTA)
        plain = plain_bound(method, counts, rho=rho, delta=DELTA)
        return Outcome(
            errors={r: error(r) for r in powers_of(self.r)},
            remark=error(1.0) / math.sqrt(self.n_rounds * error(2.0)),
            explicit=float(np.max(deviations / explicit)),
            constant=float(np.max(deviations / plain)),
        )
