"""The three errors of the paper as functions of arrays."""

from typing import Any

import numpy as np

from swapcal.audits import sums
from swapcal.audits.audit import MEAN, RoundReader
from swapcal.audits.linear import Bounds
from swapcal.audits.sums import Sums, SumTable
from swapcal.errors import InvalidInput
from swapcal.protocols import Elicitable, Hypotheses


def calibration_error(y: Any, p: Any, *, property: Elicitable = MEAN, r: float = 2.0) -> float:
    """Cal_r = sum over the distinct forecasts p of n_p |mean of V(p, y_t) over the n_p rounds with p_t = p|^r.

    A total, not divided by the number of rounds. Round continuous forecasts first, or use `Audit(bins=...)`: a forecast
    that occurs once is a cell of its own.

    Parameters
    ----------
    y, p : array, shape (n_rounds,)
        Labels and forecasts.
    property : Elicitable
        What was forecast; default `Mean()`.
    r : float
        Power, 1 or more.

    Returns
    -------
    float
        A total over the rounds.

    Examples
    --------
    >>> calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 1.0], r=1)
    0.5
    """
    power = sums.check_power(r)
    return sums.calibration(_summed(y, p, None, property, None)[0], power)


def multicalibration_error(
    y: Any, p: Any, x: Any, *, property: Elicitable = MEAN, hypotheses: Hypotheses | None = None, r: float = 2.0
) -> float:
    """MCal_r = sup over f of the sum over distinct forecasts p of n_p |mean of f(x_t) V(p, y_t)|^r.

    Exact for finite classes, and for the linear class at r = 2. For the linear class at another r it is attained by the
    worst direction found, so it never overstates; `multicalibration_bounds` gives this number and a proved upper bound.

    Parameters
    ----------
    y, p, property, r
        As in `calibration_error`.
    x : array or compressed sparse rows, shape (n_rounds, n)
        Contexts.
    hypotheses : Hypotheses, optional
        None: the columns of x are the functions.

    Returns
    -------
    float
        A total over the rounds.

    Examples
    --------
    >>> multicalibration_error([1, 0], [0.5, 0.5], [[1, 0], [1, 1]])
    0.125
    """
    return multicalibration_bounds(y, p, x, property=property, hypotheses=hypotheses, r=r).lower


def multicalibration_bounds(
    y: Any, p: Any, x: Any, *, property: Elicitable = MEAN, hypotheses: Hypotheses | None = None, r: float = 2.0
) -> Bounds:
    """(lower, upper) around MCal_r: `lower` is attained by a function of the class, `upper` is proved.

    The two are equal for finite classes, and for the linear class at r = 2.

    Parameters
    ----------
    y, p, x, property, hypotheses, r
        As in `multicalibration_error`.

    Returns
    -------
    Bounds
        Both numbers.

    Examples
    --------
    >>> multicalibration_bounds([1, 0], [0.5, 0.5], [[1, 0], [1, 1]])
    Bounds(lower=0.125, upper=0.125)
    """
    power = sums.check_power(r)
    return sums.multicalibration_bounds(*_summed(y, p, _given(x), property, hypotheses), power)


def swap_multicalibration_error(
    y: Any, p: Any, x: Any, *, property: Elicitable = MEAN, hypotheses: Hypotheses | None = None, r: float = 2.0
) -> float:
    """SMCal_r = sum over distinct forecasts p of n_p sup over f of |mean of f(x_t) V(p, y_t)|^r.

    Exact for every class.

    Parameters
    ----------
    y, p, x, property, hypotheses, r
        As in `multicalibration_error`.

    Returns
    -------
    float
        A total over the rounds.

    Examples
    --------
    >>> swap_multicalibration_error([1, 0], [0.5, 0.5], [[1, 0], [1, 1]], r=1)
    0.5
    """
    power = sums.check_power(r)
    return float(np.sum(sums.swap_contributions(*_summed(y, p, _given(x), property, hypotheses), power)))


def _given(x: Any) -> Any:
    if x is None:
        raise InvalidInput("x must hold the contexts, one row per round; without contexts use calibration_error")
    return x


def _summed(y: Any, p: Any, x: Any, property: Elicitable, hypotheses: Hypotheses | None) -> tuple[SumTable, Hypotheses]:
    functions, values, v, contexts, _ = RoundReader(property, hypotheses).many(y, p, x)
    if not len(v):
        raise InvalidInput("the error of no rounds is not defined; give at least one label and forecast")
    sums = Sums(functions.n, intervals=False)
    sums.add_many(values, v, contexts)
    return sums.table(), functions
