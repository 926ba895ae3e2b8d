"""Outcomes that come after their rows were forecast: in the same file, or in a second one that names the rows."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.errors import DataError
from swapcal.lifecycle import Entry, Event, answer
from swapcal.tables.batch import Batch, entries, text
from swapcal.tables.records import read
from swapcal.tasks.columns import ColumnReader
from swapcal.tasks.config import TaskConfig
from swapcal.text.numbers import counted
from swapcal.typing import Float64Array, IntArray

# --------
# Rows whose outcome was blank when they were forecast: which they are, and what has come of them since.

_ROWS = ("waiting", "told", "expired", "early")
_NAMES = (*_ROWS, "outcomes")


class WaitingRows:
    """Rows without an outcome when they were forecast: those that wait, were told by another file, or have expired.

    In the input all of them count as blank, whatever it says by now, so that it is the input that was seen; apart from
    that, what it says of outcomes is kept as a digest. Takes 8 bytes for a row that waits, 16 for one that was told.
    Early ones are among the rows that have settled the range: whatever comes of them, they stay blank for that.

    Parameters
    ----------
    y : str
        The column of outcomes.

    Attributes
    ----------
    table : OutcomeTable, optional
        A second file of outcomes.
    new : dict
        Outcomes that have come since and are to be learned, by row; those in `named` were told by the second file.

    Examples
    --------
    >>> blanks = WaitingRows("y")
    >>> blanks.add(np.array([0.0, np.nan, 1.0]), np.array([False, True, False]), 100)
    >>> batch = Batch("a file", 0, 3, {"y": [0.0, 1.0, 1.0]})
    >>> blanks.without(batch).numbers("y")
    array([ 0., nan,  1.])
    """

    def __init__(self, y: str) -> None:
        self.y = y
        self.waiting = self.told = self.expired = self.early = np.zeros(0, dtype=np.int64)
        self.outcomes: Float64Array = np.zeros(0)
        self.n_rows = 0
        self.table: OutcomeTable | None = None
        self.new: dict[int, float] = {}
        self.named: set[int] = set()
        # Rows whose outcomes were left, by what became of them.
        self._left: dict[str, set[int]] = {"contradicted": set(), "expired": set()}
        self._then, self._now = _hash(), _hash()

    def arrays(self) -> dict[str, Float64Array]:
        """All that it takes to go on, but for the digest."""
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in _NAMES}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` gave."""
        self.waiting, self.told, self.expired, self.early = (arrays[name].astype(np.int64) for name in _ROWS)
        self.outcomes = arrays["outcomes"]
        for rows in (self.waiting, self.told, self.expired, self.early):
            if (np.diff(rows) <= 0).any() or (rows < 0).any():
                raise ValueError("rows without an outcome are not in order")
        if self.outcomes.shape != self.told.shape:
            raise ValueError("outcomes that were told do not fit their rows")

    def hidden(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Which rows of a batch were blank."""
        mask = np.zeros(batch.n, dtype=bool)
        for rows in (self.waiting, self.told, self.expired):
            mask[self._inside(rows, batch)] = True
        return mask

    def without(self, batch: Batch) -> Batch:
        """A batch as it was seen."""
        hidden = self.hidden(batch)
        return batch.blanked(self.y, hidden) if hidden.any() else batch

    def settling(self, batch: Batch) -> Batch:
        """A batch as it was when the range was settled."""
        mask = np.zeros(batch.n, dtype=bool)
        mask[self._inside(self.early, batch)] = True
        return batch.blanked(self.y, mask) if mask.any() else batch

    def passed(self, batch: Batch, raw: Float64Array, invalid: Callable[[Float64Array], Any]) -> IntArray:
        """Take rows that are done, with their outcomes as the file has them now; those in the batch that are `new`.

        `invalid` says of which outcomes nothing can be learned.
        """
        blank, then, now = self.hidden(batch), raw.copy(), raw.copy()
        then[blank] = np.nan
        now[self._inside(self.told, batch)] = np.nan
        self._then.update(then.tobytes())
        self._now.update(now.tobytes())
        self.n_rows += batch.n
        come = np.flatnonzero(blank & ~np.isnan(raw))
        events = [(come, raw[come], False)]
        if self.table is not None:
            events.append((*self.table.found(batch), True))
        for rows, outcomes, by_name in events:
            for at, y, refused in zip(rows.tolist(), outcomes.tolist(), invalid(outcomes).tolist(), strict=True):
                row, entry = batch.first + at, self._entry(batch.first + at, float(raw[at]))
                same = entry is not None and entry.y == y
                status, _ = answer(entry, Event("learn", y, invalid=refused and not same))
                if status == "learned":
                    self.new[row] = y
                    self.named |= {row} if by_name else set()
                elif status in self._left:
                    self._left[status].add(row)
        return np.array([row - batch.first for row in batch.rows.tolist() if row in self.new], dtype=np.int64)

    def _entry(self, row: int, y: float) -> Entry | None:
        """What is known of a row that is done, whose outcome in the file is `y` by now."""
        if row in self.new:
            return Entry("learned", self.new[row])
        for state, rows in (("waiting", self.waiting), ("expired", self.expired), ("learned", self.told)):
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                return Entry(state, float(self.outcomes[at]) if state == "learned" else None)
        return None if y != y else Entry("learned", y)

    def order(self, rows: IntArray) -> IntArray:
        """The order in which rows that are new are learned: those of the file, then as the second file has them."""
        places = {} if self.table is None else self.table.places()
        return np.argsort([places[row] if row in self.named else -1 for row in rows.tolist()], kind="stable")

    def add(self, raw: Float64Array, waits: npt.NDArray[np.bool_], window: int) -> None:
        """Rows that were just forecast: their outcomes in the file, and those that are waited for, `window` rows."""
        plain = np.where(np.isnan(raw), np.nan, raw)
        self._then.update(plain.tobytes())
        self._now.update(plain.tobytes())
        self.waiting = np.concatenate([self.waiting, self.n_rows + np.flatnonzero(waits)])
        self.n_rows += len(raw)
        gone = self.waiting < self.n_rows - window
        if gone.any():
            self.expired = np.concatenate([self.expired, self.waiting[gone]])
            self.waiting = self.waiting[~gone]

    def learned(self) -> None:
        """All that was new has been learned."""
        self.waiting = np.setdiff1d(self.waiting, [*self.new])
        self.expired = np.setdiff1d(self.expired, [*self._left["expired"]])
        named = sorted(self.named)
        told = np.concatenate([self.told, np.array(named, dtype=np.int64)])
        outcomes, order = np.concatenate([self.outcomes, [self.new[row] for row in named]]), np.argsort(told)
        self.told, self.outcomes = told[order], outcomes[order]
        self._then = self._now.copy()

    def sentences(self, window: int, source: str) -> tuple[str, ...]:
        """What there is to say about outcomes that were not learned from."""
        sentences = []
        if others := self._left["contradicted"]:
            are, stay = ("are not those that were", "stay") if len(others) > 1 else ("is not the one that was", "stays")
            first = f"the first: row {min(others) + 1:,} of {source}"
            sentences.append(f"{counted(len(others), 'outcome')} {are} learned before, which {stay} ({first})")
        if late := self._left["expired"]:
            theirs, were = ("their forecasts", "were") if len(late) > 1 else ("its forecast", "was")
            came = f"{counted(len(late), 'outcome')} came after {counted(window, 'later row')}"
            left = f"{were} not learned from (first: row {min(late) + 1:,})"
            sentences.append(f"{came}, when {theirs} had expired, and {left}")
        return (*sentences, *(() if self.table is None else self.table.strangers()))

    def digest(self, *, then: bool = False) -> str:
        """Of all outcomes so far but those that were told: as they were seen `then`, or as they are now."""
        return str((self._then if then else self._now).hexdigest())

    def _inside(self, rows: IntArray, batch: Batch) -> IntArray:
        start, stop = np.searchsorted(rows, [batch.first, batch.first + batch.n])
        inside: IntArray = rows[start:stop] - batch.first
        return inside


def _hash() -> Any:
    return hashlib.blake2b(digest_size=16)


_SHOWN = 3


class OutcomeTable:
    """Outcomes by the names of their rows, in the order in which the file has them.

    An outcome that is blank is none. A name that comes twice is refused where the outcomes differ, unless the last one
    counts (`config.corrections`). So is one that several rows of the input have: nobody could say which is meant.

    Parameters
    ----------
    source : path, or anything that `records.read` takes
        A table with the columns `config.id` and `config.y`.
    config : TaskConfig
        Which columns.
    reader : ColumnReader
        What reads outcomes.
    """

    def __init__(self, source: Any, config: TaskConfig, reader: ColumnReader) -> None:
        assert config.id is not None
        self._id, self._corrections = config.id, config.corrections
        self._outcomes: dict[str, float] = {}
        self._rows: dict[str, int] = {}
        with read(source, columns=[config.id, config.y]) as records:
            self.name = records.name
            for batch in records:
                self._take(batch, reader.raw(batch))

    def _take(self, batch: Batch, raw: Float64Array) -> None:
        for at, (name, y) in enumerate(zip(_names(batch, self._id), raw.tolist(), strict=True)):
            if y != y:
                continue
            if name is None:
                raise DataError(f"row {batch.first + at + 1} of {self.name} has an outcome and nothing in {self._id!r}")
            if self._corrections:
                self._outcomes.pop(name, None)
            if self._outcomes.setdefault(name, y) != y:
                outcomes = f"{self._outcomes[name]:g}, and {y:g} in row {batch.first + at + 1}"
                twice = f"{self.name} has {name!r} twice in column {self._id!r}"
                raise DataError(
                    f"{twice}, with different outcomes: {outcomes}; leave the right one (--corrections: the last)"
                )

    def found(self, batch: Batch) -> tuple[IntArray, Float64Array]:
        """The rows of a batch whose outcome is in the file, and the outcomes."""
        rows, outcomes = [], []
        for at, name in enumerate(_names(batch, self._id)):
            if name is not None and name in self._outcomes:
                if name in self._rows:
                    both = f"rows {self._rows[name] + 1:,} and {batch.first + at + 1:,} of {batch.name} both have"
                    which = f"nobody knows which of them {self.name} means; nothing was learned"
                    raise DataError(f"{both} {name!r} in column {self._id!r}: {which}")
                self._rows[name] = batch.first + at
                rows.append(at)
                outcomes.append(self._outcomes[name])
        return np.array(rows, dtype=np.int64), np.array(outcomes, dtype=np.float64)

    def places(self) -> dict[int, int]:
        """The places in the file of the rows that were found."""
        order = {name: place for place, name in enumerate(self._outcomes)}
        return {row: order[name] for name, row in self._rows.items()}

    def strangers(self) -> tuple[str, ...]:
        """A sentence about names of no row so far, if there are any."""
        names = [name for name in self._outcomes if name not in self._rows]
        if not names:
            return ()
        shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        are, were = ("is", "was") if len(names) == 1 else ("are", "were")
        what = f"{counted(len(names), 'outcome')} in {self.name} {are} of no row that was forecast so far ({shown})"
        return (f"{what} and {were} left; give the file again when there is one",)


def _names(batch: Batch, column: str) -> list[str | None]:
    """What rows are called: texts, without the spaces around them; None where there is nothing."""
    written = [text(value) for value in entries(batch.stored(column))]
    return [None if each is None else each.strip() or None for each in written]
