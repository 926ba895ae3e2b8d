"""When the outcomes of a table are known: from a column, or after a delay; and the times of its rows."""

import datetime
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.checked import one_of
from swapcal.errors import DataError, InvalidInput
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded
from swapcal.typing import Float64Array

__all__ = ["LateOutcomes", "parse_delay"]

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)?\s*")


def parse_delay(text: str) -> tuple[float, bool]:
    """A delay as a number, and whether it is one of seconds (else of rows).

    Examples
    --------
    >>> parse_delay("2d"), parse_delay("6 h"), parse_delay("500")
    ((172800.0, True), (21600.0, True), (500.0, False))
    """
    found = _DELAY.fullmatch(text)
    if found is None:
        raise InvalidInput(f"a delay is a number of rows such as 500, or a time such as 2d, 6h or 30min; got {text!r}")
    number, unit = float(found.group(1)), found.group(2)
    if unit is None and not number.is_integer():
        raise InvalidInput(f"a delay in rows is a whole number; got {text!r}, so add a unit: {text}d, {text}h")
    return number * (1.0 if unit is None else _UNITS[unit]), unit is not None


@dataclass(frozen=True, slots=True)
class LateOutcomes:
    """How a table says when its outcomes are known.

    Parameters
    ----------
    time : str, optional
        Column of the rows' times: time stamps or numbers, not falling.
    known : str, optional
        Column of the moments at which outcomes are known, in the same form; blank: not yet. Without `time`, row
        numbers from 1 on.
    delay : str, optional
        Instead of `known`: after so many rows ("500"), or so long ("2d", which needs `time`).
    later : bool
        Outcomes that are blank come later, in the same file or another.
    order : {"arrival", "forecast"}
        Whether outcomes are learned as they come, or only when those of all earlier rows are known.

    Examples
    --------
    >>> LateOutcomes(time="booked", known="checked_out").columns
    ('booked', 'checked_out')
    """

    time: str | None = None
    known: str | None = None
    delay: str | None = None
    later: bool = False
    order: str = "arrival"

    def __post_init__(self) -> None:
        if one_of(self.order, "order", ("arrival", "forecast")) == "forecast" and not self.timed:
            raise InvalidInput(
                "the order of forecasts (--order forecast) is about late outcomes: add --known or --delay"
            )
        if self.known is not None and self.delay is not None:
            raise InvalidInput("outcomes are known by a column (--known) or after a delay (--delay), not both")
        if self.delay is not None:
            _, timed = parse_delay(self.delay)
            if timed and self.time is None:
                raise InvalidInput(f"a delay of {self.delay} needs the column of the rows' times: add --time COLUMN")

    @property
    def given(self) -> bool:
        """Whether anything is said of when outcomes are known."""
        return self.timed or self.later

    @property
    def timed(self) -> bool:
        """Whether there is a moment for each outcome."""
        return self.known is not None or self.delay is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed."""
        return tuple(name for name in (self.time, self.known) if name is not None)

    def moments(self, batch: Batch, last: float) -> tuple[Float64Array, Float64Array]:
        """The times of a batch's rows, none before `last`, and the moments at which their outcomes are known."""
        rows = batch.first + np.arange(batch.n, dtype=np.float64)
        times = rows if self.time is None else read_moments(batch, self.time)
        if self.time is not None:
            wrong = np.isnan(times) | (times < np.concatenate([[last], times[:-1]]))
            if wrong.any():
                at = batch.first + int(np.argmax(wrong)) + 1
                raise DataError(
                    f"row {at:,} of {batch.name} has no time in column {self.time!r}, or an earlier one than the row "
                    "above; sort the file by time, and drop rows without one"
                )
        if self.known is not None:
            known = read_moments(batch, self.known) - (0.0 if self.time is not None else 1.0)
        else:
            number, timed = parse_delay(self.delay or "1")
            known = times + number if timed else rows + max(number, 1.0)
            if not timed and self.time is not None:
                times = rows
        early = known < times
        if early.any():
            at = batch.first + int(np.argmax(early)) + 1
            raise DataError(
                f"the outcome of row {at:,} of {batch.name} is known before the row itself: "
                f"{self.known!r} is earlier; check the two columns"
            )
        return times, known


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
