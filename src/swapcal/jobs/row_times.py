"""When rows were, and which of them hang together: a column of times, and clusters by a column or by the day."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded, text
from swapcal.typing import IntArray

__all__ = ["ClusterNumbers", "day_of", "times_of"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_of(value: Any) -> str | None:
    """The day of a time that is written as 2026-03-01...; None for anything else.

    Examples
    --------
    >>> day_of("2026-03-01 12:30"), day_of("12:30")
    ('2026-03-01', None)
    """
    found = _DAY.match(str(value))
    return None if found is None else found.group(0)


def times_of(batch: Batch, name: str) -> Callable[[int], str | None]:
    """What the column says of the time of a row of the batch, by the row's number in it; a day, where it is one."""
    column = batch.column(name)

    def time(row: int) -> str | None:
        if not isinstance(column, Coded):
            return text(float(column[row]))
        value = column.values[column.codes[row]] if column.codes[row] >= 0 else None
        return day_of(value) or (None if value is None else str(value))

    return time


class ClusterNumbers:
    """Numbers of clusters, which count up where the column's value (or its day) changes from one row to the next.

    Parameters
    ----------
    name : str
        The column.
    by_day : bool
        Whether rows of the same day are one cluster, the column being one of times.
    """

    def __init__(self, name: str, *, by_day: bool) -> None:
        self.name, self.by_day = name, by_day
        self.count = 0
        self._last: Any = None
        self._seen: set[Any] = set()
        self.returns = 0
        """Clusters that came again after another one: rows are not sorted by cluster, and intervals are too narrow."""

    def numbers(self, batch: Batch) -> IntArray:
        """The number of the cluster of each row."""
        column = batch.column(self.name)
        if isinstance(column, Coded):
            keys = [day_of(value) or str(value) if self.by_day else value for value in column.values]
            places: dict[Any, int] = {}
            table = np.array([*(places.setdefault(key, len(places)) for key in keys), -1], dtype=np.int64)
            codes, values = table[column.codes], [*places, None]
        else:
            found, codes = np.unique(column, return_inverse=True)
            values = found.tolist()
        change = np.diff(codes, prepend=codes[:1]) != 0
        change[0] = self.count == 0 or values[codes[0]] != self._last
        for at in np.flatnonzero(change).tolist():
            key = values[codes[at]]
            self.returns += key in self._seen
            self._seen.add(key)
        numbers: IntArray = self.count + np.cumsum(change)
        self.count, self._last = int(numbers[-1]), values[codes[-1]]
        return numbers
