"""The file of `--state`: all that a run needs to go on where it stopped, in one file that is replaced in one step.

A saved state of the kind "run": what was asked, how far it has come, counters, the forecaster, and the sums behind the
final report.
"""

import io
import json
import os
import platform
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from swapcal.errors import InvalidInput, StateFileError, SwapcalError
from swapcal.inputs import short_repr
from swapcal.state import Packed, Saved, Stateful, forms, kind_of, leftovers, shapes
from swapcal.tasks.outputs import (
    Columns,
    File,
    Kinds,
    Output,
    hold,
    open_output,
    reason,
    regular,
    rows_of,
    there_already,
)

if TYPE_CHECKING:
    from swapcal.tasks.task import Task

# What to do about a state file that does not fit.
START_OVER = "give the file it was made with, another --state, or --fresh to start over"

_MOST_ROWS = 1 << 53
_FIELDS: dict[str, tuple[type, ...]] = {
    "asked": (dict,),
    "rows": (int,),
    "digest": (str,),
    "out": (str, type(None)),
    "output": (dict, type(None)),
    "finished": (bool,),
    "plain": (dict,),
}


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint(Stateful):
    """A run between two blocks of rows.

    asked: the question and the settings, to be compared with those of a run that wants to go on. rows: rows of the
    input that are done. digest: of every cell of theirs that is used; the input of a run that goes on must begin with
    the same. out: the resolved path of the output, and output: its position, None without one. finished: the input had
    ended. plain: whatever else the run keeps, as JSON types. forecaster: the bytes of `Forecaster.save`. arrays: by
    name.
    """

    kind = "run"

    asked: dict[str, Any]
    rows: int
    digest: str
    out: str | None
    output: dict[str, Any] | None
    finished: bool
    plain: dict[str, Any]
    forecaster: bytes
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def to_state(self) -> Saved:
        """What it is made of."""
        plain = {name: getattr(self, name) for name in _FIELDS}
        return Saved([plain, forms(self.arrays)], self.arrays, {"forecaster": self.forecaster})

    @classmethod
    def from_state(cls, packed: Packed, *_: Any) -> "Checkpoint":
        """Make it again."""
        plain, sizes = packed.plain
        for name, kinds in _FIELDS.items():
            if type(plain[name]) not in kinds or (name == "rows" and not 0 <= plain[name] < _MOST_ROWS):
                raise StateFileError(f"{name} is {short_repr(plain[name])}")
        fields = {name: plain[name] for name in _FIELDS}
        return cls(**fields, forecaster=packed.parts["forecaster"], arrays=packed.arrays(shapes(sizes)))


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Put `checkpoint` in the place of what the file held: after a kill there is the old one or the new one."""
    with _writable(path):
        checkpoint.save(path)


@contextmanager
def _writable(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says in here is about a state file that it does not let be written."""
    try:
        yield
    except OSError as error:
        what = f"the state file {path} cannot be written ({reason(error)})"
        raise StateFileError(f"{what}; give --state a file in a directory that can be") from None


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint | None:
    """What the file holds; None if there is no such file, and an error if it is not swapcal's."""
    if not os.path.lexists(path):
        return None
    refuse_foreign(path)
    try:
        return Checkpoint.load(path)
    except StateFileError as error:
        raise StateFileError(f"{path} is not a whole state file of swapcal run ({error}); {START_OVER}") from error


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `write` has not made, damaged or not: whatever it is, it is not ours to replace."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
        with open(path, "rb") if is_file else io.BytesIO() as file:
            kind = kind_of(file.read(100))
    except OSError as error:
        raise StateFileError(f"{path} cannot be read ({reason(error)})") from None
    if kind != Checkpoint.kind:
        raise StateFileError(f"{path} is not a state file of swapcal run, and is left as it is; give another --state")


@contextmanager
def understood(state: object) -> Iterator[None]:
    """What goes wrong in here means that the state file holds something else than a run can have kept."""
    try:
        yield
    except SwapcalError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        why = f"its parts do not fit together ({type(error).__name__}: {error})"
        raise StateFileError(f"the state file {state} is damaged: {why}; {START_OVER}") from error


def check_same(stored: dict[str, Any], asked: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse to go on with another question or other settings than those of the state file."""
    wanted = json.loads(json.dumps(asked))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            theirs, ours = (f"{name}={short_repr(some.get(name))}" for some in (stored, wanted))
            differ = f"the state file {path} belongs to a run with {theirs}, and this one has {ours}"
            raise StateFileError(f"{differ}; give the same settings, another --state, or --fresh to start over")


# --------
# Which file is which: no file of a command stands for two things, and only what swapcal has made is replaced.

_PAGE = b"<!doctype html>"
# Bytes of a page in which swapcal's name stands.
_HEAD = 1 << 17


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
            what = f"{seen[who]} and {role} are the same file, {_name(file, named)}"
            raise InvalidInput(f"{what}; give each a file of its own")
        seen[who] = role


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
        left = f"{os.fspath(path)} is there already and is no page of swapcal, so it is left as it is"
        raise InvalidInput(f"{left}; give the page another name")


def _identity(file: File) -> tuple[object, ...] | None:
    """The same for two names of one file, also of one that is not there yet; None for pipes and devices."""
    try:
        status = os.stat(file)
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
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        return None
    return status.st_dev, status.st_ino


def _name(file: File, named: Mapping[str, File]) -> str:
    if isinstance(file, int):
        return next((os.fspath(each) for each in named.values() if not isinstance(each, int)), "standard input")
    return os.fspath(file)


_KIND = "swapcal.lock"
_LARGEST = 4096


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
        with _writable(state):
            while self._handle < 0:
                self._handle = self._taken(state)

    def _taken(self, state: str | os.PathLike[str]) -> int:
        """The open and locked file; -1 if somebody removed it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
        try:
            content = b""
            if stat.S_ISREG(os.fstat(handle).st_mode):
                held = not hold(handle)
                os.lseek(handle, 0, os.SEEK_SET)
                content = os.read(handle, _LARGEST)
            if (content and _owner(content) is None) or not stat.S_ISREG(os.fstat(handle).st_mode):
                needed = f"{self.path} is no lock of swapcal, and the state {state} needs that name"
                raise StateFileError(f"{needed}; rename it, or give another --state")
            if held:
                who = _owner(content) or "another run, which has only begun"
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


def _owner(content: bytes) -> str | None:
    """Who wrote this; None if it is nothing that `_me` writes."""
    try:
        data = json.loads(content)
        if data["kind"] == _KIND:
            return f"process {int(data['pid'])} on {str(data['host'])!r}, since {str(data['since'])[:40]}"
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def _still_there(path: Path, handle: int) -> bool:
    try:
        status, own = os.stat(path, follow_symlinks=False), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino)


# --------
# The files of a run, its output and its state, which are claimed and committed together.

# Seconds between commits, at least.
COMMIT_SECONDS = 1.0

# A commit waits so many times as long as the last one took, so that they take a twentieth of the time at most.
COMMIT_SHARE = 20.0

Path_ = str | os.PathLike[str]


class RunFiles:
    """The output and the state file; nobody else uses the state while this object is open.

    Parameters
    ----------
    asked : dict
        The question and the settings, as plain data.
    out, state : path, optional
        The files.
    source : path or int, optional
        The file that the records come from, which must be neither of them.
    fresh : bool
        Start over, whatever is in the state; the output of that state may be replaced if it is as it was left.
    overwrite : bool
        Replace an output that is there already.

    Attributes
    ----------
    begun : Checkpoint or None
        What an earlier run has done, if that is anything.
    """

    def __init__(
        self,
        asked: dict[str, Any],
        out: Path_ | None,
        state: Path_ | None,
        source: str | int | None = None,
        *,
        fresh: bool,
        overwrite: bool,
    ) -> None:
        self.out, self.state = None if out is None else Path(out), None if state is None else Path(state)
        check_distinct({"the input": source, "the output": self.out, "the state": self.state})
        self.names: Kinds = {}
        self.asked = {**asked, "out": None if self.out is None else self.out.name}
        self._where = None if self.out is None else os.path.realpath(self.out)
        self._output: Output | None = None
        self._next = 0.0
        self._lock = None if self.state is None else StateLock(lock_of(self.state), self.state)
        try:
            self._look(fresh=fresh, overwrite=overwrite)
        except BaseException:
            self.close()
            raise

    def _look(self, *, fresh: bool, overwrite: bool) -> None:
        """What is there already, and whether it is ours."""
        saved = None if self.state is None or fresh else read_checkpoint(self.state)
        self._replace, self._claimed = overwrite, False
        if fresh and self.state is not None and os.path.lexists(self.state):
            refuse_foreign(self.state)
            with suppress(StateFileError):
                self._replace = overwrite or self._made(read_checkpoint(self.state))
        if saved is not None and self.state is not None:
            check_same(saved.asked, self.asked, self.state)
            self._claimed = saved.out == self._where
            if not saved.rows:
                self._replace = overwrite or (self._claimed and bool((saved.output or {}).get("replaces")))
        self.begun = saved if saved is not None and saved.rows else None
        mine = self._replace or self._claimed
        if self.begun is None and self.out is not None and not mine and os.path.lexists(self.out):
            raise there_already(self.out)  # said now, and not after the first rows were read
        theirs = self._where if self.begun is None or self.out is None else self.begun.out
        if theirs != self._where and not self._made(self.begun):
            theirs = f"the state file {self.state} belongs to the output {theirs}, and {self.out} is not that"
            raise StateFileError(f"{theirs}; give the same --out, or another --state")

    def _made(self, saved: Checkpoint | None) -> bool:
        """Whether the output is what that run has left, wherever it is now."""
        if self.out is None or saved is None or saved.output is None or not saved.rows:
            return False
        try:
            # Opening it at the position compares digests; what lies behind the position belongs to the same run.
            open_output(self.out, self.names, saved.output, saved.rows).close()
        except (SwapcalError, KeyError, TypeError, ValueError):
            return False
        return True

    def name_columns(self, names: Kinds) -> None:
        """The columns of the output, which the first rows may have to say; before `open`."""
        self.names = names

    def open(self) -> None:
        """Claim the files: from now on a run with the same state file goes on with this one."""
        if self.state is not None:
            for left in leftovers(self.state):
                os.unlink(left)
        if self.begun is None and self.state is not None:
            claim = None if self.out is None else {"replaces": self._replace}
            write(self.state, Checkpoint(self.asked, 0, "", self._where, claim, False, {}, b""))
        if self.out is not None:
            position, rows = (None, 0) if self.begun is None else (self.begun.output, self.begun.rows)
            replaces = {"replace": self._replace, "claimed": self._claimed}
            try:
                if self.begun is not None and position is None:
                    raise KeyError("output")
                self._output = open_output(self.out, self.names, position, rows, **replaces)
            except SwapcalError:
                raise
            except (KeyError, TypeError, ValueError):
                where = f"the state file {self.state} does not say where its output stands"
                raise StateFileError(f"{where}; give another --state") from None
        self._next = time.monotonic() + COMMIT_SECONDS

    def append(self, columns: Columns) -> None:
        """Rows for the output."""
        if self._output is None:
            return
        if self.begun is not None and self.begun.finished and self.state is not None:
            self.begun = replace(self.begun, finished=False, output=self._output.reopened(), out=self._where)
            write(self.state, self.begun)
        self._output.append(columns)

    def commit(self, current: "Task", *, finished: bool = False, force: bool = False) -> None:
        """Output first, then the state that says how far it goes; a run that is killed between goes back to before."""
        start = time.monotonic()
        output = self._output
        if self.state is not None and (force or finished or start >= self._next):
            if finished and output is not None:
                self._write(self.state, current, output.ready(), finished=False)
            position = None if output is None else output.finish() if finished else output.commit()
            self._write(self.state, current, position, finished=finished)
            now = time.monotonic()
            self._next = now + max(COMMIT_SECONDS, COMMIT_SHARE * (now - start))
        elif finished and output is not None:
            output.finish()
        if finished and output is not None:
            output.clear()

    def keep(self, current: "Task") -> None:
        """Replace the state of a run that was finished, where the output stays as it is."""
        if self.state is not None and self.begun is not None:
            self._write(self.state, current, self.begun.output, finished=True)

    def _write(self, state: Path, current: "Task", position: dict[str, Any] | None, *, finished: bool) -> None:
        write(state, current.save(self.asked, self._where, position, finished=finished))

    def close(self) -> None:
        """Let go of the files."""
        if self._output is not None:
            self._output.close()
        if self._lock is not None:
            self._lock.release()
