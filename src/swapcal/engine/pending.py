"""Which rounds still wait for their outcome, and what their updates will need where nobody else keeps it."""

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.engine.kernels import GOLDEN, mix64
from swapcal.engine.values import grown
from swapcal.errors import AlreadyUpdated, ExpiredForecast, UnknownForecast
from swapcal.forecast import KINDS, Forecast
from swapcal.protocols import Row, Rows
from swapcal.sparse import taken
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.engine.schedule import Schedule

# The mark of open rounds that never leave: those that `run` keeps itself.
UNMARKED = 1

_FIRST = 1 << 10


class OpenRounds:
    """Makes every forecast good for exactly one update.

    Rounds are numbered as they are issued. The flag of round t stands at position t mod the length of `flags`, which is
    doubled as rounds wait for longer, up to `window`; from then on issuing round t + window overwrites it, and a
    forecast of round t can then no longer be updated. Memory is 4 `window` bytes at most, however many outcomes never
    come, and four kilobytes where none is late. A flag is 0 for a round that does not wait, and else its `marks.mark`.

    Parameters
    ----------
    window : int
        How many rounds a forecast can wait.
    """

    __slots__ = ("flags", "numbers", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.flags: npt.NDArray[np.uint32] = np.zeros(min(_FIRST, window), dtype=np.uint32)
        # In an array, because kernels count too.
        self.numbers: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def issued(self) -> int:
        """Rounds so far."""
        return int(self.numbers[0])

    @property
    def open(self) -> int:
        """Rounds that wait for their outcome."""
        return int(self.numbers[1])

    @property
    def full(self) -> bool:
        """Whether the next round would overwrite one that waits, though there may be room for it."""
        return len(self.flags) < self.window and bool(self.flags[self.issued % len(self.flags)])

    def issue(self) -> tuple[int, bool]:
        """The number of a new round, now open; and whether another has expired for it."""
        t = self.issued
        position = t % len(self.flags)
        expired = bool(self.flags[position])
        self.numbers += (1, 0 if expired else 1)
        self.flags[position] = UNMARKED
        return t, expired

    def tag(self, t: int, tag: int) -> None:
        """Know round `t` by its tag from now on."""
        self.flags[t % len(self.flags)] = tag

    def check(self, t: int) -> None:
        """Raise unless round `t` is open."""
        if not 0 <= t < self.issued:
            raise UnknownForecast(
                f"round {t} was never forecast here, where {self.issued:,} rounds were, counted from 0; if a copy of "
                "this forecaster made the forecast (a fork, or one loaded from its file), give the outcome to that one"
            )
        if t < self.issued - self.window:
            raise ExpiredForecast(
                f"the forecast of round {t} is more than {self.window:,} rounds old and has expired; "
                "give max_pending= a larger value if outcomes come this late"
            )
        if t < self.issued - len(self.flags) or not self.flags[t % len(self.flags)]:
            raise AlreadyUpdated(f"the forecast of round {t} has had its outcome; each forecast is updated once")

    def is_open(self, t: int) -> bool:
        """Whether round `t` waits for its outcome."""
        return max(0, self.issued - len(self.flags)) <= t < self.issued and bool(self.flags[t % len(self.flags)])

    def close(self, t: int) -> None:
        """Mark round `t` as updated."""
        self.flags[t % len(self.flags)] = 0
        self.numbers[1] -= 1

    def grow(self) -> None:
        """Make room for rounds that wait for longer."""
        rounds = self.waiting()
        self._take(rounds, self.marks(rounds), min(2 * len(self.flags), self.window))

    def waiting(self) -> IntArray:
        """The numbers of the rounds that wait, in increasing order."""
        size = len(self.flags)
        ages = (self.issued - 1 - np.flatnonzero(self.flags)) % size
        return np.sort(self.issued - 1 - ages)

    def marks(self, rounds: IntArray) -> npt.NDArray[np.uint32]:
        """The marks of open rounds."""
        marks: npt.NDArray[np.uint32] = self.flags[rounds % len(self.flags)]
        return marks

    def restore(self, issued: int, waiting: IntArray, marks: npt.NDArray[np.uint32]) -> None:
        """Continue where `issued` rounds were made and those in `waiting` are open, with these marks."""
        oldest = issued - int(waiting[0]) if len(waiting) else 0
        size = len(self.flags)
        while size < min(oldest, self.window):
            size = min(2 * size, self.window)
        self.numbers[:] = issued, len(waiting)
        self._take(waiting, marks, size)

    def _take(self, waiting: IntArray, marks: npt.NDArray[np.uint32], size: int) -> None:
        self.flags = np.zeros(size, dtype=np.uint32)
        self.flags[waiting % size] = marks


# --------
# The mark of a forecast: 32 bits of all that its update will use, so that copies of a forecaster tell rounds apart.
#
# Forecasters that were copied, forked or loaded from one file have the same identity, key and seed, and number their
# rounds alike. A round that was issued before they parted is known to all of them, with the same mark; afterwards round
# t of one is another than round t of the other. So an update from outside is taken only if it has the mark of the round
# that was issued here. Whoever plays the same log again, as a service does after a crash, issues the same marks.
#
# Marks are no seals: they tell honest copies apart (by chance one in 2^32 is not), and the seal keeps out the rest.

_MASK = 0xFFFFFFFFFFFFFFFF
_NOTHING = 1


def round_tag(forecast: Forecast) -> int:
    """A number from 2 to 2^32 - 1: a polynomial in the words of the record, mixed.

    Examples
    --------
    >>> import swapcal as sc
    >>> one, other = (sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1).predict([1.0, b]) for b in (0.0, 1.0))
    >>> round_tag(one) == round_tag(one.outside()), round_tag(one) == round_tag(other)
    (True, False)
    """
    value = forecast.value if forecast.said is None else forecast.said
    numbers = (value, forecast.other, forecast.evidence_at, forecast.phi, forecast.hint, forecast.base)
    words = [_NOTHING if number is None else _folded(number) for number in numbers]
    indices = struct.unpack(f"={len(forecast.context) // 16}q", forecast.context[: len(forecast.context) // 2])
    words += [index * GOLDEN + _folded(entry) for index, entry in zip(indices, forecast.values, strict=True)]
    words += [_folded(number) for number in forecast.features or ()]
    total = 0
    for word in words:
        total = (total * GOLDEN + word) & _MASK
    return max(mix64(total) >> 32, UNMARKED + 1)


def _folded(number: float) -> int:
    # Adding zero makes minus zero zero; the lower half of most numbers is empty.
    bits: int = struct.unpack("=Q", struct.pack("=d", number + 0.0))[0]
    return bits ^ (bits >> 32)


# --------
# What is known of a round, before its forecast and after.


class RoundInputs(NamedTuple):
    """What is known of a round before its forecast: the context with the hint's level set, the hint, its inputs.

    `scores` are what the learning hint's update will need of its forecast.
    """

    row: Row
    hint: float | None
    base: float | None
    features: Float64Array | None
    scores: bytes | None = None


class Played(NamedTuple):
    """What an update needs to know of the play: the slot, the other value, the evidence point, how, Phi at the draw.

    And what was shown, and on the way to it the model's own number as the learning hint corrects it; None where no such
    hint learns, or where nothing is corrected by a share.
    """

    slot: int
    other: float
    evidence_at: float
    kind: str
    phi: float
    shown: float
    guided: float | None = None


class Asked(NamedTuple):
    """What cases bring, checked: a context each, the hint, and whatever else their model takes; None for none."""

    rows: Rows
    hints: Any = None
    features: Any = None

    def taken(self, chosen: IntArray) -> "Asked":
        """Some of them."""
        hints, features = (None if each is None else each[chosen] for each in self[1:])
        return Asked(taken(self.rows, chosen), hints, features)


class Errors(NamedTuple):
    """V of a round at the forecast, at the evidence point, at the hint, at the value nearest to it; the hint's loss.

    Where something else was shown, `cell` is the slot in which it counts, and `shown` the V there.
    """

    forecast: float
    evidence: float
    hint: float
    nearest: float
    lost: float = 0.0
    cell: int = -1
    shown: float = 0.0


class Chunk(NamedTuple):
    """Some rounds of a recorded stream, checked. A label that is NaN is not known; a hint that is NaN is none."""

    contexts: Rows | Float64Array
    labels: Float64Array
    hints: Float64Array | None
    features: Float64Array | None
    out: Float64Array
    schedule: "Schedule | None" = None


# --------
# Rounds of recorded streams whose outcomes are pending: all that their updates will need, in arrays.

ROOM, WIDTH = 16, 4
ROUND, SLOT, KIND, LENGTH = range(4)
OTHER, POINT, PHI, SHOWN, HINT, BASE, GUIDED, LABEL, DUE = range(9)


class HeldRounds:
    """A table with one line for each round that waits, whose lines are used again.

    `run` keeps rounds here where outcomes are known late: who calls `predict` keeps the `Forecast`. A line takes 112
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
        self.whole: IntArray = np.full((ROOM, LENGTH + 1), -1, dtype=np.int64)
        self.numbers = np.zeros((ROOM, DUE + 1))
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

    def add(self, case: RoundInputs, played: Played, t: int, label: float, due: float) -> int:
        """Keep a round, and return its line."""
        row = case.row
        self.room(len(row.indices))
        self.counts[0] -= 1
        line = int(self.free[self.counts[0]])
        self.whole[line] = t, played.slot, KINDS.index(played.kind), len(row.indices)
        guides = (np.nan if each is None else each for each in (case.hint, case.base, played.guided))
        self.numbers[line] = played.other, played.evidence_at, played.phi, played.shown, *guides, label, due
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
        waits = (there[at] == rounds) & np.isnan(self.numbers[lines[at], LABEL])
        return np.where(waits, lines[at], -1)

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

    def forecasts_of(self, lines: IntArray) -> Float64Array:
        """The forecasts of rounds, as they were shown."""
        shown: Float64Array = self.numbers[lines, SHOWN]
        return shown

    def take(self, line: int) -> tuple[RoundInputs, Played, int, float]:
        """Give a round back, and free its line."""
        t, slot, kind, length = self.whole[line].tolist()
        other, point, phi, shown, *guides, label, _ = self.numbers[line].tolist()
        hint, base, guided = (None if np.isnan(each) else each for each in guides)
        case = RoundInputs(
            Row(self.indices[line, :length].copy(), self.entries[line, :length].copy()),
            hint,
            base,
            self.features[line].copy() if self.features.shape[1] else None,
            self.scores[line].tobytes() if self.scores.shape[1] else None,
        )
        self._free(line)
        return case, Played(slot, other, point, KINDS[kind], phi, shown, guided), t, label

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

    def labels(self, lines: IntArray) -> Float64Array:
        """The outcomes of some lines; NaN while they are not known."""
        labels: Float64Array = self.numbers[lines, LABEL]
        return labels

    def dues(self) -> tuple[IntArray, IntArray, Float64Array]:
        """Lines, rounds and due moments of all that wait, in the order of their rounds."""
        lines = self.lines
        return lines, self.whole[lines, ROUND], self.numbers[lines, DUE]


class HeldForecast(NamedTuple):
    """A forecast of a model that is made of several forecasters; the outcome is NaN while it is not known."""

    forecast: Any
    y: float
    due: float


class HeldForecasts(dict[int, HeldForecast]):
    """`HeldRounds` of a model that is made of several forecasters: its forecasts, by round, in increasing order.

    Examples
    --------
    >>> held = HeldForecasts({4: HeldForecast("a", float("nan"), float("nan")), 7: HeldForecast("b", 0.5, 9.0)})
    >>> held.find(np.array([4.0, 7.0])), held.dues()[1:]
    (array([ 4, -1]), (array([4, 7]), array([nan,  9.])))
    """

    def find(self, rounds: Any) -> IntArray:
        """The rounds themselves where they wait to be filled in, -1 for others."""
        return np.array([t if t in self and np.isnan(self[t].y) else -1 for t in rounds.tolist()], dtype=np.int64)

    def fill(self, rounds: IntArray, labels: Float64Array, due: Float64Array) -> None:
        """The outcomes of rounds that had none, and until when they wait."""
        for t, y, moment in zip(rounds.tolist(), labels.tolist(), due.tolist(), strict=True):
            self[t] = HeldForecast(self[t].forecast, y, moment)

    def labels(self, lines: IntArray) -> Float64Array:
        """The outcomes of some rounds; NaN while they are not known."""
        return np.array([self[t].y for t in lines.tolist()], dtype=np.float64)

    def dues(self) -> tuple[IntArray, IntArray, Float64Array]:
        """As `HeldRounds.dues`; lines are the rounds themselves."""
        rounds = np.array(list(self), dtype=np.int64)
        return rounds, rounds, np.array([each.due for each in self.values()], dtype=np.float64)

    def let_go(self, before: int) -> None:
        """Drop rounds before `before`, which have expired."""
        for t in [t for t in self if t < before]:
            del self[t]
