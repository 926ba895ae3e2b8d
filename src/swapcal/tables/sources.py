"""Tables of text, CSV and JSON lines, from a path, standard input or a stream: unpacked, counted, in pieces of rows."""

import csv
import difflib
import gzip
import importlib
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, NamedTuple

from swapcal.errors import DataError, InvalidInput, MissingExtra
from swapcal.inputs import short_repr

# --------
# Packages that only some readers need, imported when they do.


def package(module: str, purpose: str, *, extra: str = "files") -> Any:
    """The module, or one sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            why = f"{purpose} needs the package {name}; install it with  pip install 'swapcal[{extra}]'"
        else:
            # It is there and does not load: what it says itself tells more than that it is missing.
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            there = f"{purpose} needs the package {name}, which is installed and cannot be loaded: {reason}"
            why = f"{there}; install versions that fit each other: pip install --upgrade 'swapcal[{extra}]'"
        raise MissingExtra(why) from error


# Libraries that can hold a frame, in the order in which they are looked for.
FRAMES = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """Columns as a frame of pandas, polars or pyarrow; None takes the first that is installed."""
    if backend is not None and backend not in FRAMES:
        known = f"one of {', '.join(FRAMES)}, or None for whichever is there"
        raise InvalidInput(f"backend must be {known}; got {backend!r}")
    narwhals = package("narwhals", "frames", extra="report")
    installed = [name for name in FRAMES if find_spec(name) is not None]
    chosen = backend if backend is not None else next(iter(installed), None)
    if chosen is None:
        raise MissingExtra(f"frames need one of {', '.join(FRAMES)}: install with  pip install pandas")
    if chosen not in installed:
        raise MissingExtra(f"{chosen} is not installed: install with  pip install {chosen}, or give another backend")
    return narwhals.from_dict(dict(columns), backend=chosen).to_native()


# Bytes that are looked at before it is decided what they are.
HEAD = 1 << 16

_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the sheet as CSV",
    b"BZh": "packed with bzip2; unpack it first",
    b"\xfd7zXZ": "packed with xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it first",
    b"\xff\xfe": "text in UTF-16; save it as UTF-8",
    b"\xfe\xff": "text in UTF-16; save it as UTF-8",
    b"SQLite": "an SQLite database; export the table as CSV",
}


class Counted:
    """A binary stream that counts what was read of it."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.count = raw, 0

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        data: bytes = self.raw.read(size)
        self.count += len(data)
        return data


class Descriptor:
    """An open file, closed when nobody needs it any more: an error may leave records half read and hard to reach."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        parts: list[bytes] = []
        while self._number is not None and size and (part := os.read(self._number, size if size > 0 else HEAD)):
            parts.append(part)
            size = max(size - len(part), 0) if size > 0 else size
        return b"".join(parts)

    def close(self) -> None:
        """Close it; reading then gives nothing."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def __del__(self) -> None:
        self.close()


class Source:
    """A stream of unpacked bytes whose head can be looked at first."""

    def __init__(self, name: str, raw: Any, size: int | None, *, own: bool, file: str | int | None = None) -> None:
        self._own, self.raw, self.file = own, raw, file
        # What was left out at the end, as a sentence.
        self.held: str | None = None
        self.name, self.size, self._counted = name, size, Counted(raw)
        self._stream: Any = self._counted
        self.head = b""
        self.head = self._stream_read(HEAD)
        if self.head[:2] == b"\x1f\x8b":
            packed: Any = Rest(self.head, self._counted)
            self._stream = gzip.GzipFile(fileobj=packed)
            self.head = b""
            self.head = self._stream_read(HEAD)
        # Where in the head reading begins.
        self.start = 0

    def _stream_read(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise DataError(f"{self.name} cannot be read to its end ({error}); copy or unpack it again") from error
        if not isinstance(data, bytes):
            raise DataError(f"{self.name} gives text; open it as a binary stream, for example with mode 'rb'")
        return data

    def more_head(self) -> bool:
        """Look at more of the beginning; False at the end."""
        data = self._stream_read(HEAD)
        self.head += data
        return bool(data)

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        data, self.head, self.start = self.head[self.start :], b"", 0
        if 0 <= size < len(data):
            data, self.head = data[:size], data[size:]
        elif size != len(data):
            data += self._stream_read(size - len(data) if size >= 0 else size)
        return data

    @property
    def done(self) -> int:
        """Bytes of the file, as it is packed, that have been read."""
        return self._counted.count

    def check(self) -> None:
        """Refuse what holds nothing, or is of a kind that is not read here."""
        if not self.head.strip():
            raise DataError(f"{self.name} is empty; it needs a line of column names and at least one row")
        for magic, what in _FOREIGN.items():
            if self.head.startswith(magic):
                raise DataError(f"{self.name} is {what}")
        if b"\x00" in self.head[:4096]:
            raise DataError(f"{self.name} holds bytes that are no text; give a CSV, JSON lines or Parquet file")

    def hold(self, what: str) -> None:
        """Note that the last line was left out because it may not be whole yet."""
        waits = f"the last line of {self.name}, {what}, has no line end yet and waits for it"
        self.held = f"{waits}; if the file is complete, add a line end"

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._own:
            self.raw.close()


class Rest:
    """A stream from which some bytes were taken, put back in front of it."""

    def __init__(self, head: bytes, stream: Counted) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        if not self._head:
            return self._stream.read(size)
        data, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        return data


def open_source(source: Any) -> Source:
    """Open a path, "-" for standard input, or take a binary stream as it is."""
    if hasattr(source, "read"):
        return Source(str(getattr(source, "name", None) or "the stream"), source, None, own=False, file=_number(source))
    path = os.fspath(source)
    if path == "-":
        return Source("standard input", sys.stdin.buffer, None, own=False, file=_number(sys.stdin))
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder; give one file in it")
    try:
        file = Descriptor(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check the name and the folder, {os.getcwd()}") from None
    except PermissionError:
        raise DataError(f"{path} may not be read by this user; change its permissions") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{short_repr(path)} cannot be opened ({error}); check the name") from None
    # A pipe or a device has no size that says anything.
    status = os.stat(path)
    return Source(path, file, status.st_size if stat.S_ISREG(status.st_mode) else None, own=True, file=path)


def _number(stream: Any) -> int | None:
    """The number of the open file behind a stream, if there is one."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return number if isinstance(number, int) else None


# --------
# What every reader gives: a table that comes in pieces.


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
    bytes_total: int | None = None
    bytes_done: Callable[[], int] = lambda: 0
    close: Callable[[], None] = lambda: None
    # Rows in front of the first piece that the reader has already passed over.
    skipped: int = 0
    # The path that was opened, or the number of an open file; None for what is in memory.
    file: str | int | None = None
    # After the last piece: what was left out of it, as a sentence.
    held: Callable[[], str | None] = lambda: None


def nearest(column: str, there: Sequence[str]) -> str:
    """What was meant by a column that is not there, or which ones there are."""
    near = difflib.get_close_matches(column, there, 1, cutoff=0.5)
    near = near or [each for each in there if each.startswith(f"{column},")]
    listed = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
    marks = " In --groups it stands in double quotes." if near and set(near[0]) & set(",*<>=!") else ""
    return f"did you mean {near[0]!r}?{marks}" if near else f"there are {listed}"


def chosen(name: str, there: Sequence[str], wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to read, each once; an error for one that is not there, or that is there twice."""
    if wanted is None:
        return tuple(dict.fromkeys(there))
    for column in wanted:
        if column not in there:
            raise DataError(f"there is no column {column!r} in {name}; {nearest(column, there)}")
        if list(there).count(column) > 1:
            raise DataError(f"there are several columns {column!r} in {name}; rename all but one")
    return tuple(dict.fromkeys(wanted))


# --------
# Text tables in blocks of whole rows: where a row ends, line ends inside of quotation marks being no ends.

# Bytes that are read at once.
BLOCK = 1 << 21

# Bytes of the longest row.
LONGEST = 1 << 24


def parsed(
    source: Source, delimiter: str, width: int, parse: Callable[[bytes, int], Piece], *, whole_lines: bool = False
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
            long = f"row {done + 1}: it is longer than {LONGEST >> 20} MB"
            raise DataError(f"{source.name}, {long}; look for a quotation mark that is not closed")
        # Free this piece before the next one is parsed, so that only one is in memory.
        del piece
    if whole_lines and not rest.endswith((b"\n", b"\r")) and rest.strip():
        n_rows, end = rows.count(rest) if b'"' in rest else (rest.count(b"\n"), rest.rfind(b"\n") + 1)
        if b"\n" not in rest[end:]:  # else a quotation mark is open over several lines, which is told below
            source.hold(f"row {done + n_rows + 1:,}")
            rest = rest[:end]
    n_rows, end = rows.count(rest) if b'"' in rest else (0, len(rest))
    if rows.last.fullmatch(rest, end) is None:
        mark = f"row {done + n_rows + 1}: a quotation mark is opened and never closed"
        raise DataError(f"{source.name}, {mark}; close it, or double it if it belongs to the text")
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
        while match := self.any.match(data, end):
            n_rows, end = n_rows + 1, match.end()
        return n_rows, end


# --------
# CSV and its relatives, parsed by pyarrow block by block, as plain bytes; what they mean is decided by who asks.

# What a cell says when its value is missing; in quotes it is a text, unless a number is asked for.
NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")

_DELIMITERS = ",;\t|"


def open_delimited(source: Source, columns: Sequence[str] | None, *, whole_lines: bool = False) -> Table:
    """A text table with a line of column names; the delimiter is the commonest of , ; tab and | in that line."""
    names, delimiter = _header(source)
    wanted = chosen(source.name, names, columns)
    # pyarrow knows columns by their place: names may be there twice.
    places = {name: str(names.index(name)) for name in wanted}
    pieces = _pieces(source, delimiter, len(names), places, whole_lines=whole_lines)
    return Table(source.name, wanted, pieces, None, source.size, lambda: source.done, source.close)


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
        what = f"{source.name} begins with text that is not UTF-8 ({error.reason})"
        raise DataError(f"{what}; save it as UTF-8") from None
    except (csv.Error, StopIteration) as error:
        raise DataError(f"the first line of {source.name} is no line of column names ({error})") from None
    source.start = begin + sum(map(len, lines[: reader.line_num]))
    return names, delimiter


def _pieces(
    source: Source, delimiter: str, width: int, places: dict[str, str], *, whole_lines: bool
) -> Iterator[Piece]:
    arrow, arrow_csv = package("pyarrow", "reading CSV"), package("pyarrow.csv", "reading CSV")
    # Line ends inside quotes are rare, but if they were not allowed the rows of such a file would come apart.
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
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
        try:
            table = arrow_csv.read_csv(arrow.BufferReader(block), read, parse, convert)
        except arrow.ArrowCancelled:
            # pyarrow listens to Ctrl-C by itself, and reports it as an error of its own.
            raise KeyboardInterrupt from None
        except arrow.ArrowInvalid as error:
            raise _refused(source.name, done, width, delimiter, error) from None
        return Piece(table.num_rows, {name: table.column(place).combine_chunks() for name, place in places.items()})

    return parsed(source, delimiter, width, parse_block, whole_lines=whole_lines)


def _refused(name: str, done: int, width: int, delimiter: str, error: Exception) -> DataError:
    # pyarrow counts rows from 1; it has a handler for such rows too, which fails where their bytes are no text.
    wrong = re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", str(error))
    if wrong is None:
        return DataError(f"{name}, behind row {done}: it cannot be parsed ({error}); correct it")
    cells = f"row {done + int(wrong[1])}: it has {wrong[2]} cells where the header has {width}"
    return DataError(f"{name}, {cells}; put cells that hold a {delimiter!r} in quotes, or complete the row")


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
    wanted = chosen(name, there, columns) if first else tuple(columns or ())
    return Table(name, wanted, _json_pieces(name, first, stream, wanted, batch_rows), n_rows)


def _json_pieces(
    name: str, first: list[Mapping[str, Any]], stream: Iterator[Mapping[str, Any]], wanted: Sequence[str], size: int
) -> Iterator[Piece]:
    rows = chain(first, stream)
    done = 0
    while True:
        columns: dict[str, list[Any]] = {column: [] for column in wanted}
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
