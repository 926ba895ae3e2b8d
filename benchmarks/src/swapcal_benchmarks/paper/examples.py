"""Claim 6: two small demonstrations, on the variance, and on swap regret for quantiles."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swapcal.audits import calibration_error
from swapcal.errors import NotElicitable
from swapcal.properties import Quantile, Variance
from swapcal.typing import Float64Array
from swapcal_benchmarks.exponents import exponents
from swapcal_benchmarks.measurement import Measurement

__all__ = ["LOSSES", "ConstantForecast", "constant_sequences", "swap_regret_rows", "variance_rows"]

Loss = Callable[[Float64Array, float, float], Float64Array]
"""f_q(p, y) for an array of p, a label y and a level q."""

_GRID = np.linspace(0.0, 1.0, 1001)


def _pinball(p: Float64Array, y: float, q: float) -> Float64Array:
    return (p - y) * ((y <= p) - q)


def _squared(p: Float64Array, y: float, q: float) -> Float64Array:
    return (p - y) ** 2


def _asymmetric(p: Float64Array, y: float, q: float) -> Float64Array:
    return np.asarray(np.abs((y <= p) - q) * (p - y) ** 2)


def _miss(p: Float64Array, y: float, q: float) -> Float64Array:
    return (np.abs(p - y) > 0.05).astype(np.float64)


def _opposed(p: Float64Array, y: float, q: float) -> Float64Array:
    return -np.abs(p - y) + q * p


LOSSES: dict[str, Loss] = {
    "pinball": _pinball,
    "squared": _squared,
    "asymmetric squared": _asymmetric,
    "hit or miss": _miss,
    "far is good": _opposed,
}
"""The last one elicits nothing sensible: the lemma is about every loss."""


class ConstantForecast(NamedTuple):
    """A sequence with one forecast and one label throughout: its swap regret and its l2 quantile calibration error."""

    p: float
    swap_regret: float
    error: float


def variance_rows(n_rounds: int = 1000) -> list[Measurement]:
    """The footnote: x_1 has always label 1, x_2 always 0, and both are equally frequent.

    The true variance given x is 0 for both, so the true predictor says 0 throughout. But the labels of the rounds in
    which it says 0 are a fair coin. The true mean given x, by contrast, is calibrated.
    """
    group = np.arange(n_rounds) % 2
    y = 1.0 - group
    variance_forecast, mean_forecast = np.zeros(n_rounds), y
    seen = float(np.var(y[variance_forecast == 0.0]))
    refused = False
    try:
        Variance()
    except NotElicitable:
        refused = True
    return [
        Measurement(
            claim="6 footnote: variance where the truth says 0",
            setting="labels 1 given x_1, 0 given x_2",
            paper="0.5",
            paper_value=0.5,
            measured=seen,
            holds=seen > 0.0 and refused,
            note=(
                "holds: not 0, so the true variance is not calibrated, and no forecaster can be asked for it "
                "(swapcal.Variance() refuses); the footnote's 0.5 is a slip, a fair coin has variance 0.25"
            ),
        ),
        Measurement(
            claim="6 footnote: Cal_2 of the true mean",
            setting="the same labels",
            paper="0",
            paper_value=0.0,
            measured=calibration_error(y, mean_forecast),
            holds=calibration_error(y, mean_forecast) == 0.0,
        ),
    ]


def constant_sequences(loss: Loss, y: float, level: float, n_rounds: int) -> tuple[ConstantForecast, ConstantForecast]:
    """The proof's two sequences: the best forecast below the label, and the best at or above it, `n_rounds` times.

    With one label throughout, sup over nu of sum f(p, y) - f(nu(p), y) is n (f(p, y) - min over p' of f(p', y)): it is
    zero for the better of the two. The calibration error is n level^2 below the label and n (1 - level)^2 above it.

    Examples
    --------
    >>> below, above = constant_sequences(LOSSES["pinball"], 0.5, 0.7, 100)
    >>> above.swap_regret, round(above.error, 6), round(below.error, 6)
    (0.0, 9.0, 49.0)
    """
    values = np.asarray(loss(_GRID, y, level), dtype=np.float64)
    best = float(values.min())
    labels = np.full(n_rounds, y)
    found = []
    for side in (y > _GRID, y <= _GRID):
        p, value = float(_GRID[side][np.argmin(values[side])]), float(values[side].min())
        error = calibration_error(labels, np.full(n_rounds, p), property=Quantile(level))
        found.append(ConstantForecast(p, n_rounds * (value - best), error))
    return found[0], found[1]


def swap_regret_rows(level: float = 0.7, y: float = 0.5) -> list[Measurement]:
    """The appendix's lemma: for any loss there are sequences with swap regret 0 whose calibration error grows like T.

    So no zeta with zeta(0) = 0 and no constant C make the error at most zeta(swap regret) + C.
    """
    horizons = (100, 1000, 10_000)
    rows: list[Measurement] = []
    for name, loss in LOSSES.items():
        best = [min(constant_sequences(loss, y, level, n), key=lambda s: s.swap_regret) for n in horizons]
        slope = float(exponents(np.array(horizons, dtype=np.float64), np.array([[s.error for s in best]]))[0])
        regret = max(s.swap_regret for s in best)
        rows.append(
            Measurement(
                claim="6 appendix: Cal_2 at swap regret 0",
                setting=f"{name} loss, q = {level:g}, exponent in T",
                paper="1",
                paper_value=1.0,
                measured=slope,
                holds=regret == 0.0 and abs(slope - 1.0) < 1e-9,
                note=""
                if rows
                else (
                    "no increasing function of a swap regret bounds the l2 quantile calibration error: the label "
                    f"{y:g} throughout, the loss's favorite forecast throughout, regret 0, and Cal_2 = "
                    f"{best[-1].error:g} after {horizons[-1]} rounds for the pinball loss"
                ),
            )
        )
    return rows
