"""The columns of a table as numbers: outcomes, a model's forecasts, weights and times, each checked once.

`Columns` reads one number a row, in a range that is settled first and then fixed; `IntervalColumns` the ends of
intervals; `ClassColumns` probabilities of classes. What all of them have is in `ColumnReader`.
"""

import contextlib
import datetime
import hashlib
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import AtomsWarning, DataError
from swapcal.inputs import other_units
from swapcal.properties import Probability
from swapcal.protocols import Elicitable
from swapcal.tables.batch import LARGEST, Batch, Coded, as_written, by_value, entries, spelled, text
from swapcal.tasks.config import TaskConfig, parse_delay
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.tasks.survey import Survey

# --------
# When rows were, and which of them belong together: a column of times, and clusters by a column or by the day.

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_of(value: Any) -> str | None:
    """The day of a time that is written as 2026-03-01...; None for anything else.

    Examples
    --------
    >>> day_of("2026-03-01 12:30"), day_of("12:30")
    ('2026-03-01', None)
    """
    match = _DAY.match(str(value))
    return None if match is None else match.group(0)


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
    """Which cluster each row belongs to: the column's value or, of times, its day, as a number that is always the same.

    Parameters
    ----------
    name : str
        The column.
    by_day : bool
        Whether rows of the same day are one cluster, the column being one of times.
    """

    def __init__(self, name: str, *, by_day: bool) -> None:
        self.name, self.by_day = name, by_day

    def numbers(self, batch: Batch) -> IntArray:
        """The number of each row's cluster, a hash of its text; rows without a value are one cluster."""
        column = by_value(batch.column(self.name))
        texts = [day_of(value) or str(value) if self.by_day else text(value) for value in column.values]
        numbers: IntArray = np.array([*map(_hashed, texts), _hashed(None)], dtype=np.int64)[column.codes]
        return numbers


def _hashed(value: str | None) -> int:
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "big") >> 12


# Times that are looked at to see whether they begin with days.
_LOOKED = 100


def clusters_of(config: TaskConfig, values: Callable[[str], Sequence[Any]]) -> ClusterNumbers | None:
    """Which rows belong to one cluster: those of one value of a column, or of one day where a time is known.

    `values` gives the first entries of a column.
    """
    if config.cluster:
        return ClusterNumbers(config.cluster, by_day=False)
    if config.time is None or config.cluster == "":
        return None
    first = [value for value in values(config.time)[:_LOOKED] if text(value) is not None]
    odd = [value for value in first if day_of(value) is None]
    wrong = [value for value in odd if _seconds(value) is None]
    if wrong and config.bad_rows != "skip":
        raise DataError(_NO_TIME.format(config.time, "", str(wrong[0])[:60]))
    return ClusterNumbers(config.time, by_day=True) if len(first) > len(odd) == len(wrong) else None


_NO_TIME = "column {!r}{} holds {!r}, which is no time; give time stamps such as 2026-05-01 14:30, or numbers"


def read_moments(batch: Batch, name: str) -> Float64Array:
    """A column of time stamps as seconds, or of numbers as they are; NaN where one is missing."""
    column = batch.column(name)
    if not isinstance(column, Coded):
        return np.asarray(column, dtype=np.float64)
    seconds = np.array([_moment(batch, name, k, value) for k, value in enumerate(column.values)] or [np.nan])
    return np.where(column.codes >= 0, seconds[np.maximum(column.codes, 0)], np.nan)


def _moment(batch: Batch, name: str, code: int, value: Any) -> float:
    seconds = _seconds(value)
    if seconds is None:
        if batch.passes(np.asarray(getattr(batch.column(name), "codes", ())) == code):
            return math.nan
        raise DataError(_NO_TIME.format(name, f" of {batch.name}", str(value)[:60]))
    return seconds


def _seconds(value: Any) -> float | None:
    """A time stamp as seconds, or a number as it is; None for anything else."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, datetime.datetime):
        stamp = value
    elif isinstance(value, datetime.date):
        stamp = datetime.datetime(value.year, value.month, value.day)
    else:
        with contextlib.suppress(TypeError, ValueError):
            return spelled(value)
        try:
            stamp = datetime.datetime.fromisoformat(str(value).strip())
        except ValueError:
            return None
    return stamp.replace(tzinfo=stamp.tzinfo or datetime.UTC).timestamp()


# --------
# Outcomes, forecasts and weights as a question wants them: in a range that is settled first, and then fixed.

N_SHOWN = 5
# A value that more than a fiftieth of the first outcomes have is a heap; of fewer than 200, nothing is said.
FEWEST, HEAP = 200, 0.02
_FOUND = "smallest and largest"
YES = ("yes", "y", "true", "t", "positive", "pos", "good")


class RangeWarning(UserWarning):
    """Outcomes, forecasts or weights outside the range that was given or that the first rows had settled."""


class ColumnReader:
    """What every reader of columns has: weights, when rows come and outcomes are known, and one warning of each kind.

    Attributes
    ----------
    low, high : float
        The range of outcomes.
    n_outside, n_clipped_weights : int
        Outcomes outside the range so far, and weights that were moved to its end.
    """

    # What becomes of outcomes and forecasts outside the range.
    outside: ClassVar[str] = "its loss and its bias are those of the number as it is"

    def __init__(self, config: TaskConfig, source: str, first: Sequence["Batch"] = ()) -> None:
        self.config, self.source = config, source
        self.low, self.high, self.heaviest = -math.inf, math.inf, 1.0
        self.n_outside = self.n_clipped_weights = 0
        self._last_time = -math.inf
        if first:
            self._weigh(first)

    def weights(self, batch: "Batch") -> Float64Array | None:
        """Weights of a batch in [0, 1], a missing one being 0; None if no column was named."""
        column = self.config.weight
        if column is None:
            return None
        raw = raw_weights(batch, column)
        what = "such weights count as the nearest end" if not self.n_clipped_weights else ""
        self.n_clipped_weights += self._outside(raw, 0.0, self.heaviest, batch.rows, column, what)
        return np.minimum(raw / self.heaviest, 1.0)

    def weighed(self, batch: "Batch") -> dict[str, Float64Array]:
        """Weights by the name that `run` has for them; nothing where there are none."""
        weights = self.weights(batch)
        return {} if weights is None else {"weights": weights}

    def moments(self, batch: "Batch") -> dict[str, Float64Array]:
        """The times of a batch's rows, and when their outcomes are known; nothing where that is at once."""
        config = self.config
        if config.time is None and not config.timed:
            return {}
        rows = batch.first + np.arange(batch.n, dtype=np.float64)
        times = rows if config.time is None else read_moments(batch, config.time)
        if config.time is not None:
            wrong = (times < np.concatenate([[self._last_time], times[:-1]])) | (np.isnan(times) & config.timed)
            if wrong.any() and not batch.passes(wrong):
                lacks = f"has no time in column {config.time!r}, or an earlier one than the row above"
                raise wrong_row(batch, wrong, f"{lacks}; sort the file by time, and drop rows without one")
            times = np.maximum.accumulate(np.fmax(times, self._last_time)) if wrong.any() else times
            self._last_time = float(np.fmax.reduce(times, initial=self._last_time))
        if not config.timed:
            return {}
        if config.known is not None:
            known = read_moments(batch, config.known) - (0.0 if config.time is not None else 1.0)
        else:
            number, timed = parse_delay(config.delay or "1")
            known = times + number if timed else rows + max(number, 1.0)
            times = times if timed else rows
        early = known < times
        if early.any() and not batch.passes(early):
            raise wrong_row(batch, early, f"has an outcome that is known before the row itself, in {config.known!r}")
        known = np.fmax(known, times) if early.any() else known
        return {"times": times, "known": known}

    def raw(self, batch: "Batch") -> Float64Array:
        """Outcomes as the file has them; NaN where there is none."""
        return raw_outcomes(self.config, batch)

    def labels(self, batch: "Batch") -> Float64Array:
        """Outcomes of a batch, as they are learned."""
        y = self.raw(batch)
        self.look_outside(batch.rows, y)
        return self.learned(y)

    def learned(self, raw: Float64Array) -> Float64Array:
        """Outcomes as they are learned: as the file has them, NaN where nothing can be learned from one."""
        return raw

    def look_outside(self, rows: IntArray, y: Float64Array) -> None:
        """Count the outcomes that are outside the range."""
        what = self.outside if not self.n_outside else ""
        self.n_outside += self._outside(y, self.low, self.high, rows, self.config.y, what)

    def _weigh(self, batches: Sequence["Batch"]) -> None:
        """Settle the largest weight by the first rows."""
        column = self.config.weight
        if column is not None:
            first = np.concatenate([raw_weights(batch, column) for batch in batches] or [np.zeros(0)])
            self._heaviest(float(first[: self.config.prefix].max(initial=0.0)))

    def _heaviest(self, heaviest: float) -> None:
        if self.config.weight is not None:
            if heaviest <= 0.0:
                column = f"column {self.config.weight!r} of {self.source}"
                raise DataError(f"all weights in {column} are 0 or missing; leave weight out")
            self.heaviest = heaviest

    def _outside(self, values: Float64Array, low: float, high: float, rows: IntArray, column: str, what: str) -> int:
        """How many entries are outside [low, high]; with a warning, if it says `what` becomes of them."""
        outside = np.flatnonzero((values < low) | (values > high))
        if len(outside) and what:
            at, ends = outside[0], f"[{low:g}, {high:g}]"
            cell = f"row {rows[at] + 1} of {self.source} has {values[at]:g} in column {column!r}"
            warnings.warn(f"{cell}, outside {ends}; {what}", RangeWarning, stacklevel=5)
        return len(outside)

    def warn(self, batch: "Batch", rows: npt.NDArray[np.bool_], what: str) -> None:
        """Say what is the matter with the first of some rows."""
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
    found : bool
        Whether it is that of the first outcomes, at one end at least.
    n_outside, n_forecasts_outside, n_clipped_weights : int
        Entries so far that are outside their range.
    """

    def __init__(
        self, question: TaskConfig, batches: Sequence["Batch"], source: str, survey: "Survey | None" = None
    ) -> None:
        super().__init__(question, source)
        self.n_forecasts_outside = 0
        if survey is None:
            first = np.concatenate([known_outcomes(question, batch) for batch in batches] or [np.zeros(0)])
            first, rows = first[: question.prefix], f"the first {min(len(first), question.prefix):,} rows"
            known = first[~np.isnan(first)]
            ends = (float(known.min()), float(known.max())) if len(known) else (np.inf, -np.inf)
            seen = _Outcomes(len(known), *ends, bool(np.isin(known, (0.0, 1.0)).all()), rows)
        else:
            known = survey.y
            seen = _Outcomes(survey.n_known, survey.low, survey.high, survey.binary, f"all {survey.n_rows:,} rows")
        if question.p is not None:
            columns = (batch.numbers(question.p) for batch in batches)
            p = np.concatenate([*columns] or [np.zeros(0)])[: question.prefix] if survey is None else survey.p
            self._check_codes(known, p)
            if survey is not None and seen.n and not seen.binary:
                self._check_units(p, question.p, (survey.low, survey.high))
                # A forecast may well lie beyond all outcomes, such as one of a high quantile.
                ends = min(survey.low, survey.p_low), max(survey.high, survey.p_high)
                seen = seen._replace(least=ends[0], most=ends[1], forecasts=ends != (survey.low, survey.high))
        self.low, self.high, self.stated = self._range(seen)
        # Outcomes beyond a range that was found here, and not given, are followed.
        self.found = self.stated.startswith(_FOUND)
        if max(abs(self.low), abs(self.high)) > LARGEST:
            what = f"go from {self.low:g} to {self.high:g}, whose squares are no numbers any more"
            raise DataError(f"the outcomes {question.y!r} of {source} {what}; give the column in larger units")
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
            self._check_units(p[~np.isnan(p)], question.p)
            if not question.cluster and _copied(*((first, p) if survey is None else survey.pairs)):
                what = f"rows of {source} with the same forecast have the same outcome: if they are copies, drop them"
                more = "if they belong together, name the column that says so (--cluster)"
                warnings.warn(f"{what}, or {more}; else intervals are too narrow", AtomsWarning, stacklevel=4)

    def hints(self, batch: "Batch") -> Float64Array:
        """The model's forecasts in a batch."""
        return self.forecasts(batch, self.config.p)

    def forecasts(self, batch: "Batch", column: str) -> Float64Array:
        """Forecasts of a batch, as they are; NaN where there is none."""
        p, what = batch.numbers(column), self.outside if not self.n_forecasts_outside else ""
        self.n_forecasts_outside += self._outside(p, *self.property.domain, batch.rows, column, what)
        return p

    def _range(self, seen: "_Outcomes") -> tuple[float, float, str]:
        """Smallest and largest outcome, and where that is from."""
        asked, rows = self.config, seen.rows
        if not isinstance(asked.property, str):
            return asked.property.low, asked.property.high, "of the property that was given"
        if asked.positive is not None:
            if seen.n and not seen.most:
                values = f"no value of column {asked.y!r} in {rows} of {self.source} equals {asked.positive!r}"
                raise DataError(f"{values}; check the spelling of positive= (--positive), capitals and blanks included")
            return 0.0, 1.0, f"1 where {asked.y} equals {asked.positive!r}"
        if asked.low is not None and asked.high is not None:
            return asked.low, asked.high, "as given"
        if not seen.n:
            empty = f"column {asked.y!r} has no outcome in {rows} of {self.source}"
            raise DataError(f"{empty}; give low= and high= (--low, --high), or another column")
        if asked.low is None and asked.high is None:
            if seen.binary:
                return 0.0, 1.0, f"all outcomes in {rows} are 0 or 1"
            if asked.property.strip().lower() in Probability.names and seen.least >= 0.0 and seen.most <= 1.0:
                return 0.0, 1.0, f"shares between 0 and 1 in {rows}"
        low = seen.least if asked.low is None else asked.low
        high = seen.most if asked.high is None else asked.high
        if not low < high:
            ends = f"the range {low:g} to {high:g}, which is empty; give low= and high= (--low, --high)"
            raise DataError(f"the outcomes {asked.y!r} in {rows} of {self.source} give {ends}")
        what = "outcome and forecast" if seen.forecasts else "outcome"
        return low, high, f"{_FOUND} {what} of {rows}"

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
            share = f"{100 * self.heap:.0f} % of the outcomes {self.config.y!r} in {self.source}"
            left = "where outcomes heap up no quantile can be met exactly, and that much bias is left"
            warnings.warn(f"{share} equal {self.heaped_at:g}; {left}", AtomsWarning, stacklevel=4)

    def _check_codes(self, known: Float64Array, p: Float64Array) -> None:
        """Refuse outcomes that are codes beside probabilities: -1 and 1, 1 and 2, or 0, 1 and a number for missing."""
        values, asked = np.unique(known), self.config
        odd = values[(values < 0.0) | (values > 1.0)]
        given = asked.low is not None or asked.high is not None or not isinstance(asked.property, str)
        if given or len(values) > 3 or not len(odd) or ((p < 0.0) | (p > 1.0)).any():
            return
        way = f"say which counts as 1, such as --positive {values[-1]:g}"
        if len(values) == 3 and {0.0, 1.0} < set(values.tolist()) and not 0.0 < odd[0] < 9.0:
            way = "leave the cell empty where an outcome is missing"
        elif len(values) != 2:
            return
        what = f"the outcomes {asked.y!r} of {self.source} are {' and '.join(f'{value:g}' for value in values)}"
        raise DataError(f"{what}, and the forecasts look like probabilities; {way}, or give --low and --high")

    def _check_units(self, first: Float64Array, column: str, ends: tuple[float, float] | None = None) -> None:
        """Refuse forecasts most of which are outside the range: they are in other units, or of something else."""
        asked = self.config
        if ends is not None and (
            asked.low is not None or asked.high is not None or not isinstance(asked.property, str)
        ):
            return
        low, high = self.property.domain if ends is None else ends
        problem = other_units(first, low, high, f"in column {column!r} of {self.source}", repr(asked.y))
        if problem is not None:
            raise DataError(f"{problem}, or give --low and --high")


def _copied(y: Float64Array, p: Float64Array) -> bool:
    """Whether most rows share their forecast with others, of the same outcome, though it could have been another."""
    both = ~(np.isnan(y) | np.isnan(p))
    y, p = y[both], p[both]
    _, places, counts = np.unique(p, return_inverse=True, return_counts=True)
    if len(counts) < FEWEST or len(y) < 1.8 * len(counts):
        return False
    within = (y - (np.bincount(places, y) / counts)[places]) ** 2
    return bool(within.sum() < 0.1 * ((y - p) ** 2 * (1.0 - 1.0 / counts[places])).sum())


class _Outcomes(NamedTuple):
    """What is known of the outcomes: how many, the smallest, the largest, whether all are 0 or 1, and of which rows."""

    n: int
    least: float
    most: float
    binary: bool
    rows: str
    forecasts: bool = False


def known_outcomes(question: TaskConfig, batch: "Batch") -> Float64Array:
    """Outcomes of a batch that may be the first: words need `positive`, and that is said before anything else."""
    try:
        return raw_outcomes(question, batch)
    except DataError:
        column = batch.column(question.y)
        texts = [value for value in column.values if isinstance(value, str)] if isinstance(column, Coded) else []
        odd = [value for value in texts if not _spelled(value)]
        if question.positive is not None or 2 * len(odd) <= len(texts):
            raise
        shown = ", ".join(map(repr, texts[:N_SHOWN])) + (", ..." if len(texts) > N_SHOWN else "")
        likely = next((value for value in odd if value.strip().lower() in YES), odd[-1])
        words = f"column {question.y!r} of {batch.name} holds text ({shown}) where outcomes must be numbers"
        way = f"say which text counts as 1, such as positive={likely!r} (--positive on the command line)"
        if all(_GROUPED.fullmatch(value.strip()) for value in odd):
            way = "write them with a point and nothing between thousands, such as 1234.5"
        raise DataError(f"{words}; {way}") from None


# A number with commas in it.
_GROUPED = re.compile(r"[-+]?[\d.,' ]*\d,\d[\d.,' ]*")


def raw_outcomes(question: TaskConfig, batch: "Batch") -> Float64Array:
    """Outcomes as they are, or 1 and 0 where the column equals `positive` or not."""
    name, positive = question.y, question.positive
    if positive is None:
        return batch.numbers(name)
    column = batch.column(name)
    if isinstance(column, Coded):
        wanted, texts = as_written(positive), [text(value) or "" for value in column.values]
        other = next((one for one in texts if one != wanted and one.strip().lower() == wanted.lower()), None)
        if other is not None and wanted in texts:
            both = f"column {name!r} of {batch.name} holds {other!r} beside {wanted!r}, which counts as 1"
            raise DataError(f"{both}; write them alike")
        return np.array([*(float(one == wanted) for one in texts), np.nan])[column.codes]
    number = float(positive) if _spelled(positive) else np.nan
    return np.where(np.isnan(column), np.nan, (column == number).astype(np.float64))


def raw_weights(batch: "Batch", column: str) -> Float64Array:
    """Weights as they are, 0 where there is none."""
    raw = np.nan_to_num(batch.numbers(column), nan=0.0)
    below = raw < 0
    if below.any() and not batch.passes(below):
        what = f"has {raw[below][0]:g} in column {column!r}, where weights must be 0 or more"
        raise wrong_row(batch, below, f"{what}; leave that row out, or use another column")
    return np.maximum(raw, 0.0)


def wrong_row(batch: "Batch", rows: npt.NDArray[np.bool_], what: str) -> DataError:
    """What is wrong with the first of some rows, as an error."""
    return DataError(f"row {batch.first + int(np.argmax(rows)) + 1:,} of {batch.name} {what}")


def head_columns(batches: Sequence["Batch"], names: Sequence[str], n_rows: int) -> Mapping[str, Any]:
    """The first `n_rows` rows of some columns, joined over batches, as `Groups.fit` takes them."""
    joined: dict[str, Any] = {}
    for name in names:
        parts = [batch.column(name) for batch in batches]
        if len(parts) == 1 and isinstance(parts[0], Coded):
            joined[name] = Coded(parts[0].codes[:n_rows], parts[0].values)
        elif any(isinstance(part, Coded) for part in parts):
            joined[name] = [value for part in parts for value in entries(part)][:n_rows]
        else:
            joined[name] = np.concatenate([np.asarray(part) for part in parts])[:n_rows]
    return joined


def _spelled(value: str) -> bool:
    """Whether the text spells a number."""
    try:
        spelled(value)
    except ValueError:
        return False
    return True
