"""Bytes from a path, standard input or a stream: unpacked, counted, and with a look at how they begin."""

import difflib
import gzip
import importlib
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from swapcal.errors import DataError, MissingExtra
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
            said = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            why = (
                f"{purpose} needs the package {name}, which is installed and cannot be loaded: {said}; install "
                f"versions that fit each other with  pip install --upgrade 'swapcal[{extra}]'"
            )
        raise MissingExtra(why) from error


HEAD = 1 << 16
"""Bytes that are looked at before it is decided what they are."""

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
        self.held: str | None = None
        """What was left out at the end, as a sentence."""
        self.name, self.size, self._counted = name, size, Counted(raw)
        self._stream: Any = self._counted
        self.head = b""
        self.head = self._stream_read(HEAD)
        if self.head[:2] == b"\x1f\x8b":
            packed: Any = Rest(self.head, self._counted)
            self._stream = gzip.GzipFile(fileobj=packed)
            self.head = b""
            self.head = self._stream_read(HEAD)
        self.start = 0
        """Where in the head reading begins."""

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
        self.held = (
            f"the last line of {self.name}, {what}, has no line end yet and waits for it; if the file is complete, add "
            "a line end"
        )

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
    found = os.stat(path)
    return Source(path, file, found.st_size if stat.S_ISREG(found.st_mode) else None, own=True, file=path)


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
    bytes_total: int | None
    bytes_done: Callable[[], int]
    close: Callable[[], None]
    skipped: int = 0
    """Rows in front of the first piece that the reader has already passed over."""
    file: str | int | None = None
    """The path that was opened, or the number of an open file; None for what is in memory."""
    held: Callable[[], str | None] = lambda: None
    """After the last piece: what was left out of it, as a sentence."""


def chosen(name: str, there: Sequence[str], wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to read, each once; an error for one that is not there, or that is there twice."""
    if wanted is None:
        return tuple(dict.fromkeys(there))
    for column in wanted:
        if column not in there:
            near = difflib.get_close_matches(column, there, 1, cutoff=0.5)
            listed = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            hint = f"did you mean {near[0]!r}?" if near else f"it has {listed}"
            raise DataError(f"there is no column {column!r} in {name}; {hint}")
        if list(there).count(column) > 1:
            raise DataError(f"there are several columns {column!r} in {name}; rename all but one")
    return tuple(dict.fromkeys(wanted))
