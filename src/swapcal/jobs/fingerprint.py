"""What a run has seen of its input: a digest of every cell that it uses, as it is stored."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from swapcal.tables.batch import Batch

__all__ = ["Fingerprint"]


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
