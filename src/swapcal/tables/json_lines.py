"""JSON lines, and anything else that gives one mapping for each row."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from swapcal.checked import shown
from swapcal.errors import DataError
from swapcal.tables.sources import Source
from swapcal.tables.table import Piece, Table, chosen

__all__ = ["open_json_lines", "open_mappings"]

_BLOCK = 1 << 20
_LONGEST = 1 << 26


def open_json_lines(
    source: Source, columns: Sequence[str] | None, batch_rows: int, *, whole_lines: bool = False
) -> Table:
    """One JSON object a line."""
    table = open_mappings(_objects(source, whole_lines), source.name, columns, batch_rows)
    return table._replace(bytes_total=source.size, bytes_done=lambda: source.done, close=source.close)


def open_mappings(
    rows: Iterable[Mapping[str, Any]], name: str, columns: Sequence[str] | None, batch_rows: int
) -> Table:
    """Mappings from column to value; the columns are those of the first `batch_rows` rows."""
    n_rows = len(rows) if isinstance(rows, Sequence) else None
    stream = iter(rows)
    first = list(islice(stream, batch_rows))
    for at, row in enumerate(first):
        _check(name, at, row)
    there = list(dict.fromkeys(str(key) for row in first for key in row))
    kept = chosen(name, there, columns) if first else tuple(columns or ())
    return Table(name, kept, _pieces(name, first, stream, kept, batch_rows), n_rows, None, lambda: 0, lambda: None)


def _pieces(
    name: str, first: list[Mapping[str, Any]], stream: Iterator[Mapping[str, Any]], kept: Sequence[str], size: int
) -> Iterator[Piece]:
    rows = chain(first, stream)
    done = 0
    while True:
        columns: dict[str, list[Any]] = {column: [] for column in kept}
        n = 0
        for row in islice(rows, size):
            _check(name, done + n, row)
            for column, values in columns.items():
                values.append(row.get(column))
            n += 1
        first.clear()
        if not n:
            return
        done += n
        yield Piece(n, columns)


def _check(name: str, at: int, row: Any) -> None:
    if not isinstance(row, Mapping):
        raise DataError(f"{name}, row {at + 1}: it must be a mapping from column to value; got {shown(row)}")


def _objects(source: Source, whole_lines: bool) -> Iterator[dict[str, Any]]:
    done = 0
    for line in _lines(source, whole_lines):
        if not line.strip():
            continue
        done += 1
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            why = "the text is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            why = "it is nested too deeply" if isinstance(error, RecursionError) else why
            raise DataError(f"{source.name}, row {done}: it is not one JSON object ({why}); write one a line") from None


def _lines(source: Source, whole_lines: bool) -> Iterator[bytes]:
    rest = b""
    while block := source.read(_BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST:
            raise DataError(f"{source.name} has a line of more than {_LONGEST >> 20} MB; write one JSON object a line")
    if whole_lines and rest.strip():
        source.hold(f"which begins with {shown(rest[:20])}")
    else:
        yield rest
