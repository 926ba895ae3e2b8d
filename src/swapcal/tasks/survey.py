"""The first look at a table, from its first row to its last: what settles range, bands and bins."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from swapcal.engine.kernels import row_keys
from swapcal.tables.batch import Batch, Coded, entries, taken
from swapcal.typing import Float64Array, IntArray

# Rows of the sample.
MOST_ROWS = 50_000

MOST_VALUES = 200


class Survey:
    """Ends of the outcomes, the largest weight, the distinct forecasts while they are few, and a sample of rows.

    The sample is uniform over the whole stream: rows with the smallest random keys, keys being a function of the row's
    number. So it is the same however rows come in batches, and all rows of a table of up to 50,000.

    Parameters
    ----------
    columns : sequence of str
        Columns of which the sample is kept besides outcomes and forecasts.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.n_rows = self.n_known = 0
        self.low, self.high = np.inf, -np.inf
        self.p_low, self.p_high = np.inf, -np.inf
        self.binary = True
        self.heaviest = 0.0
        # The distinct forecasts; None where there are more than 200.
        self.values: set[float] | None = set()
        self._limit = 1.0
        # Keys, outcomes, forecasts and weights as rows of one array; and the other columns.
        self._parts: list[tuple[Float64Array, dict[str, list[Any] | Float64Array]]] = []
        self._n_kept = 0

    def add(self, batch: Batch, y: Float64Array, p: Float64Array, weights: Float64Array | None) -> None:
        """Add rows: outcomes as they are, forecasts and weights; NaN where there is none."""
        known = y[~np.isnan(y)]
        if len(known):
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
            self.binary = self.binary and bool(((known == 0.0) | (known == 1.0)).all())
            self.n_known += len(known)
        if weights is not None:
            self.heaviest = max(self.heaviest, float(weights.max(initial=0.0)))
        forecasts = p[~np.isnan(p)]
        if len(forecasts):
            self.p_low, self.p_high = min(self.p_low, float(forecasts.min())), max(self.p_high, float(forecasts.max()))
        if self.values is not None:
            self.values |= set(np.unique(forecasts)[: MOST_VALUES + 1].tolist())
            self.values = self.values if len(self.values) <= MOST_VALUES else None
        keys = row_keys(self.n_rows, batch.n)
        self.n_rows += batch.n
        chosen = np.flatnonzero(keys < self._limit)
        if not len(chosen):
            return
        columns = {name: _taken(batch.column(name), chosen) for name in self.columns}
        w = np.ones(len(chosen)) if weights is None else weights[chosen]
        self._parts.append((np.stack([keys[chosen], y[chosen], p[chosen], w]), columns))
        self._n_kept += len(chosen)
        if self._n_kept > 2 * MOST_ROWS:
            self._trim()

    @property
    def y(self) -> Float64Array:
        """Outcomes of the sample, none missing, in their order."""
        y: Float64Array = self._sample()[0][1]
        return y[~np.isnan(y)]

    @property
    def pairs(self) -> tuple[Float64Array, Float64Array]:
        """Outcomes and forecasts of the sample, NaN where one is missing."""
        _, y, p, _ = self._sample()[0]
        return y, p

    @property
    def weights(self) -> Float64Array:
        """Weights of the rows of `y`."""
        _, y, _, w = self._sample()[0]
        known: Float64Array = w[~np.isnan(y)]
        return known

    @property
    def p(self) -> Float64Array:
        """Forecasts of the sample, none missing; the distinct ones of the whole stream, while these are few."""
        p: Float64Array = self._sample()[0][2]
        return p[~np.isnan(p)]

    def sample(self) -> Mapping[str, Any]:
        """The columns of the sample, as `Groups.fit` takes them."""
        return self._sample()[1]

    def _sample(self) -> tuple[Float64Array, dict[str, Any]]:
        self._trim()
        return self._parts[0] if self._parts else (np.zeros((4, 0)), {})

    def _trim(self) -> None:
        """Keep the rows with the smallest keys, in the order in which they came."""
        if not self._parts or (len(self._parts) == 1 and self._parts[0][0].shape[1] <= MOST_ROWS):
            return
        numbers = np.concatenate([part[0] for part in self._parts], axis=1)
        columns: dict[str, list[Any] | Float64Array] = {}
        for name in self.columns:
            parts = [part[1][name] for part in self._parts]
            floats = [part for part in parts if isinstance(part, np.ndarray)]
            columns[name] = (
                np.concatenate(floats)
                if len(floats) == len(parts)
                else [each for part in parts for each in entries(part)]
            )
        if numbers.shape[1] > MOST_ROWS:
            self._limit = float(np.partition(numbers[0], MOST_ROWS)[MOST_ROWS])
            chosen = np.flatnonzero(numbers[0] < self._limit)
            numbers = numbers[:, chosen]
            columns = {
                name: column[chosen] if isinstance(column, np.ndarray) else [column[t] for t in chosen.tolist()]
                for name, column in columns.items()
            }
        self._parts, self._n_kept = [(numbers, columns)], numbers.shape[1]


def _taken(column: Coded | Float64Array, rows: IntArray) -> list[Any] | Float64Array:
    some = taken(column, rows)
    return entries(some) if isinstance(some, Coded) else some
