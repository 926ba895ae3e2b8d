"""Files that appear whole or not at all."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import BinaryIO

__all__ = ["leftovers", "replacing", "sync_folder"]


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when all is written and on the disk; until then `path` is as it was.

    It is written beside `path` under a name of its own, which nobody else can have made or can guess: two writers do
    not meet, and no link that lies there is followed. File and folder are synced, so that a power failure leaves the
    old file or the new one. The mode of an existing file is kept.

    Parameters
    ----------
    path : path
        What is to be written; a link is followed, and its target replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "state")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes()
    b'whole'
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as file:
            if os.path.exists(target):
                os.chmod(beside, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        os.remove(beside)
        raise
    sync_folder(folder)


def leftovers(path: str | PathLike[str]) -> list[str]:
    """Files that `replacing` was writing beside `path` when its process was killed, or is writing now.

    Whoever removes them must know that nobody else writes to `path`.
    """
    folder, name = os.path.split(os.path.realpath(path))
    shape = re.compile(rf"\.{re.escape(name[:100])}\.[0-9a-f]{{16}}\.part")
    found = [os.path.join(folder, each) for each in os.listdir(folder) if shape.fullmatch(each)]
    return [each for each in found if stat.S_ISREG(os.lstat(each).st_mode)]


def sync_folder(folder: str) -> None:
    """Bring a folder's names to the disk, where the system has a way to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
