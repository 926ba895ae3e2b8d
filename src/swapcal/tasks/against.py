"""What practitioners do instead, on the rows of a run: kept while it lasts, forecast and scored at its end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from swapcal.audits.scores import Paired, PairedLosses
from swapcal.engine.schedule import nothing_late, schedule
from swapcal.protocols import Elicitable, Rows
from swapcal.rivals.card import kind_of
from swapcal.rivals.refit import Known, refitted
from swapcal.sparse import stacked
from swapcal.tables.batch import by_value, text
from swapcal.tasks.config import parse_against
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tables.batch import Batch
    from swapcal.tasks.task import Inputs

# Rows of a run that has a refit beside it without being asked.
MOST = 200_000
# Parts of a run whose losses are told one by one.
N_STRETCHES = 24


class Against:
    """Rows of a run, from which its rivals are forecast and scored.

    Parameters
    ----------
    property : Elicitable
        What is forecast.
    asked : sequence of str, optional
        Methods, a column of segments behind a colon. Without: the refit, of 200,000 rows at most.
    """

    def __init__(self, property: Elicitable, asked: Sequence[str] | None) -> None:
        self.property = property
        usual = ("refit",) if kind_of(property) in ("mean", "quantile") else ()
        self.methods = parse_against(usual if asked is None else asked)
        self.most = MOST if asked is None else None
        self.n_rows = 0
        self.parts: list[tuple[Float64Array, ...]] = []
        self.groups: list[Rows] = []
        self.moments: list[dict[str, Float64Array]] = []
        self.segments: dict[str, list[IntArray]] = {each: [] for _, each in self.methods.values() if each}
        self._codes: dict[str, dict[str, int]] = {each: {} for each in self.segments}

    def add(self, batch: "Batch", inputs: "Inputs", forecasts: Float64Array) -> None:
        """Keep the rows of a batch."""
        self.n_rows += len(inputs.y)
        if not self.methods or inputs.hints is None:
            return
        if self.most is not None and self.n_rows > self.most:
            self.methods, self.parts, self.groups, self.moments = {}, [], [], []
            return
        weights = np.ones(len(inputs.y)) if inputs.weights is None else inputs.weights
        self.parts.append((inputs.hints, inputs.y, weights, forecasts))
        self.groups.append(inputs.rows.groups)
        self.moments.append({name: inputs.more[name] for name in ("known", "times") if name in inputs.more})
        for name, kept in self.segments.items():
            column, codes = by_value(batch.column(name)), self._codes[name]
            own = [codes.setdefault(str(text(value)), len(codes)) for value in column.values]
            kept.append(np.array([*own, -1], dtype=np.int64)[column.codes])

    def compared(self) -> tuple[dict[str, Paired], dict[str, tuple[float, ...]]]:
        """For each method by its name, the model's loss and its own, on the rows that the run compares.

        And the mean losses of the model, of swapcal and of each method in stretches of the run, with their last rows.
        """
        if not self.methods or not self.parts:
            return {}, {}
        p, y, weights, ours = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        both = ~(np.isnan(p) | np.isnan(y) | np.isnan(ours)) & (weights > 0.0)
        groups = stacked(self.groups)
        pairs: dict[str, Paired] = {}
        late = nothing_late(len(y))
        if self.moments[0]:
            moments = {name: np.concatenate([each[name] for each in self.moments]) for name in self.moments[0]}
            none = np.zeros(0, dtype=np.int64)
            held = none, none, none.astype(np.float64)
            known = np.where(np.isnan(y), np.nan, moments["known"])
            late = schedule(known, moments["times"], len(y), 0, held, "arrival", None, np.isnan(y))
        model, after = (np.asarray(self.property.loss(each[both], y[both])) for each in (p, ours))
        edges = np.linspace(0, len(model), min(N_STRETCHES, len(model)) + 1).astype(np.int64)
        stretches = {"row": tuple((np.flatnonzero(both)[edges[1:] - 1] + 1).astype(np.float64).tolist())}
        stretches |= {"model": _means(model, edges), "swapcal": _means(after, edges)}
        for name, (method, column) in self.methods.items():
            segments = np.concatenate(self.segments[column]) if column else None
            forecasts = refitted(self.property, Known(p, y, groups, weights, segments), late, method)
            losses, own = PairedLosses(), np.asarray(self.property.loss(forecasts[both], y[both]))
            losses.add(model, own, weights[both])
            stretches[name] = _means(own, edges)
            pair = losses.paired()
            pairs |= {} if pair is None else {name: pair}
        return pairs, stretches


def _means(losses: Float64Array, edges: IntArray) -> tuple[float, ...]:
    """The mean of each stretch."""
    sums = np.diff(np.concatenate([[0.0], np.cumsum(losses)])[edges])
    return tuple((sums / np.diff(edges)).tolist())
