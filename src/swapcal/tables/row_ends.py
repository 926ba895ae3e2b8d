"""Text tables in blocks of whole rows: where a row ends, line ends inside of quotation marks being no ends."""

import re
from collections.abc import Callable, Iterator

from swapcal.errors import DataError
from swapcal.tables.sources import Source
from swapcal.tables.table import Piece

__all__ = ["BLOCK", "parsed"]

BLOCK = 1 << 21
"""Bytes that are read at once."""

LONGEST = 1 << 24
"""Bytes of the longest row."""


def parsed(
    source: Source,
    delimiter: str,
    width: int,
    parse: Callable[[bytes, int], Piece],
    *,
    whole_lines: bool = False,
) -> Iterator[Piece]:
    """The rest of a source, cut behind rows and parsed; `parse` takes a block and the number of rows before it.

    With `whole_lines` a last line without a line end is left out, and noted in the source.

    Reading happens here, in the caller's thread: a library that reads ahead in threads of its own, from a Python
    stream, brings the interpreter down if the program ends before the file.
    """
    rows = RowEnds(delimiter, width)
    rest, done = b"", 0
    while data := source.read(BLOCK):
        rest += data
        piece, end = _parsed(rest, rows.end(rest), done, rows, parse)
        if piece is not None:
            rest, done = rest[end:], done + piece.n
            yield piece
        elif len(rest) > LONGEST:
            raise DataError(
                f"{source.name}, row {done + 1}: it is longer than {LONGEST >> 20} MB; "
                "look for a quotation mark that is not closed"
            )
        # Free this piece before the next one is parsed, so that only one is in memory.
        del piece
    if whole_lines and not rest.endswith((b"\n", b"\r")) and rest.strip():
        n_rows, end = rows.count(rest) if b'"' in rest else (rest.count(b"\n"), rest.rfind(b"\n") + 1)
        if b"\n" not in rest[end:]:  # else a quotation mark is open over several lines, which is told below
            source.hold(f"row {done + n_rows + 1:,}")
            rest = rest[:end]
    n_rows, end = rows.count(rest) if b'"' in rest else (0, len(rest))
    if rows.last.fullmatch(rest, end) is None:
        raise DataError(
            f"{source.name}, row {done + n_rows + 1}: a quotation mark is opened and never closed; "
            "close it, or double it if it belongs to the text"
        )
    if rest.strip():
        yield parse(rest, done)


def _parsed(
    data: bytes, end: int, done: int, rows: "RowEnds", parse: Callable[[bytes, int], Piece]
) -> tuple[Piece | None, int]:
    """A piece and where it ends; None if there is no whole row yet."""
    if not end:
        return None, 0
    marked = data.find(b'"', 0, end) >= 0
    try:
        piece = parse(data[:end], done)
        if not marked or piece.n == data.count(b"\n", 0, end):
            return piece, end
    except DataError:
        if not marked:
            raise
    # A cell with line ends, an empty line, or a wrong row: look at every row to be sure that the end is one.
    exact = rows.count(data[:end])[1]
    return (parse(data[:exact], done), exact) if exact else (None, 0)


class RowEnds:
    """Where rows end. A quotation mark counts only where a cell begins, and there until the next single one."""

    def __init__(self, delimiter: str, width: int) -> None:
        d = re.escape(delimiter).encode()
        cell = rb'(?:"(?:[^"]++|"")*+"[^%b\r\n]*+|[^"%b\r\n][^%b\r\n]*+|)' % (d, d, d)
        row = rb"%b(?:%b%b)*+" % (cell, d, cell)
        self.any = re.compile(rb"%b(?:\r\n|\n|\r(?=.))" % row, re.DOTALL)
        self.whole = re.compile(rb"%b(?:%b%b){%d}\r?\n" % (cell, d, cell, width - 1))
        self.last = re.compile(rb"(?:%b)?" % row)

    def end(self, data: bytes) -> int:
        """Behind the last whole row, in all likelihood; 0 if there is none."""
        end = data.rfind(b"\n") + 1
        line = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
        # Marks come in pairs, but for stray ones inside of cells, and a line inside of a cell is hardly a row.
        likely = end and data.count(b'"', 0, end) % 2 == 0 and self.whole.fullmatch(data, line, end)
        return end if likely else self.count(data)[1]

    def count(self, data: bytes) -> tuple[int, int]:
        """How many whole rows there are, looking at each, and where the last of them ends."""
        n_rows = end = 0
        while found := self.any.match(data, end):
            n_rows, end = n_rows + 1, found.end()
        return n_rows, end
