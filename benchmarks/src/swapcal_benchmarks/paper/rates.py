"""Claims 1 and 5: how the errors grow with T, and that the l1 error follows from the l2 error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from swapcal.typing import Float64Array
from swapcal_benchmarks.exponents import exponent, exponents
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.cases import PaperCase
from swapcal_benchmarks.paper.one_run import DELTA, Outcome, Run, powers_of

__all__ = [
    "RATE",
    "ErrorCurve",
    "claimed_exponent",
    "curves",
    "exponent_with_logarithms",
    "narrow_rows",
    "rate_rows",
    "rate_runs",
    "remark_rows",
]

RATE = "1 rate of SMCal_r"
"""How the claim is named in its rows; the table for the terminal turns them into a grid."""


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCurve:
    """SMCal_r of one case at several horizons; `errors` has the shape (seeds, horizons)."""

    case: PaperCase
    r: float
    horizons: Float64Array
    errors: Float64Array


def claimed_exponent(r: float) -> Fraction:
    """1/(r + 1) from r = 2 on, 1 - r/3 below."""
    exact = Fraction(r).limit_denominator(100)
    return 1 / (exact + 1) if exact >= 2 else 1 - exact / 3


def rate_runs(cases: Iterable[PaperCase], roots: Mapping[float, Sequence[int]], n_seeds: int) -> list[Run]:
    """Runs at T = n^(r+1), n from `roots[r]`: there the paper's N = T^(1/(r+1)) needs no rounding."""
    return [
        Run(case, round(n ** (r + 1.0)), r, seed)
        for case in cases
        for r, numbers in roots.items()
        for n in numbers
        for seed in range(n_seeds)
    ]


def curves(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> list[ErrorCurve]:
    """Gather the runs by case and exponent, in the order in which they came."""
    table: dict[tuple[PaperCase, float], dict[int, list[float]]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        for r in powers_of(run.r):
            table.setdefault((run.case, r), {}).setdefault(run.n_rounds, []).append(outcome.errors[r])
    return [
        ErrorCurve(case, r, np.array(list(by_horizon), dtype=np.float64), np.array(list(by_horizon.values())).T)
        for (case, r), by_horizon in table.items()
    ]


def exponent_with_logarithms(curve: ErrorCurve) -> float:
    """The slope, over the curve's horizons, of T^claim (ln(|F| N T / delta))^(r/2).

    This is what the O~ of the theorems stands for: the regret of the experts has ln(|F| N T) under its root, Freedman's
    inequality ln(|F| N / delta), and the r-th power of the root is taken. N = T^(1/(r+1)), with r = 2 below 2.
    """
    r, claim = curve.r, float(claimed_exponent(curve.r))
    n_bins = curve.horizons ** (1.0 / (max(r, 2.0) + 1.0))
    logarithm = np.log(curve.case.n * n_bins * curve.horizons / DELTA)
    return float(exponents(curve.horizons, (curve.horizons**claim * logarithm ** (r / 2.0))[None, :])[0])


def _verdict(curve: ErrorCurve, low: float) -> tuple[bool | None, str]:
    if low <= float(claimed_exponent(curve.r)):
        return True, ""
    hidden = exponent_with_logarithms(curve)
    if low <= hidden:
        return None, "steeper than the bare power at these T, but not than the power with the logarithms that O~ hides"
    return False, "steeper at these T than the claim, even with the logarithms that O~ hides"


def rate_rows(found: Iterable[ErrorCurve]) -> list[Measurement]:
    """An exponent for every curve.

    The claim is an upper bound, so it holds if the interval reaches down to the claimed power. If it does not, but
    reaches down to the power with its logarithms, nothing is decided: that is None.
    """
    rows = []
    for curve in found:
        claim, fit = claimed_exponent(curve.r), exponent(curve.horizons, curve.errors)
        holds, note = _verdict(curve, fit.low)
        rows.append(
            Measurement(
                claim=RATE,
                setting=f"{curve.case.algorithm}, {curve.case.property_name}, r = {curve.r:g}",
                paper=f"{claim}",
                paper_value=float(claim),
                measured=fit.value,
                low=fit.low,
                high=fit.high,
                holds=holds,
                note=note,
            )
        )
    return rows


def narrow_rows(found: Iterable[ErrorCurve]) -> list[Measurement]:
    """The rate of SMCal_2 for quantiles of labels so narrow that rho / N is not small at short horizons."""
    note = (
        "the same claim where rho / N is not small at these T: V is bounded, so the error first grows faster than its "
        "bound's power; the rates above are for labels spread over [0, 1]"
    )
    return [
        replace(
            row,
            claim="1 rate of SMCal_2, narrow labels",
            setting=f"{curve.case.algorithm}, {curve.case.property_name}, density {curve.case.density:g}",
            note=note,
        )
        for curve in found
        if curve.r == 2.0
        for row in rate_rows([curve])
    ]


def remark_rows(runs: Sequence[Run], outcomes: Sequence[Outcome], found: Iterable[ErrorCurve]) -> list[Measurement]:
    """Remark 1: SMCal_1 <= sqrt(T SMCal_2) in every run, and what follows for the l1 rate of the mean."""
    rows = []
    by_algorithm: dict[str, list[float]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        by_algorithm.setdefault(run.case.algorithm, []).append(outcome.remark)
    for algorithm, ratios in by_algorithm.items():
        rows.append(
            Measurement(
                claim="5 Remark 1: SMCal_1 / sqrt(T SMCal_2)",
                setting=f"{algorithm}, worst of {len(ratios)} runs",
                paper="<= 1",
                paper_value=1.0,
                measured=max(ratios),
                # Cauchy-Schwarz is an equality if all bins err alike; rounding may then exceed it.
                holds=max(ratios) <= 1.0 + 1e-12,
            )
        )
    for curve in found:
        if curve.r == 1.0 and curve.case.property_name == "mean":
            fit = exponent(curve.horizons, curve.errors)
            rows.append(
                Measurement(
                    claim="5 Remark 1: rate of SMCal_1",
                    setting=f"{curve.case.algorithm}, mean",
                    paper="2/3",
                    paper_value=2.0 / 3.0,
                    measured=fit.value,
                    low=fit.low,
                    high=fit.high,
                    holds=_verdict(curve, fit.low)[0],
                )
            )
    return rows
