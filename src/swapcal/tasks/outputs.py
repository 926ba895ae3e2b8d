"""Where forecasts go: CSV, JSON lines or Parquet. An output can say how far it is safe, and go back to there.

What has been appended is safe after `commit`, which returns a position (plain data, to be kept with the rest of the
state). After a kill, the output at that position drops whatever came later, so no row is lost and none is there twice.
A position knows its output by a digest: a file that somebody has changed, or another one, is never cut or continued.
"""

import errno
import hashlib
import json
import os
import stat
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput, StateFileError
from swapcal.inputs import short_repr
from swapcal.state import atomic_write, leftovers, sync_folder
from swapcal.tables.batch import Batch, entries
from swapcal.tables.sources import package
from swapcal.text.numbers import counted

Columns = Mapping[str, npt.NDArray[Any]]
Position = dict[str, Any]

ENDINGS = ".csv, .jsonl, .ndjson or .parquet"
_KINDS = {"row": "int64", "top": "string"}

# Names of columns, and what each holds, as pyarrow calls it.
Kinds = Mapping[str, str]


def kinds_of(names: Sequence[str], first: Batch | None = None, keep: Sequence[str] = ()) -> dict[str, str]:
    """What the columns of an output hold: the number of a row, columns of the file that are kept, then forecasts.

    Numbers and times that the file has as such stay what they are; anything else is text, as it stands in the file.
    """
    own: Sequence[str] = () if first is None else first.columns if "all" in keep else keep
    if twice := [name for name in own if name in names]:
        what = f"the output has columns {', '.join(map(repr, names))} of its own, and the file has {twice[0]!r} as well"
        raise InvalidInput(f"{what}; name others in keep= (--keep), or rename it")
    kept = {name: _stored_kind(first.stored(name)) for name in own} if first is not None else {}
    lead, *others = names
    return {lead: "int64", **kept, **{name: _KINDS.get(name, "float64") for name in others}}


def _stored_kind(column: Any) -> str:
    kind = str(getattr(column, "type", getattr(column, "dtype", "")))
    return (
        kind.replace("double", "float64")
        if kind.startswith(("int", "uint", "float", "double", "bool", "timestamp[", "date32"))
        else "string"
    )


# A path, or the number of an open file.
File = str | os.PathLike[str] | int


def regular(file: File) -> bool:
    """Whether it is a file that can be looked at twice, which pipes and devices cannot."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def rows_of(out: Path) -> Path:
    """The file beside an output that holds what is not in it yet."""
    return out.with_name(out.name + ".rows")


# What a file system answers that has no locks.
_UNKNOWN = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


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
            alone = "this file system has no locks; see to it that no two runs use the same files at once"
            warnings.warn(alone, UserWarning, stacklevel=3)
        return error.errno in _UNKNOWN
    return True


class Output(ABC):
    """A file of columns that grows."""

    @abstractmethod
    def append(self, columns: Columns) -> None:
        """Add rows: arrays of equal length; NaN is missing."""

    @abstractmethod
    def commit(self) -> Position:
        """Make all rows so far survive a kill, and say where they end."""

    @abstractmethod
    def finish(self) -> Position:
        """Make the file whole, under its own name; more may be appended later, from that position."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def ready(self) -> Position:
        """As `commit`, in a position that says that `finish` comes next."""
        return self.commit()

    def reopened(self) -> Position:
        """The position to keep before the first row is appended to a finished output."""
        return self.commit()

    def clear(self) -> None:  # noqa: B027 - most outputs need nothing beside them
        """Remove what was only needed to go on, after `finish` and once its position has been kept."""


def open_output(
    path: str | os.PathLike[str],
    names: Kinds,
    position: Position | None = None,
    done: int = 0,
    *,
    replace: bool = False,
    claimed: bool = False,
) -> Output:
    """The output at `path`, by its ending: begun anew, or at the `position` that an earlier run committed.

    Parameters
    ----------
    path : path
        Where it is.
    names : mapping
        Its columns, and what each holds, as `kinds_of` gives them.
    position : dict, optional
        Go on from there; a `StateFileError` if what is there now is not what was committed.
    done : int
        How many rows must stand in front of the position.
    replace : bool
        Without a position: take the place of whatever file is there, as somebody has said.
    claimed : bool
        Without a position: take the place of what a run that was killed at its start has left there.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending in (".csv", ".jsonl", ".ndjson"):
        return TextOutput(target, names, position, done, json_lines=ending != ".csv", replace=replace, claimed=claimed)
    if ending in (".parquet", ".pq"):
        return ParquetOutput(target, names, position, done, replace=replace, claimed=claimed)
    raise InvalidInput(f"the output {target.name!r} must end in {ENDINGS}")


def reason(error: OSError) -> str:
    """What the system says, to stand within a sentence."""
    return (error.strerror or str(error)).lower()


def there_already(path: Path) -> InvalidInput:
    """An output that would take the place of a file that nobody has given up."""
    return InvalidInput(f"the output {path} is there already; give another --out, or --overwrite to replace it")


def unwritable(path: Path, error: OSError) -> InvalidInput:
    """An output that the system does not let be written."""
    why = f"cannot be written ({reason(error)}); give --out a file in a directory that can be"
    return InvalidInput(f"the output {path} {why}")


def changed(path: Path, what: str) -> StateFileError:
    """An output that is not as it was left; nothing is done to it."""
    way = "put back the file as it was, or give another --out and another --state"
    return StateFileError(f"{path.name} {what}, so the run cannot go on where it stopped; {way}")


# --------
# Forecasts as Parquet, which cannot be cut off at a row: rows wait as CSV beside it, and are converted at the end.

# Rows of a row group: fixed, so that the bytes of the file do not depend on when commits took place.
_GROUP_ROWS = 262_144


class ParquetOutput(Output):
    """A Parquet file and, until it is finished, the CSV file of its rows.

    The position is that of the rows; `merged` says that they are in the file itself, of which the digest then is, and
    from which they are read again if more come. `replaces` says that what has the file's name may be replaced: somebody
    has said so, or the run was about to put it there itself.

    Parameters
    ----------
    path, names, position, done, replace, claimed
        As for `open_output`.
    """

    def __init__(
        self,
        path: Path,
        names: Kinds,
        position: Position | None,
        done: int,
        *,
        replace: bool = False,
        claimed: bool = False,
    ) -> None:
        self.path, self.names, self.rows = path, names, rows_of(path)
        pa, _ = package("pyarrow", "writing forecasts"), package("pyarrow.parquet", "writing Parquet")
        self._schema = pa.schema([(name, _type(pa, kind)) for name, kind in names.items()])
        merged = position is not None and bool(position["merged"])
        self._replaces = replace if position is None else bool(position["replaces"])
        if os.path.lexists(path) and not self._replaces and not merged:
            raise there_already(path)
        if os.path.exists(path) and not regular(path):
            raise InvalidInput(f"the output {path} is a pipe or a device; give --out the name of a file")
        self._text: TextOutput | None = None
        self._digest = str(position["digest"]) if position is not None and merged else ""
        if merged:
            self._check_whole(done)
            self.clear()
        else:
            rows = None if position is None else dict(position["rows"])
            self._text = self._open(rows, done, again=replace or claimed)
            for file in leftovers(path):
                os.unlink(file)

    def append(self, columns: Columns) -> None:
        """Rows for the file, as lines of CSV; those that are in the file already come first."""
        if self._text is None:
            parquet = package("pyarrow.parquet", "writing Parquet")
            self._text = self._open(None, 0, again=True)
            with parquet.ParquetFile(self.path) as whole:
                for batch in whole.iter_batches(_GROUP_ROWS):
                    self._text.append(dict(zip(self.names, batch.columns, strict=True)))
        self._text.append(columns)

    def commit(self) -> Position:
        """Where the rows end, all of them on the disk."""
        rows = None if self._text is None else self._text.commit()
        return {"rows": rows, "digest": self._digest, "merged": rows is None, "replaces": self._replaces}

    def ready(self) -> Position:
        """As `commit`; from now on what has the file's name may be the file that was made of the rows."""
        if self._text is not None:
            if os.path.lexists(self.path) and not self._replaces:
                raise there_already(self.path)
            self._replaces = True
        return self.commit()

    def finish(self) -> Position:
        """Make the file of its rows; it takes the place of what was there in one step."""
        if self._text is not None:
            self.ready()
            self._convert()
            self._text.close()
            self._text, self._digest = None, _file_digest(self.path)
        return self.commit()

    def clear(self) -> None:
        """Remove the rows, which are in the file now."""
        if self._text is None and _begins_with(self.rows, csv_head(self.names)):
            os.unlink(self.rows)

    def close(self) -> None:
        """Close the file of the rows."""
        if self._text is not None:
            self._text.close()

    def _open(self, position: Position | None, done: int, *, again: bool) -> "TextOutput":
        """The rows, anew or at a position; a file that has their name is replaced only if a run has left it."""
        try:
            return TextOutput(self.rows, self.names, position, done, json_lines=False, claimed=again)
        except InvalidInput:
            if position is not None or not self.rows.exists():
                raise
            there = f"{self.rows} is needed for rows of the output, and it is there already"
            why = "not made by swapcal; rename it" if again else "of a run that is under way, or was killed; wait"
            hint = "" if again else ", or --overwrite to start over"
            raise InvalidInput(f"{there}, {why}, or give another --out{hint}") from None

    def _check_whole(self, done: int) -> None:
        if not self.path.exists():
            raise changed(self.path, "is gone")
        if _file_digest(self.path) != self._digest:
            raise changed(self.path, "is not what was written to it")
        parquet = package("pyarrow.parquet", "writing Parquet")
        _check_rows(self.path, int(parquet.read_metadata(self.path).num_rows), done)

    def _convert(self) -> None:
        """All rows, in groups of one size, each in one piece: where pieces end would show in the pages of the file."""
        pa, csv = package("pyarrow", "writing Parquet"), package("pyarrow.csv", "writing Parquet")
        parquet = package("pyarrow.parquet", "writing Parquet")
        texts: dict[str, Any] = {"strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""]}
        convert = csv.ConvertOptions(column_types=self._schema, **texts)
        parse = csv.ParseOptions(newlines_in_values="string" in self.names.values())
        rest = self._schema.empty_table()
        try:
            with (
                atomic_write(self.path) as file,
                parquet.ParquetWriter(file, self._schema) as writer,
                csv.open_csv(self.rows, parse_options=parse, convert_options=convert) as reader,
            ):
                for batch in reader:
                    rest = pa.concat_tables([rest, pa.Table.from_batches([batch])])
                    while rest.num_rows >= _GROUP_ROWS:
                        writer.write(rest.slice(0, _GROUP_ROWS).combine_chunks())
                        rest = rest.slice(_GROUP_ROWS)
                if rest.num_rows:
                    writer.write(rest.combine_chunks())
            sync_folder(str(self.path.parent))
        except OSError as error:
            raise unwritable(self.path, error) from None


def _check_rows(path: Path, rows: int, done: int) -> None:
    """A position that ends elsewhere than behind the rows that are done was not written by a run."""
    if rows != done:
        why = f"it has {counted(done)} done, and the position in {path.name} is not behind them"
        raise StateFileError(f"the state file is damaged: {why}; give another --state and another --out")


def _file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _begins_with(path: Path, head: bytes) -> bool:
    """Whether it is a file that begins with these bytes."""
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(head)) == head


# --------
# Forecasts as CSV or JSON lines, which can be cut off behind any row.

_BLOCK = 1 << 20


class TextOutput(Output):
    """CSV or JSON lines; the position is the number of bytes and their digest.

    Numbers are written in the fewest digits that give the same number again; a missing one is empty, or null in JSON.
    While it is open, no other run can write to it.

    Parameters
    ----------
    path, names, position, done, replace, claimed
        As for `open_output`.
    json_lines : bool
        JSON lines instead of CSV.
    """

    def __init__(
        self,
        path: Path,
        names: Kinds,
        position: Position | None,
        done: int,
        *,
        json_lines: bool,
        replace: bool = False,
        claimed: bool = False,
    ) -> None:
        self.path, self.names, self.json = path, names, json_lines
        self._arrow()
        self._hash = hashlib.blake2b(digest_size=16)
        self._head = b'{"row":' if json_lines else csv_head(names)
        self._file = self._opened(new=position is None, there=replace or claimed)
        try:
            if position is None:
                self._begin(replace=replace)
            else:
                self._go_back(position, done)
        except BaseException:
            self._file.close()
            raise

    def append(self, columns: Columns) -> None:
        """Add rows as lines."""
        pa, pc = self._arrow()
        pieces: list[Any] = []
        for name, kind in self.names.items():
            text = pc.cast(pa.array(self._cells(columns[name], kind), from_pandas=True), pa.string())
            before = "," if pieces else "{" if self.json else ""
            pieces += [f"{before}{json.dumps(name, ensure_ascii=False)}:" if self.json else before]
            pieces += [pc.fill_null(text, "null" if self.json else "") if text.null_count else text]
        # The last argument is what stands between pieces: nothing. The lines lie end to end in the array's own bytes.
        lines = pc.binary_join_element_wise(*pieces, "}\n" if self.json else "\n", "")
        _, offsets, data = lines.buffers()
        if len(lines):
            first, last = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]].tolist()
            self._write(memoryview(data)[first:last])

    def _cells(self, column: Any, kind: str) -> Any:
        """Numbers as they are, texts as cells of CSV or JSON; None where there is none."""
        plain = kind.startswith(("int", "uint", "float", "bool"))
        if plain and (not hasattr(column, "null_count") or not kind.startswith("float")):
            return column
        if plain:
            return column.to_numpy(zero_copy_only=False)  # where NaN is missing, too
        listed = entries(column)
        cells: dict[Any, str | None] = {each: self._cell(each) for each in set(listed)}
        return [cells[each] for each in listed]

    def _cell(self, value: Any) -> str | None:
        """One of them; in JSON numbers that are no text stay numbers."""
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if value is None or value != value:
            return None
        if self.json:
            return json.dumps(value if isinstance(value, (str, int, float)) else str(value))
        return _csv_cell(str(value))

    def commit(self) -> Position:
        """The number of bytes, all of them on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._file.tell(), "digest": self._hash.hexdigest(), "whole": False}

    def finish(self) -> Position:
        """The file is whole at any time; from now on nothing may stand behind it."""
        return {**self.commit(), "whole": True}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _opened(self, *, new: bool, there: bool) -> BinaryIO:
        """The file, locked, and not changed yet."""
        flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        flags |= (os.O_CREAT if there else os.O_CREAT | os.O_EXCL) if new else 0
        try:
            handle = os.open(self.path, flags, 0o666)
        except FileExistsError:
            raise there_already(self.path) from None
        except FileNotFoundError as error:
            raise (unwritable(self.path, error) if new else changed(self.path, "is gone")) from None
        except OSError as error:
            raise unwritable(self.path, error) from None
        file = open(handle, "r+b")  # noqa: SIM115 - closed by `close`
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            file.close()
            raise InvalidInput(f"the output {self.path} is a pipe or a device; give --out the name of a file")
        if not hold(handle):
            file.close()
            raise InvalidInput(f"another run is writing to {self.path}; wait for its end, or give another --out")
        return file

    def _begin(self, *, replace: bool) -> None:
        """An empty file; of what a killed run has left, only if it looks like that."""
        left = self._file.read(len(self._head))
        if not replace and not self._head.startswith(left):
            raise there_already(self.path)
        self._file.seek(0)
        self._file.truncate()
        if not self.json:
            self._write(self._head)
        sync_folder(str(self.path.parent))

    def _go_back(self, position: Position, done: int) -> None:
        """To the position, if all in front of it is as it was, and nothing stands behind a finished file."""
        length, size = position["bytes"], self._file.seek(0, os.SEEK_END)
        if type(length) is not int or length < 0:
            raise StateFileError(f"the state file is damaged: its output has {short_repr(length)} bytes")
        if size < length:
            raise changed(self.path, f"is shorter than the {length} bytes that were written to it")
        if position["whole"] and size > length:
            raise changed(self.path, f"is longer than the {length} bytes that were written to it")
        self._file.seek(0)
        left, lines, quoted, block = length, 0 if self.json else -1, 0, b""
        while left and (block := self._file.read(min(left, _BLOCK))):
            self._hash.update(block)
            left -= len(block)
            parts = [block] if self.json else block.split(b'"')  # names of classes may have several lines, in quotes
            lines += sum(part.count(b"\n") for part in parts[quoted::2])
            quoted = (quoted + len(parts) - 1) % 2
        if self._hash.hexdigest() != position["digest"]:
            raise changed(self.path, "is not what was written to it")
        _check_rows(self.path, lines if block.endswith(b"\n") or not length else -1, done)
        self._file.seek(length)
        self._file.truncate()

    def _write(self, data: bytes | memoryview) -> None:
        self._hash.update(data)
        self._file.write(data)

    @staticmethod
    def _arrow() -> tuple[Any, Any]:
        return package("pyarrow", "writing forecasts"), package("pyarrow.compute", "writing forecasts")


def _type(arrow: Any, kind: str) -> Any:
    """The type of that name."""
    zone = kind.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
    return arrow.timestamp(zone[0], zone[2] or None) if kind.startswith("timestamp[") else arrow.type_for_alias(kind)


def csv_head(names: Iterable[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    return (",".join(map(_csv_cell, names)) + "\n").encode()


def _csv_cell(text: str) -> str:
    """A text as CSV has it: in quotes where a comma, a quote, a line end or a blank at an end would change it.

    Examples
    --------
    >>> _csv_cell("early"), _csv_cell("early, or late")
    ('early', '"early, or late"')
    """
    plain = text.strip() == text and not any(sign in text for sign in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'
