"""What every reader gives: a table that comes in pieces."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from swapcal.errors import DataError

__all__ = ["Piece", "Table", "chosen"]


class Piece(NamedTuple):
    """Some rows: equally long columns (pyarrow arrays, NumPy arrays or lists) by name."""

    n: int
    columns: Mapping[str, Any]


class Table(NamedTuple):
    """An opened source: the columns that are read, its pieces, and what is known of its size and of the way gone."""

    name: str
    columns: tuple[str, ...]
    pieces: Iterator[Piece]
    n_rows: int | None
    bytes_total: int | None
    bytes_done: Callable[[], int]
    close: Callable[[], None]
    skipped: int = 0
    """Rows in front of the first piece that the reader has already passed over."""
    file: str | int | None = None
    """The path that was opened, or the number of an open file; None for what is in memory."""
    held: Callable[[], str | None] = lambda: None
    """After the last piece: what was left out of it, as a sentence."""


def chosen(name: str, there: Sequence[str], wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to read, each once; an error for one that is not there, or that is there twice."""
    if wanted is None:
        return tuple(dict.fromkeys(there))
    for column in wanted:
        if column not in there:
            near = difflib.get_close_matches(column, there, 1, cutoff=0.5)
            listed = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            hint = f"did you mean {near[0]!r}?" if near else f"it has {listed}"
            raise DataError(f"there is no column {column!r} in {name}; {hint}")
        if list(there).count(column) > 1:
            raise DataError(f"there are several columns {column!r} in {name}; rename all but one")
    return tuple(dict.fromkeys(wanted))
