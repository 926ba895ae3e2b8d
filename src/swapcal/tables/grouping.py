"""What a user may ask for as a group, read once: columns, intersections, comparisons and functions."""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput, StateFileError
from swapcal.inputs import column_names, short_repr
from swapcal.tables.batch import Coded, as_number, by_value, text
from swapcal.typing import Float64Array

# --------
# Bands of a column of numbers: intervals that hold about as many rows each, with edges that can be read aloud.

_DIGITS = (3, 4, 6, 9, 12, 15)


def band_edges(values: Float64Array, n_bands: int) -> tuple[float, ...]:
    """Inner edges of `n_bands` bands by the quantiles of `values` (finite, at least two distinct).

    Edges are rounded to as few digits as keep every band apart; where many values are equal there are fewer bands.

    Examples
    --------
    >>> band_edges(np.arange(1000.0) / 7.0, 4)
    (35.6, 71.3, 107.0)
    """
    levels = np.arange(1, n_bands) / n_bands
    exact = np.unique(np.quantile(values, levels, method="inverted_cdf"))
    # An edge at the smallest value would leave nothing below it.
    exact = exact[exact > values.min()]
    if not exact.size:
        exact = np.array([values[values > values.min()].min()])
    for digits in _DIGITS:
        rounded = np.array([float(f"{edge:.{digits}g}") for edge in exact])
        counts = np.bincount(np.searchsorted(rounded, values, side="right"), minlength=len(rounded) + 1)
        wanted = np.bincount(np.searchsorted(exact, values, side="right"), minlength=len(exact) + 1)
        # Half of the rows that the exact edges would give each band is near enough.
        if (np.diff(rounded) > 0.0).all() and (2 * counts >= wanted).all():
            return tuple(rounded.tolist())
    return tuple(exact.tolist())


def band_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """What to write behind the column's name, band by band.

    Examples
    --------
    >>> band_labels((25.0, 37.5))
    ('< 25', 'in [25, 37.5)', '>= 37.5')
    """
    shown = [_shown(edge) for edge in edges]
    inner = [f"in [{low}, {high})" for low, high in pairwise(shown)]
    return (f"< {shown[0]}", *inner, f">= {shown[-1]}")


def band_of(values: Float64Array, edges: tuple[float, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number of the band of each value, from 0; -1 for NaN."""
    bands = np.searchsorted(np.array(edges), values, side="right").astype(np.int64)
    return np.where(np.isnan(values), -1, bands)


class Cuts(NamedTuple):
    """Inner edges of bins, where some values are bins by themselves: an atom v is the bin from v to the next number."""

    edges: tuple[float, ...]
    atoms: tuple[float, ...]

    def labels(self) -> list[str]:
        """What to write behind the column's name, bin by bin.

        Examples
        --------
        >>> Cuts((0.0, 5e-324, 30.0), (0.0,)).labels()
        ['< 0', '= 0', 'in (0, 30)', '>= 30']
        """
        behind = {math.nextafter(atom, math.inf): _shown(atom) for atom in self.atoms}
        labels = []
        for low, high in pairwise((None, *self.edges, None)):
            above = None if low is None else ("(", behind[low]) if low in behind else ("[", _shown(low))
            below = None if high is None else (behind[high], "]") if high in behind else (_shown(high), ")")
            if above is None and below is not None:
                labels.append(f"{'<=' if below[1] == ']' else '<'} {below[0]}")
            elif below is None and above is not None:
                labels.append(f"{'>' if above[0] == '(' else '>='} {above[1]}")
            elif above is not None and below is not None:
                one = above[0] == "[" and below == (above[1], "]")
                labels.append(f"= {above[1]}" if one else f"in {above[0]}{above[1]}, {below[0]}{below[1]}")
        return labels

    def sound(self) -> bool:
        """Whether the edges rise, and are numbers."""
        return all(low < high for low, high in pairwise(self.edges)) and all(map(math.isfinite, sum(self, ())))


def column_cuts(values: Float64Array, n_bins: int) -> Cuts:
    """About `n_bins` bins of finite `values`, not all equal, with about as many each.

    A value that more than one of `n_bins` has is a bin by itself; the rest is cut by its own quantiles. No bin is
    without values.

    Examples
    --------
    >>> column_cuts(np.concatenate([np.zeros(900), np.arange(1.0, 101.0)]), 4).labels()
    ['<= 0', 'in (0, 34)', 'in [34, 67)', '>= 67']
    """
    distinct, counts = np.unique(values, return_counts=True)
    atoms = distinct[counts * n_bins > len(values)]
    rest, n_rest = values[~np.isin(values, atoms)], max(n_bins - len(atoms), 1)
    cuts = band_edges(rest, n_rest) if n_rest > 1 and len(distinct) - len(atoms) > 1 else ()
    # An atom's own edges come first: of two edges with no value in between the other one is not needed.
    ordered = np.sort(values)
    edges: dict[int, float] = {}
    for edge in (*atoms.tolist(), *(math.nextafter(atom, math.inf) for atom in atoms.tolist()), *cuts):
        edges.setdefault(int(np.searchsorted(ordered, edge)), edge)
    inside = (edge for n_below, edge in edges.items() if 0 < n_below < len(values))
    return Cuts(tuple(sorted(inside)), tuple(atoms.tolist()))


def value_label(column: str, value: str) -> str:
    """The name of a value's group; a value that is called like the group of all others, or of none, is in quotes."""
    return f"{column}={value!r}" if value in ("other", "missing") else f"{column}={value}"


def _shown(edge: float) -> str:
    return str(int(edge)) if edge.is_integer() and abs(edge) < 1e15 else repr(edge)


# --------
# Groups and columns as text: "sex,race,sex*race,age >= 60".

_SEPARATORS = {sign: re.compile(rf"{re.escape(sign)}(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)") for sign in (",", "*", "|")}


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
            way = "leave it out, or put a column of that name in double quotes: --groups '\"all\"'"
            raise InvalidInput(f"the group all, of all rows, is always there; {way}")
        # A tuple of names is taken by the letter, so that a quoted name is never read as a comparison.
        groups.append(parts[0] if len(parts) == 1 and unquoted(parts[0]) == parts[0] else tuple(map(unquoted, parts)))
    return tuple(groups)


_CLASS = re.compile(r"\s*(groups|trees)\s*(?:\((.*)\))?\s*", re.DOTALL)
_NUMBERED = re.compile(r"\s*(depth|bins|limit)\s*=\s*(\d+)\s*", re.ASCII)


def parse_class(text: str) -> list[tuple[str, str | None, dict[str, int]]]:
    """Classes of functions as the command line has them: of each its kind, its columns, and its numbers.

    Examples
    --------
    >>> parse_class("groups|trees(age, income, depth=2)")
    [('groups', None, {}), ('trees', 'age, income', {'depth': 2})]
    """
    parts: list[tuple[str, str | None, dict[str, int]]] = []
    for item in _SEPARATORS["|"].split(text):
        match = _CLASS.fullmatch(item)
        if match is None or (match[1] == "trees" and not (match[2] or "").strip()):
            wanted = "'groups', 'groups(sex,race)' or 'trees(age,income,depth=2,bins=8)', with | between several"
            raise InvalidInput(f"a class is {wanted}; got {text!r}")
        listed = [] if match[2] is None else _SEPARATORS[","].split(match[2])
        numbers = {each[1]: int(each[2]) for each in map(_NUMBERED.fullmatch, listed) if each and match[1] == "trees"}
        names = ",".join(each for each in listed if match[1] == "groups" or not _NUMBERED.fullmatch(each))
        parts.append((match[1], None if match[2] is None else names.strip(), numbers))
    return parts


def parse_columns(text: str) -> tuple[str, ...]:
    """Names of columns between commas; one that holds a comma is put in quotes.

    Examples
    --------
    >>> parse_columns("age, 'income, net'")
    ('age', 'income, net')
    """
    return tuple(unquoted(name.strip()) for name in _SEPARATORS[","].split(text))


def listed_groups(groups: Any) -> tuple[Any, ...]:
    """Groups one by one, from a text, or from a sequence whose texts may say intersections, too.

    Examples
    --------
    >>> listed_groups("sex,sex*race"), listed_groups(["sex*race", ("sex", "age >= 60")])
    (('sex', ('sex', 'race')), (('sex', 'race'), ('sex', 'age >= 60')))
    """
    if isinstance(groups, str):
        return parse_groups(groups)
    several = (each for each in column_names(groups, "groups"))
    return tuple(_intersection(each) if isinstance(each, str) else each for each in several)


def _intersection(text: str) -> str | tuple[str, ...]:
    parts = _SEPARATORS["*"].split(text)
    return text if len(parts) == 1 else tuple(unquoted(part.strip()) for part in parts)


# --------
# Groups by a comparison: "age >= 60", "price<3.5", "city == 'Paris'".

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_SHAPE = re.compile(
    r"\s*(?P<column>\"[^\"]+\"|'[^']+'|.*?\S)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<value>.*?)\s*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """Whether a column stands in a relation to a number or, for == and !=, to a text. A missing value never does."""

    name: str
    column: str
    sign: str
    value: float | str

    def holds(self, value: Any) -> bool:
        """For one value."""
        own = text(value)
        if own is None:
            return False
        if isinstance(self.value, str):
            return bool(_OPERATORS[self.sign](own, self.value))
        read = as_number(value)
        # Text that is no number is neither above nor below any, and differs from all.
        return self.sign == "!=" if read != read else bool(_OPERATORS[self.sign](read, self.value))

    def holds_many(self, column: Coded | Float64Array) -> npt.NDArray[np.bool_]:
        """For a whole column."""
        if isinstance(column, Coded) and not isinstance(self.value, str):
            # As `holds`, for all values at once; they are many where a CSV file has a column of real numbers.
            read = np.array([*map(as_number, column.values), np.nan])
            inside = _OPERATORS[self.sign](read, self.value) & ~np.isnan(read)
            if self.sign == "!=":
                inside |= np.isnan(read) & [*(text(value) is not None for value in column.values), False]
            return np.asarray(inside, dtype=np.bool_)[column.codes]
        if isinstance(column, Coded) or isinstance(self.value, str):
            column = by_value(column)
            return np.array([*map(self.holds, column.values), False])[column.codes]
        held: npt.NDArray[np.bool_] = _OPERATORS[self.sign](column, self.value) & ~np.isnan(column)
        return held


def parse_comparison(written: str) -> ColumnComparison | None:
    """The comparison that a string spells; None if it has no comparison sign, so is the name of a column.

    Examples
    --------
    >>> parse_comparison("age>=60")
    ColumnComparison(name='age >= 60', column='age', sign='>=', value=60.0)
    >>> parse_comparison("city == 'New York'").value
    'New York'
    >>> parse_comparison("'price >= cost' == 1").column
    'price >= cost'
    """
    match = _SHAPE.fullmatch(written)
    if match is None:
        return None
    column, sign, right = match["column"], match["sign"], match["value"]
    is_text = len(right) >= 2 and right[0] == right[-1] and right[0] in "'\""
    value: float | str = right[1:-1] if is_text else as_number(right)
    if value != value:
        value = right
    if isinstance(value, str) and (not value or sign not in ("==", "!=")):
        how = "compare a column with a number, or with a text by == or !="
        raise InvalidInput(f"the group {written!r} must {how}: 'age >= 60' or \"city == 'Paris'\"")
    return ColumnComparison(f"{column} {sign} {right}", unquoted(column), sign, value)


def unquoted(name: str) -> str:
    """The name of a column without the quotes around it, if it has any."""
    inside = name[1:-1]
    return inside if len(name) > 2 and name[0] == name[-1] and name[0] in "'\"" and name[0] not in inside else name


def quoted(name: str) -> str:
    """The name of a column in quotes, where it would be read as something else without."""
    if name != "all" and name == name.strip() and not set(name) & set(",*<>=!'\""):
        return name
    return f"'{name}'" if '"' in name else f'"{name}"'


_ALLOWED = "a column name 'sex', a tuple ('sex', 'race'), a comparison 'age >= 60', or a pair (name, function of a row)"


@dataclass(frozen=True, slots=True)
class Key:
    """One column, or several whose combinations are groups."""

    columns: tuple[str, ...]

    @property
    def title(self) -> str:
        """What messages and names call it."""
        return " & ".join(self.columns)


@dataclass(frozen=True, slots=True)
class Function:
    """A user's own function of a row, with values in [-1, 1]."""

    name: str
    call: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Definitions:
    """Everything asked for: `keys` learn their values, each of `fixed` is one position."""

    keys: tuple[Key, ...]
    fixed: tuple[ColumnComparison | Function, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once, in the order of the definitions."""
        named = [column for key in self.keys for column in key.columns]
        named += [one.column for one in self.fixed if isinstance(one, ColumnComparison)]
        return tuple(dict.fromkeys(named))

    def spec(self) -> dict[str, Any]:
        """Plain data; a function is known by its name alone."""
        fixed = [
            {"compare": one.name} if isinstance(one, ColumnComparison) else {"function": one.name} for one in self.fixed
        ]
        return {"keys": [list(key.columns) for key in self.keys], "fixed": fixed}


def definitions(groups: Any) -> Definitions:
    """Read the argument of `Groups`."""
    read = tuple(_read(groups))
    keys = tuple(one for one in read if isinstance(one, Key))
    fixed = tuple(one for one in read if not isinstance(one, Key))
    for names in ([key.title for key in keys], ["all", *(one.name for one in fixed)]):
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise InvalidInput(f"the group {twice[0]!r} is given twice; name each once")
    return Definitions(keys, fixed)


def _read(groups: Any) -> Iterator[Key | ColumnComparison | Function]:
    for one in groups.items() if isinstance(groups, Mapping) else groups:
        if isinstance(one, Mapping):
            yield from _read(one)
        elif isinstance(one, str):
            if one != "all":
                yield _named(one)
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and callable(one[1]):
            yield Function(*one)
        elif isinstance(one, (tuple, list)) and one and all(isinstance(name, str) and name for name in one):
            if len(set(one)) < len(one):
                raise InvalidInput(f"the intersection {one!r} names a column twice; name each once")
            compared = next((name for name in one if parse_comparison(name) is not None), None)
            if compared is not None and len(one) > 1:
                way = "join a column that says whether it holds, or ask for both side by side, with a comma"
                raise InvalidInput(f"an intersection joins columns, and {compared!r} is a comparison; {way}")
            yield Key(tuple(one))
        else:
            raise InvalidInput(f"a group must be {_ALLOWED}; got {short_repr(one)}")


def _named(written: str) -> Key | ColumnComparison:
    if not written.strip():
        raise InvalidInput(f"a group must be {_ALLOWED}; got an empty name")
    return parse_comparison(written) or Key((written,))


def groups_from_spec(spec: Any) -> list[str | tuple[str, ...]]:
    """The argument of `Groups` behind what `Definitions.spec` wrote; functions cannot be rebuilt."""
    lost = [one["function"] for one in spec["fixed"] if "function" in one]
    if lost:
        own = f"the groups hold a function of your own, {lost[0]!r}, which no file stores"
        raise StateFileError(f"{own}; pass hypotheses= to load")
    return [*(one["compare"] for one in spec["fixed"]), *(tuple(columns) for columns in spec["keys"])]
