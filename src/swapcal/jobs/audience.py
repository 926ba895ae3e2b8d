"""For whom forecasts are audited: groups, and linear functions of columns of numbers beside them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from swapcal.hypotheses.numeric import Numeric
from swapcal.jobs.question import Question
from swapcal.jobs.reading import head_columns
from swapcal.roles import Rows

if TYPE_CHECKING:
    from swapcal.tables.records import Batch

__all__ = ["Audience"]


class Audience:
    """The groups of a question, "all" first, and behind them the coordinates of its linear class, if there is one."""

    def __init__(self, question: Question, batches: Sequence["Batch"]) -> None:
        self.groups = question.grouping()
        self.groups.fit(head_columns(batches, self.groups.columns, question.prefix))
        self.numeric = Numeric(list(question.linear)) if question.linear else None

    @property
    def n_linear(self) -> int:
        """Coordinates of the linear class."""
        return 0 if self.numeric is None else self.numeric.n

    @property
    def n(self) -> int:
        """Positions in all."""
        return self.groups.n + self.n_linear

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups so far, then those of the coordinates."""
        linear = () if self.numeric is None else ("constant", *self.numeric.columns)
        return (*self.groups.names, *linear)

    def rows(self, batch: "Batch") -> Rows:
        """The functions' values in each row of the batch."""
        groups = self.groups.rows(batch, batch.n)
        if self.numeric is None:
            return groups
        numbers = self.numeric.rows(batch, batch.n)
        return _side_by_side(groups, numbers, self.groups.n)


def _side_by_side(left: Rows, right: Rows, offset: int) -> Rows:
    """Rows with the entries of both, those on the right moved by `offset` positions."""
    indptr = left.indptr + right.indptr
    indices, values = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1])
    at_left = np.arange(len(left.indices)) + np.repeat(right.indptr[:-1], np.diff(left.indptr))
    at_right = np.arange(len(right.indices)) + np.repeat(left.indptr[1:], np.diff(right.indptr))
    indices[at_left], indices[at_right] = left.indices, right.indices + offset
    values[at_left], values[at_right] = left.values, right.values
    return Rows(indptr, indices, values)
