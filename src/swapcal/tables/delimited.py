"""CSV and its relatives, parsed by pyarrow block by block, as plain bytes; what they mean is decided by who asks."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from swapcal.errors import DataError
from swapcal.tables.extras import package
from swapcal.tables.row_ends import BLOCK, parsed
from swapcal.tables.sources import Source
from swapcal.tables.table import Piece, Table, chosen

__all__ = ["NULLS", "open_delimited"]

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
