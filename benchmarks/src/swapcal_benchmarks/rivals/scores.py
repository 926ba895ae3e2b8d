"""What is measured of a run: errors by the audit, bias, loss, time, memory."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from swapcal.audits import calibration_error, multicalibration_error, swap_multicalibration_error
from swapcal.engine.values import Grid
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

__all__ = ["CLAIMS", "Scores", "on_grid", "score"]

CLAIMS = {
    "SMCal_2": "smcal",
    "MCal_2": "mcal",
    "MCal_1": "mcal_1",
    "Cal_2": "cal",
    "max over (f, bin) of |sum|": "largest",
}
"""The field of `Scores` that is the error of a card, by how the card's words begin."""

_FEW = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The numbers of one run.

    Parameters
    ----------
    smcal, mcal, cal : float
        SMCal_2, MCal_2, Cal_2.
    mcal_1 : float, optional
        MCal_1; finite classes only.
    largest : float
        The largest |sum of f(x) V| over functions and distinct forecasts.
    worst : float
        The largest |mean of V| over the groups that have 50 cases or more: a bias for means, a gap in coverage for
        quantiles.
    loss : float
        Mean of the property's loss.
    excess : float, optional
        Loss minus that of the true property, unrounded; None where the truth is not known.
    n_values : int
        Distinct forecasts before any rounding.
    rounded : bool
        Whether forecasts were rounded for the errors.
    microseconds : float, optional
        Processor time a round; recorded streams only.
    state_bytes : int
        Memory at the end.
    """

    smcal: float
    mcal: float
    cal: float
    mcal_1: float | None
    largest: float
    worst: float
    loss: float
    excess: float | None
    n_values: int
    rounded: bool
    microseconds: float | None
    state_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def on_grid(p: Float64Array, domain: tuple[float, float]) -> tuple[Float64Array, bool]:
    """Forecasts as the errors see them, and whether that changed them.

    SMCal adds up over equal forecasts, so a method that never says the same thing twice has an error for each round.
    More than 2 T^(2/3) distinct values are not a grid: they are rounded to the mid-points of ceil(T^(1/3)) bins, which
    is what the clairvoyant plays. Loss and bias are those of the forecasts as they were.

    Examples
    --------
    >>> on_grid(np.linspace(0.0, 1.0, 100), (0.0, 1.0))[0][:3], on_grid(np.array([0.3] * 8), (0.0, 1.0))[1]
    (array([0.1, 0.1, 0.1]), False)
    """
    if len(np.unique(p)) <= 2.0 * len(p) ** (2.0 / 3.0):
        return p, False
    return Grid(*domain, math.ceil(len(p) ** (1.0 / 3.0) - 1e-9)).round(p), True


def score(
    property: Elicitable,
    hypotheses: Hypotheses,
    x: Float64Array,
    y: Float64Array,
    p: Float64Array,
    *,
    truth: Float64Array | None,
    microseconds: float | None,
    memory: int,
) -> Scores:
    """All scores of the forecasts `p`."""
    q, rounded = on_grid(p, property.domain)
    finite = hypotheses.dual == "max"

    def mcal(r: float) -> float:
        return multicalibration_error(y, q, x, property=property, hypotheses=hypotheses, r=r)

    v = np.asarray(property.identification(p, y), dtype=np.float64)
    size = np.abs(x).sum(axis=0)
    bias = np.abs(v @ x) / np.maximum(size, 1.0)
    large = size >= min(_FEW, float(size.max()))
    loss = float(np.mean(property.loss(p, y)))
    return Scores(
        smcal=swap_multicalibration_error(y, q, x, property=property, hypotheses=hypotheses),
        mcal=mcal(2.0),
        cal=calibration_error(y, q, property=property),
        mcal_1=mcal(1.0) if finite else None,
        largest=_largest(property, hypotheses, x, y, q),
        worst=float(bias[large].max()),
        loss=loss,
        excess=None if truth is None else loss - float(np.mean(property.loss(truth, y))),
        n_values=len(np.unique(p)),
        rounded=rounded,
        microseconds=microseconds,
        state_bytes=memory,
    )


def _largest(property: Elicitable, hypotheses: Hypotheses, x: Float64Array, y: Float64Array, q: Float64Array) -> float:
    values, place = np.unique(q, return_inverse=True)
    sums = np.zeros((len(values), x.shape[1]))
    np.add.at(sums, place, np.asarray(property.identification(q, y))[:, np.newaxis] * x)
    return float(np.max(hypotheses.supremum(sums)))
