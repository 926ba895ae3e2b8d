"""Outcomes, forecasts and weights as a question wants them: in a range that is settled first, and then fixed."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import AtomsWarning, DataError
from swapcal.jobs.question import Question
from swapcal.roles import Elicitable
from swapcal.tables.coded import Coded, text
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.jobs.survey import Survey
    from swapcal.tables.records import Batch

__all__ = ["RangeWarning", "RowValues", "finite", "head_columns", "known_outcomes", "raw_weights"]

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
    survey : Survey, optional
        What a look at all rows has found, which then settles everything.

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

    def __init__(
        self, question: Question, batches: Sequence["Batch"], source: str, survey: "Survey | None" = None
    ) -> None:
        self.question = question
        self.source = source
        self.n_clipped = self.n_clipped_forecasts = self.n_clipped_weights = 0
        if survey is None:
            first = np.concatenate([known_outcomes(question, batch, source) for batch in batches] or [np.zeros(0)])
            first, rows = first[: question.prefix], f"the first {min(len(first), question.prefix):,} rows"
            known = first[~np.isnan(first)]
            ends = (float(known.min()), float(known.max())) if len(known) else (np.inf, -np.inf)
            seen = _Outcomes(len(known), *ends, bool(np.isin(known, (0.0, 1.0)).all()), rows)
        else:
            known = survey.y
            seen = _Outcomes(survey.n_known, survey.low, survey.high, survey.binary, f"all {survey.n_rows:,} rows")
            if question.p is not None and seen.n and not seen.binary:
                self._check_units(survey.p, question.p, (survey.low, survey.high))
                # A forecast may well lie beyond all outcomes, such as one of a high quantile.
                ends = min(survey.low, survey.p_low), max(survey.high, survey.p_high)
                seen = seen._replace(least=ends[0], most=ends[1], forecasts=ends != (survey.low, survey.high))
        self.low, self.high, self.stated = self._range(seen)
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise DataError(
                f"the outcomes {question.y!r} of {source} go from {self.low:g} to {self.high:g}, whose squares are no "
                "numbers any more; give the column in larger units"
            )
        self.property: Elicitable = question.property_on(self.low, self.high)
        self.low, self.high = self.property.low, self.property.high
        self.heap = self.spacing = 0.0
        if not self.property.continuous:
            self._look_for_heaps(known)
        self.heaviest = self._heaviest(batches) if survey is None else self._positive(survey.heaviest)
        if question.p is not None:
            columns = (batch.numbers(question.p) for batch in batches)
            first = np.concatenate([*columns] or [np.zeros(0)])[: question.prefix] if survey is None else survey.p
            self._check_units(first[~np.isnan(first)], question.p)

    def labels(self, batch: "Batch") -> Float64Array:
        """Outcomes of a batch: NaN where there is none, and inside the range."""
        y = raw_outcomes(self.question, batch, self.source)
        moved = self._outside(y, self.low, self.high, batch, self.question.y, "outcomes", self.n_clipped)
        self.n_clipped += moved
        return np.clip(y, self.low, self.high) if moved else y

    def clipped(self, rows: IntArray, y: Float64Array) -> None:
        """Count outcomes of rows that were forecast before, as they are in the file, as `labels` does."""
        outside = np.flatnonzero((y < self.low) | (y > self.high))
        if len(outside) and not self.n_clipped:
            self._warn_outside(rows[outside[0]] + 1, y[outside[0]], self.question.y, self.low, self.high, "outcomes")
        self.n_clipped += len(outside)

    def forecasts(self, batch: "Batch", column: str) -> Float64Array:
        """Forecasts of a batch: NaN where there is none, and inside the property's domain."""
        p = finite(batch.numbers(column), batch, column, self.source)
        low, high = self.property.domain
        moved = self._outside(p, low, high, batch, column, "forecasts", self.n_clipped_forecasts)
        self.n_clipped_forecasts += moved
        return np.clip(p, low, high) if moved else p

    def weights(self, batch: "Batch") -> Float64Array | None:
        """Weights of a batch in [0, 1], a missing one being 0; None if no column was named."""
        column = self.question.weight
        if column is None:
            return None
        raw = raw_weights(batch, column, self.source)
        moved = self._outside(raw, 0.0, self.heaviest, batch, column, "weights", self.n_clipped_weights)
        self.n_clipped_weights += moved
        return np.minimum(raw / self.heaviest, 1.0)

    def _range(self, seen: "_Outcomes") -> tuple[float, float, str]:
        """Smallest and largest outcome, and where that is from."""
        asked, rows = self.question, seen.rows
        if not isinstance(asked.property, str):
            return asked.property.low, asked.property.high, "of the property that was given"
        if asked.positive is not None:
            if seen.n and not seen.most:
                raise DataError(
                    f"no value of column {asked.y!r} in {rows} of {self.source} equals {asked.positive!r}; "
                    "check the spelling of positive= (--positive), capitals and blanks included"
                )
            return 0.0, 1.0, f"1 where {asked.y} equals {asked.positive!r}"
        if asked.low is not None and asked.high is not None:
            return asked.low, asked.high, "as given"
        if not seen.n:
            raise DataError(
                f"column {asked.y!r} has no outcome in {rows} of {self.source}; give low= and high= (--low, --high), "
                "or another column"
            )
        if asked.low is None and asked.high is None and seen.binary:
            return 0.0, 1.0, f"all outcomes in {rows} are 0 or 1"
        low = seen.least if asked.low is None else asked.low
        high = seen.most if asked.high is None else asked.high
        if not low < high:
            raise DataError(
                f"the outcomes {asked.y!r} in {rows} of {self.source} give the range {low:g} to {high:g}, which is "
                "empty; give low= and high= (--low, --high)"
            )
        what = "outcome and forecast" if seen.forecasts else "outcome"
        return low, high, f"smallest and largest {what} of {rows}"

    def _look_for_heaps(self, known: Float64Array) -> None:
        """Whether many outcomes are equal, so that coverage cannot be exact; and how far apart distinct ones are."""
        values, counts = np.unique(known, return_counts=True)
        share = float(counts.max(initial=0) / max(len(known), 1))
        if len(known) >= FEWEST and share > HEAP and len(values) > 1:
            self.heap = share
            self.spacing = float(np.quantile(np.diff(values), 0.1))
            self.heaped_at = float(values[counts.argmax()])

    def warn_of_heaps(self) -> None:
        """Say that coverage cannot be exact where many outcomes are equal."""
        if self.heap:
            warnings.warn(
                f"{100 * self.heap:.0f} % of the outcomes {self.question.y!r} in {self.source} equal "
                f"{self.heaped_at:g}; where outcomes heap up, no forecast has exactly the share below it that "
                "a quantile asks for, and that much bias is left whatever one does",
                AtomsWarning,
                stacklevel=4,
            )

    def _heaviest(self, batches: Sequence["Batch"]) -> float:
        column = self.question.weight
        if column is None:
            return 1.0
        first = np.concatenate([raw_weights(batch, column, self.source) for batch in batches] or [np.zeros(0)])
        return self._positive(float(first[: self.question.prefix].max(initial=0.0)))

    def _positive(self, heaviest: float) -> float:
        column = self.question.weight
        if column is None:
            return 1.0
        if heaviest <= 0.0:
            raise DataError(f"all weights in column {column!r} of {self.source} are 0 or missing; leave weight out")
        return heaviest

    def _check_units(self, first: Float64Array, column: str, ends: tuple[float, float] | None = None) -> None:
        """Refuse forecasts most of which are outside the range: they are in other units, or of something else."""
        asked = self.question
        if ends is not None and (
            asked.low is not None or asked.high is not None or not isinstance(asked.property, str)
        ):
            return
        low, high = self.property.domain if ends is None else ends
        outside = (first < low) | (first > high)
        if len(first) and 2 * np.count_nonzero(outside) > len(first):
            raise DataError(
                f"most forecasts in column {column!r} of {self.source} are outside [{low:g}, {high:g}], such as "
                f"{first[outside][0]:g}; bring them to the units of {self.question.y!r} (percent: divide by 100), or "
                "give low= and high= (--low, --high)"
            )

    def _outside(
        self, values: Float64Array, low: float, high: float, batch: "Batch", column: str, what: str, before: int
    ) -> int:
        """How many entries are outside [low, high]; the first time, a warning."""
        outside: npt.NDArray[np.bool_] = (values < low) | (values > high)
        count = int(np.count_nonzero(outside))
        if count and not before:
            at = int(np.argmax(outside))
            self._warn_outside(batch.first + at + 1, values[at], column, low, high, what)
        return count

    def _warn_outside(self, row: int, value: float, column: str, low: float, high: float, what: str) -> None:
        warnings.warn(
            f"row {row} of {self.source} has {value:g} in column {column!r}, outside [{low:g}, {high:g}]; such {what} "
            "count as the nearest end",
            RangeWarning,
            stacklevel=5,
        )


class _Outcomes(NamedTuple):
    """What is known of the outcomes: how many, the smallest, the largest, whether all are 0 or 1, and of which rows."""

    n: int
    least: float
    most: float
    binary: bool
    rows: str
    forecasts: bool = False


def _refuse_text(question: Question, batch: "Batch", source: str) -> None:
    """Outcomes in words need `positive`; that is a better answer than the first word that is no number."""
    if question.positive is not None:
        return
    column = batch.column(question.y)
    texts = [value for value in column.values if isinstance(value, str)] if isinstance(column, Coded) else []
    odd = [value for value in texts if not _spelled(value)]
    if 2 * len(odd) > len(texts):
        shown = ", ".join(map(repr, texts[:N_SHOWN])) + (", ..." if len(texts) > N_SHOWN else "")
        likely = next((value for value in odd if value.strip().lower() in YES), odd[-1])
        raise DataError(
            f"column {question.y!r} of {source} holds text ({shown}) where outcomes must be numbers; "
            f"say which text counts as 1, such as positive={likely!r} (--positive on the command line)"
        )


def known_outcomes(question: Question, batch: "Batch", source: str) -> Float64Array:
    """Outcomes of a batch that may be the first: where they are no numbers, what to do about it."""
    try:
        return raw_outcomes(question, batch, source)
    except DataError:
        _refuse_text(question, batch, source)
        raise


def raw_outcomes(question: Question, batch: "Batch", source: str) -> Float64Array:
    """Outcomes as they are, or 1 and 0 where the column equals `positive` or not."""
    name, positive = question.y, question.positive
    if positive is None:
        return finite(batch.numbers(name), batch, name, source)
    column = batch.column(name)
    if isinstance(column, Coded):
        hits = np.array([*(float(text(value) == text(positive)) for value in column.values), np.nan])
        return hits[column.codes]
    wanted = float(positive) if _spelled(positive) else np.nan
    return np.where(np.isnan(column), np.nan, (column == wanted).astype(np.float64))


def raw_weights(batch: "Batch", column: str, source: str) -> Float64Array:
    """Weights as they are, 0 where there is none."""
    raw = np.nan_to_num(finite(batch.numbers(column), batch, column, source), nan=0.0)
    if (raw < 0).any():
        at = int(np.argmax(raw < 0))
        raise DataError(
            f"weights must be 0 or more; row {batch.first + at + 1} of {source} has {raw[at]:g} in column "
            f"{column!r}: leave that row out, or use another column"
        )
    return raw


def finite(values: Float64Array, batch: "Batch", column: str, source: str) -> Float64Array:
    """The values, none of which may be infinite."""
    infinite = np.isinf(values)
    if infinite.any():
        raise DataError(
            f"row {batch.first + int(np.argmax(infinite)) + 1} of {source} has an infinite number in column "
            f"{column!r}; leave the entry empty if it is missing"
        )
    return values


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
