"""One run at a time: whoever uses a state file holds a lock beside it, which says who that is."""

import errno
import json
import os
import platform
import stat
import sys
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from swapcal.errors import InvalidInput, StateFileError

__all__ = ["StateLock", "hold"]

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
