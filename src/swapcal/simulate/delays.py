"""When outcomes are known: row numbers for `Forecaster.run(known=...)`, as they come about in the field.

Entry t is the row before which the outcome of row t is learned: t + 1 where it is known at once, and never less.
"""

import math
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.simulate.synthetic import Stream, oscillating
from swapcal.typing import Float64Array

__all__ = ["at_once", "by_day", "by_outcome", "drift_meanwhile", "fixed", "geometric", "heavy_tailed", "lead_times"]


def at_once(n_rounds: int) -> Float64Array:
    """Every outcome before the next row.

    Parameters
    ----------
    n_rounds : int
        Rows.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> at_once(3)
    array([1., 2., 3.])
    """
    return fixed(n_rounds, 1)


def fixed(n_rounds: int, rows: int) -> Float64Array:
    """Every outcome after the same number of rows.

    Parameters
    ----------
    n_rounds, rows : int
        Rows of the stream, and of the delay, 1 or more.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> fixed(3, 10)
    array([10., 11., 12.])
    """
    return _from_start(n_rounds, np.full(n_rounds, _positive(rows, "rows")))


def geometric(n_rounds: int, mean: float, seed: int) -> Float64Array:
    """An outcome that is out is known before the next row with the same chance, however long it has been out.

    Parameters
    ----------
    n_rounds : int
        Rows.
    mean : float
        Of the delay, in rows, 1 or more.
    seed : int
        Of the draws.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> known = geometric(10_000, 300.0, seed=0)
    >>> bool(280.0 < np.mean(known - np.arange(10_000)) < 320.0)
    True
    """
    rng = np.random.default_rng(seed)
    return _from_start(n_rounds, rng.geometric(1.0 / max(_positive(mean, "mean"), 1.0), n_rounds))


def by_day(n_rounds: int, day: int) -> Float64Array:
    """All outcomes of a day are known when the next one begins.

    Parameters
    ----------
    n_rounds, day : int
        Rows of the stream, and of a day.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> by_day(5, 2)
    array([2., 2., 4., 4., 6.])
    """
    day = int(_positive(day, "day"))
    return np.asarray((np.arange(n_rounds) // day + 1) * day, dtype=np.float64)


def heavy_tailed(n_rounds: int, scale: float, seed: int, *, tail: float = 1.2) -> Float64Array:
    """Most outcomes soon, some after very long: delays of a Pareto law, whose variance is infinite for tails below 2.

    Parameters
    ----------
    n_rounds : int
        Rows.
    scale : float
        In rows: the chance to be out longer than d is (1 + d / scale)^-tail.
    seed : int
        Of the draws.
    tail : float
        Exponent of the tail.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> late = heavy_tailed(10_000, 50.0, seed=0) - np.arange(10_000)
    >>> bool(np.median(late) < 50.0 and late.max() > 5_000.0)
    True
    """
    drawn = np.random.default_rng(seed).pareto(_positive(tail, "tail"), n_rounds)
    return _from_start(n_rounds, 1.0 + np.floor(_positive(scale, "scale") * drawn))


def by_outcome(y: Float64Array, high: float, low: float, seed: int) -> Float64Array:
    """The delay depends on the outcome: about `high` rows for those above the mean, about `low` for the others.

    Parameters
    ----------
    y : array
        Outcomes; NaN counts as low.
    high, low : float
        Mean delays, in rows; each is spread by half of itself (a gamma law of shape 4).
    seed : int
        Of the draws.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> known = by_outcome(np.array([1.0, 0.0] * 500), 20.0, 3000.0, seed=0)
    >>> late = known - np.arange(1000)
    >>> bool(late[::2].mean() < 25.0), bool(late[1::2].mean() > 2800.0)
    (True, True)
    """
    mean = np.where(np.nan_to_num(y) > np.nanmean(y), _positive(high, "high"), _positive(low, "low"))
    spread = np.random.default_rng(seed).gamma(4.0, 0.25, len(y))
    return _from_start(len(y), 1.0 + np.floor(mean * spread))


def lead_times(y: Float64Array, median: float, seed: int) -> Float64Array:
    """Bookings: a cancellation (1) is known some time before the date, that there was none (0) only then.

    Parameters
    ----------
    y : array
        Outcomes.
    median : float
        Of the time to the date, in rows, which is log-normal; cancellations come at a uniform share of it.
    seed : int
        Of the draws.

    Returns
    -------
    array
        Row numbers.

    Examples
    --------
    >>> known = lead_times(np.array([1.0, 0.0] * 500), 400.0, seed=0)
    >>> late = known - np.arange(1000)
    >>> bool(late[::2].mean() < 0.7 * late[1::2].mean())
    True
    """
    rng = np.random.default_rng(seed)
    lead = _positive(median, "median") * np.exp(rng.normal(0.0, 0.8, len(y)))
    return _from_start(
        len(y), 1.0 + np.floor(np.where(np.nan_to_num(y) > np.nanmean(y), lead * rng.random(len(y)), lead))
    )


def drift_meanwhile(n_rounds: int, seed: int, delay: int) -> tuple[Stream, Float64Array]:
    """Drift during the delay: group effects turn to their opposite while an outcome is out.

    Parameters
    ----------
    n_rounds, seed : int
        As for the streams.
    delay : int
        Rows, the same for all outcomes; a swing of the effects takes twice as many.

    Returns
    -------
    tuple
        The stream, and row numbers.

    Examples
    --------
    >>> stream, known = drift_meanwhile(100, seed=0, delay=10)
    >>> stream.n_rounds, float(known[0])
    (100, 10.0)
    """
    known = fixed(n_rounds, delay)
    return oscillating(n_rounds, seed, period=2.0 * delay), known


def _from_start(n_rounds: int, delays: Any) -> Float64Array:
    known: Float64Array = np.arange(n_rounds, dtype=np.float64) + np.maximum(np.asarray(delays, dtype=np.float64), 1.0)
    return known


def _positive(value: float, name: str) -> float:
    if isinstance(value, bool) or not (math.isfinite(value) and value > 0.0):
        raise InvalidInput(f"{name} must be a positive number; got {value!r}")
    return value
