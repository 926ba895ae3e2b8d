"""What is asked of a table: which column holds what, for whom forecasts should be right, and of which property."""

import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swapcal.checked import column_names, real, shown, whole
from swapcal.decisions import Decisions
from swapcal.errors import InvalidInput
from swapcal.hypotheses.groups import Groups
from swapcal.jobs.late_outcomes import LateOutcomes
from swapcal.properties import Expectile, Mean, Moment, Quantile
from swapcal.roles import Elicitable
from swapcal.tables.comparisons import quoted, unquoted

__all__ = ["Question", "parse_columns", "parse_groups", "parse_property"]

MOST_BINS = 100_000
PROPERTIES = "mean, median, quantile:0.9, expectile:0.8 or moment:2"
_SEPARATORS = {sign: re.compile(rf"{re.escape(sign)}(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)") for sign in (",", "*")}


@dataclass(frozen=True, slots=True)
class Question:
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
    >>> Question("income", "score", parse_groups("sex,race,sex*race")).columns
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
                raise InvalidInput(f"{name} must be the name of a column; got {shown(value)}")
        groups = self.groups if isinstance(self.groups, Mapping) else column_names(self.groups, "groups")
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "linear", column_names(self.linear, "linear"))
        object.__setattr__(self, "categories", column_names(self.categories, "categories"))
        if not all(isinstance(name, str) for name in self.linear):
            raise InvalidInput(f"linear must be names of columns of numbers; got {shown(self.linear)}")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, real(getattr(self, name), name))
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InvalidInput(f"low must be smaller than high; got low={self.low:g} and high={self.high:g}")
        object.__setattr__(self, "r", real(self.r, "r"))
        if not 1.0 <= self.r <= 100.0:
            raise InvalidInput(f"r must be a number from 1 to 100; got {self.r!r}")
        whole(self.prefix, "prefix", 1)
        whole(self.limit, "limit", 1)
        if self.bins is not None and whole(self.bins, "bins", 1) > MOST_BINS:
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
