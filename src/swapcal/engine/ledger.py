"""What happened at the forecasts themselves, beside what the theorem promises of it."""

import math

import numpy as np
import numpy.typing as npt

from swapcal.engine.bounds import Guarantee, Tally, combine, rounding, rounding_ahead
from swapcal.hypotheses.refinement import refined
from swapcal.roles import Elicitable, Evidence, Hypotheses, Row
from swapcal.typing import Float64Array

__all__ = ["Ledger"]


class Ledger:
    """Per bin: the sums of x V at the forecast, and the rounding, the sum of |V(forecast) - V(evidence point)|.

    The evidence is taken at borders, the error is counted at forecasts; the ledger keeps the difference, so that the
    guarantee can be evaluated on what was observed, without an assumption on the labels.
    """

    __slots__ = ("rounding", "rounds", "sums")

    def __init__(self, n_bins: int, n: int) -> None:
        self.sums = np.zeros((n_bins, n))
        self.rounding = np.zeros(n_bins)
        # Rounds, and those whose outcome came late; in an array, because kernels count too.
        self.rounds: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return int(self.rounds[0])

    @property
    def n_late(self) -> int:
        """Outcomes that came after a later forecast had been made."""
        return int(self.rounds[1])

    def record(self, bin: int, row: Row, v: float, v_evidence: float) -> None:
        """Add a round that played `bin`."""
        self.sums[bin, row.indices] += row.values * v
        self.rounding[bin] += abs(v - v_evidence)
        self.rounds[0] += 1

    def refine(self, factor: int) -> None:
        """Cut every bin; the middle part keeps what its parent had."""
        self.sums, self.rounding = refined(self.sums, factor), refined(self.rounding, factor)

    def error(self, hypotheses: Hypotheses, counts: Float64Array, r: float) -> float:
        """The swap multicalibration error of the rounds so far."""
        n = counts[counts > 0]
        return float(np.sum(n * (hypotheses.supremum(self.sums[counts > 0]) / n) ** r))

    def guarantee(self, evidence: Evidence, n_functions: int, trust: float, r: float, delta: float) -> Guarantee:
        """The theorem on the rounds so far: with their visits, spread and rounding, and no assumption on the labels."""
        tally = Tally(len(self.rounding), n_functions, self.n_rounds, evidence.counts, evidence.spread(), trust)
        value = combine(evidence.bound(tally, r, delta), rounding(evidence.counts, self.rounding, r), r)
        late = f"{self.n_late} outcomes came after a later forecast had been made"
        return _guarantee(value, evidence, tally, r, delta, (), (late,) if self.n_late else ())


def ahead(
    evidence: Evidence,
    property: Elicitable,
    stages: list[tuple[int, int]],
    n_functions: int,
    trust: float,
    r: float,
    delta: float,
    *,
    hinted: bool,
) -> Guarantee:
    """The theorem ahead of a run, from the property's Lipschitz constant and the grids the run will use."""
    n_bins, n_rounds = stages[-1][0], sum(rounds for _, rounds in stages)
    tally = Tally(n_bins, n_functions, n_rounds, trust=trust)
    rho, assumption = property.lipschitz, property.assumption
    if rho is None:
        rho, assumption = 1.0, "labels no denser than uniform over their range (declare another bound with density=)"
    if property.continuous:
        value = combine(evidence.bound(tally, r, delta), rounding_ahead(stages, rho, r), r)
    else:
        # Only the mean of |V(forecast) - V(evidence)| is Lipschitz: exp(X - (e - 1) E X) is a supermartingale in each
        # bin.
        jumps = n_bins * math.log(2.0 * n_bins / delta)
        rounded = combine(rounding_ahead(stages, (math.e - 1.0) * rho, r), jumps, r)
        value = combine(evidence.bound(tally, r, delta / 2.0), rounded, r)
    unhinted = () if hinted else ("no hint is given; with hints the bound is larger, so ask again after the first one",)
    return _guarantee(value, evidence, tally, r, delta, (assumption, *unhinted), ())


def _guarantee(
    value: float,
    evidence: Evidence,
    tally: Tally,
    r: float,
    delta: float,
    assumptions: tuple[str, ...],
    broken: tuple[str, ...],
) -> Guarantee:
    always = ("each outcome comes before the next forecast", "nobody who plays against the forecasts knows the seed")
    return Guarantee(
        min(value, float(tally.n_rounds)),
        theorem=evidence.theorem,
        delta=delta,
        r=r,
        n_rounds=tally.n_rounds,
        assumptions=(*always, *assumptions),
        broken=broken,
    )
