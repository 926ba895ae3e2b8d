"""The search of a table for subgroups that nobody listed: raw columns as conditions, and what `discover` finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal.audit.discovery import discover
from swapcal.audit.discovery_columns import N_VALUES, Column, banded, valued
from swapcal.jobs.passes import Passes
from swapcal.jobs.question import Question
from swapcal.jobs.row_times import ClusterNumbers
from swapcal.jobs.row_values import RowValues
from swapcal.jobs.survey import row_keys
from swapcal.tables.coded import Coded, as_number, text
from swapcal.typing import Float64Array, IntArray
from swapcal.words.property_words import property_words

__all__ = ["MOST_ROWS", "discovered"]

MOST_ROWS = 400_000
"""Rows that are looked at: half of them are searched, and half of them confirm."""


def discovered(
    passes: Passes, question: Question, values: RowValues, clusters: ClusterNumbers | None, n_rows: int
) -> dict[str, Any]:
    """Subgroups with their bias in the units that people read, and columns that give the outcome away.

    Every column is looked at but those of the question (outcome, weight, cluster and time), and the forecast. Plain
    data: subgroups (those confirmed first), leaks, `explained` (the share of the mean square error of a row that goes
    away with their bias), rows, unit.
    """
    rate = min(1.0, MOST_ROWS / max(n_rows, 1))
    own = {question.y, question.weight, question.cluster, question.time, question.p}
    parts: list[tuple[Float64Array, IntArray]] = []
    raw: dict[str, list[Any]] = {}
    for batch in passes.batches():
        y, p, w = values.labels(batch), values.forecasts(batch, question.p or ""), values.weights(batch)
        numbers = None if clusters is None else clusters.numbers(batch)
        known = ~(np.isnan(y) | np.isnan(p)) & (row_keys(batch.first, batch.n) < rate)
        kept = np.flatnonzero(known)
        v = np.asarray(values.property.identification(p[kept], y[kept]), dtype=np.float64)
        weights = np.ones(len(kept)) if w is None else w[kept]
        ids = batch.first + kept if numbers is None else numbers[kept]
        parts.append((np.stack([v, p[kept], weights]), ids))
        for name in batch.columns:
            if name not in own:
                raw.setdefault(name, []).extend(_listed(batch.column(name), kept))
    v, p, w = np.concatenate([part[0] for part in parts], axis=1)
    ids = np.concatenate([part[1] for part in parts])
    columns = [banded("forecast", p), *(_column(name, each) for name, each in raw.items())]
    found = discover(columns, v, clusters=None if clusters is None else ids, weights=w)
    scale = property_words(values.property).scale
    return {
        "subgroups": [
            {**one._asdict(), **{name: scale * getattr(one, name) for name in ("bias", "bound", "found_bias")}}
            for one in found.subgroups
        ],
        "leaks": [leak._asdict() for leak in found.leaks],
        "explained": found.explained,
        "rows": len(v),
        "unit": property_words(values.property).unit or "outcome",
    }


def _listed(column: Coded | Float64Array, kept: IntArray) -> list[Any]:
    if isinstance(column, Coded):
        values = [*map(text, column.values), None]
        return [values[code] for code in column.codes[kept].tolist()]
    return [None if value != value else value for value in column[kept].tolist()]


def _column(name: str, values: Sequence[Any]) -> Column:
    """Numbers with many values in bands, everything else by its commonest values."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    floats = np.array([as_number(value) for value in distinct])
    places = {value: k for k, value in enumerate(distinct)}
    codes = np.array([-1 if value is None else places[value] for value in values], dtype=np.int64)
    if len(distinct) > N_VALUES and not np.isnan(floats).any():
        return banded(name, np.append(floats, np.nan)[codes])
    return valued(name, codes, [str(value if not isinstance(value, float) else f"{value:g}") for value in distinct])
