"""What a user may ask for as a group, read once: columns, intersections, comparisons and functions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from swapcal.checked import shown
from swapcal.errors import InvalidInput, StateFileError
from swapcal.tables.comparisons import ColumnComparison, parse_comparison

__all__ = ["Definitions", "Function", "Key", "definitions", "groups_from_spec"]

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
    if isinstance(groups, str) or not hasattr(groups, "__iter__"):
        raise InvalidInput(f"groups must be a list, each entry {_ALLOWED}; got {shown(groups)}")
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
                raise InvalidInput(
                    f"an intersection joins columns, and {compared!r} is a comparison; add a column that says whether "
                    f"it holds and join that one, or ask for {compared!r} and the other columns side by side, with a "
                    "comma"
                )
            yield Key(tuple(one))
        else:
            raise InvalidInput(f"a group must be {_ALLOWED}; got {shown(one)}")


def _named(written: str) -> Key | ColumnComparison:
    if not written.strip():
        raise InvalidInput(f"a group must be {_ALLOWED}; got an empty name")
    return parse_comparison(written) or Key((written,))


def groups_from_spec(spec: Any) -> list[str | tuple[str, ...]]:
    """The argument of `Groups` behind what `Definitions.spec` wrote; functions cannot be rebuilt."""
    lost = [one["function"] for one in spec["fixed"] if "function" in one]
    if lost:
        raise StateFileError(
            f"the groups hold a function of your own, {lost[0]!r}, which no file stores; pass hypotheses= to load"
        )
    return [*(one["compare"] for one in spec["fixed"]), *(tuple(columns) for columns in spec["keys"])]
