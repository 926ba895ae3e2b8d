"""Outcomes, forecasts and weights as a question wants them: in a range that the first rows settle, and then fixed."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swapcal.errors import AtomsWarning, DataError
from swapcal.jobs.question import Question
from swapcal.roles import Elicitable
from swapcal.tables.coded import Coded, text
from swapcal.typing import Float64Array

if TYPE_CHECKING:
    from swapcal.tables.records import Batch

__all__ = ["RangeWarning", "RowValues", "head_columns"]

N_SHOWN = 5
LARGEST = 1e100
"""Outcomes beyond are refused: sums of their squares would overflow."""
FEWEST, HEAP = 200, 0.02
"""A value that more than a fiftieth of the first outcomes have is a heap; of fewer than 200, nothing is said."""
YES = ("yes", "y", "true", "t", "positive", "pos", "good")


class RangeWarning(UserWarning):
    """Outcomes, forecasts or weights outside the range that was given or that the first rows had settled."""


class RowValues:
    """How a question's columns become numbers.

    Parameters
    ----------
    question : Question
        Which columns, and what is known of their range.
    batches : sequence of Batch
        The first rows: at least `question.prefix` of them, or all there are. Exactly the first `prefix` rows count.
    source : str
        What messages call the records.

    Attributes
    ----------
    property : Elicitable
        What is asked about, on the range that was settled.
    low, high : float
        That range.
    stated : str
        Where the range comes from, as a clause.
    n_clipped, n_clipped_forecasts, n_clipped_weights : int
        Entries so far that were moved to the end of their range.
    """

    def __init__(self, question: Question, batches: Sequence["Batch"], source: str) -> None:
        self.question = question
        self.source = source
        self.n_clipped = self.n_clipped_forecasts = self.n_clipped_weights = 0
        try:
            first = np.concatenate([self._raw(batch) for batch in batches] or [np.zeros(0)])[: question.prefix]
        except DataError:
            if question.positive is None:
                self._refuse_text(batches)
            raise
        self.low, self.high, self.stated = self._range(first[~np.isnan(first)], len(first))
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise DataError(
                f"the outcomes {question.y!r} of {source} go from {self.low:g} to {self.high:g}, whose squares are no "
                "numbers any more; give the column in larger units"
            )
        self.property: Elicitable = question.property_on(self.low, self.high)
        self.low, self.high = self.property.low, self.property.high
        if not self.property.continuous:
            self._warn_of_heaps(first[~np.isnan(first)])
        self.heaviest = self._heaviest(batches)
        if question.p is not None:
            self._check_units(batches, question.p)

    def labels(self, batch: "Batch") -> Float64Array:
        """Outcomes of a batch: NaN where there is none, and inside the range."""
        y = self._raw(batch)
        moved = self._outside(y, self.low, self.high, batch, self.question.y, "outcomes", self.n_clipped)
        self.n_clipped += moved
        return np.clip(y, self.low, self.high) if moved else y

    def forecasts(self, batch: "Batch", column: str) -> Float64Array:
        """Forecasts of a batch: NaN where there is none, and inside the property's domain."""
        p = self._finite(batch.numbers(column), batch, column)
        low, high = self.property.domain
        moved = self._outside(p, low, high, batch, column, "forecasts", self.n_clipped_forecasts)
        self.n_clipped_forecasts += moved
        return np.clip(p, low, high) if moved else p

    def weights(self, batch: "Batch") -> Float64Array | None:
        """Weights of a batch in [0, 1], a missing one being 0; None if no column was named."""
        column = self.question.weight
        if column is None:
            return None
        raw = self._weights(batch, column)
        moved = self._outside(raw, 0.0, self.heaviest, batch, column, "weights", self.n_clipped_weights)
        self.n_clipped_weights += moved
        return np.minimum(raw / self.heaviest, 1.0)

    def _raw(self, batch: "Batch") -> Float64Array:
        """Outcomes as they are, or 1 and 0 where the column equals `positive` or not."""
        name, positive = self.question.y, self.question.positive
        if positive is None:
            return self._finite(batch.numbers(name), batch, name)
        column = batch.column(name)
        if isinstance(column, Coded):
            hits = np.array([*(float(text(value) == text(positive)) for value in column.values), np.nan])
            return hits[column.codes]
        wanted = float(positive) if _spelled(positive) else np.nan
        return np.where(np.isnan(column), np.nan, (column == wanted).astype(np.float64))

    def _refuse_text(self, batches: Sequence["Batch"]) -> None:
        """Outcomes in words need `positive`; that is a better answer than the first word that is no number."""
        for column in (batch.column(self.question.y) for batch in batches):
            texts = [value for value in column.values if isinstance(value, str)] if isinstance(column, Coded) else []
            odd = [value for value in texts if not _spelled(value)]
            if 2 * len(odd) > len(texts):
                shown = ", ".join(map(repr, texts[:N_SHOWN])) + (", ..." if len(texts) > N_SHOWN else "")
                likely = next((value for value in odd if value.strip().lower() in YES), odd[-1])
                raise DataError(
                    f"column {self.question.y!r} of {self.source} holds text ({shown}) where outcomes must be numbers; "
                    f"say which text counts as 1, such as positive={likely!r} (--positive on the command line)"
                )

    def _range(self, first: Float64Array, n_rows: int) -> tuple[float, float, str]:
        """Smallest and largest outcome, and where that is from."""
        asked, rows = self.question, f"the first {n_rows:,} rows"
        if not isinstance(asked.property, str):
            return asked.property.low, asked.property.high, "of the property that was given"
        if asked.positive is not None:
            if len(first) and not first.any():
                raise DataError(
                    f"no value of column {asked.y!r} in {rows} of {self.source} equals {asked.positive!r}; "
                    "check the spelling of positive= (--positive), capitals and blanks included"
                )
            return 0.0, 1.0, f"1 where {asked.y} equals {asked.positive!r}"
        if asked.low is not None and asked.high is not None:
            return asked.low, asked.high, "as given"
        if not len(first):
            raise DataError(
                f"column {asked.y!r} has no outcome in {rows} of {self.source}; give low= and high= (--low, --high), "
                "or another column"
            )
        if asked.low is None and asked.high is None and np.isin(first, (0.0, 1.0)).all():
            return 0.0, 1.0, f"all outcomes in {rows} are 0 or 1"
        low = float(first.min()) if asked.low is None else asked.low
        high = float(first.max()) if asked.high is None else asked.high
        if not low < high:
            raise DataError(
                f"the outcomes {asked.y!r} in {rows} of {self.source} give the range {low:g} to {high:g}, which is "
                "empty; give low= and high= (--low, --high)"
            )
        return low, high, f"smallest and largest of {rows}"

    def _warn_of_heaps(self, first: Float64Array) -> None:
        """Say that coverage cannot be exact where many outcomes are equal."""
        values, counts = np.unique(first, return_counts=True)
        share = counts.max(initial=0) / max(len(first), 1)
        if len(first) >= FEWEST and share > HEAP:
            warnings.warn(
                f"{100 * share:.0f} % of the outcomes {self.question.y!r} in {self.source} equal "
                f"{values[counts.argmax()]:g}; where outcomes heap up, no forecast has exactly the share below it that "
                "a quantile asks for, and that much bias is left whatever one does",
                AtomsWarning,
                stacklevel=4,
            )

    def _heaviest(self, batches: Sequence["Batch"]) -> float:
        column = self.question.weight
        if column is None:
            return 1.0
        first = np.concatenate([self._weights(batch, column) for batch in batches] or [np.zeros(0)])
        heaviest = float(first[: self.question.prefix].max(initial=0.0))
        if heaviest <= 0.0:
            raise DataError(f"all weights in column {column!r} of {self.source} are 0 or missing; leave weight out")
        return heaviest

    def _weights(self, batch: "Batch", column: str) -> Float64Array:
        raw = np.nan_to_num(self._finite(batch.numbers(column), batch, column), nan=0.0)
        if (raw < 0).any():
            at = int(np.argmax(raw < 0))
            raise DataError(
                f"weights must be 0 or more; row {batch.first + at + 1} of {self.source} has {raw[at]:g} in column "
                f"{column!r}: leave that row out, or use another column"
            )
        return raw

    def _check_units(self, batches: Sequence["Batch"], column: str) -> None:
        """Refuse forecasts most of which are outside the range: they are in other units, or of something else."""
        first = np.concatenate([batch.numbers(column) for batch in batches] or [np.zeros(0)])[: self.question.prefix]
        first = first[~np.isnan(first)]
        low, high = self.property.domain
        outside = (first < low) | (first > high)
        if len(first) and 2 * np.count_nonzero(outside) > len(first):
            raise DataError(
                f"most forecasts in column {column!r} of {self.source} are outside [{low:g}, {high:g}], such as "
                f"{first[outside][0]:g}; bring them to the units of {self.question.y!r} (percent: divide by 100), or "
                "give low= and high= (--low, --high)"
            )

    def _finite(self, values: Float64Array, batch: "Batch", column: str) -> Float64Array:
        infinite = np.isinf(values)
        if infinite.any():
            raise DataError(
                f"row {batch.first + int(np.argmax(infinite)) + 1} of {self.source} has an infinite number in column "
                f"{column!r}; leave the entry empty if it is missing"
            )
        return values

    def _outside(
        self, values: Float64Array, low: float, high: float, batch: "Batch", column: str, what: str, before: int
    ) -> int:
        """How many entries are outside [low, high]; the first time, a warning."""
        outside: npt.NDArray[np.bool_] = (values < low) | (values > high)
        count = int(np.count_nonzero(outside))
        if count and not before:
            at = int(np.argmax(outside))
            warnings.warn(
                f"row {batch.first + at + 1} of {self.source} has {values[at]:g} in column {column!r}, outside "
                f"[{low:g}, {high:g}]; such {what} count as the nearest end",
                RangeWarning,
                stacklevel=4,
            )
        return count


def head_columns(batches: Sequence["Batch"], names: Sequence[str], n_rows: int) -> Mapping[str, Any]:
    """The first `n_rows` rows of some columns, joined over batches, as `Groups.fit` takes them."""
    joined: dict[str, Any] = {}
    for name in names:
        parts = [batch.column(name) for batch in batches]
        if len(parts) == 1 and isinstance(parts[0], Coded):
            joined[name] = Coded(parts[0].codes[:n_rows], parts[0].values)
        elif any(isinstance(part, Coded) for part in parts):
            values = [value for part in parts for value in _values(part)][:n_rows]
            joined[name] = values
        else:
            joined[name] = np.concatenate([np.asarray(part) for part in parts])[:n_rows]
    return joined


def _values(column: Coded | Float64Array) -> list[Any]:
    if isinstance(column, Coded):
        return [None if code < 0 else column.values[code] for code in column.codes.tolist()]
    return [None if value != value else value for value in column.tolist()]


def _spelled(value: str) -> bool:
    """Whether the text spells a number."""
    try:
        float(value)
    except ValueError:
        return False
    return True
