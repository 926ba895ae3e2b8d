"""The columns of a run of intervals: outcomes, a model's forecast, and the ends of its own intervals."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swapcal.errors import DataError, InvalidInput
from swapcal.jobs.question import Question
from swapcal.jobs.row_values import LARGEST, RangeWarning, finite, known_outcomes
from swapcal.tables.batch import Batch
from swapcal.typing import Float64Array

__all__ = ["IntervalColumns", "IntervalRows"]


class IntervalRows(NamedTuple):
    """Some rows: outcomes, centers, and the model's own ends; NaN is missing, and None was not given at all."""

    y: Float64Array
    center: Float64Array | None
    lower: Float64Array | None
    upper: Float64Array | None


class IntervalColumns:
    """Reads the columns that a run of intervals uses.

    Parameters
    ----------
    question : Question
        The outcomes, and their range where that is given.
    model : sequence of str
        None; a forecast, around which intervals are made; lower and upper ends of the model's own intervals, whose
        middle is then the forecast; or lower end, forecast, upper end.

    Attributes
    ----------
    n_clipped, n_crossed : int
        Outcomes outside the range so far, and rows whose lower end lies above the upper.
    """

    def __init__(self, question: Question, model: Sequence[str] = ()) -> None:
        if len(model) > 3:
            raise InvalidInput(
                f"with --interval, --p names a forecast, or lower,upper, or lower,forecast,upper; got {len(model)} "
                f"columns ({', '.join(model)})"
            )
        self.question, self.model = question, tuple(model)
        self.center = {1: 0, 3: 1}.get(len(model))
        self.ends = (0, len(model) - 1) if len(model) > 1 else None
        self.n_clipped = self.n_crossed = 0

    @property
    def names(self) -> tuple[str, ...] | None:
        """All columns that are used, each once; None if functions among the groups may look at any."""
        asked = self.question.columns
        return None if asked is None else tuple(dict.fromkeys((*asked, *self.model)))

    def check(self, first: Sequence[Batch], source: str) -> None:
        """Refuse ends that are the wrong way round, and outcomes without numbers."""
        known = np.concatenate([known_outcomes(self.question, batch, source) for batch in first])
        if np.isnan(known).all():
            raise DataError(
                f"column {self.question.y!r} has no outcome in the first {len(known):,} rows of {source}; "
                "give another column"
            )
        if self.ends is None:
            return
        lower, upper = (np.concatenate([batch.numbers(self.model[at]) for batch in first]) for at in self.ends)
        given = ~(np.isnan(lower) | np.isnan(upper))
        if not given.any():
            raise DataError(
                f"the first {len(given):,} rows of {source} have no interval in {self.model[0]!r} and "
                f"{self.model[-1]!r}; check the columns"
            )
        if 2 * np.count_nonzero(lower[given] > upper[given]) > np.count_nonzero(given):
            raise DataError(
                f"most rows of {source} have a larger number in {self.model[0]!r} than in {self.model[-1]!r}; "
                f"name the lower end first: --p {','.join(reversed(self.model))}"
            )

    def read(self, batch: Batch, source: str) -> IntervalRows:
        """The columns of a batch; outcomes outside the range count as its ends, with one warning."""
        y = self._outcomes(batch, source)
        numbers = [finite(batch.numbers(name), batch, name, source) for name in self.model]
        lower, upper = (None, None) if self.ends is None else (numbers[at] for at in self.ends)
        center = None if self.center is None else numbers[self.center]
        if lower is not None and upper is not None:
            crossed = lower > upper
            if crossed.any() and not self.n_crossed:
                _warn(batch, crossed, source, "has its lower end above the upper; such an interval covers nothing")
            self.n_crossed += int(np.count_nonzero(crossed))
            center = lower + (upper - lower) / 2 if center is None else center
        return IntervalRows(y, center, lower, upper)

    def _outcomes(self, batch: Batch, source: str) -> Float64Array:
        name = self.question.y
        y = finite(batch.numbers(name), batch, name, source)
        if (np.abs(y) > LARGEST).any():
            raise DataError(f"outcomes {name!r} of {source} are larger than {LARGEST:g}; give them in larger units")
        low, high = self.question.low, self.question.high
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        outside = (y < low) | (y > high)
        if outside.any():
            if not self.n_clipped:
                _warn(batch, outside, source, f"has an outcome outside [{low:g}, {high:g}]; it counts as the end")
            self.n_clipped += int(np.count_nonzero(outside))
            y = np.clip(y, low, high)
        return y


def _warn(batch: Batch, rows: np.typing.NDArray[np.bool_], source: str, what: str) -> None:
    row = batch.first + int(np.argmax(rows)) + 1
    warnings.warn(f"row {row} of {source} {what}", RangeWarning, stacklevel=4)
