"""Forecasts as CSV or JSON lines, which can be cut off behind any row."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput
from swapcal.jobs.lock import hold
from swapcal.jobs.outputs import Columns, Position, changed, kind_of, there_already, unwritable
from swapcal.replacing import sync_folder
from swapcal.tables.extras import package

__all__ = ["TextOutput"]

_BLOCK = 1 << 20


class TextOutput:
    """CSV or JSON lines; the position is the number of bytes and their digest.

    Numbers are written in the fewest digits that give the same number again; a missing one is empty, or null in JSON.
    While it is open, no other run can write to it.

    Parameters
    ----------
    path, names, position, replace, claimed
        As for `open_output`.
    json_lines : bool
        JSON lines instead of CSV.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        position: Position | None,
        *,
        json_lines: bool,
        replace: bool = False,
        claimed: bool = False,
    ) -> None:
        self.path, self.names, self.json = path, names, json_lines
        self._arrow()
        self._hash = hashlib.blake2b(digest_size=16)
        self._head = b'{"row":' if json_lines else (",".join(map(_csv_cell, names)) + "\n").encode()
        self._file = self._opened(new=position is None, there=replace or claimed)
        try:
            if position is None:
                self._begin(replace=replace)
            else:
                self._go_back(position)
        except BaseException:
            self._file.close()
            raise

    def append(self, columns: Columns) -> None:
        """Add rows as lines."""
        pa, pc = self._arrow()
        pieces: list[Any] = []
        for name in self.names:
            values = columns[name] if kind_of(name) != "string" else self._quoted(columns[name])
            text = pc.cast(pa.array(values, from_pandas=True), pa.string())
            before = "," if pieces else "{" if self.json else ""
            pieces += [f"{before}{json.dumps(name, ensure_ascii=False)}:" if self.json else before]
            pieces += [pc.fill_null(text, "null" if self.json else "") if text.null_count else text]
        # The last argument is what stands between pieces: nothing. The lines lie end to end in the array's own bytes.
        lines = pc.binary_join_element_wise(*pieces, "}\n" if self.json else "\n", "")
        _, offsets, data = lines.buffers()
        if len(lines):
            first, last = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]].tolist()
            self._write(memoryview(data)[first:last])

    def _quoted(self, texts: npt.NDArray[Any]) -> list[str]:
        """Texts as cells of CSV or JSON."""
        quote: Callable[[str], str] = json.dumps if self.json else _csv_cell
        cells = {each: quote(each) for each in set(texts.tolist())}
        return [cells[each] for each in texts.tolist()]

    def commit(self) -> Position:
        """The number of bytes, all of them on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._file.tell(), "digest": self._hash.hexdigest(), "whole": False}

    def ready(self) -> Position:
        """Nothing is left to do."""
        return self.commit()

    def finish(self) -> Position:
        """The file is whole at any time; from now on nothing may stand behind it."""
        return {**self.commit(), "whole": True}

    def reopened(self) -> Position:
        """Rows that no commit knows of may stand behind it again."""
        return self.commit()

    def clear(self) -> None:
        """Nothing is needed beside the file."""

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

    def _go_back(self, position: Position) -> None:
        """To the position, if all in front of it is as it was, and nothing stands behind a finished file."""
        length, size = int(position["bytes"]), self._file.seek(0, os.SEEK_END)
        if size < length:
            raise changed(self.path, f"is shorter than the {length} bytes that were written to it")
        if position["whole"] and size > length:
            raise changed(self.path, f"is longer than the {length} bytes that were written to it")
        self._file.seek(0)
        left = length
        while left and (block := self._file.read(min(left, _BLOCK))):
            self._hash.update(block)
            left -= len(block)
        if self._hash.hexdigest() != position["digest"]:
            raise changed(self.path, "is not what was written to it")
        self._file.seek(length)
        self._file.truncate()

    def _write(self, data: bytes | memoryview) -> None:
        self._hash.update(data)
        self._file.write(data)

    @staticmethod
    def _arrow() -> tuple[Any, Any]:
        return package("pyarrow", "writing forecasts"), package("pyarrow.compute", "writing forecasts")


def _csv_cell(text: str) -> str:
    """A text as CSV has it: in quotes where a comma, a quote, a line end or a blank at an end would change it.

    Examples
    --------
    >>> _csv_cell("early"), _csv_cell("early, or late")
    ('early', '"early, or late"')
    """
    plain = text.strip() == text and not any(sign in text for sign in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'
