"""A source that can be read more than once: again from its file or frame, or from a temporary copy of its batches."""

import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from swapcal.tables.batch import Batch
from swapcal.tables.records import Records, read

__all__ = ["Passes"]


class Passes:
    """The batches of a source, as often as they are asked for.

    Files and frames are opened again. What can be read only once (standard input, a pipe, an iterator, records that are
    open already) is copied on the way: the columns that are needed go to a temporary file without a name, which is gone
    when this is closed.

    Parameters
    ----------
    source : Records or anything that `records.read` takes
        The table.
    columns : sequence of str, optional
        Read only these.
    n_passes : int
        How often it will be read, for the progress.

    Examples
    --------
    >>> with Passes(iter([{"y": 1.0}, {"y": 0.0}]), ["y"]) as passes:
    ...     [[len(batch) for batch in passes.batches()] for _ in range(2)]
    [[2], [2]]
    """

    def __init__(self, source: Any, columns: Sequence[str] | None = None, *, n_passes: int = 2) -> None:
        self._source, self._columns, self._n_passes = source, columns, n_passes
        self._again = _readable_again(source)
        self._records = source if isinstance(source, Records) else read(source, columns=columns)
        self._copy = None if self._again else tempfile.TemporaryFile()  # noqa: SIM115
        self._before = self._done = 0
        self._begun = False
        self.name, self.file = self._records.name, self._records.file
        self.columns = self._records.columns
        self.n_rows = self._records.n_rows
        total = self._records.bytes_total
        # A copy is read in no time beside the text it was made from.
        self.bytes_total = None if total is None else total * (n_passes if self._again else 1)

    @property
    def bytes_done(self) -> int:
        """About how many bytes have been read in all passes."""
        self._done = max(self._done, self._before + self._records.bytes_done)
        return self._done

    def batches(self) -> Iterator[Batch]:
        """All batches from the first on."""
        if not self._begun:
            self._begun = True
            yield from self._first()
        elif self._copy is None:
            self._before += self._records.bytes_done
            self._records.close()
            self._records = read(self._source, columns=self._columns)
            yield from self._records
        else:
            self._copy.seek(0)
            while (stored := _next(self._copy)) is not None:
                yield Batch(self.name, *stored)

    def _first(self) -> Iterator[Batch]:
        for batch in self._records:
            if self._copy is not None:
                pickle.dump((batch.first, batch.n, dict(batch._data)), self._copy, protocol=5)
            yield batch
        if self._copy is not None:
            pickle.dump(None, self._copy)

    def close(self) -> None:
        """Close the file, and the copy if there is one."""
        self._records.close()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> "Passes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _next(copy: Any) -> tuple[int, int, dict[str, Any]] | None:
    """What this process has written itself, to a file that nobody else can open."""
    found: tuple[int, int, dict[str, Any]] | None = pickle.load(copy)
    return found


def _readable_again(source: Any) -> bool:
    if isinstance(source, Records):
        return False
    if isinstance(source, str | os.PathLike):
        return os.path.isfile(source)
    return isinstance(source, Mapping | list | tuple) or (hasattr(source, "columns") and not hasattr(source, "read"))
