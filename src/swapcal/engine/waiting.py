"""Rounds of recorded streams whose outcomes are out: all that their updates will need, in arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.engine.protocol import Case, Learned
from swapcal.engine.values import grown
from swapcal.forecast import KINDS
from swapcal.roles import Row, Rows
from swapcal.typing import Float64Array, IntArray

__all__ = ["Waiting"]

ROOM, WIDTH = 16, 4
ROUND, SLOT, KIND, LENGTH, FOLLOWED = range(5)
OTHER, POINT, PHI, HINT, BASE, LABEL, DUE = range(7)


class Waiting:
    """A table with one line for each round that waits, whose lines are used again.

    `run` keeps rounds here where outcomes are known late: who calls `predict` keeps the `Forecast`. A line takes 104
    bytes, 16 for each active entry (room is doubled), 8 for each feature and 2 for each expert of a learning hint.

    Parameters
    ----------
    n_scores : int
        Bytes of what a learning hint said.
    n_features : int
        Length of its feature vector.
    """

    __slots__ = ("counts", "entries", "features", "free", "indices", "numbers", "scores", "whole")

    def __init__(self, n_scores: int, n_features: int) -> None:
        self.whole: IntArray = np.full((ROOM, 5), -1, dtype=np.int64)
        self.numbers = np.zeros((ROOM, 7))
        self.scores: npt.NDArray[np.uint8] = np.zeros((ROOM, n_scores), dtype=np.uint8)
        self.features = np.zeros((ROOM, n_features))
        self.indices: IntArray = np.zeros((ROOM, WIDTH), dtype=np.int64)
        self.entries = np.zeros((ROOM, WIDTH))
        # A stack of free lines, and how many there are; in arrays, because kernels count too.
        self.free: IntArray = np.arange(ROOM - 1, -1, -1, dtype=np.int64)
        self.counts: IntArray = np.array([ROOM], dtype=np.int64)

    @property
    def n(self) -> int:
        """Rounds that wait here."""
        return len(self.whole) - int(self.counts[0])

    @property
    def lines(self) -> IntArray:
        """The lines in use, in the order of their rounds."""
        used = np.flatnonzero(self.whole[:, ROUND] >= 0)
        return used[np.argsort(self.whole[used, ROUND], kind="stable")]

    def room(self, n_entries: int) -> None:
        """Make room for a line more, with so many active entries."""
        if not self.counts[0]:
            n = len(self.whole)
            for name in ("whole", "numbers", "scores", "features", "indices", "entries"):
                setattr(self, name, grown(getattr(self, name), 2 * n))
            self.whole[n:, ROUND] = -1
            self.free = np.concatenate([np.arange(2 * n - 1, n - 1, -1), np.zeros(n, dtype=np.int64)])
            self.counts[0] = n
        width = self.indices.shape[1]
        if n_entries > width:
            wider = 1 << (n_entries - 1).bit_length()
            self.indices, self.entries = (
                np.concatenate([each, np.zeros((len(each), wider - width), dtype=each.dtype)], axis=1)
                for each in (self.indices, self.entries)
            )

    def add(self, case: Case, played: Learned, t: int, label: float, due: float) -> int:
        """Keep a round, and return its line."""
        row = case.row
        self.room(len(row.indices))
        self.counts[0] -= 1
        line = int(self.free[self.counts[0]])
        self.whole[line] = t, played.slot, KINDS.index(played.kind), len(row.indices), played.followed
        given = (np.nan if each is None else each for each in (case.hint, case.base))
        self.numbers[line] = played.other, played.evidence_at, played.phi, *given, label, due
        if case.scores is not None:
            self.scores[line] = np.frombuffer(case.scores, dtype=np.uint8)
        if case.features is not None:
            self.features[line] = case.features
        self.indices[line, : len(row.indices)], self.entries[line, : len(row.indices)] = row.indices, row.values
        return line

    def find(self, rounds: Any) -> IntArray:
        """The lines of rounds that wait to be filled in, -1 for others."""
        lines = self.lines
        there = self.whole[lines, ROUND]
        at = np.minimum(np.searchsorted(there, rounds), max(len(there) - 1, 0))
        if not len(there):
            return np.full(len(rounds), -1, dtype=np.int64)
        found = (there[at] == rounds) & np.isnan(self.numbers[lines[at], LABEL])
        return np.where(found, lines[at], -1)

    @property
    def blank(self) -> IntArray:
        """Rounds that wait to be filled in, in increasing order."""
        lines = self.lines
        rounds: IntArray = self.whole[lines[np.isnan(self.numbers[lines, LABEL])], ROUND]
        return rounds

    def fill(self, lines: IntArray, labels: Float64Array, due: Float64Array) -> None:
        """The outcomes of lines that had none, and until when they wait."""
        self.numbers[lines, LABEL], self.numbers[lines, DUE] = labels, due

    def contexts(self, lines: IntArray, n: int) -> Rows:
        """The contexts of some lines, without the entries from `n` on, which are the hint's levels."""
        inside = np.arange(self.indices.shape[1]) < self.whole[lines, LENGTH, None]
        inside &= self.indices[lines] < n
        indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(np.int64)
        return Rows(indptr, self.indices[lines][inside], self.entries[lines][inside])

    def let_go(self, before: int) -> None:
        """Free the lines of rounds before `before`, which have expired."""
        if before <= 0 or not self.n:
            return
        for line in np.flatnonzero((self.whole[:, ROUND] >= 0) & (self.whole[:, ROUND] < before)).tolist():
            self._free(line)

    def _free(self, line: int) -> None:
        self.whole[line, ROUND] = -1
        self.free[self.counts[0]] = line
        self.counts[0] += 1

    def shown(self, line: int, born: Float64Array) -> float:
        """The forecast of a round: the value in its slot, or the caller's own number where it stood back."""
        whole = self.whole[line]
        return float(born[whole[SLOT]] if whole[FOLLOWED] else self.numbers[line, BASE])

    def take(self, line: int) -> tuple[Case, Learned, int, float]:
        """Give a round back, and free its line."""
        t, slot, kind, length, followed = self.whole[line].tolist()
        other, point, phi, hint, base, label, _ = self.numbers[line].tolist()
        case = Case(
            Row(self.indices[line, :length].copy(), self.entries[line, :length].copy()),
            None if np.isnan(hint) else hint,
            None if np.isnan(base) else base,
            self.features[line].copy() if self.features.shape[1] else None,
            self.scores[line].tobytes() if self.scores.shape[1] else None,
        )
        self._free(line)
        return case, Learned(slot, other, point, KINDS[kind], phi, bool(followed)), t, label

    def arrays(self) -> dict[str, Any]:
        """The lines in use, in the order of their rounds."""
        lines = self.lines
        names = ("whole", "numbers", "scores", "features", "indices", "entries")
        arrays = {name: np.ascontiguousarray(getattr(self, name)[lines]) for name in names}
        # A line that was used before may have had more entries.
        beyond = np.arange(self.indices.shape[1]) >= arrays["whole"][:, LENGTH, None]
        arrays["indices"][beyond], arrays["entries"][beyond] = 0, 0.0
        return arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from the lines in `arrays`."""
        n = len(arrays["whole"])
        room = max(ROOM, 1 << max(n - 1, 0).bit_length())
        for name in ("whole", "numbers", "scores", "features", "indices", "entries"):
            setattr(self, name, grown(arrays[name], room))
        self.whole[n:, ROUND] = -1
        self.free = np.concatenate([np.arange(room - 1, n - 1, -1), np.zeros(n, dtype=np.int64)])
        self.counts[0] = room - n

    def dues(self) -> tuple[IntArray, IntArray, Float64Array]:
        """Lines, rounds and due moments of all that wait, in the order of their rounds."""
        lines = self.lines
        return lines, self.whole[lines, ROUND], self.numbers[lines, DUE]
