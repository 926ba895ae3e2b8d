"""Groups by a comparison: "age >= 60", "price<3.5", "city == 'Paris'"."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput
from swapcal.tables.coded import Coded, as_number, text
from swapcal.typing import Float64Array

__all__ = ["ColumnComparison", "parse_comparison", "quoted", "unquoted"]

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
        given = text(value)
        if given is None:
            return False
        if isinstance(self.value, str):
            return bool(_OPERATORS[self.sign](given, self.value))
        read = as_number(value)
        # Text that is no number is neither above nor below any, and differs from all.
        return self.sign == "!=" if read != read else bool(_OPERATORS[self.sign](read, self.value))

    def holds_many(self, column: Coded | Float64Array) -> npt.NDArray[np.bool_]:
        """For a whole column."""
        if isinstance(column, Coded) and not isinstance(self.value, str):
            # As `holds`, for all values at once; they are many where a CSV file has a column of real numbers.
            read = np.array([*map(as_number, column.values), np.nan])
            told = _OPERATORS[self.sign](read, self.value) & ~np.isnan(read)
            if self.sign == "!=":
                told |= np.isnan(read) & [*(text(value) is not None for value in column.values), False]
            return np.asarray(told, dtype=np.bool_)[column.codes]
        if isinstance(column, Coded):
            table = np.array([self.holds(value) for value in column.values] + [False])
            return table[column.codes]
        if isinstance(self.value, str):
            values, codes = np.unique(column, return_inverse=True)
            return np.array([self.holds(value) for value in values.tolist()], dtype=np.bool_)[codes]
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
    found = _SHAPE.fullmatch(written)
    if found is None:
        return None
    column, sign, right = found["column"], found["sign"], found["value"]
    is_text = len(right) >= 2 and right[0] == right[-1] and right[0] in "'\""
    value: float | str = right[1:-1] if is_text else as_number(right)
    if value != value:
        value = right
    if isinstance(value, str) and (not value or sign not in ("==", "!=")):
        raise InvalidInput(
            f"the group {written!r} must compare a column with a number, or with a text by == or !=; "
            "write for example 'age >= 60' or \"city == 'Paris'\""
        )
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
