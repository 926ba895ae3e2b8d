"""Forecasts as Parquet, which cannot be cut off at a row: commits make parts beside it, which are merged at the end."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.jobs.guard import parts_of, regular
from swapcal.jobs.outputs import Columns, Position, changed, kind_of, there_already, unwritable
from swapcal.replacing import leftovers, replacing, sync_folder
from swapcal.tables.extras import package

__all__ = ["ParquetOutput"]

_PART_ROWS = 1_048_576
"""Rows that wait in memory at most before they become a part file."""

_GROUP_ROWS = 262_144
"""Rows of a row group of the merged file: fixed, so that its bytes do not depend on when commits took place."""

_MARK = "swapcal-run"
"""An empty file in the folder of the parts, by which a run knows that it is one."""

_OURS = re.compile(rf"\d{{6,}}\.parquet|{_MARK}|\.\d{{6,}}\.parquet\.[0-9a-f]{{16}}\.part")


class ParquetOutput:
    """A Parquet file and, until it is finished, the folder of its parts.

    The position is the number of parts and a digest over them; `merged` says that their rows are in the file itself,
    of which the digest then is, and which becomes the first part if more rows come. `replaces` says that what has the
    file's name may be replaced: somebody has said so, or the run was about to put it there itself.

    Parameters
    ----------
    path, names, position, replace, claimed
        As for `open_output`.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        position: Position | None,
        *,
        replace: bool = False,
        claimed: bool = False,
    ) -> None:
        self.path, self.names, self.parts = path, names, parts_of(path)
        self._waiting: list[Columns] = []
        self._n_parts, self._merged, self._replaces, self._digest = 0, False, replace, ""
        pa, _ = package("pyarrow", "writing forecasts"), package("pyarrow.parquet", "writing Parquet")
        self._schema = pa.schema([(name, pa.type_for_alias(kind_of(name))) for name in names])
        if position is not None:
            self._n_parts, self._digest = int(position["parts"]), str(position["digest"])
            self._merged, self._replaces = bool(position["merged"]), bool(position["replaces"])
        if os.path.lexists(path) and not self._replaces and not self._merged:
            raise there_already(path)
        if os.path.exists(path) and not regular(path):
            raise InvalidInput(f"the output {path} is a pipe or a device; give --out the name of a file")
        if position is None:
            self._make_folder(again=replace or claimed)
        elif self._merged:
            self._check_whole()
            self.clear()
        else:
            self._go_back()

    def append(self, columns: Columns) -> None:
        """Keep rows for the next part."""
        self._waiting.append(columns)
        if sum(len(rows[self.names[0]]) for rows in self._waiting) >= _PART_ROWS:
            self._write_part()

    def commit(self) -> Position:
        """The number of parts, all of them on the disk."""
        self._write_part()
        return self._position()

    def ready(self) -> Position:
        """As `commit`; from now on what has the file's name may be the merged file."""
        self._write_part()
        if not self._merged:
            if os.path.lexists(self.path) and not self._replaces:
                raise there_already(self.path)
            self._replaces = True
        return self._position()

    def finish(self) -> Position:
        """Merge the parts into the file, which takes the place of what was there in one step."""
        if not self._merged or self._waiting:
            self._write_part()
            if os.path.lexists(self.path) and not self._replaces:
                raise there_already(self.path)
            self._write_parquet(self.path, self._parts_in_order())
            self._merged = self._replaces = True
            self._digest = _file_digest(self.path)
        return self._position()

    def reopened(self) -> Position:
        """The file stays as it is until the parts are merged again."""
        return self._position()

    def clear(self) -> None:
        """Remove the parts, and the folder if nothing else has been put there."""
        if self._is_ours():
            self._remove(set())
            with suppress(OSError):
                os.rmdir(self.parts)

    def close(self) -> None:
        """No file is open between calls."""

    def _position(self) -> Position:
        return {
            "parts": self._n_parts,
            "digest": self._digest,
            "merged": self._merged,
            "replaces": self._replaces,
        }

    def _part(self, k: int) -> Path:
        return self.parts / f"{k:06d}.parquet"

    def _is_ours(self) -> bool:
        """Whether the folder of the parts is there and one that a run has made."""
        if self.parts.is_symlink() or not self.parts.is_dir():
            return False
        names = os.listdir(self.parts)
        return _MARK in names or not names

    def _make_folder(self, *, again: bool) -> None:
        """A folder for parts; one that is there is used only if it is a run's, and may be used again."""
        try:
            os.mkdir(self.parts)
        except FileExistsError:
            if not self._is_ours():
                raise InvalidInput(
                    f"{self.parts} is needed for parts of the output, and it is there already, not made by swapcal; "
                    "rename it, or give another --out"
                ) from None
            if not again:
                raise InvalidInput(
                    f"{self.parts} holds rows of a run that is under way, or was killed; wait for its end, give "
                    "another --out, or --overwrite to start over"
                ) from None
        except OSError as error:
            raise unwritable(self.path, error) from None
        self._remove({self.parts / _MARK})
        (self.parts / _MARK).touch()

    def _remove(self, kept: set[Path]) -> None:
        """Take away what runs have put into the folder of the parts; the mark goes last."""
        if not self.parts.is_dir():
            return
        named = [name for name in os.listdir(self.parts) if _OURS.fullmatch(name) and self.parts / name not in kept]
        for name in sorted(named, key=lambda name: name == _MARK):
            os.unlink(self.parts / name)

    def _check_whole(self) -> None:
        if not self.path.exists():
            raise changed(self.path, "is gone")
        if _file_digest(self.path) != self._digest:
            raise changed(self.path, "is not what was written to it")

    def _go_back(self) -> None:
        """Drop the parts that no commit knows of, once those that it knows are found as they were."""
        kept, digest = [self._part(k) for k in range(self._n_parts)], ""
        for part in kept:
            if not part.exists():
                raise changed(self.parts, f"has lost {part.name}")
            digest = _chained(digest, _file_digest(part))
        if digest != self._digest:
            raise changed(self.parts, "is not what was written to it")
        self._remove({*kept, self.parts / _MARK})
        for file in leftovers(self.path):
            os.unlink(file)

    def _write_part(self) -> None:
        if not self._waiting:
            return
        pa = package("pyarrow", "writing Parquet")
        if self._merged:
            if not self.parts.is_dir() or not self._is_ours():
                self._make_folder(again=True)
            (self.parts / _MARK).touch()
            with replacing(self._part(0)) as file, open(self.path, "rb") as whole:
                shutil.copyfileobj(whole, file)
            self._n_parts, self._merged = 1, False
            self._digest = _chained("", _file_digest(self._part(0)))
        columns = {name: np.concatenate([rows[name] for rows in self._waiting]) for name in self.names}
        arrays = [pa.array(columns[name], type=self._schema.field(name).type, from_pandas=True) for name in self.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._write_parquet(self._part(self._n_parts), [batch])
        self._digest = _chained(self._digest, _file_digest(self._part(self._n_parts)))
        self._n_parts += 1
        self._waiting.clear()

    def _parts_in_order(self) -> Iterator[Any]:
        """The rows of all parts, in batches of the size of a row group, each in one piece."""
        pa, parquet = package("pyarrow", "writing Parquet"), package("pyarrow.parquet", "writing Parquet")
        rest = pa.table({name: pa.array([], self._schema.field(name).type) for name in self.names})
        for k in range(self._n_parts):
            with parquet.ParquetFile(self._part(k)) as part:
                for batch in part.iter_batches(_GROUP_ROWS):
                    rest = pa.concat_tables([rest, pa.Table.from_batches([batch])])
                    while rest.num_rows >= _GROUP_ROWS:
                        # Where pieces end would show in the pages of the file.
                        yield rest.slice(0, _GROUP_ROWS).combine_chunks()
                        rest = rest.slice(_GROUP_ROWS)
        if rest.num_rows:
            yield rest.combine_chunks()

    def _write_parquet(self, path: Path, batches: Iterable[Any]) -> None:
        parquet = package("pyarrow.parquet", "writing Parquet")
        try:
            with replacing(path) as file, parquet.ParquetWriter(file, self._schema) as writer:
                for batch in batches:
                    writer.write(batch)
            sync_folder(str(path.parent))
        except OSError as error:
            raise unwritable(self.path, error) from None


def _file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _chained(before: str, digest: str) -> str:
    return hashlib.blake2b((before + digest).encode(), digest_size=16).hexdigest()
