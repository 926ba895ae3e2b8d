"""CSV and its relatives, parsed by pyarrow block by block, as plain bytes; what they mean is decided by who asks."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from swapcal.errors import DataError
from swapcal.streams.extras import package
from swapcal.streams.sources import Source
from swapcal.streams.table import Piece, Table, chosen

__all__ = ["NULLS", "open_delimited"]

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")
"""What a cell says when its value is missing."""

BLOCK = 1 << 20
"""Bytes that are parsed at once; a row must fit in it. pyarrow reads up to 32 blocks ahead."""

_DELIMITERS = ",;\t|"


def open_delimited(source: Source, columns: Sequence[str] | None) -> Table:
    """A text table with a line of column names; the delimiter is the commonest of , ; tab and | in that line."""
    names, delimiter = _header(source)
    kept = chosen(source.name, names, columns)
    # pyarrow knows columns by their place: names may be there twice.
    places = {name: str(names.index(name)) for name in kept}
    done = [0]
    pieces = _pieces(source, delimiter, len(names), places, done)
    # One batch for each block: what pyarrow has read ahead is not done.
    return Table(source.name, kept, pieces, None, source.size, lambda: source.packed(BLOCK * done[0]), source.close)


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


def _is_open(tail: bytes, delimiter: str) -> bool:
    """Whether the last quotation mark opens a cell: pyarrow takes everything behind it for text, to the end."""
    between = (b"", b"\n", b"\r", delimiter.encode())
    at = tail.rfind(b'"')
    return at >= 0 and tail[max(at - 1, 0) : at] in between and tail[at + 1 : at + 2] not in between


def _pieces(source: Source, delimiter: str, width: int, places: dict[str, str], done: list[int]) -> Iterator[Piece]:
    arrow, arrow_csv = package("pyarrow", "reading CSV"), package("pyarrow.csv", "reading CSV")
    wrong: list[Any] = []

    def on_wrong(row: Any) -> str:
        wrong.append(row)
        return "error"

    n_rows = 0

    def piece(batch: Any) -> Piece:
        # A function, so that nothing here holds on to a batch while the next one is made.
        nonlocal n_rows
        n_rows += batch.num_rows
        done[0] += 1
        return Piece(batch.num_rows, {name: batch.column(place) for name, place in places.items()})

    try:
        reader = arrow_csv.open_csv(
            source,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=[str(j) for j in range(width)]
            ),
            # Line ends inside quotes are rare, but without them the rows of such a file would come apart.
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_wrong
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={place: arrow.binary() for place in places.values()},
                # With no column at all pyarrow would read every one.
                include_columns=list(places.values()) or ["0"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=NULLS,
            ),
        )
        yield from map(piece, reader)
        if _is_open(source.tail, delimiter):
            raise DataError(
                f"{source.name}, row {n_rows}: a quotation mark is opened and never closed, so that the rest is one "
                "cell; close it, or double it if it belongs to the text"
            )
    except arrow.ArrowInvalid as error:
        if wrong:
            row = wrong[0]
            raise DataError(
                f"{source.name}, row {row.number}: it has {row.actual_columns} cells where the header has {width}; "
                f"put cells that hold a {delimiter!r} in quotes, or complete the row"
            ) from error
        if "straddling" in str(error):
            raise DataError(
                f"{source.name}, row {n_rows + 1} or a little later: a row is longer than {BLOCK >> 20} MB; "
                "look for a quotation mark that is not closed"
            ) from error
        if n_rows == 0 and "Empty" in str(error):
            return
        raise DataError(f"{source.name}, behind row {n_rows}: it cannot be parsed ({error}); correct it") from error
