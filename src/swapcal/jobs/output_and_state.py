"""The files of a run, its output and its state, which are claimed and committed together."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from swapcal.errors import StateFileError, SwapcalError
from swapcal.jobs import checkpoint
from swapcal.jobs.checkpoint import Checkpoint
from swapcal.jobs.guard import apart, lock_of
from swapcal.jobs.lock import StateLock
from swapcal.jobs.outputs import Columns, Output, open_output, there_already
from swapcal.replacing import leftovers
from swapcal.tables.records import Records, read
from swapcal.words.numbers import counted

__all__ = ["Path_", "RunFiles", "opened"]

COMMIT_SECONDS = 1.0
"""Seconds between commits, at least."""

COMMIT_SHARE = 20.0
"""A commit waits so many times as long as the last one took, so that they take a twentieth of the time at most."""

Path_ = str | os.PathLike[str]


class Saveable(Protocol):
    """A run that can be kept."""

    def save(
        self, asked: dict[str, Any], out: str | None, output: dict[str, Any] | None, *, finished: bool
    ) -> Checkpoint:
        """All that it takes to go on."""


class RunFiles:
    """The output and the state file; nobody else uses the state while this object is open.

    Parameters
    ----------
    asked : dict
        The question and the settings, as plain data.
    names : tuple of str
        The columns of the output.
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
        names: tuple[str, ...],
        out: Path_ | None,
        state: Path_ | None,
        source: str | int | None = None,
        *,
        fresh: bool,
        overwrite: bool,
    ) -> None:
        self.out, self.state = None if out is None else Path(out), None if state is None else Path(state)
        apart({"the input": source, "the output": self.out, "the state": self.state})
        self.names = names
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
        saved = None if self.state is None or fresh else checkpoint.read(self.state)
        self._replace, self._claimed = overwrite, False
        if fresh and self.state is not None and os.path.lexists(self.state):
            checkpoint.refuse_foreign(self.state)
            with suppress(StateFileError):
                saved_before = checkpoint.read(self.state)
                self._replace = overwrite or (saved_before is not None and self._made(saved_before))
        if saved is not None and self.state is not None:
            checkpoint.check_same(saved.asked, self.asked, self.state)
            self._claimed = saved.out == self._where
            if not saved.rows:
                self._replace = overwrite or (self._claimed and bool((saved.output or {}).get("replaces")))
        self.begun = saved if saved is not None and saved.rows else None
        mine = self._replace or self._claimed
        if self.begun is None and self.out is not None and not mine and os.path.lexists(self.out):
            raise there_already(self.out)  # said now, and not after the first rows were read
        if (
            self.begun is not None
            and self.out is not None
            and self.begun.out != self._where
            and not self._made(self.begun)
        ):
            raise StateFileError(
                f"the state file {self.state} belongs to the output {self.begun.out}, and {self.out} is not that; give "
                "the same --out, or another --state"
            )

    def _made(self, saved: Checkpoint) -> bool:
        """Whether the output is what that run has left, wherever it is now."""
        if self.out is None or saved.output is None or not saved.rows:
            return False
        try:
            # Opening it at the position compares digests; what lies behind the position belongs to the same run.
            open_output(self.out, self.names, saved.output).close()
        except (SwapcalError, KeyError, TypeError, ValueError):
            return False
        return True

    def name_columns(self, names: tuple[str, ...]) -> None:
        """The columns of the output, where they were not known before the first rows were read; before `open`."""
        self.names = names

    def open(self) -> None:
        """Claim the files: from now on a run with the same state file goes on with this one."""
        if self.state is not None:
            for left in leftovers(self.state):
                os.unlink(left)
        if self.begun is None and self.state is not None:
            claim = None if self.out is None else {"replaces": self._replace}
            checkpoint.write(self.state, Checkpoint(self.asked, 0, "", self._where, claim, False, {}, b""))
        if self.out is not None:
            position = None if self.begun is None else self.begun.output
            if self.begun is not None and position is None:
                raise StateFileError(
                    f"the state file {self.state} has {counted(self.begun.rows)} done and does not say where its "
                    "output stands; give another --state"
                )
            try:
                self._output = open_output(self.out, self.names, position, replace=self._replace, claimed=self._claimed)
            except (KeyError, TypeError, ValueError) as error:
                if isinstance(error, SwapcalError):
                    raise
                raise StateFileError(
                    f"the state file {self.state} does not say where its output stands; give another --state"
                ) from None
        self._next = time.monotonic() + COMMIT_SECONDS

    def append(self, columns: Columns) -> None:
        """Rows for the output."""
        if self._output is None:
            return
        if self.begun is not None and self.begun.finished and self.state is not None:
            self.begun = replace(self.begun, finished=False, output=self._output.reopened(), out=self._where)
            checkpoint.write(self.state, self.begun)
        self._output.append(columns)

    def commit(self, current: Saveable, *, finished: bool = False, force: bool = False) -> None:
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

    def keep(self, current: Saveable) -> None:
        """Replace the state of a run that was finished, where the output stays as it is."""
        if self.state is not None and self.begun is not None:
            self._write(self.state, current, self.begun.output, finished=True)

    def _write(self, state: Path, current: Saveable, position: dict[str, Any] | None, *, finished: bool) -> None:
        checkpoint.write(state, current.save(self.asked, self._where, position, finished=finished))

    def close(self) -> None:
        """Let go of the files."""
        if self._output is not None:
            self._output.close()
        if self._lock is not None:
            self._lock.release()


@contextmanager
def opened(
    source: Any,
    columns: Any,
    asked: dict[str, Any],
    names: tuple[str, ...],
    out: Path_ | None,
    state: Path_ | None,
    *,
    fresh: bool,
    overwrite: bool,
) -> Iterator[tuple[Records, RunFiles]]:
    """The records of a run and its files, open together and closed together; those who give open records give them up.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    columns : sequence of str, optional
        The columns that are read; all if not given.
    asked, names, out, state, fresh, overwrite
        As for `RunFiles`.
    """
    records = source if isinstance(source, Records) else read(source, columns=columns, whole_lines=state is not None)
    with closing(records):
        files = RunFiles(asked, names, out, state, records.file, fresh=fresh, overwrite=overwrite)
        with closing(files):
            yield records, files
