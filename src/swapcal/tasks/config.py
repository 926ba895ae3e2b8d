"""What is asked of a table: which column holds what, for whom forecasts should be right, and of which property."""

import builtins
import datetime
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swapcal.decisions import Decisions
from swapcal.errors import DataError, InvalidInput
from swapcal.hypotheses.groups import Groups
from swapcal.inputs import column_names, integer, one_of, real, short_repr
from swapcal.properties import Expectile, Mean, Moment, Quantile
from swapcal.protocols import Elicitable
from swapcal.tables.batch import Batch
from swapcal.tables.coded import Coded
from swapcal.tables.grouping import quoted, unquoted
from swapcal.typing import Float64Array

# --------
# When the outcomes of a table are known: from a column, or after a delay; and the times of its rows.

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


# --------
# The next command to type, from the settings of a result.


def next_command(source: str, settings: dict[str, Any], what: str) -> str:
    """The command `swapcal run` (or another one) on the same file with the same columns.

    Examples
    --------
    >>> next_command("scores.csv", {"y": "late", "p": "score", "groups": ["sex", "age >= 60"]}, "run")
    "swapcal run scores.csv --y late --p score --groups 'sex,age >= 60' --out better.csv"
    """
    parts = ["swapcal", what, source if source != "standard input" else "-"]
    for name in ("y", "p", "groups", "categories", "linear", "property", "low", "high", "positive", "weight"):
        value = settings.get(name)
        if value in (None, [], "mean"):
            continue
        written = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if name in ("low", "high"):
            written = f"{value:g}"
        parts += [f"--{name}", written]
    if what == "run":
        parts += ["--out", "better.csv"]
    return shlex.join(parts)


MOST_BINS = 100_000
PROPERTIES = "mean, median, quantile:0.9, expectile:0.8 or moment:2"
_SEPARATORS = {sign: re.compile(rf"{re.escape(sign)}(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)") for sign in (",", "*")}


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What is asked of a table.

    Parameters
    ----------
    y : str
        Column of outcomes; rows without one are forecast but not scored.
    p : str, optional
        Column of a model's forecasts.
    groups : sequence
        For whom: what `Groups` takes. Column names, tuples of names for intersections, comparisons "age >= 60".
    linear : sequence of str
        Columns of numbers; every bounded linear function of them is looked at.
    property : str or Elicitable
        mean, median, quantile:0.9, expectile:0.8 or moment:2; or a property object, whose own range then holds.
    low, high : float, optional
        Range of the outcomes. Where not given: (0, 1) if all outcomes are 0 or 1, else their smallest and largest. An
        audit looks at all rows for it; a run, which may not know what comes, at the first `prefix` rows, and later
        outcomes outside are moved to its end, counted, and warned about once.
    positive : str, optional
        The outcome is 1 where the column equals this text, else 0.
    weight : str, optional
        Column of weights, 0 or more. They are divided by the largest; in a run by that of the first `prefix` rows, and
        later ones that are larger count as much as that one.
    r : float
        Power of the error, 1 or more.
    prefix : int
        How many rows at the start of a run settle what is not given: range, bands of numbers, bins.
    bins : int, optional
        Round forecasts to the mid-points of this many equal bins before the audit. None: see `auditing.audit`.
    limit : int
        Largest number of groups.
    categories : sequence of str
        Columns of groups whose numbers are names: every value is a group, and no bands are made.
    time : str, optional
        Column of times, by which rows are sorted: for "since when", and rows of one day count as one cluster.
    cluster : str, optional
        Column by whose values rows hang together, and are sorted: a day, a person, a booking. "" takes every row by
        itself, also where there is a time.
    known, delay : str, optional
        For runs: when outcomes are known, if not at once; see `LateOutcomes`.
    order : {"arrival", "forecast"}
        For runs with late outcomes: in which order they are learned.
    later : bool
        For runs with a state file: outcomes that are blank come later, and are learned from when they are there.
    id : str, optional
        Column by which a second file of outcomes names the rows; implies `later`.
    costs : str, optional
        What a false alarm and a missed event cost somebody who acts on the forecasts, as "1:5"; see `Decisions`.

    Examples
    --------
    >>> TaskConfig("income", "score", parse_groups("sex,race,sex*race")).columns
    ('income', 'score', 'sex', 'race')
    >>> parse_property("quantile:0.9", 0.0, 60.0)
    Quantile(0.9, high=60.0)
    """

    y: str
    p: str | None = None
    groups: Any = ()
    linear: Sequence[str] = ()
    property: str | Elicitable = "mean"
    low: float | None = None
    high: float | None = None
    positive: str | None = None
    weight: str | None = None
    r: float = 2.0
    prefix: int = 10_000
    bins: int | None = None
    limit: int = 2_500
    categories: Sequence[str] = ()
    time: str | None = None
    cluster: str | None = None
    known: str | None = None
    delay: str | None = None
    costs: str | None = None
    later: bool = False
    id: str | None = None
    order: str = "arrival"

    def __post_init__(self) -> None:
        object.__setattr__(self, "later", bool(self.later) or self.id is not None)
        for name in ("y", "p", "weight", "time", "cluster", "known", "id"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name != "y"):
                raise InvalidInput(f"{name} must be the name of a column; got {short_repr(value)}")
        groups = self.groups if isinstance(self.groups, Mapping) else column_names(self.groups, "groups")
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "linear", column_names(self.linear, "linear"))
        object.__setattr__(self, "categories", column_names(self.categories, "categories"))
        if not all(isinstance(name, str) for name in self.linear):
            raise InvalidInput(f"linear must be names of columns of numbers; got {short_repr(self.linear)}")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, real(getattr(self, name), name))
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InvalidInput(f"low must be smaller than high; got low={self.low:g} and high={self.high:g}")
        object.__setattr__(self, "r", real(self.r, "r"))
        if not 1.0 <= self.r <= 100.0:
            raise InvalidInput(f"r must be a number from 1 to 100; got {self.r!r}")
        integer(self.prefix, "prefix", 1)
        integer(self.limit, "limit", 1)
        if self.bins is not None and integer(self.bins, "bins", 1) > MOST_BINS:
            raise InvalidInput(f"bins must be {MOST_BINS:,} at most, more than any page can show; got {self.bins:,}")
        # What is wrong with these is said now, not after the file was opened.
        self.grouping()
        LateOutcomes(self.time, self.known, self.delay, order=self.order)
        if self.costs is not None:
            Decisions.parsed(self.costs)
        if isinstance(self.property, str):
            parse_property(self.property, 0.0, 1.0)

    def grouping(self) -> Groups:
        """The groups that are asked about, which have seen nothing yet."""
        return Groups(self.groups, limit=self.limit, categories=self.categories)

    @builtins.property  # `property` is a field here
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that are needed, each once; None if functions among the groups may look at any."""
        groups = () if isinstance(self.groups, Mapping) else self.groups
        if isinstance(self.groups, Mapping) or any(callable(part) for each in groups for part in _parts(each)):
            return None
        named = [self.y, self.p, self.weight, self.time, self.known, self.cluster or None, self.id]
        used = [*named, *self.grouping().columns, *self.linear]
        return tuple(dict.fromkeys(name for name in used if name is not None))

    @builtins.property
    def late(self) -> LateOutcomes:
        """When outcomes are known."""
        return LateOutcomes(self.time, self.known, self.delay, self.later, self.order)

    @staticmethod
    def parse_property(text: str, low: float, high: float) -> Elicitable:
        """The property that `text` names, for outcomes in [low, high]."""
        return parse_property(text, low, high)

    def property_on(self, low: float, high: float) -> Elicitable:
        """The property that is asked about, for outcomes in [low, high]."""
        return parse_property(self.property, low, high) if isinstance(self.property, str) else self.property

    def settings(self) -> dict[str, Any]:
        """Plain data: what it takes to ask again."""
        groups = self.groups if not isinstance(self.groups, Mapping) else tuple(self.groups)
        return {
            "y": self.y,
            "p": self.p,
            "groups": [_group_name(group) for group in groups],
            "linear": list(self.linear),
            "property": self.property if isinstance(self.property, str) else repr(self.property),
            "low": self.low,
            "high": self.high,
            "positive": self.positive,
            "weight": self.weight,
            "r": self.r,
            "costs": self.costs,
            "prefix": self.prefix,
            "bins": self.bins,
            "limit": self.limit,
            "categories": list(self.categories),
            "time": self.time,
            "cluster": self.cluster,
            "known": self.known,
            "delay": self.delay,
            "later": self.later or None,
            "id": self.id,
            **({} if self.order == "arrival" else {"order": self.order}),
        }


def parse_property(text: str, low: float, high: float) -> Elicitable:
    """The property that `text` names, for outcomes in [low, high]."""
    name, colon, number = text.strip().lower().partition(":")
    try:
        level = float(number) if colon else None
    except ValueError:
        raise InvalidInput(f"the property must be {PROPERTIES}; got {text!r}: {number!r} is no number") from None
    if level is None and name in ("mean", "probability"):
        return Mean(low=low, high=high)
    if level is None and name == "median":
        return Quantile(0.5, low=low, high=high)
    if level is not None and name == "quantile":
        return Quantile(level, low=low, high=high)
    if level is not None and name == "expectile":
        return Expectile(level, low=low, high=high)
    if level is not None and name == "moment" and level.is_integer():
        return Moment(int(level), low=low, high=high)
    raise InvalidInput(f"the property must be {PROPERTIES}; got {text!r}")


def parse_groups(text: str) -> tuple[str | tuple[str, ...], ...]:
    """Groups as the command line has them: "sex,race,sex*race,age >= 60"; within quotes stands one name or text.

    Examples
    --------
    >>> parse_groups("sex, sex*race, city == 'Paris, TX'")
    ('sex', ('sex', 'race'), "city == 'Paris, TX'")
    >>> parse_groups('"a,b", "age >= 60"*sex, "a*b" > 1')
    (('a,b',), ('age >= 60', 'sex'), '"a*b" > 1')
    """
    groups: list[str | tuple[str, ...]] = []
    for item in _SEPARATORS[","].split(text):
        parts = tuple(part.strip() for part in _SEPARATORS["*"].split(item))
        if not all(parts):
            raise InvalidInput(f"groups must be column names such as sex,race,sex*race; got {text!r}")
        if parts == ("all",):
            raise InvalidInput(
                "the group all, everybody, is always there; leave it out, or if a column has that name, put it in "
                "double quotes within the quotes of the shell: --groups '\"all\"'"
            )
        # A tuple of names is taken by the letter, so that a quoted name is never read as a comparison.
        groups.append(parts[0] if len(parts) == 1 and unquoted(parts[0]) == parts[0] else tuple(map(unquoted, parts)))
    return tuple(groups)


def parse_columns(text: str) -> tuple[str, ...]:
    """Names of columns between commas; one that holds a comma is put in quotes.

    Examples
    --------
    >>> parse_columns("age, 'income, net'")
    ('age', 'income, net')
    """
    return tuple(unquoted(name.strip()) for name in _SEPARATORS[","].split(text))


def _parts(group: Any) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


def _group_name(group: Any) -> str:
    if isinstance(group, tuple) and all(isinstance(part, str) for part in group):
        return "*".join(map(quoted, group))
    return group if isinstance(group, str) else str(group[0]) if isinstance(group, tuple) else str(group)
