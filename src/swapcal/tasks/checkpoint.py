"""The file of `--state`: all that a run needs to go on where it stopped, in one file that is replaced in one step.

A saved state of the kind "run": what was asked, how far it has come, counters, the forecaster, and the sums behind the
final report.
"""

import hashlib
import io
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from swapcal.errors import StateFileError, SwapcalError
from swapcal.inputs import short_repr
from swapcal.state import Packed, Saved, Stateful, forms, kind_of, leftovers, shapes
from swapcal.tables.batch import Batch
from swapcal.tables.records import Records, read
from swapcal.tasks.files import StateLock, check_distinct, lock_of
from swapcal.tasks.outputs import Columns, Output, open_output, there_already
from swapcal.text.numbers import counted

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
    try:
        checkpoint.save(path)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise StateFileError(
            f"the state file {path} cannot be written ({why}); give --state a file in a directory that can be"
        ) from None


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint | None:
    """What the file holds; None if there is no such file, and an error if it is not swapcal's."""
    if not os.path.lexists(path):
        return None
    refuse_foreign(path)
    try:
        return Checkpoint.load(path)
    except StateFileError as error:
        raise StateFileError(
            f"{path} is not a whole state file of swapcal run ({error}); give another --state, or start over with "
            "--fresh"
        ) from error


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `write` has not made, damaged or not: whatever it is, it is not ours to replace."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
        with open(path, "rb") if is_file else io.BytesIO() as file:
            kind = kind_of(file.read(100))
    except OSError as error:
        raise StateFileError(f"{path} cannot be read ({(error.strerror or str(error)).lower()})") from None
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
        raise StateFileError(
            f"the state file {state} is damaged: its parts do not fit together ({type(error).__name__}: {error}); "
            "give another --state, or --fresh to start over"
        ) from error


def check_same(stored: dict[str, Any], asked: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse to go on with another question or other settings than those of the state file."""
    wanted = json.loads(json.dumps(asked))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            raise StateFileError(
                f"the state file {path} belongs to a run with {name}={short_repr(stored.get(name))}, and this one has "
                f"{name}={short_repr(wanted.get(name))}; give the same settings, another --state, or --fresh to start "
                "over"
            )


# --------
# What a run has seen of its input: a digest of every cell that it uses, as it is stored.


class Fingerprint:
    """Digest of some columns of all rows so far, however they were cut into batches.

    Cells count as the source stores them, before anything is made of them: so a change in any used cell shows, also in
    one that makes no difference to a number.

    Parameters
    ----------
    columns : sequence of str
        The columns that count; None: all there are.
    without : str, optional
        A column that does not count, though it may be among them.

    Examples
    --------
    >>> batch = Batch("a list", 0, 3, {"age": [30, None, 41], "sex": ["f", "m", "f"]})
    >>> one, two = Fingerprint(["age", "sex"]), Fingerprint(["age", "sex"])
    >>> one.add(batch)
    >>> for start in range(3):
    ...     two.add(batch.cut(start, start + 1))
    >>> one.value() == two.value()
    True
    """

    __slots__ = ("_columns", "_hashes", "_without")

    def __init__(self, columns: Sequence[str] | None, without: str | None = None) -> None:
        self._columns, self._without = columns, without
        self._hashes: dict[str, tuple[Any, Any]] = {}

    @classmethod
    def of(
        cls, batches: Sequence[Batch], n_rows: int, columns: Sequence[str] | None, without: str | None = None
    ) -> str:
        """The digest of the first `n_rows` rows."""
        fingerprint, left = cls(columns, without), n_rows
        for batch in batches:
            fingerprint.add(batch if batch.n <= left else batch.cut(0, left))
            left -= min(batch.n, left)
        return fingerprint.value()

    def add(self, batch: Batch) -> None:
        """Add rows."""
        for name in batch.columns if self._columns is None else self._columns:
            if name == self._without:
                continue
            # Lengths and bytes apart, so that where a batch ends makes no difference to either.
            sizes, cells = self._hashes.setdefault(name, (_hash(), _hash()))
            lengths, data = _stored(batch.stored(name))
            sizes.update(lengths)
            cells.update(data)

    def value(self) -> str:
        """Of the rows so far."""
        total = _hash()
        for name, hashes in self._hashes.items():
            total.update(repr(name).encode("utf-8", "surrogatepass"))
            for each in hashes:
                total.update(each.digest())
        return str(total.hexdigest())


def _hash() -> Any:
    return hashlib.blake2b(digest_size=16)


def _stored(column: Any) -> tuple[Any, Any]:
    """The lengths of a column's cells, -1 for those that are missing, and their bytes."""
    if hasattr(column, "null_count"):
        return _from_arrow(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biufMm" and type(column) is np.ndarray:
        return b"", column.tobytes()
    listed = column.to_list() if hasattr(column, "to_list") else list(column)
    texts = [repr(value).encode("utf-8", "surrogatepass") for value in listed]
    return np.array([len(text) for text in texts], dtype="<i8").tobytes(), b"".join(texts)


def _from_arrow(column: Any) -> tuple[Any, Any]:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    kind = str(column.type)
    if kind in ("binary", "string"):
        _, offsets, data = column.buffers()
        if not len(column):
            return b"", b""
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        lengths = np.diff(ends)
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            lengths = np.where(missing, -1 - lengths, lengths)
        cells = b"" if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]
        return lengths.astype("<i4").tobytes(), cells
    if kind in ("double", "float", "bool") or kind.startswith(("int", "uint")):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        filled = column.fill_null(False if kind == "bool" else 0) if column.null_count else column
        return missing.tobytes(), filled.to_numpy(zero_copy_only=False).tobytes()
    return _stored(column.to_pylist())


# --------
# The files of a run, its output and its state, which are claimed and committed together.

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
        self.names: tuple[str, ...] = ()
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
                saved_before = read_checkpoint(self.state)
                self._replace = overwrite or (saved_before is not None and self._made(saved_before))
        if saved is not None and self.state is not None:
            check_same(saved.asked, self.asked, self.state)
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
            write(self.state, self.begun)
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
        write(state, current.save(self.asked, self._where, position, finished=finished))

    def close(self) -> None:
        """Let go of the files."""
        if self._output is not None:
            self._output.close()
        if self._lock is not None:
            self._lock.release()


@contextmanager
def claim(
    source: Any,
    columns: Any,
    asked: dict[str, Any],
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
    asked, out, state, fresh, overwrite
        As for `RunFiles`.
    """
    records = source if isinstance(source, Records) else read(source, columns=columns, whole_lines=state is not None)
    with closing(records):
        files = RunFiles(asked, out, state, records.file, fresh=fresh, overwrite=overwrite)
        with closing(files):
            yield records, files
