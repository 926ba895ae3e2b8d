"""Parquet, row group by row group."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from swapcal.errors import DataError
from swapcal.tables.extras import package
from swapcal.tables.table import Piece, Table, chosen

__all__ = ["open_parquet"]

_BUFFER = 1 << 20
"""Bytes that are read of a column at once; without it a whole column of a row group would be."""


def open_parquet(name: str, file: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A path or a binary stream that can seek; whole row groups in front of row `skip` are not even read."""
    arrow, parquet = package("pyarrow", "reading Parquet"), package("pyarrow.parquet", "reading Parquet")
    options = {"pre_buffer": False, "buffer_size": _BUFFER}
    try:
        opened = parquet.ParquetFile(file, **options)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{name} is not a whole Parquet file ({_first_line(error)}); copy or write it again") from error
    kept = chosen(name, opened.schema_arrow.names, columns)
    for column in kept:
        kind = opened.schema_arrow.field(column).type
        if arrow.types.is_nested(kind):
            if columns is not None:
                raise DataError(f"column {column!r} of {name} holds {kind} values; give a column of texts or numbers")
            kept = tuple(one for one in kept if one != column)
    groups, skipped = list(range(opened.metadata.num_row_groups)), 0
    while groups and skipped + opened.metadata.row_group(groups[0]).num_rows <= skip:
        skipped += opened.metadata.row_group(groups.pop(0)).num_rows
    size, n_rows, way = os.path.getsize(file) if isinstance(file, str) else None, opened.metadata.num_rows, [skipped]
    pieces = _pieces(name, opened, kept, groups, batch_rows, way)
    # Parquet is not read from one end to the other: the share of rows stands for the share of bytes.
    return Table(
        name,
        kept,
        pieces,
        n_rows,
        size,
        lambda: 0 if size is None else size * way[0] // max(n_rows, 1),
        opened.close,
        skipped,
    )


def _pieces(
    name: str, opened: Any, kept: Sequence[str], groups: list[int], batch_rows: int, way: list[int]
) -> Iterator[Piece]:
    arrow = package("pyarrow", "reading Parquet")

    def piece(batch: Any) -> Piece:
        # A function, so that nothing here holds on to a batch while the next one is made.
        way[0] += batch.num_rows
        return Piece(batch.num_rows, {column: batch.column(column) for column in kept})

    try:
        yield from map(piece, opened.iter_batches(batch_rows, row_groups=groups, columns=list(kept), use_threads=False))
    except (arrow.ArrowException, OSError) as error:
        why = _first_line(error)
        raise DataError(f"{name} is broken behind row {way[0]} ({why}); copy or write it again") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
