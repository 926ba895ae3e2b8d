"""Records in: files, streams, frames, mappings and lists, in batches of bounded size."""

import io
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, BinaryIO, cast

import numpy as np

from swapcal.errors import DataError
from swapcal.inputs import integer, short_repr
from swapcal.tables.batch import Batch, cut
from swapcal.tables.sources import (
    Piece,
    Table,
    chosen,
    open_delimited,
    open_json_lines,
    open_mappings,
    open_source,
    package,
)

# --------
# Frames of any make through narwhals, and mappings of arrays.


def open_arrays(arrays: Mapping[str, Any], columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A mapping from name to array or list, all equally long."""
    name = "the mapping"
    names = chosen(name, [str(column) for column in arrays], columns)
    lengths = {column: _length(column, arrays[column]) for column in names}
    n_rows = next(iter(lengths.values()), 0)
    for column, length in lengths.items():
        if length != n_rows:
            lengths_of = f"column {column!r} of {name} has {length} rows and {names[0]!r} has {n_rows}"
            raise DataError(f"{lengths_of}; cut or fill it")
    return _in_memory(name, names, n_rows, batch_rows, skip, lambda column, part: arrays[column][part])


def _in_memory(
    name: str, names: tuple[str, ...], n_rows: int, batch_rows: int, skip: int, part_of: Callable[[str, slice], Any]
) -> Table:
    """A table of which `part_of` gives some rows of a column."""

    def pieces() -> Iterator[Piece]:
        for start in range(skip, n_rows, batch_rows):
            part = slice(start, min(start + batch_rows, n_rows))
            yield Piece(part.stop - start, {column: part_of(column, part) for column in names})

    return Table(name, names, pieces(), n_rows, skipped=min(skip, n_rows))


def open_frame(frame: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A frame of pandas, polars, pyarrow or another library that narwhals knows."""
    narwhals = package("narwhals", "reading a frame")
    try:
        table = narwhals.from_native(frame)
    except narwhals.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"the frame has several columns of the same name ({reason}); rename all but one") from None
    except TypeError:
        sources = "a path, '-', a binary stream, a frame, a mapping of arrays or mappings"
        raise DataError(f"records come from {sources}; got {type(frame).__name__}") from None
    if isinstance(table, narwhals.LazyFrame):
        table = table.collect()
    name = f"the {type(frame).__module__.partition('.')[0]} frame"
    # A column whose name is no text cannot be asked for.
    names = chosen(name, [column for column in table.columns if isinstance(column, str)], columns)

    def part_of(column: str, part: slice) -> Any:
        return _part(name, column, table[column][part])

    return _in_memory(name, names, len(table), batch_rows, skip, part_of)


def _part(name: str, column: str, series: Any) -> Any:
    """A part of a column as a pyarrow array; as a list where its entries are of several types, or of a frame's own."""
    arrow = package("pyarrow", "reading a frame")
    try:
        array = series.to_arrow()
        array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    except (arrow.ArrowException, TypeError, ValueError):
        return series.to_list()
    kind = array.type.value_type if arrow.types.is_dictionary(array.type) else array.type
    if arrow.types.is_run_end_encoded(kind):
        return package("pyarrow.compute", "reading a frame").run_end_decode(array)
    if isinstance(kind, arrow.BaseExtensionType):
        return series.to_list()
    if arrow.types.is_nested(kind):
        raise DataError(f"column {column!r} of {name} holds {kind} values; give a column of texts or numbers")
    return array


def _length(column: str, values: Any) -> int:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or np.ndim(values) > 1:
        raise DataError(f"column {column!r} of the mapping must be a flat array or list; got {type(values).__name__}")
    return len(values)


# --------
# Parquet, row group by row group.

# Bytes that are read of a column at once; without it a whole column of a row group would be.
_BUFFER = 1 << 20


def open_parquet(name: str, file: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A path or a binary stream that can seek; whole row groups in front of row `skip` are not even read."""
    arrow, parquet = package("pyarrow", "reading Parquet"), package("pyarrow.parquet", "reading Parquet")
    options = {"pre_buffer": False, "buffer_size": _BUFFER}
    try:
        opened = parquet.ParquetFile(file, **options)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{name} is not a whole Parquet file ({_first_line(error)}); copy or write it again") from error
    names = chosen(name, opened.schema_arrow.names, columns)
    for column in names:
        kind = opened.schema_arrow.field(column).type
        if arrow.types.is_nested(kind):
            if columns is not None:
                raise DataError(f"column {column!r} of {name} holds {kind} values; give a column of texts or numbers")
            names = tuple(one for one in names if one != column)
    groups, skipped = list(range(opened.metadata.num_row_groups)), 0
    while groups and skipped + opened.metadata.row_group(groups[0]).num_rows <= skip:
        skipped += opened.metadata.row_group(groups.pop(0)).num_rows
    size, n_rows, way = os.path.getsize(file) if isinstance(file, str) else None, opened.metadata.num_rows, [skipped]
    pieces = _pieces(name, opened, names, groups, batch_rows, way)
    # Parquet is not read from one end to the other: the share of rows stands for the share of bytes.
    share: Callable[[], int] = lambda: 0 if size is None else size * way[0] // max(n_rows, 1)  # noqa: E731
    return Table(name, names, pieces, n_rows, size, share, opened.close, skipped)


def _pieces(
    name: str, opened: Any, names: Sequence[str], groups: list[int], batch_rows: int, way: list[int]
) -> Iterator[Piece]:
    arrow = package("pyarrow", "reading Parquet")

    def piece(batch: Any) -> Piece:
        # A function, so that nothing here holds on to a batch while the next one is made.
        way[0] += batch.num_rows
        return Piece(batch.num_rows, {column: batch.column(column) for column in names})

    try:
        yield from map(
            piece, opened.iter_batches(batch_rows, row_groups=groups, columns=list(names), use_threads=False)
        )
    except (arrow.ArrowException, OSError) as error:
        why = _first_line(error)
        raise DataError(f"{name} is broken behind row {way[0]} ({why}); copy or write it again") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


class Records(AbstractContextManager["Records"]):
    """Batches of a source, one after the other, once: iterate, or take them with `next`.

    Parameters
    ----------
    table : Table
        The opened source.
    skip : int
        Rows to pass over.
    batch_rows : int
        Rows of a batch.

    Examples
    --------
    >>> records = read([{"y": 1.0}, {"y": 0.0}, {"y": 1.0}], batch_rows=2)
    >>> [len(batch) for batch in records]
    [2, 1]
    """

    def __init__(self, table: Table, skip: int, batch_rows: int) -> None:
        self._table, self._skip, self._batch_rows = table, skip, batch_rows
        self._row, self._done = table.skipped, 0
        # What messages call the source, and the columns that are read.
        self.name, self.columns = table.name, table.columns
        # Rows of the whole source, with those that are skipped, and bytes of the file; None where that is not known.
        self.n_rows, self.bytes_total = table.n_rows, table.bytes_total
        # The path that was opened, or the number of the open file that is read; None for what is in memory.
        self.file = table.file
        # Whether cells that are no numbers are passed over, and noted in the batches.
        self.lenient = False
        if not self._fetch() and self._row == 0:
            raise DataError(f"{table.name} has no rows; it needs at least one")

    @property
    def held(self) -> str | None:
        """After the last batch, with `whole_lines`: a sentence about a last line that was left out."""
        return self._table.held()

    @property
    def bytes_done(self) -> int:
        """How many of these bytes the batches so far have taken, about; it never falls."""
        return self._done

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """The next `batch_rows` rows; fewer only at the end."""
        parts: list[Mapping[str, Any]] = []
        n = 0
        while n < self._batch_rows and (self._piece is not None or self._fetch()):
            part, taken = self._take(self._batch_rows - n)
            parts += [part] if taken else []
            n += taken
        if not n:
            self.close()
            raise StopIteration
        self._done = max(self._done, self._table.bytes_done())
        data = parts[0] if len(parts) == 1 else {name: _joined([part[name] for part in parts]) for name in self.columns}
        return Batch(self.name, self._row - n, n, data, self.lenient)

    def _fetch(self) -> bool:
        """The next piece that is not empty; False at the end."""
        self._piece, self._used = next((piece for piece in self._table.pieces if piece.n), None), 0
        return self._piece is not None

    def _take(self, most: int) -> tuple[Mapping[str, Any], int]:
        """Up to `most` rows of the piece, and how many; none if they are to be skipped. A piece used up is let go."""
        piece = cast(Piece, self._piece)
        passed = max(0, min(self._skip - self._row, piece.n - self._used))
        start = self._used + passed
        end = min(start + most, piece.n)
        self._row, self._used = self._row + passed + end - start, end
        if end == piece.n:
            self._piece = None
        if end - start == piece.n:
            return piece.columns, piece.n
        return {name: cut(column, start, end) for name, column in piece.columns.items()}, end - start

    def close(self) -> None:
        """Close the file; nothing comes after that."""
        self._piece, self._table = None, self._table._replace(pieces=iter(()))
        self._table.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _joined(columns: list[Any]) -> Any:
    if hasattr(columns[0], "slice"):
        return package("pyarrow", "reading files").concat_arrays(columns)
    return [value for column in columns for value in column]


def read(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    skip: int = 0,
    batch_rows: int = 65_536,
    whole_lines: bool = False,
) -> Records:
    """Open a table for one pass in batches; memory does not grow with its length.

    Parameters
    ----------
    source : path, "-", binary stream, frame, mapping of arrays, or iterable of mappings
        Files and streams: CSV (also tab, semicolon or bar between cells), JSON lines, either of them packed with gzip,
        and Parquet; told apart by how they begin. Frames: what narwhals knows. "-" is standard input.
    columns : sequence of str, optional
        Read only these; an error if one is not there.
    skip : int
        Rows to pass over.
    batch_rows : int
        Rows of a batch; the last has fewer.
    whole_lines : bool
        Leave out a last line without a line end: whoever writes to the file may be in the middle of it.

    Returns
    -------
    Records
        An iterator of batches.

    Examples
    --------
    >>> for batch in read({"y": [0, 1, 1], "city": ["Oslo", None, "Rome"]}, batch_rows=2):
    ...     print(batch.first, batch.numbers("y"), batch["city"].values)
    0 [0. 1.] ('Oslo',)
    2 [1.] ('Rome',)
    """
    wanted = None if columns is None else _names(columns)
    skip, batch_rows = integer(skip, "skip", 0), integer(batch_rows, "batch_rows", 1)
    if isinstance(source, (str, PathLike)) or hasattr(source, "read"):
        table = _open_bytes(source, wanted, batch_rows, skip, whole_lines)
    elif isinstance(source, Mapping):
        table = open_arrays(source, wanted, batch_rows, skip)
    elif isinstance(source, (list, tuple, Iterator)) or (
        isinstance(source, Iterable) and not hasattr(source, "columns")
    ):
        table = open_mappings(source, "the list of records", wanted, batch_rows)
    else:
        table = open_frame(source, wanted, batch_rows, skip)
    try:
        return Records(table, skip, batch_rows)
    except BaseException:
        table.close()
        raise


def _open_bytes(data: Any, columns: Sequence[str] | None, batch_rows: int, skip: int, whole_lines: bool) -> Table:
    source = open_source(data)
    try:
        json_name = source.name.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson"))
        if source.head.startswith(b"PAR1") or source.name.endswith((".parquet", ".pq")):
            table = _open_parquet(data, source, columns, batch_rows, skip)
        else:
            source.check()
            begin = source.head.lstrip()[:1]
            if begin == b"[" and json_name:
                raise DataError(f"{source.name} is one JSON array; write one object a line, as jq -c '.[]' does")
            if begin == b"{" or json_name:
                table = open_json_lines(source, columns, batch_rows, whole_lines=whole_lines)
            else:
                table = open_delimited(source, columns, whole_lines=whole_lines)
        return table._replace(file=source.file, held=lambda: source.held)
    except BaseException:
        source.close()
        raise


def _open_parquet(data: Any, source: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    if not source.head:
        raise DataError(f"{source.name} is empty; it needs columns and at least one row")
    if hasattr(data, "read"):
        if not data.seekable():
            raise DataError(f"{source.name} holds Parquet, which cannot be read from a pipe; save it to a file first")
        data.seek(0)
        return open_parquet(source.name, data, columns, batch_rows, skip)
    if source.size is None or not isinstance(source.file, str):
        raise DataError(f"{source.name} holds Parquet, which cannot be read from a pipe; give the file itself")
    source.close()
    return open_parquet(source.name, source.file, columns, batch_rows, skip)


def _names(columns: Any) -> list[str]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise DataError(f"columns must be a list of names; got {short_repr(columns)}")
    return list(columns)


# --------
# Rows of a file of text that grows, or of a pipe, as they come: whole lines, never a part of one.

PIECE = 1 << 20


def growing_batches(
    path: str,
    columns: Sequence[str] | None,
    *,
    follow: bool,
    pause: float = 1.0,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Batch]:
    """Batches of a CSV or JSON-lines file ("-" is standard input), each as soon as its lines are there.

    Parameters
    ----------
    path : str
        The file, not packed.
    columns : sequence of str, optional
        Read only these.
    follow : bool
        At the end of the file wait for more lines, for ever; else end there.
    pause : float
        Seconds between two looks at the file.
    wait : callable
        What waits; raising an exception of its own ends the following.

    Notes
    -----
    A line without its end is left until the end comes; the last line of a file that is not followed needs none. A cell
    of CSV may not hold a line break.
    """
    name = "standard input" if path == "-" else path
    stream = sys.stdin.buffer if path == "-" else _opened_lines(path)
    head, rest, done = b"", b"", 0
    try:
        while True:
            piece = stream.read1(PIECE) if hasattr(stream, "read1") else stream.read(PIECE)
            ended = not piece
            rest += piece
            cut = len(rest) if ended and not follow else rest.rfind(b"\n") + 1
            lines, rest = rest[:cut], rest[cut:]
            if not head and lines.lstrip()[:1] not in (b"", b"{"):
                at = lines.find(b"\n") + 1 or len(lines)
                head, lines = lines[:at], lines[at:]
            if lines.strip():
                for batch in read(_Named(head + lines, name), columns=columns):
                    yield Batch(name, done, batch.n, batch._data)
                    done += batch.n
            if ended:
                if not follow or path == "-":
                    return
                wait(pause)
    finally:
        if path != "-":
            stream.close()


class _Named(io.BytesIO):
    """Bytes with the name of the file that they come from."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def _opened_lines(path: str) -> BinaryIO:
    try:
        stream: Any = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}; give another file") from None
    head = stream.peek(4)[:4]
    if head[:2] == b"\x1f\x8b" or head == b"PAR1":
        stream.close()
        raise DataError(f"{path} is packed, so it cannot be followed as it grows; give CSV or JSON lines")
    file: BinaryIO = stream
    return file


# --------
# A source that can be read more than once: again from its file or frame, or from a temporary copy of its batches.


class RereadableSource(AbstractContextManager["RereadableSource"]):
    """The batches of a source, as often as they are asked for.

    Files and frames are opened again. What can be read only once (standard input, a pipe, an iterator, records that are
    open already) is copied on the way: the columns that are needed go to a temporary file without a name, which is gone
    when this is closed.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    columns : sequence of str, optional
        Read only these.
    n_passes : int
        How often it will be read, for the progress.

    Examples
    --------
    >>> with RereadableSource(iter([{"y": 1.0}, {"y": 0.0}]), ["y"]) as passes:
    ...     [[len(batch) for batch in passes.batches()] for _ in range(2)]
    [[2], [2]]
    """

    def __init__(self, source: Any, columns: Sequence[str] | None = None, *, n_passes: int = 2) -> None:
        self._source, self._columns, self._n_passes = source, columns, n_passes
        self._again = _readable_again(source)
        self._records = source if isinstance(source, Records) else read(source, columns=columns)
        self._copy = None if self._again else tempfile.TemporaryFile()  # noqa: SIM115
        self._before = self._done = 0
        self._begun = self.lenient = False
        self.name, self.file = self._records.name, self._records.file
        self.columns = self._records.columns
        self.n_rows = self._records.n_rows
        total = self._records.bytes_total
        # A copy is read in no time beside the text it was made from.
        self.bytes_total = None if total is None else total * (n_passes if self._again else 1)

    @property
    def bytes_done(self) -> int:
        """About how many bytes have been read in all passes."""
        self._done = max(self._done, self._before + self._records.bytes_done)
        return self._done

    def batches(self) -> Iterator[Batch]:
        """All batches from the first on; `lenient` as of `Records`."""
        if not self._begun:
            self._begun = True
            yield from self._first()
        elif self._copy is None:
            self._before += self._records.bytes_done
            self._records.close()
            self._records = read(self._source, columns=self._columns)
            self._records.lenient = self.lenient
            yield from self._records
        else:
            self._copy.seek(0)
            while (stored := _next(self._copy)) is not None:
                yield Batch(self.name, *stored, self.lenient)

    def _first(self) -> Iterator[Batch]:
        self._records.lenient = self.lenient
        for batch in self._records:
            if self._copy is not None:
                pickle.dump((batch.first, batch.n, dict(batch._data)), self._copy, protocol=5)
            yield batch
        if self._copy is not None:
            pickle.dump(None, self._copy)

    def close(self) -> None:
        """Close the file, and the copy if there is one."""
        self._records.close()
        if self._copy is not None:
            self._copy.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _next(copy: Any) -> tuple[int, int, dict[str, Any]] | None:
    """What this process has written itself, to a file that nobody else can open."""
    piece: tuple[int, int, dict[str, Any]] | None = pickle.load(copy)
    return piece


def _readable_again(source: Any) -> bool:
    if isinstance(source, Records):
        return False
    if isinstance(source, str | os.PathLike):
        return os.path.isfile(source)
    return isinstance(source, Mapping | list | tuple) or (hasattr(source, "columns") and not hasattr(source, "read"))


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches that follow each other as one."""
    first = batches[0]
    if len(batches) == 1:
        return first
    data = {name: _joined([batch.stored(name) for batch in batches]) for name in first.columns}
    return Batch(first.name, first.first, sum(batch.n for batch in batches), data, first.wrong is not None)


def opening(records: Iterable[Batch], prefix: int, name: str) -> tuple[list[Batch], Iterator[Batch]]:
    """The batches that hold the first `prefix` rows, and an iterator over the others; `name` is for messages."""
    batches, first, n_rows = iter(records), list[Batch](), 0
    for batch in batches:
        first.append(batch)
        n_rows += batch.n
        if n_rows >= prefix:
            break
    if not n_rows:
        raise DataError(f"{name} has no rows; give a file with a line of column names and rows below it")
    return first, batches
