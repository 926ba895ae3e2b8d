"""The columns of a table as numbers: outcomes, a model's forecasts, weights and times, each checked once.

`Columns` reads one number a row, in a range that is settled first and then fixed; `IntervalColumns` the ends of
intervals; `ClassColumns` probabilities of classes. What all of them have is in `ColumnReader`.
"""

import csv
import datetime
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import AtomsWarning, DataError, InvalidInput
from swapcal.protocols import Elicitable
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded, text
from swapcal.tasks.config import TaskConfig, parse_delay
from swapcal.tasks.files import regular
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tasks.survey import Survey


# --------
# When rows were, and which of them hang together: a column of times, and clusters by a column or by the day.

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


def read_moments(batch: Batch, name: str) -> Float64Array:
    """A column of time stamps as seconds, or of numbers as they are; NaN where one is missing."""
    column = batch.column(name)
    if not isinstance(column, Coded):
        return np.asarray(column, dtype=np.float64)
    seconds = np.array([_moment(batch, name, value) for value in column.values] or [np.nan])
    return np.where(column.codes >= 0, seconds[np.maximum(column.codes, 0)], np.nan)


def _moment(batch: Batch, name: str, value: Any) -> float:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, datetime.datetime):
        stamp = value
    elif isinstance(value, datetime.date):
        stamp = datetime.datetime(value.year, value.month, value.day)
    else:
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
        try:
            stamp = datetime.datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise DataError(
                f"column {name!r} of {batch.name} holds {str(value)[:60]!r}, which is no time; give time stamps "
                "such as 2026-05-01 14:30, or numbers"
            ) from None
    return stamp.replace(tzinfo=stamp.tzinfo or datetime.UTC).timestamp()


# --------
# Outcomes, forecasts and weights as a question wants them: in a range that is settled first, and then fixed.

N_SHOWN = 5
LARGEST = 1e100
"""Outcomes beyond are refused: sums of their squares would overflow."""
FEWEST, HEAP = 200, 0.02
"""A value that more than a fiftieth of the first outcomes have is a heap; of fewer than 200, nothing is said."""
YES = ("yes", "y", "true", "t", "positive", "pos", "good")


class RangeWarning(UserWarning):
    """Outcomes, forecasts or weights outside the range that was given or that the first rows had settled."""


class ColumnReader:
    """What every reader of columns has: weights, when rows come and outcomes are known, and one warning of each kind.

    Attributes
    ----------
    n_clipped, n_clipped_weights : int
        Outcomes and weights so far that were moved to the end of their range.
    """

    def __init__(self, config: TaskConfig, source: str, first: Sequence["Batch"] = ()) -> None:
        self.config, self.source = config, source
        self.heaviest = 1.0
        self.n_clipped = self.n_clipped_weights = 0
        self._last_time = -math.inf
        if first:
            self._weigh(first)

    def weights(self, batch: "Batch") -> Float64Array | None:
        """Weights of a batch in [0, 1], a missing one being 0; None if no column was named."""
        column = self.config.weight
        if column is None:
            return None
        raw = raw_weights(batch, column, self.source)
        moved = self._outside(raw, 0.0, self.heaviest, batch, column, "weights", self.n_clipped_weights)
        self.n_clipped_weights += moved
        return np.minimum(raw / self.heaviest, 1.0)

    def weighed(self, batch: "Batch") -> dict[str, Float64Array]:
        """Weights by the name that `run` has for them; nothing where there are none."""
        weights = self.weights(batch)
        return {} if weights is None else {"weights": weights}

    def moments(self, batch: "Batch") -> dict[str, Float64Array]:
        """The times of a batch's rows, and when their outcomes are known; nothing where that is at once."""
        config = self.config
        if not config.timed:
            return {}
        rows = batch.first + np.arange(batch.n, dtype=np.float64)
        times = rows if config.time is None else read_moments(batch, config.time)
        if config.time is not None:
            wrong = np.isnan(times) | (times < np.concatenate([[self._last_time], times[:-1]]))
            if wrong.any():
                at = batch.first + int(np.argmax(wrong)) + 1
                raise DataError(
                    f"row {at:,} of {batch.name} has no time in column {config.time!r}, or an earlier one than the row "
                    "above; sort the file by time, and drop rows without one"
                )
        if config.known is not None:
            known = read_moments(batch, config.known) - (0.0 if config.time is not None else 1.0)
        else:
            number, timed = parse_delay(config.delay or "1")
            known = times + number if timed else rows + max(number, 1.0)
            times = times if timed else rows
        early = known < times
        if early.any():
            at = batch.first + int(np.argmax(early)) + 1
            raise DataError(
                f"the outcome of row {at:,} of {batch.name} is known before the row itself: "
                f"{config.known!r} is earlier; check the two columns"
            )
        self._last_time = float(times[-1]) if batch.n else self._last_time
        return {"times": times, "known": known}

    def raw(self, batch: "Batch") -> Float64Array:
        """Outcomes as the file has them; NaN where there is none."""
        raise NotImplementedError

    def inside(self, raw: Float64Array) -> Float64Array:
        """Outcomes as they are learned: moved into the range, NaN where nothing can be learned from one."""
        raise NotImplementedError

    def clipped(self, rows: IntArray, y: Float64Array) -> None:
        """Count outcomes of rows that were forecast before, as they are in the file."""

    def _weigh(self, batches: Sequence["Batch"]) -> None:
        """Settle the largest weight by the first rows."""
        column = self.config.weight
        if column is not None:
            first = np.concatenate([raw_weights(batch, column, self.source) for batch in batches] or [np.zeros(0)])
            self._heaviest(float(first[: self.config.prefix].max(initial=0.0)))

    def _heaviest(self, heaviest: float) -> None:
        if self.config.weight is not None:
            if heaviest <= 0.0:
                raise DataError(
                    f"all weights in column {self.config.weight!r} of {self.source} are 0 or missing; leave weight out"
                )
            self.heaviest = heaviest

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

    def _warn(self, batch: "Batch", rows: npt.NDArray[np.bool_], what: str) -> None:
        row = batch.first + int(np.argmax(rows)) + 1
        warnings.warn(f"row {row} of {self.source} {what}", RangeWarning, stacklevel=5)


class Columns(ColumnReader):
    """How a question's columns become numbers.

    Parameters
    ----------
    question : TaskConfig
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
        self, question: TaskConfig, batches: Sequence["Batch"], source: str, survey: "Survey | None" = None
    ) -> None:
        super().__init__(question, source)
        self.n_clipped_forecasts = 0
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
        if survey is None:
            self._weigh(batches)
        else:
            self._heaviest(survey.heaviest)
        if question.p is not None:
            columns = (batch.numbers(question.p) for batch in batches)
            first = np.concatenate([*columns] or [np.zeros(0)])[: question.prefix] if survey is None else survey.p
            self._check_units(first[~np.isnan(first)], question.p)

    def raw(self, batch: "Batch") -> Float64Array:
        """Outcomes as the file has them; NaN where there is none."""
        return raw_outcomes(self.config, batch, self.source)

    def labels(self, batch: "Batch") -> Float64Array:
        """Outcomes of a batch: NaN where there is none, and inside the range."""
        y = self.raw(batch)
        moved = self._outside(y, self.low, self.high, batch, self.config.y, "outcomes", self.n_clipped)
        self.n_clipped += moved
        return np.clip(y, self.low, self.high) if moved else y

    def inside(self, raw: Float64Array) -> Float64Array:
        """Outcomes with those outside the range at its ends."""
        return np.clip(raw, self.low, self.high)

    def clipped(self, rows: IntArray, y: Float64Array) -> None:
        """Count outcomes of rows that were forecast before, as they are in the file, as `labels` does."""
        outside = np.flatnonzero((y < self.low) | (y > self.high))
        if len(outside) and not self.n_clipped:
            self._warn_outside(rows[outside[0]] + 1, y[outside[0]], self.config.y, self.low, self.high, "outcomes")
        self.n_clipped += len(outside)

    def hints(self, batch: "Batch") -> Float64Array:
        """The model's forecasts in a batch."""
        return self.forecasts(batch, self.config.p)

    def forecasts(self, batch: "Batch", column: str) -> Float64Array:
        """Forecasts of a batch: NaN where there is none, and inside the property's domain."""
        p = finite(batch.numbers(column), batch, column, self.source)
        low, high = self.property.domain
        moved = self._outside(p, low, high, batch, column, "forecasts", self.n_clipped_forecasts)
        self.n_clipped_forecasts += moved
        return np.clip(p, low, high) if moved else p

    def _range(self, seen: "_Outcomes") -> tuple[float, float, str]:
        """Smallest and largest outcome, and where that is from."""
        asked, rows = self.config, seen.rows
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
                f"{100 * self.heap:.0f} % of the outcomes {self.config.y!r} in {self.source} equal "
                f"{self.heaped_at:g}; where outcomes heap up, no forecast has exactly the share below it that "
                "a quantile asks for, and that much bias is left whatever one does",
                AtomsWarning,
                stacklevel=4,
            )

    def _check_units(self, first: Float64Array, column: str, ends: tuple[float, float] | None = None) -> None:
        """Refuse forecasts most of which are outside the range: they are in other units, or of something else."""
        asked = self.config
        if ends is not None and (
            asked.low is not None or asked.high is not None or not isinstance(asked.property, str)
        ):
            return
        low, high = self.property.domain if ends is None else ends
        outside = (first < low) | (first > high)
        if len(first) and 2 * np.count_nonzero(outside) > len(first):
            raise DataError(
                f"most forecasts in column {column!r} of {self.source} are outside [{low:g}, {high:g}], such as "
                f"{first[outside][0]:g}; bring them to the units of {self.config.y!r} (percent: divide by 100), or "
                "give low= and high= (--low, --high)"
            )


class _Outcomes(NamedTuple):
    """What is known of the outcomes: how many, the smallest, the largest, whether all are 0 or 1, and of which rows."""

    n: int
    least: float
    most: float
    binary: bool
    rows: str
    forecasts: bool = False


def _refuse_text(question: TaskConfig, batch: "Batch", source: str) -> None:
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


def known_outcomes(question: TaskConfig, batch: "Batch", source: str) -> Float64Array:
    """Outcomes of a batch that may be the first: where they are no numbers, what to do about it."""
    try:
        return raw_outcomes(question, batch, source)
    except DataError:
        _refuse_text(question, batch, source)
        raise


def raw_outcomes(question: TaskConfig, batch: "Batch", source: str) -> Float64Array:
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


# --------
# The columns of a run of classes: outcomes that name a class, and a model's probability of each.

MOST = 50
"""Classes; each has a forecaster and audits of its own."""
N_SHOWN_CLASSES = 6
MISSING, STRANGE = -1, -2


class ClassColumns(ColumnReader):
    """Reads the columns that a run of classes uses. `settle` comes first, with the first rows.

    Parameters
    ----------
    question : TaskConfig
        The column of outcomes.
    model : sequence of str
        A column of probabilities for each class, "late" or "p_late" for the class late, all written alike; or pairs
        "late=score2". Empty: there is no model.

    Attributes
    ----------
    classes : tuple of str
        The classes, in the order of the columns; without a model in that of their names.
    n_strange, n_rescaled : int
        Outcomes so far that are none of the classes, and rows whose probabilities did not add up to 1.

    Examples
    --------
    >>> rows = Batch("a list", 0, 3, {"y": ["a", "b", None], "p_a": [0.5, 0.1, 0.3], "p_b": [0.5, 0.9, 0.7]})
    >>> columns = ClassColumns(TaskConfig("y", ["p_a", "p_b"], classes=True), [rows], "a list")
    >>> columns.classes
    ('a', 'b')
    """

    def __init__(self, config: TaskConfig, first: Sequence[Batch], source: str) -> None:
        super().__init__(config, source, first)
        model = config.model
        pairs = [each.split("=", 1) for each in model]
        named = [len(pair) == 2 for pair in pairs]
        if any(named) and not all(named):
            raise InvalidInput(
                f"with --classes, --p names columns (p_a,p_b,p_c) or pairs (a=score1,b=score2), not both; got {model!r}"
            )
        self.model = tuple(pair[-1].strip() for pair in pairs)
        self.classes: tuple[str, ...] = tuple(pair[0].strip() for pair in pairs) if all(named) else ()
        for what, names in (("column", self.model), ("class", self.classes)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise InvalidInput(f"--p names the {what} {twice[0]!r} twice; each class has a column of its own")
        if len(self.model) == 1:
            raise InvalidInput(
                f"--classes needs a column of probabilities for each class; got only {self.model[0]!r}, so name the "
                "others too, or leave out --classes and give --positive"
            )
        if len(self.model) > MOST:
            raise InvalidInput(f"--classes takes {MOST} classes at most; got {len(self.model)} columns")
        self.n_strange = self.n_rescaled = 0
        self._settle(first)

    def _settle(self, first: Sequence[Batch]) -> None:
        """Find out what the classes are, from the first rows."""
        seen: Counter[str] = Counter()
        source, n_rows = self.source, min(sum(batch.n for batch in first), self.config.prefix)
        left = n_rows
        for batch in first:
            seen.update(self._counts(batch if batch.n <= left else batch.cut(0, left)))
            left -= min(batch.n, left)
        y = self.config.y
        if not seen:
            raise DataError(f"column {y!r} has no outcome in the first {n_rows:,} rows of {source}; check the column")
        if not self.model:
            self.classes = _all_of(seen, y, source)
        elif not self.classes:
            self.classes = _named_by(self.model, seen, y, source)
        strange = [value for value in seen if value not in self.classes]
        if 2 * sum(seen[value] for value in strange) > sum(seen.values()):
            raise DataError(
                f"most outcomes {y!r} of {source} ({_listed(strange)}) are none of the classes "
                f"{_listed(self.classes)}; give pairs in --p, such as {strange[0]}={self.model[0]}"
            )

    def labels(self, batch: Batch) -> Float64Array:
        """The number of each row's class; NaN where the outcome is missing, or none of the classes."""
        return self.inside(self.raw(batch))

    def inside(self, raw: Float64Array) -> Float64Array:
        """Outcomes with NaN for those that are no class."""
        return np.where(raw == STRANGE, np.nan, raw)

    def raw(self, batch: Batch) -> Float64Array:
        """The number of each row's class: NaN where the outcome is missing, -2 where it is none of the classes."""
        place = {name: k for k, name in enumerate(self.classes)}
        column = batch.column(self.config.y)
        if not isinstance(column, Coded):
            values, inverse = np.unique(column, return_inverse=True)
            column = Coded(inverse.astype(np.int64), tuple(values.tolist()))
        texts = [text(value) for value in column.values]
        codes = [np.nan if each is None else float(place.get(each, STRANGE)) for each in texts]
        labels: Float64Array = np.array([*codes, np.nan])[column.codes]
        strange = labels == STRANGE
        if strange.any():
            if not self.n_strange:
                outcome = texts[column.codes[int(np.argmax(strange))]]
                self._warn(
                    batch,
                    strange,
                    f"has the outcome {outcome!r}, which is none of the classes {_listed(self.classes)}; such rows are "
                    "forecast, and not learned from",
                )
            self.n_strange += int(np.count_nonzero(strange))
        return labels

    def probabilities(self, batch: Batch) -> Float64Array | None:
        """The model's probabilities, rows by classes, NaN where one is missing; None without a model."""
        if not self.model:
            return None
        given = np.column_stack([batch.numbers(name) for name in self.model])
        below = (given < 0).any(axis=1)
        if below.any():
            at = int(np.argmax(below))
            column = self.model[int(np.argmax(given[at] < 0))]
            raise DataError(
                f"row {batch.first + at + 1} of {self.source} has {np.nanmin(given[at]):g} in column {column!r}, where "
                "probabilities must be 0 or more; correct it, or name another column"
            )
        total = given.sum(axis=1)
        total[total <= 0] = np.nan
        # Numbers that were rounded to hundredths add up to 1 within this.
        rescaled = np.abs(total - 1.0) > 0.006 * len(self.model)
        if rescaled.any():
            if not self.n_rescaled:
                at = int(np.argmax(rescaled))
                warnings.warn(
                    f"the probabilities in row {batch.first + at + 1} of {self.source} add up to {total[at]:g}; such "
                    "rows are divided by their sum",
                    RangeWarning,
                    stacklevel=4,
                )
            self.n_rescaled += int(np.count_nonzero(rescaled))
        shares: Float64Array = given / np.where(rescaled | np.isnan(total), total, 1.0)[:, None]
        return shares

    def _counts(self, batch: Batch) -> Counter[str]:
        column = batch.column(self.config.y)
        if isinstance(column, Coded):
            counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values)).tolist()
            values = column.values
        else:
            found, numbers = np.unique(column[~np.isnan(column)], return_counts=True)
            values, counts = tuple(found.tolist()), numbers.tolist()
        seen: Counter[str] = Counter()
        for value, count in zip(values, counts, strict=True):
            name = text(value)
            if name is not None and count:
                seen[name] += count
        return seen


def _all_of(seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The outcomes there are, as classes."""
    if len(seen) > MOST:
        raise DataError(
            f"column {y!r} of {source} has {len(seen):,} different outcomes ({_listed(list(seen))}), and --classes "
            f"takes {MOST} at most; leave out --classes if they are numbers"
        )
    if len(seen) < 2:
        raise DataError(f"all outcomes {y!r} of {source} so far are {next(iter(seen))!r}; classes need two or more")
    try:
        return tuple(sorted(seen, key=float))
    except ValueError:
        return tuple(sorted(seen))


def _named_by(columns: tuple[str, ...], seen: Counter[str], y: str, source: str) -> tuple[str, ...]:
    """The classes that columns are named after: what stands before and behind the class is the same in all of them."""
    best: tuple[int, tuple[str, ...]] = (0, ())
    for value in seen:
        for column in columns:
            at = column.find(value)
            while at >= 0:
                front, back = column[:at], column[at + len(value) :]
                alike = all(
                    each.startswith(front) and each.endswith(back) and len(each) > len(front) + len(back)
                    for each in columns
                )
                if alike:
                    names = tuple(each[len(front) : len(each) - len(back)] for each in columns)
                    best = max(best, (sum(seen[name] for name in names), names))
                at = column.find(value, at + 1)
    if not best[0]:
        shown = ",".join(f"{value}={column}" for value, column in zip(sorted(seen), columns, strict=False))
        raise DataError(
            f"the columns {_listed(columns)} do not say which class they are about: the outcomes {y!r} of {source} are "
            f"{_listed(sorted(seen))}; give pairs, such as --p {shown}"
        )
    return best[1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:N_SHOWN_CLASSES])) + (", ..." if len(names) > N_SHOWN_CLASSES else "")


class IntervalRows(NamedTuple):
    """Of some rows: centers, and the model's own ends; NaN is missing, and None was not given at all."""

    center: Float64Array | None
    lower: Float64Array | None
    upper: Float64Array | None


class IntervalColumns(ColumnReader):
    """Reads the columns that a run of intervals uses.

    Parameters
    ----------
    question : TaskConfig
        The outcomes, and their range where that is given.
    model : sequence of str
        None; a forecast, around which intervals are made; lower and upper ends of the model's own intervals, whose
        middle is then the forecast; or lower end, forecast, upper end.

    Attributes
    ----------
    n_clipped, n_crossed : int
        Outcomes outside the range so far, and rows whose lower end lies above the upper.
    """

    def __init__(self, config: TaskConfig, first: Sequence[Batch], source: str) -> None:
        super().__init__(config, source, first)
        model = config.model
        self.model = model
        self.center = {1: 0, 3: 1}.get(len(model))
        self.ends = (0, len(model) - 1) if len(model) > 1 else None
        self.n_crossed = 0
        self.low = -np.inf if config.low is None else config.low
        self.high = np.inf if config.high is None else config.high
        self._check(first)

    def _check(self, first: Sequence[Batch]) -> None:
        """Refuse ends that are the wrong way round, and outcomes without numbers."""
        source = self.source
        known = np.concatenate([known_outcomes(self.config, batch, source) for batch in first])
        if np.isnan(known).all():
            raise DataError(
                f"column {self.config.y!r} has no outcome in the first {len(known):,} rows of {source}; "
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

    def ends_of(self, batch: Batch) -> IntervalRows:
        """The model's forecast and the ends of its intervals in a batch."""
        numbers = [finite(batch.numbers(name), batch, name, self.source) for name in self.model]
        lower, upper = (None, None) if self.ends is None else (numbers[at] for at in self.ends)
        center = None if self.center is None else numbers[self.center]
        if lower is not None and upper is not None:
            crossed = lower > upper
            if crossed.any() and not self.n_crossed:
                self._warn(batch, crossed, "has its lower end above the upper; such an interval covers nothing")
            self.n_crossed += int(np.count_nonzero(crossed))
            center = lower + (upper - lower) / 2 if center is None else center
        return IntervalRows(center, lower, upper)

    def raw(self, batch: Batch) -> Float64Array:
        """Outcomes as the file has them; NaN where there is none."""
        name = self.config.y
        y = finite(batch.numbers(name), batch, name, self.source)
        if (np.abs(y) > LARGEST).any():
            raise DataError(
                f"outcomes {name!r} of {self.source} are larger than {LARGEST:g}; give them in larger units"
            )
        return y

    def labels(self, batch: Batch) -> Float64Array:
        """Outcomes of a batch; those outside the range count as its ends, with one warning."""
        y = self.raw(batch)
        outside = (y < self.low) | (y > self.high)
        if outside.any():
            if not self.n_clipped:
                what = f"has an outcome outside [{self.low:g}, {self.high:g}]; it counts as the end"
                self._warn(batch, outside, what)
            self.n_clipped += int(np.count_nonzero(outside))
        return self.inside(y)

    def inside(self, raw: Float64Array) -> Float64Array:
        """Outcomes with those outside the range at its ends."""
        return np.clip(raw, self.low, self.high)


# --------
# A column that looks like a time, to be named in advice.

_HEAD = 1 << 16


def time_column(path: object, first: Sequence[Batch], named: str | None) -> str | None:
    """A column that looks like a time: the one that was named, or one of a text file's first lines, or of the table."""
    if named is not None:
        return named
    if isinstance(path, str) and regular(path):
        found = _in_text(path)
        if found is not None:
            return found
    for batch in first[:1]:
        for name in batch.columns:
            column = batch.column(name)
            values = column.values[:3] if isinstance(column, Coded) else ()
            if values and all(day_of(_text(value)) for value in values):
                return str(name)
    return None


def _in_text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            lines = list(csv.reader(file.read(_HEAD).splitlines()[:3]))
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if len(lines) < 2 or len(lines[0]) != len(lines[1]):
        return None
    return next((name for name, value in zip(lines[0], lines[1], strict=True) if day_of(value.strip())), None)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
