"""One run at a time: whoever uses a state file holds a lock beside it, which says who that is."""

import errno
import json
import os
import platform
import stat
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from swapcal.errors import InvalidInput, StateFileError

# --------
# Which file is which: no file of a command stands for two things, and only what swapcal has made is replaced.

_PAGE = b"<!doctype html>"
_HEAD = 1 << 17
"""Bytes of a page in which swapcal's name stands."""

File = str | os.PathLike[str] | int
"""A path, or the number of an open file."""


def check_distinct(files: Mapping[str, File | None]) -> None:
    """Refuse files of one command that are the same file, by whatever names, links included; touches nothing.

    Parameters
    ----------
    files : mapping
        From what a message calls the file to its path, to the number of an open file, or to None. What a run makes
        beside "the output" and "the state" counts too.

    Examples
    --------
    >>> check_distinct({"the input": "scores.csv", "the state": "./scores.csv"})
    Traceback (most recent call last):
        ...
    swapcal.errors.InvalidInput: the input and the state are the same file, ./scores.csv; give each a file of its own
    """
    named = {role: file for role, file in files.items() if file is not None}
    out, state = files.get("the output"), files.get("the state")
    if out is not None and not isinstance(out, int):
        named["the rows of the output"] = rows_of(Path(out))
    if state is not None and not isinstance(state, int):
        named["the lock of the state"] = lock_of(Path(state))
    seen: dict[tuple[object, ...], str] = {}
    for role, file in named.items():
        who = _identity(file)
        if who is None:
            continue
        if who in seen:
            raise InvalidInput(
                f"{seen[who]} and {role} are the same file, {_name(file, named)}; give each a file of its own"
            )
        seen[who] = role


def regular(file: File) -> bool:
    """Whether it is a file that can be looked at twice, which pipes and devices cannot."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def rows_of(out: Path) -> Path:
    """The file beside an output that holds what is not in it yet."""
    return out.with_name(out.name + ".rows")


def lock_of(state: Path) -> Path:
    """The file beside a state that says who uses it; beside what a link points to, as that is what gets replaced."""
    target = Path(os.path.realpath(state))
    return target.with_name(target.name + ".lock")


def check_page(path: str | os.PathLike[str] | None) -> None:
    """Refuse to put a page in the place of a file that is no page of swapcal."""
    if path is None or not os.path.lexists(path):
        return
    if os.path.isdir(path):
        raise InvalidInput(f"the page cannot be written to {os.fspath(path)}: it is a folder; give a file name")
    if not regular(path):
        if not os.path.exists(path):
            raise InvalidInput(f"the page {os.fspath(path)} is a link to nothing; remove it, or give another name")
        return  # a pipe or a device takes the page and loses nothing
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head and not (head.lstrip()[: len(_PAGE)].lower() == _PAGE and b"swapcal" in head):
        raise InvalidInput(
            f"{os.fspath(path)} is there already and is no page of swapcal, so it is left as it is; give the page "
            "another name"
        )


def _identity(file: File) -> tuple[object, ...] | None:
    """The same for two names of one file, also of one that is not there yet; None for pipes and devices."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        if isinstance(file, int):
            return None
        target = os.path.realpath(file)
        folder, name = os.path.split(target)
        try:
            home = os.stat(folder)
        except (OSError, ValueError):
            return folder, name
        # Some systems take Out.csv and out.csv for the same file.
        return home.st_dev, home.st_ino, name.casefold()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino


def _name(file: File, named: Mapping[str, File]) -> str:
    if isinstance(file, int):
        return next((os.fspath(each) for each in named.values() if not isinstance(each, int)), "standard input")
    return os.fspath(file)


_KIND = "swapcal.lock"
_LARGEST = 4096
_UNKNOWN = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
"""What a file system answers that has no locks."""


def hold(handle: int) -> bool:
    """Lock an open file until it is closed, also by the end of the process; False if somebody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # Locks are mandatory there: one byte far behind the end, so that everybody can read who holds it.
            os.lseek(handle, 1 << 30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _UNKNOWN:
            warnings.warn(
                "this file system has no locks; see to it that no two runs use the same files at once",
                UserWarning,
                stacklevel=3,
            )
            return True
        return False
    return True


class StateLock:
    """The lock of a state file, from the making of this object to `release`.

    It is the system's lock on a file beside the state. That file says who holds it, and goes with the lock; after a
    kill it stays, unlocked, and the next run takes it over.

    Parameters
    ----------
    path : Path
        The file to lock.
    state : path
        What messages call the state.
    """

    def __init__(self, path: Path, state: str | os.PathLike[str]) -> None:
        self.path, self._handle = path, -1
        try:
            while self._handle < 0:
                self._handle = self._taken(state)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise StateFileError(
                f"the state file {state} cannot be written ({why}); give --state a file in a directory that can be"
            ) from None

    def _taken(self, state: str | os.PathLike[str]) -> int:
        """The open and locked file; -1 if somebody removed it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
        try:
            said = b""
            if stat.S_ISREG(os.fstat(handle).st_mode):
                held = not hold(handle)
                os.lseek(handle, 0, os.SEEK_SET)
                said = os.read(handle, _LARGEST)
            if (said and _owner(said) is None) or not stat.S_ISREG(os.fstat(handle).st_mode):
                raise StateFileError(
                    f"{self.path} is no lock of swapcal, and the state {state} needs that name; rename it, or give "
                    "another --state"
                )
            if held:
                who = _owner(said) or "another run, which has only begun"
                raise InvalidInput(f"the state {state} is in use by {who}; wait for its end, or give another --state")
            if not _still_there(self.path, handle):
                os.close(handle)
                return -1
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, _me())
        except BaseException:
            with suppress(OSError):
                os.close(handle)
            raise
        return handle

    def release(self) -> None:
        """Let others have the state."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        if sys.platform == "win32":
            os.close(handle)  # an open file cannot be removed there
        with suppress(OSError):
            os.unlink(self.path)
        if sys.platform != "win32":
            os.close(handle)


def _me() -> bytes:
    since = datetime.now(UTC).astimezone().isoformat(" ", "seconds")
    return json.dumps({"kind": _KIND, "pid": os.getpid(), "host": platform.node(), "since": since}).encode()


def _owner(said: bytes) -> str | None:
    """Who wrote this; None if it is nothing that `_me` writes."""
    try:
        data = json.loads(said)
        if data["kind"] == _KIND:
            return f"process {int(data['pid'])} on {str(data['host'])!r}, since {str(data['since'])[:40]}"
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def _still_there(path: Path, handle: int) -> bool:
    try:
        found, own = os.stat(path, follow_symlinks=False), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
