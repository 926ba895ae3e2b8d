"""The model of the demo: the package's own online regression, by itself, on a few numbers."""

from collections.abc import Callable

import numpy as np

from swapcal.hints import OnlineRegression
from swapcal.roles import Elicitable, Row, Rows
from swapcal.typing import Float64Array

__all__ = ["forecasts"]

_NOBODY = Row(np.zeros(0, dtype=np.int64), np.zeros(0))
"""No groups: the regression has features and nothing else."""

_EVERY = 10_000


def forecasts(
    property: Elicitable, x: Float64Array, y: Float64Array, done: Callable[[int], None] | None = None
) -> Float64Array:
    """Forecast every row from the rows before it that have an outcome; NaN is none.

    `done` is called with the number of rows, now and then.
    """
    state = OnlineRegression(n_features=x.shape[1]).start(property, 0)
    known, p = ~np.isnan(y), np.empty(len(y))
    borders = np.unique(np.concatenate([[0, len(y)], np.arange(0, len(y), _EVERY), np.flatnonzero(np.diff(known)) + 1]))
    for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if known[start]:
            rows = Rows(np.zeros(end - start + 1, dtype=np.int64), *_NOBODY)
            p[start:end] = state.run(rows, x[start:end], None, y[start:end])
        else:
            p[start:end] = [state.forecast(_NOBODY, features, None) for features in x[start:end]]
        if done is not None and end % _EVERY == 0:
            done(end)
    return p
