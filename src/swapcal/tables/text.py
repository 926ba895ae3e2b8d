"""JSON lines, and anything else that gives one mapping for each row."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from swapcal.errors import DataError
from swapcal.inputs import short_repr
from swapcal.tables.sources import Piece, Source, Table, chosen, package

# --------
# Text tables in blocks of whole rows: where a row ends, line ends inside of quotation marks being no ends.

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


# --------
# CSV and its relatives, parsed by pyarrow block by block, as plain bytes; what they mean is decided by who asks.

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")
"""What a cell says when its value is missing; in quotes it is a text, unless a number is asked for."""

_DELIMITERS = ",;\t|"


def open_delimited(source: Source, columns: Sequence[str] | None, *, whole_lines: bool = False) -> Table:
    """A text table with a line of column names; the delimiter is the commonest of , ; tab and | in that line."""
    names, delimiter = _header(source)
    kept = chosen(source.name, names, columns)
    # pyarrow knows columns by their place: names may be there twice.
    places = {name: str(names.index(name)) for name in kept}
    pieces = _pieces(source, delimiter, len(names), places, whole_lines=whole_lines)
    return Table(source.name, kept, pieces, None, source.size, lambda: source.done, source.close)


def _header(source: Source) -> tuple[list[str], str]:
    """The column names and the delimiter; the source goes on behind them."""
    while b"\n" not in source.head.strip() and len(source.head) < BLOCK and source.more_head():
        pass
    begin = 3 if source.head.startswith(b"\xef\xbb\xbf") else 0
    lines = source.head[begin:].splitlines(keepends=True)
    first = next(line for line in lines if line.strip()).decode("utf-8", "replace")
    delimiter = "\t" if source.name.endswith((".tsv", ".tsv.gz")) else max(_DELIMITERS, key=first.count)
    reader = csv.reader((line.decode("utf-8") for line in lines), delimiter=delimiter)
    try:
        names = [name.strip() for name in next(row for row in reader if row)]
    except UnicodeDecodeError as error:
        raise DataError(
            f"{source.name} begins with text that is not UTF-8 ({error.reason}); save it as UTF-8"
        ) from None
    except (csv.Error, StopIteration) as error:
        raise DataError(f"the first line of {source.name} is no line of column names ({error})") from None
    source.start = begin + sum(map(len, lines[: reader.line_num]))
    return names, delimiter


def _pieces(
    source: Source, delimiter: str, width: int, places: dict[str, str], *, whole_lines: bool
) -> Iterator[Piece]:
    arrow, arrow_csv = package("pyarrow", "reading CSV"), package("pyarrow.csv", "reading CSV")
    wrong: list[Any] = []

    def on_wrong(row: Any) -> str:
        wrong.append(row)
        return "error"

    # Line ends inside quotes are rare, but if they were not allowed the rows of such a file would come apart.
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_wrong)
    convert = arrow_csv.ConvertOptions(
        column_types={place: arrow.binary() for place in places.values()},
        # With no column at all pyarrow would read every one.
        include_columns=list(places.values()) or ["0"],
        strings_can_be_null=True,
        # "NA" in quotes is a text, such as a country's code; where a number is asked for it is missing all the same.
        quoted_strings_can_be_null=False,
        null_values=NULLS,
    )
    names = [str(j) for j in range(width)]

    def parse_block(block: bytes, done: int) -> Piece:
        if not block.strip():
            return Piece(0, {name: arrow.array([], arrow.binary()) for name in places})
        read = arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
        wrong.clear()
        try:
            table = arrow_csv.read_csv(arrow.BufferReader(block), read, parse, convert)
        except arrow.ArrowCancelled:
            # pyarrow listens to Ctrl-C by itself, and reports it as an error of its own.
            raise KeyboardInterrupt from None
        except arrow.ArrowInvalid as error:
            raise _refused(source.name, done, width, delimiter, wrong, error) from None
        return Piece(table.num_rows, {name: table.column(place).combine_chunks() for name, place in places.items()})

    return parsed(source, delimiter, width, parse_block, whole_lines=whole_lines)


def _refused(name: str, done: int, width: int, delimiter: str, wrong: list[Any], error: Exception) -> DataError:
    if not wrong:
        return DataError(f"{name}, behind row {done}: it cannot be parsed ({error}); correct it")
    # pyarrow counts rows from 1.
    return DataError(
        f"{name}, row {done + wrong[0].number}: it has {wrong[0].actual_columns} cells where the header has {width}; "
        f"put cells that hold a {delimiter!r} in quotes, or complete the row"
    )


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
    return Table(name, kept, _json_pieces(name, first, stream, kept, batch_rows), n_rows, None, lambda: 0, lambda: None)


def _json_pieces(
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
        raise DataError(f"{name}, row {at + 1}: it must be a mapping from column to value; got {short_repr(row)}")


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
        source.hold(f"which begins with {short_repr(rest[:20])}")
    else:
        yield rest
