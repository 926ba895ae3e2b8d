"""Frames of any make through narwhals, and mappings of arrays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from swapcal.errors import DataError
from swapcal.tables.extras import package
from swapcal.tables.table import Piece, Table, chosen

__all__ = ["open_arrays", "open_frame"]


def open_arrays(arrays: Mapping[str, Any], columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A mapping from name to array or list, all equally long."""
    name = "the mapping"
    kept = chosen(name, [str(column) for column in arrays], columns)
    lengths = {column: _length(column, arrays[column]) for column in kept}
    n_rows = next(iter(lengths.values()), 0)
    for column, length in lengths.items():
        if length != n_rows:
            raise DataError(
                f"column {column!r} of {name} has {length} rows and {kept[0]!r} has {n_rows}; cut or fill it"
            )

    def pieces() -> Iterator[Piece]:
        for start in range(skip, n_rows, batch_rows):
            end = min(start + batch_rows, n_rows)
            yield Piece(end - start, {column: arrays[column][start:end] for column in kept})

    return Table(name, kept, pieces(), n_rows, None, lambda: 0, lambda: None, min(skip, n_rows))


def open_frame(frame: Any, columns: Sequence[str] | None, batch_rows: int, skip: int) -> Table:
    """A frame of pandas, polars, pyarrow or another library that narwhals knows."""
    narwhals = package("narwhals", "reading a frame")
    try:
        table = narwhals.from_native(frame)
    except narwhals.exceptions.DuplicateError as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"the frame has several columns of the same name ({said}); rename all but one") from None
    except TypeError:
        raise DataError(
            "records come from a path, '-', a binary stream, a frame, a mapping of arrays or mappings; "
            f"got {type(frame).__name__}"
        ) from None
    if isinstance(table, narwhals.LazyFrame):
        table = table.collect()
    name = f"the {type(frame).__module__.partition('.')[0]} frame"
    # A column whose name is no text cannot be asked for.
    kept = chosen(name, [column for column in table.columns if isinstance(column, str)], columns)
    n_rows = len(table)

    def pieces() -> Iterator[Piece]:
        for start in range(skip, n_rows, batch_rows):
            end = min(start + batch_rows, n_rows)
            yield Piece(end - start, {column: _part(name, column, table[column][start:end]) for column in kept})

    return Table(name, kept, pieces(), n_rows, None, lambda: 0, lambda: None, min(skip, n_rows))


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
