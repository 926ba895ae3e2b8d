"""Rows of a file of text that grows, or of a pipe, as they come: whole lines, never a part of one."""

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from swapcal.errors import DataError
from swapcal.tables.batch import Batch
from swapcal.tables.records import read

__all__ = ["growing_batches"]

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
    stream = sys.stdin.buffer if path == "-" else _opened(path)
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
                for batch in read(_named(head + lines, name), columns=columns):
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

    name = ""


def _named(data: bytes, name: str) -> _Named:
    stream = _Named(data)
    stream.name = name
    return stream


def _opened(path: str) -> BinaryIO:
    try:
        stream: Any = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}; give another file") from None
    head = stream.peek(4)[:4]
    if head[:2] == b"\x1f\x8b" or head == b"PAR1":
        stream.close()
        raise DataError(f"{path} is packed, so it cannot be followed as it grows; give CSV or JSON lines")
    found: BinaryIO = stream
    return found
