"""Records in: files, streams, frames, mappings and lists, in batches of bounded size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, cast

from swapcal.checked import shown, whole
from swapcal.errors import DataError
from swapcal.tables.batch import Batch
from swapcal.tables.data_frames import open_arrays, open_frame
from swapcal.tables.delimited import open_delimited
from swapcal.tables.extras import package
from swapcal.tables.json_lines import open_json_lines, open_mappings
from swapcal.tables.parquet import open_parquet
from swapcal.tables.sources import Source, open_source
from swapcal.tables.table import Piece, Table

__all__ = ["Batch", "Records", "read"]


class Records:
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

    __slots__ = ("_batch_rows", "_done", "_piece", "_row", "_skip", "_table", "_used")

    def __init__(self, table: Table, skip: int, batch_rows: int) -> None:
        self._table, self._skip, self._batch_rows = table, skip, batch_rows
        self._row, self._done = table.skipped, 0
        if not self._fetch() and self._row == 0:
            raise DataError(f"{table.name} has no rows; it needs at least one")

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self._table.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self._table.columns

    @property
    def n_rows(self) -> int | None:
        """Number of rows of the whole source, with those that are skipped; None where it is not known ahead."""
        return self._table.n_rows

    @property
    def file(self) -> str | int | None:
        """The path that was opened, or the number of the open file that is read; None for what is in memory."""
        return self._table.file

    @property
    def held(self) -> str | None:
        """After the last batch, with `whole_lines`: a sentence about a last line that was left out."""
        return self._table.held()

    @property
    def bytes_total(self) -> int | None:
        """Size of the file; None for a stream or a frame."""
        return self._table.bytes_total

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
        return Batch(self.name, self._row - n, n, data)

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
        return {name: _cut(column, start, end) for name, column in piece.columns.items()}, end - start

    def close(self) -> None:
        """Close the file; nothing comes after that."""
        self._piece, self._table = None, self._table._replace(pieces=iter(()))
        self._table.close()

    def __enter__(self) -> "Records":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _cut(column: Any, start: int, end: int) -> Any:
    return column.slice(start, end - start) if hasattr(column, "slice") else column[start:end]


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
    skip, batch_rows = whole(skip, "skip", 0), whole(batch_rows, "batch_rows", 1)
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


def _open_bytes(
    given: Any, columns: Sequence[str] | None, batch_rows: int, skip: int, whole_lines: bool = False
) -> Table:
    source = open_source(given)
    try:
        table = _opened(given, source, columns, batch_rows, skip, whole_lines)
        return table._replace(file=source.file, held=lambda: source.held)
    except BaseException:
        source.close()
        raise


def _opened(
    given: Any, source: Source, columns: Sequence[str] | None, batch_rows: int, skip: int, whole_lines: bool
) -> Table:
    if source.head.startswith(b"PAR1") or source.name.endswith((".parquet", ".pq")):
        return _open_parquet(given, source, columns, batch_rows, skip)
    source.check()
    begin, json_name = (
        source.head.lstrip()[:1],
        source.name.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson")),
    )
    if begin == b"[" and json_name:
        raise DataError(f"{source.name} is one JSON array; write one object a line, for example with jq -c '.[]'")
    if begin == b"{" or json_name:
        return open_json_lines(source, columns, batch_rows, whole_lines=whole_lines)
    return open_delimited(source, columns, whole_lines=whole_lines)


def _open_parquet(given: Any, source: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    if not source.head:
        raise DataError(f"{source.name} is empty; it needs columns and at least one row")
    if hasattr(given, "read"):
        if not given.seekable():
            raise DataError(f"{source.name} holds Parquet, which cannot be read from a pipe; save it to a file first")
        given.seek(0)
        return open_parquet(source.name, given, columns, batch_rows, skip)
    if source.size is None or not isinstance(source.file, str):
        raise DataError(f"{source.name} holds Parquet, which cannot be read from a pipe; give the file itself")
    source.close()
    return open_parquet(source.name, source.file, columns, batch_rows, skip)


def _names(columns: Any) -> list[str]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise DataError(f"columns must be a list of names; got {shown(columns)}")
    return list(columns)
