"""The model of the demo: the package's own online regression, by itself, on a few numbers."""

from collections.abc import Callable

import numpy as np

from swapcal.hints import OnlineRegression, RegressionState
from swapcal.roles import Elicitable, Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["forecasts", "rows_until"]

_NOBODY = Row(np.zeros(0, dtype=np.int64), np.zeros(0))
"""No groups: the regression has features and nothing else."""

_EVERY = 20
"""Rows after which the model learns what is known by then: about half an hour of flights."""

RATE = 0.005
"""One slow rate: what is learned in one go must not follow the last of it."""


def forecasts(
    property: Elicitable, x: Float64Array, y: Float64Array, done: Callable[[int], None] | None, known: IntArray
) -> Float64Array:
    """Forecast every row by a model that learns every 20 rows from what is known by then; NaN is no outcome.

    `known` are the rows before which outcomes are known. `done` is called with the number of rows, now and then.
    """
    state, p = OnlineRegression(n_features=x.shape[1], rates=(RATE,)).start(property, 0), np.empty(len(y))
    order = np.argsort(np.where(np.isnan(y), len(y), known), kind="stable")
    order = order[~np.isnan(y[order])]
    learned = 0
    for start in range(0, len(y), _EVERY):
        ready = learned + int(np.searchsorted(known[order[learned:]], start, side="right"))
        if ready > learned:
            part = order[learned:ready]
            state.run(Rows(np.zeros(len(part) + 1, dtype=np.int64), *_NOBODY), x[part], None, y[part])
            learned = ready
        p[start : start + _EVERY] = _said(state, x[start : start + _EVERY])
        if done is not None and start % 10_000 == 0:
            done(min(start + _EVERY, len(y)))
    return p


def _said(state: RegressionState, x: Float64Array) -> list[float]:
    """Forecasts of rows between which nothing is learned."""
    kernel = state.kernel()
    if kernel is None:
        return [state.forecast(_NOBODY, features, None) for features in x]
    return [kernel.forecast(*_NOBODY, features, None) for features in x]


def rows_until(times: Float64Array, known: Float64Array) -> IntArray:
    """The first row at or after the moment at which each outcome is known, and not before the row behind its own.

    Examples
    --------
    >>> rows_until(np.array([0.0, 5.0, 9.0]), np.array([6.0, 5.0, np.nan]))
    array([2, 2, 3])
    """
    found = np.searchsorted(times, np.where(np.isnan(known), np.inf, known), side="left")
    return np.maximum(found, np.arange(len(times)) + 1).astype(np.int64)
