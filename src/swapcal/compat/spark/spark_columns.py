"""Which column is what: checked against a DataFrame's schema before anything runs."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swapcal.errors import InvalidInput

__all__ = ["SparkColumns"]

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
_TIMES = (*_NUMBERS, "timestamp", "timestamp_ntz", "date")
_KEYS = ("string", "tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class SparkColumns:
    """The names of the columns that are read, and the one that is made."""

    key: str
    y: str
    hint: str | None
    groups: tuple[str, ...]
    time: tuple[str, ...]
    known: str | None = None
    id: str | None = None
    output: str = "forecast"

    @property
    def read(self) -> list[str]:
        """All that are read, each once."""
        single = [name for name in (self.key, self.y, self.hint, self.known, self.id) if name is not None]
        return list(dict.fromkeys([*single, *self.time, *self.groups]))

    def check(self, types: Sequence[tuple[str, str]]) -> None:
        """One sentence about the first column that is missing or of the wrong type; `types` is `DataFrame.dtypes`."""
        there = dict(types)
        for name in self.read:
            if name not in there:
                near = difflib.get_close_matches(name, list(there), 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, list(there)[:20]))}"
                raise InvalidInput(f"there is no column {name!r}; {hint}")
        wanted: list[tuple[str | None, str, tuple[str, ...], str]] = [
            (self.key, "key", _KEYS, "a string or a whole number"),
            (self.y, "y", _NUMBERS, "a number"),
            (self.hint, "hint", _NUMBERS, "a number"),
            (self.known, "known", _TIMES, "a time or a number"),
            (self.id, "id", _KEYS, "a string or a whole number"),
            *((name, "time", (*_TIMES, "string"), "a time, a number or a string") for name in self.time[1:]),
            *((name, "time", _TIMES, "a time or a number") for name in self.time[:1]),
        ]
        for column, what, allowed, words in wanted:
            if column is not None and there[column].partition("(")[0] not in allowed:
                raise InvalidInput(
                    f"{what}={column!r} is a column of type {there[column]}; it must be {words}: cast it first"
                )
        for name in self.groups:
            if there[name].partition("<")[0] in ("array", "map", "struct", "binary", "variant"):
                raise InvalidInput(f"groups are made from plain columns; {name!r} is of type {there[name]}")
        if self.output in there:
            raise InvalidInput(f"there is a column {self.output!r} already; name the new one with output=")


def named(value: Any, what: str) -> tuple[str, ...]:
    """A name or several as a tuple."""
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{what} takes names of columns; got {value!r}")
    return names
