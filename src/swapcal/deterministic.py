"""Forecasts without a draw: the mean of the two values that a forecast would be drawn from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.protocols import Elicitable
from swapcal.sparse import each
from swapcal.typing import Float64Array


def mean_of(forecast: Forecast) -> float:
    """The mean of the two values that a forecast was drawn from: publish it, and update with the forecast as it is.

    Parameters
    ----------
    forecast : Forecast
        What `Forecaster.predict` returned.

    Returns
    -------
    float
        A number between `forecast.value` and `forecast.other`; it does not depend on the draw.

    Notes
    -----
    docs/deterministic.md has the statement and its proof. In short: the mean is *smoothly* calibrated, for every group
    and against anyone, including one who sees it before choosing the outcome; its bias in every group is that of the
    drawn forecasts. What is lost is calibration given the exact number: one who sees the number and plays against a
    threshold can break it, as for every deterministic forecaster.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), horizon=100, seed=1)
    >>> forecast = forecaster.predict([1])
    >>> forecast.value <= mean_of(forecast) <= forecast.other or forecast.other <= mean_of(forecast) <= forecast.value
    True
    >>> forecaster.update(forecast, 0.7)
    """
    return forecast.probability * forecast.value + (1.0 - forecast.probability) * forecast.other


def expected(forecaster: Forecaster, x: Any, hint: float | None = None) -> float:
    """The mean of the values that a forecast would be drawn from; plays no round and changes nothing.

    Parameters
    ----------
    forecaster : Forecaster
        Whose forecast.
    x, hint
        As for `Forecaster.predict`.

    Returns
    -------
    float
        What `mean_of` would give of the forecast.

    Examples
    --------
    >>> import swapcal as sc
    >>> expected(sc.Forecaster(sc.Mean(), sc.Finite(1), horizon=100, seed=1), [1], hint=0.3)
    0.3
    """
    return float(sum(value * p for value, p in forecaster.distribution(x, hint=hint).items()))


def run(forecaster: Forecaster, X: Any, y: Any, hints: Any = None) -> Float64Array:
    """The means of a whole recorded stream; the forecaster learns as in `Forecaster.run`.

    Parameters
    ----------
    forecaster : Forecaster
        It plays the rounds.
    X, y, hints
        As for `Forecaster.run`.

    Returns
    -------
    array
        The mean of the two values, for each round.
    """
    labels = inputs.vector(y, "y")
    guides = [None] * len(labels) if hints is None else inputs.vector(hints, "hints", len(labels)).tolist()
    rows = forecaster.hypotheses.rows(X, len(labels))
    means = np.empty(len(labels))
    for t, (row, hint, label) in enumerate(zip(each(rows), guides, labels.tolist(), strict=True)):
        forecast = forecaster.predict(row, hint=hint)
        means[t] = mean_of(forecast)
        forecaster.update(forecast, label)
    return means


def smooth_error(
    p: Any, y: Any, X: Any, values: Sequence[float] | Float64Array, property: Elicitable, r: float = 2.0
) -> float:
    r"""The smooth swap multicalibration error of forecasts, on a grid of values z_1 < ... < z_N.

    With the hat functions h_i of the grid (1 at z_i, 0 at the other values, linear between; they add up to 1),

    .. math:: \sum_i n_i \Big(\frac1{n_i} \max_f \big|\sum_t h_i(p_t) f(x_t) V(z_i, y_t)\big|\Big)^r,
              \qquad n_i = \sum_t h_i(p_t).

    For forecasts on the grid this is SMCal_r. For others each counts for its two neighbors, as near as it is to them,
    so that a small change of the forecast changes the error a little.

    Parameters
    ----------
    p, y : array
        Forecasts and outcomes.
    X : array, rounds by functions
        The functions' values.
    values : array
        The grid.
    property : Elicitable
        Gives V.
    r : float
        Exponent, 1 or more.

    Returns
    -------
    float
        A total over the rounds.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> y, p = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.25, 0.25, 0.75, 0.75])
    >>> X = np.ones((4, 1))
    >>> smooth_error(p, y, X, [0.25, 0.75], sc.Mean()), sc.swap_multicalibration_error(y, p, X)
    (0.25, 0.25)
    """
    z, forecasts = np.asarray(values, dtype=np.float64), inputs.vector(p, "p")
    labels, contexts = inputs.vector(y, "y", len(forecasts)), inputs.matrix(X, "X")
    if z.ndim != 1 or len(z) < 2 or (np.diff(z) <= 0).any():
        raise InvalidInput("values must be two or more numbers in increasing order")
    upper = np.clip(np.searchsorted(z, forecasts), 1, len(z) - 1)
    share = np.clip((forecasts - z[upper - 1]) / (z[upper] - z[upper - 1]), 0.0, 1.0)
    sums, weights = np.zeros((len(z), contexts.shape[1])), np.zeros(len(z))
    for bins, part in ((upper - 1, 1.0 - share), (upper, share)):
        np.add.at(weights, bins, part)
        np.add.at(sums, bins, (part * property.identification(z[bins], labels))[:, None] * contexts)
    used = weights > 0.0
    worst = np.max(np.abs(sums[used]), axis=1) / weights[used]
    return float(np.sum(weights[used] * worst**r))
