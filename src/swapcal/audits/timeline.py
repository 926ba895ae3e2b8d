"""Bias as the stream goes by: sums of every group over blocks of neighboring rows, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swapcal.audits.sums import Part, Positions, Scored, added, counted, grown
from swapcal.typing import Float64Array

N_BLOCKS = 64
EARLY = 0.1
"""A bias that begins within this share of a group's rows has been there from the start."""

CLEAR = 3.0
"""A later start is told only where the rows before it are this many standard errors away from the same bias."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupHistory:
    """One group over time: rows so far at the start of each block, weight and sum of V within it."""

    start: Float64Array
    weight: Float64Array
    total: Float64Array

    @property
    def mean(self) -> Float64Array:
        """Mean of V in each block; NaN where the group had no rows."""
        nothing = np.full(len(self.weight), np.nan)
        mean: Float64Array = np.divide(self.total, self.weight, out=nothing, where=self.weight > 0)
        return mean


class Timeline(Part):
    """Sums of w f V and w |f| of every group over at most 64 blocks; when they run out, neighbors are joined in pairs.

    Memory: 1 kB a group, whatever the number of rows. A batch costs two counts over its entries.

    Examples
    --------
    >>> from swapcal.protocols import Rows
    >>> zeros, v = np.zeros(100, dtype=np.int64), np.where(np.arange(100) < 50, 0.0, 0.5)
    >>> line = Timeline()
    >>> line.add(Scored(v, v, v, zeros, Rows(np.arange(101), zeros, np.ones(100))))
    >>> history = line.of_group(0)
    >>> history.start[:3], history.mean[:26:25]
    (array([0., 2., 4.]), array([0. , 0.5]))
    """

    saved = ("_sums", "length", "n_rows")

    def __init__(self) -> None:
        self.length = 1
        self.n_rows = 0
        self._sums = np.zeros((2, N_BLOCKS, 0))
        self.labels: list[str | None] = []
        """What the first row of each block says of its time, if anything."""

    def add(self, scored: Scored) -> None:
        """Add rows."""
        n = len(scored.v)
        while self.n_rows + n > N_BLOCKS * self.length:
            self._join()
        block = (self.n_rows + np.arange(n)) // self.length
        if scored.time is not None:
            first = np.flatnonzero(np.diff(block, prepend=len(self.labels) - 1))
            self.labels += [scored.time(t) for t in first.tolist()]
        self.n_rows += n
        width = int(scored.rows.indices.max(initial=-1)) + 1
        if width > self._sums.shape[2]:
            self._sums = grown(self._sums, (0, 0, max(width, 2 * self._sums.shape[2])))
        # Most batches lie in one or two blocks, whose sums are all that changes.
        low, high = int(block[0]), int(block[-1]) + 1
        shape = (high - low, self._sums.shape[2])
        keys = scored.cells(block - low, shape[1])
        for place, terms in enumerate((scored.sizes, scored.terms)):
            self._sums[place, low:high] += counted(keys, terms, shape)

    def merge(self, other: "Timeline", at: Positions) -> bool:
        """Go on from another one, before the first row; the rows of two parts have no common order."""
        if self.n_rows and other.n_rows:
            return False
        if other.n_rows:
            self._sums = added(self._sums, other._sums, None, None, at.groups)
            self.length, self.n_rows, self.labels = other.length, other.n_rows, list(other.labels)
        return True

    def of_group(self, j: int) -> GroupHistory:
        """The blocks of group `j`."""
        n = -(-self.n_rows // self.length)
        column = self._sums[:, :n, j] if j < self._sums.shape[2] else np.zeros((2, n))
        return GroupHistory(self.length * np.arange(n, dtype=np.float64), column[0].copy(), column[1].copy())

    def _join(self) -> None:
        joined = self._sums[:, 0::2] + self._sums[:, 1::2]
        self._sums = np.concatenate([joined, np.zeros_like(joined)], axis=1)
        self.labels = self.labels[::2]
        self.length *= 2


def onset(history: GroupHistory, square: float) -> int | None:
    """The block from which on a group is biased, where it was not before; None if it always was, as far as one can see.

    The block that makes |sum of V from there on| / sqrt(weight from there on) largest. It is told only if it is not
    among the first rows of the group, and if the rows before it differ clearly from those after it.

    Parameters
    ----------
    history : GroupHistory
        The group.
    square : float
        Mean square of V.
    """
    weight, total = history.weight, history.total
    after, sums = np.cumsum(weight[::-1])[::-1], np.cumsum(total[::-1])[::-1]
    scores = np.divide(np.abs(sums), np.sqrt(after), out=np.zeros(len(after)), where=after > 0)
    at = int(np.argmax(scores)) if len(scores) else 0
    before = float(weight[:at].sum())
    if not before > EARLY * float(weight.sum()) or not after[at] > 0:
        return None
    difference = sums[at] / after[at] - float(total[:at].sum()) / before
    spread = np.sqrt(max(square, 1e-300) * (1.0 / before + 1.0 / after[at]))
    return at if abs(difference) > CLEAR * spread else None


# --------
# Errors as the stream goes by: noted after 100 rounds, and each time after a quarter more.

FIRST, PACE = 100, 1.25


class ErrorHistory:
    """Errors at fixed numbers of rounds, whatever the batches are.

    Batches are cut where a note is due: some 50 times in ten million rounds.

    Examples
    --------
    >>> history, done = ErrorHistory(), 0
    >>> for part in history.parts(done, np.ones(150, dtype=bool)):
    ...     done = part.stop
    ...     if history.due(done):
    ...         history.note(done, 0.5)
    >>> history.series(done, 0.25)
    [array([100., 125., 150.]), array([0.5 , 0.5 , 0.25])]
    """

    def __init__(self) -> None:
        self._due = FIRST
        self._noted: list[list[float]] = []

    def parts(self, n_rounds: int, known: npt.NDArray[np.bool_]) -> Iterator[slice]:
        """Parts of the next rows, cut where a note is due; `known` says which rows are rounds."""
        rounds, start = n_rounds + np.cumsum(known), 0
        while start < len(known):
            end = int(np.searchsorted(rounds, self._due)) + 1 if rounds[-1] >= self._due else len(known)
            yield slice(start, end)
            start = end

    def due(self, n_rounds: int) -> bool:
        """Whether it is time for a note."""
        return n_rounds >= self._due

    def note(self, n_rounds: int, *errors: float) -> None:
        """Keep the errors after so many rounds."""
        self._noted.append([float(n_rounds), *errors])
        self._due = int(self._due * PACE)

    def series(self, n_rounds: int, *now: float) -> list[Float64Array]:
        """Rounds, and each error at these; the last entry is how it is `now`."""
        noted = self._noted
        if not noted or noted[-1][0] < n_rounds:
            noted = [*noted, [float(n_rounds), *now]]
        return list(np.array(noted, dtype=np.float64).T)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return {"noted": np.array(self._noted, dtype=np.float64), "due": np.array([float(self._due)])}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held; a ValueError where notes and the next one do not belong together."""
        noted, due = arrays["noted"].tolist(), FIRST
        for _ in noted:
            due = int(due * PACE)
        if arrays["due"].tolist() != [float(due)]:
            raise ValueError("the next note of errors is due at another number of rounds")
        self._noted, self._due = noted, due
