"""Where forecasts go: CSV, JSON lines or Parquet. An output can say how far it is safe, and go back to there.

What has been appended is safe after `commit`, which returns a position (plain data, to be kept with the rest of the
state). After a kill, `resume` at that position drops whatever came later, so no row is lost and none is there twice.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput, StateFileError
from swapcal.replacing import sync_folder
from swapcal.tables.extras import package

__all__ = ["Output", "ParquetOutput", "TextOutput", "open_output", "rewriting"]

Columns = Mapping[str, npt.NDArray[Any]]
Position = dict[str, Any]

_PART_ROWS = 1_048_576
"""Rows that wait in memory at most before they become a part file."""

_GROUP_ROWS = 262_144
"""Rows of a row group of the merged file: fixed, so that its bytes do not depend on when commits took place."""


class Output(Protocol):
    """A file of columns that grows."""

    def append(self, columns: Columns) -> None:
        """Add rows: arrays of equal length; NaN is missing."""

    def commit(self) -> Position:
        """Make all rows so far survive a kill, and say where they end."""

    def finish(self) -> Position:
        """Make the file whole, under its own name; more may be appended after `resume`."""

    def clear(self) -> None:
        """Remove what was only needed to go on, after `finish` and once its position has been kept."""

    def close(self) -> None:
        """Let go of the file."""


def open_output(path: str | os.PathLike[str], names: tuple[str, ...], position: Position | None = None) -> Output:
    """The output at `path`, by its ending: begun anew, or at the `position` that an earlier run committed."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending in (".csv", ".jsonl", ".ndjson"):
        return TextOutput(target, names, position, json=ending != ".csv")
    if ending in (".parquet", ".pq"):
        return ParquetOutput(target, names, position)
    raise InvalidInput(f"the output {target.name!r} must end in .csv, .jsonl, .ndjson or .parquet")


@contextmanager
def rewriting(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` in one step, when all of it is on the disk.

    Unlike `swapcal.replacing`, the next attempt uses the same name beside it again: a run that is killed and goes on
    leaves nothing behind. Two runs never write the same files at once.
    """
    beside = path.with_name(path.name + ".new")
    with open(beside, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    sync_folder(str(path.parent))


class TextOutput:
    """CSV or JSON lines; the position is the number of bytes.

    Numbers are written in the fewest digits that give the same number again; a missing one is empty, or null in JSON.
    """

    def __init__(self, path: Path, names: tuple[str, ...], position: Position | None, *, json: bool) -> None:
        self.path, self.names, self.json = path, names, json
        _arrow()
        self._file = _opened(path, "wb" if position is None else "r+b")
        if position is None:
            if not json:
                self._file.write((",".join(names) + "\n").encode())
            sync_folder(str(path.parent))
        else:
            length = int(position["bytes"])
            if self._file.seek(0, os.SEEK_END) < length:
                self._file.close()
                raise _changed(path, f"is shorter than the {length} bytes that were written to it")
            self._file.truncate(length)
            self._file.seek(length)

    def append(self, columns: Columns) -> None:
        """Add rows as lines."""
        pa, pc = _arrow()
        pieces: list[Any] = []
        for name in self.names:
            text = pc.cast(pa.array(columns[name], from_pandas=True), pa.string())
            before = "," if pieces else "{" if self.json else ""
            pieces += [f'{before}"{name}":' if self.json else before]
            pieces += [pc.fill_null(text, "null" if self.json else "") if text.null_count else text]
        # The last argument is what stands between pieces: nothing. The lines lie end to end in the array's own bytes.
        lines = pc.binary_join_element_wise(*pieces, "}\n" if self.json else "\n", "")
        _, offsets, data = lines.buffers()
        if len(lines):
            first, last = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]].tolist()
            self._file.write(memoryview(data)[first:last])

    def commit(self) -> Position:
        """The number of bytes, all of them on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._file.tell()}

    def finish(self) -> Position:
        """The file is whole at any time."""
        return self.commit()

    def clear(self) -> None:
        """Nothing is needed beside the file."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ParquetOutput:
    """Parquet cannot be cut off at a row, so each commit makes a part file beside it; `finish` merges them.

    The position is the number of parts; `merged` says that their rows are in the file itself, which becomes the first
    part if more rows come.
    """

    def __init__(self, path: Path, names: tuple[str, ...], position: Position | None) -> None:
        self.path, self.names = path, names
        self.parts = path.with_name(path.name + ".parts")
        self._waiting: list[Columns] = []
        self._n_parts = 0 if position is None else int(position["parts"])
        self._merged = position is not None and bool(position["merged"])
        pa, _ = _arrow()
        self._schema = pa.schema([(name, pa.int64() if name == "row" else pa.float64()) for name in names])
        if position is None or self._merged:
            shutil.rmtree(self.parts, ignore_errors=True)
        if position is None:
            # Where the directory cannot be written to, this fails now and not when the first rows are done.
            self._make_directory()
        if self._merged and not path.exists():
            raise _changed(path, "is gone")
        if position is not None and not self._merged:
            self._rewind()

    def append(self, columns: Columns) -> None:
        """Keep rows for the next part."""
        self._waiting.append(columns)
        if sum(len(rows[self.names[0]]) for rows in self._waiting) >= _PART_ROWS:
            self._write_part()

    def commit(self) -> Position:
        """The number of parts, all of them on the disk."""
        self._write_part()
        return {"parts": self._n_parts, "merged": self._merged}

    def finish(self) -> Position:
        """Merge the parts into the file, which takes the place of what was there in one step."""
        if self._merged and not self._waiting:
            return {"parts": self._n_parts, "merged": True}
        self._write_part()
        _write_parquet(self.path, self._schema, self._parts_in_order())
        self._merged = True
        return {"parts": self._n_parts, "merged": True}

    def clear(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self.parts, ignore_errors=True)

    def close(self) -> None:
        """No file is open between calls."""

    def _part(self, k: int) -> Path:
        return self.parts / f"{k:06d}.parquet"

    def _make_directory(self) -> None:
        try:
            self.parts.mkdir(exist_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _rewind(self) -> None:
        """Drop the parts that no commit knows of."""
        kept = {self._part(k) for k in range(self._n_parts)}
        found = set(self.parts.iterdir()) if self.parts.is_dir() else set()
        if kept - found:
            raise _changed(self.parts, f"has lost {min(kept - found).name}")
        for part in found - kept:
            part.unlink()

    def _write_part(self) -> None:
        if not self._waiting:
            return
        pa, _ = _arrow()
        self._make_directory()
        if self._merged:
            shutil.copyfile(self.path, self._part(0))
            self._n_parts, self._merged = 1, False
        columns = {name: np.concatenate([rows[name] for rows in self._waiting]) for name in self.names}
        arrays = [pa.array(columns[name], type=self._schema.field(name).type, from_pandas=True) for name in self.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        _write_parquet(self._part(self._n_parts), self._schema, [batch])
        self._n_parts += 1
        self._waiting.clear()

    def _parts_in_order(self) -> Iterator[Any]:
        """The rows of all parts, in batches of the size of a row group."""
        pa, parquet = _arrow()[0], package("pyarrow.parquet", "writing Parquet")
        rest = pa.table({name: pa.array([], self._schema.field(name).type) for name in self.names})
        for k in range(self._n_parts):
            with parquet.ParquetFile(self._part(k)) as part:
                for batch in part.iter_batches(_GROUP_ROWS):
                    rest = pa.concat_tables([rest, pa.Table.from_batches([batch])])
                    while rest.num_rows >= _GROUP_ROWS:
                        yield rest.slice(0, _GROUP_ROWS)
                        rest = rest.slice(_GROUP_ROWS)
        if rest.num_rows:
            yield rest


def _write_parquet(path: Path, schema: Any, batches: Iterable[Any]) -> None:
    """Write a file under another name and give it its own when it is whole and on the disk."""
    parquet = package("pyarrow.parquet", "writing Parquet")
    try:
        with rewriting(path) as file, parquet.ParquetWriter(file, schema) as writer:
            for batch in batches:
                writer.write(batch)
    except OSError as error:
        raise _unwritable(path, error) from None


def _opened(path: Path, mode: str) -> BinaryIO:
    try:
        return cast(BinaryIO, open(path, mode))
    except FileNotFoundError as error:
        if mode == "r+b":
            raise _changed(path, "is gone") from None
        raise _unwritable(path, error) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    why = (error.strerror or str(error)).lower()
    return InvalidInput(f"the output {path} cannot be written ({why}); give --out a file in a directory that can be")


def _changed(path: Path, what: str) -> StateFileError:
    return StateFileError(f"{path.name} {what}, so the run cannot go on where it stopped; start over with --fresh")


def _arrow() -> tuple[Any, Any]:
    return package("pyarrow", "writing forecasts"), package("pyarrow.compute", "writing forecasts")
