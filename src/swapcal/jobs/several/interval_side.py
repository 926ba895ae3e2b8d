"""Intervals of one origin, the model's or swapcal's: coverage of every group by an audit, widths and scores beside."""

from dataclasses import replace

import numpy as np

from swapcal.audit.summary import ColumnSummary, summarize
from swapcal.intervals.interval_scores import interval_score
from swapcal.jobs.audience import Audience
from swapcal.jobs.several.group_means import GroupMeans
from swapcal.properties import Quantile
from swapcal.roles import Rows
from swapcal.typing import Float64Array

__all__ = ["IntervalSide"]

_INSIDE, _OUTSIDE, _EDGE = 0.0, 1.0, 0.5


class IntervalSide:
    """What is counted of intervals.

    Whether an outcome is inside its interval is the question whether a number, 0 inside and 1 outside, lies at or below
    1/2: the audit of a quantile at the level `coverage`, whose bias is the coverage beyond what was asked for.

    Parameters
    ----------
    audience : Audience
        For whom.
    coverage : float
        The share of outcomes that was to be covered.
    label : str
        Whose intervals they are.
    """

    def __init__(self, audience: Audience, coverage: float, label: str) -> None:
        self.coverage = coverage
        self.column = audience.column(Quantile(coverage), None, label, 2)
        self.column.histograms.settle(np.array([_INSIDE, _OUTSIDE]))
        self.means = GroupMeans(audience.groups.n, ("width", "score"))

    def add(self, y: Float64Array, lower: Float64Array, upper: Float64Array, rows: Rows) -> Float64Array:
        """Add rows, nothing missing; their interval scores."""
        scores = interval_score(y, lower, upper, self.coverage)
        inside = (lower <= y) & (y <= upper)
        self.column.add(np.where(inside, _INSIDE, _OUTSIDE), np.full(len(y), _EDGE), rows)
        self.means.add(rows, upper - lower, scores)
        return scores

    def summary(self) -> ColumnSummary:
        """The audit of coverage, with the mean interval score as the loss."""
        found = summarize(self.column)
        score = float(self.means.of("score")[0])
        return replace(found, loss=score, constant_loss=None, ideal_loss=None, slope=None, constant=None)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {**self.column.arrays(), **self.means.arrays()}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self.means.restore({"means": arrays["means"]})
        self.column.restore({name: array for name, array in arrays.items() if name != "means"})
