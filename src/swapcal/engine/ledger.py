"""What happened at the forecasts themselves, beside what the theorem promises of it; sizes of V; labels that heap."""

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from swapcal.engine.values import grown
from swapcal.errors import AtomsWarning
from swapcal.inputs import identified
from swapcal.protocols import Elicitable, Evidence, Row
from swapcal.typing import Float64Array

DRIFT, RESERVED, PEAK = 0, 1, 2
LUCK, VARIANCE, LATEST, START, SLOPES, SIZES, DISTANCES, INSIDE = range(8)
_MOST = 1e300
# The least slope of V, for its size at a mean distance.
STEEP = 0.5


class Ledger:
    """Per value: the sums of x V at the forecast, and of x (V(forecast) - V(evidence point)), the signed rounding.

    The evidence is taken where the theorem wants it, the error is counted at forecasts; the ledger keeps the
    difference, so that the guarantee can be evaluated on what was observed, without an assumption on the labels.

    And for all rounds together, what the proof needs where outcomes come late or a value was played outright
    (docs/guarantees.md, section 2): `drift`, by how much the potential may have risen beyond the draws; `reserved`, the
    size of the draws whose outcomes are pending; and the largest that the sum of both ever was.

    Where a share of a correction is shown (`share`), what was shown is not what was said: `moved_sums` is the sum of x
    V at what was shown, in the cell of its nearest value, less that of x V at what was said, in its own; `moved_counts`
    the same for the visits.

    Parameters
    ----------
    capacity : int
        For how many values there is room.
    n : int
        Number of functions.
    """

    __slots__ = ("drift", "moved_counts", "moved_sums", "rounding", "rounds", "sums", "totals")

    def __init__(self, capacity: int, n: int) -> None:
        self.sums = np.zeros((capacity, n))
        self.rounding = np.zeros((capacity, n))
        self.moved_sums, self.moved_counts = np.zeros((capacity, n)), np.zeros(capacity)
        # Rounds, those whose outcome came late, and those that expired; in an array, because kernels count too.
        self.rounds: npt.NDArray[np.int64] = np.zeros(3, dtype=np.int64)
        self.drift = np.zeros(3)
        # What draws whose outcomes are known have added to the potential; how much that may vary, in the sense of
        # docs/guarantees.md, section 5; and how much the latest draw may, before its outcome. Then of all outcomes the
        # property so far, in units of the range; the sums of slopes of V there, of its sizes, and of distances from it;
        # and how many lay between the ends of the range.
        self.totals = np.zeros(8)
        self.totals[START] = 0.5

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome."""
        return int(self.rounds[0])

    @property
    def n_late(self) -> int:
        """Outcomes that came after a later forecast had been made."""
        return int(self.rounds[1])

    @property
    def n_expired(self) -> int:
        """Forecasts that waited for too long."""
        return int(self.rounds[2])

    def rounding_owed(self, slot: int, row: Row, count: float) -> float:
        """The signed rounding of a value in the direction of this context, for each of its `count` rounds."""
        if not count or not row.indices.size:
            return 0.0
        return float((self.rounding[slot].take(row.indices) * row.values).cumsum()[-1]) / count

    def draw(self, evidence: Evidence, phi: float, other: float) -> None:
        """A round is drawn: before the draw the peak is looked at, and after it the size of the draw is reserved.

        `other` is the evidence at the value that was not drawn. What the draw before may vary by counts in full if its
        outcome has not come by now.
        """
        self._look()
        self._vary(1.0)
        if phi != 0.0:
            self.drift[RESERVED] += evidence.reserve(phi)
            self.totals[LATEST] = min(phi * phi / 6.0 + abs(phi * other) / 3.0, _MOST)

    def _vary(self, share: float) -> None:
        """Count the latest draw, once."""
        totals = self.totals
        totals[VARIANCE] = min(float(totals[VARIANCE]) + share * float(totals[LATEST]), _MOST)
        totals[LATEST] = 0.0

    def _look(self) -> None:
        """The peak so far. It is looked at before each draw and after each outcome, so that none is missed."""
        drift = self.drift
        drift[PEAK] = max(float(drift[PEAK]), float(drift[DRIFT]) + float(drift[RESERVED]))

    def record(self, slot: int, row: Row, v: float, v_evidence: float) -> None:
        """Add a round that forecast the value in `slot`."""
        self.sums[slot, row.indices] += row.values * v
        if v != v_evidence:
            self.rounding[slot, row.indices] += row.values * (v - v_evidence)
        self.rounds[0] += 1

    @property
    def reach(self) -> float:
        """The mean distance of outcomes from that property, in units of the range."""
        return float(self.totals[DISTANCES]) / float(max(self.n_rounds, 1))

    def see(self, target: Elicitable, point: float, y: float) -> None:
        """One more outcome, whose own property is `point`, moves the property of all: a step along V over its slopes.

        Of outcomes at the ends, as events are, the middle counts as one more: (1/2 + sum of y) / (1 + n) in units of
        the range (Krichevsky and Trofimov, 1981). The first between the ends is the start of all others, whose mean it
        becomes; where V is not linear, slopes are secants between points a mean distance away.
        """
        (low, high), totals = target.domain, self.totals
        start, slopes, sizes, distances, inside = totals[START:].tolist()
        width, unit = high - low, (point - low) / (high - low)
        if 0.0 < unit < 1.0:
            inside += 1.0
        first = inside == 1.0 and float(totals[INSIDE]) == 0.0
        distances = 0.0 if first else distances + abs(unit - start)
        reach = 1.0 if first else distances / float(self.rounds[0] + 1)
        below, above = max(start - reach, 0.0), min(start + reach, 1.0)
        at_below, at, at_above = (identified(target, min(low + width * u, high), y) for u in (below, start, above))
        secant = (at_above - at_below) / (above - below) if above > below else 0.0
        slopes, sizes = (secant, 0.0) if first else (slopes + secant, sizes + abs(at))
        slope = max(slopes, STEEP * sizes / reach) if inside > 0.0 and reach > 0.0 else 1.0 + slopes
        start = unit if first else min(max(start - at / slope, 0.0), 1.0) if slope > 0.0 else start
        totals[START:] = start, slopes, sizes, distances, inside

    def move(self, slot: int, cell: int, row: Row, v: float, v_shown: float) -> None:
        """What was shown, in the cell of its nearest value, was not what was said."""
        self.moved_sums[slot, row.indices] -= row.values * v
        self.moved_sums[cell, row.indices] += row.values * v_shown
        self.moved_counts[slot] -= 1.0
        self.moved_counts[cell] += 1.0

    def settle(
        self,
        evidence: Evidence,
        slot: int,
        row: Row,
        phi: float,
        v_evidence: float,
        open_rounds: int,
        *,
        units: tuple[float, float],
        latest: bool,
    ) -> None:
        """What the outcome of a draw adds to the drift, by the evidence in force now; before the evidence learns it.

        `units`: in which V is weighed now, and at the draw; the latter 0 where the round counts as not drawn. `latest`:
        no other forecast has been made since. Then it is known what the draw could have changed.
        """
        drift, (unit, drawn) = self.drift, units
        drift[DRIFT] += evidence.drift(slot, row, phi * (drawn / unit), v_evidence * unit)
        drift[RESERVED] = drift[RESERVED] - evidence.reserve(phi) if open_rounds > 1 else 0.0
        self._look()
        v_drawn = v_evidence * drawn
        self.totals[LUCK] += phi * v_drawn
        if latest:
            self._vary(v_drawn * v_drawn)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        self.sums, self.rounding = grown(self.sums, capacity), grown(self.rounding, capacity)
        self.moved_sums, self.moved_counts = grown(self.moved_sums, capacity), grown(self.moved_counts, capacity)

    def rescale(self, v: float) -> None:
        """Count in units in which V is `v` times what it was."""
        for sums in (self.sums, self.rounding, self.moved_sums):
            sums *= v


# --------
# How large V has been.

# Where nothing is known of it. A power of two, as are all sizes: to divide by one is exact.
SMALLEST = 2.0**-20
_SIZES = 24


class Scale:
    """A power of two that no |V| has exceeded, and since which round: it is doubled where one does.

    Rounds that were drawn before are told apart by the size that was in force at their draw.

    Parameters
    ----------
    size : float
        To begin with.

    Examples
    --------
    >>> scale = Scale(0.25)
    >>> scale.cover(0.3, 7, first=False), scale.now, scale.at(6), scale.at(7)
    (True, 0.5, 0.25, 0.5)
    """

    __slots__ = ("numbers", "since", "sizes")

    def __init__(self, size: float) -> None:
        # How many sizes there have been; in an array, because kernels count too.
        self.numbers: npt.NDArray[np.int64] = np.ones(1, dtype=np.int64)
        self.since: npt.NDArray[np.int64] = np.zeros(_SIZES, dtype=np.int64)
        self.sizes = np.zeros(_SIZES)
        self.sizes[0] = size

    @property
    def n(self) -> int:
        """How many sizes there have been."""
        return int(self.numbers[0])

    @property
    def now(self) -> float:
        """The size in force."""
        return float(self.sizes[self.n - 1])

    @property
    def doublings(self) -> float:
        """How often it was doubled since the first outcome."""
        return math.log2(self.now / float(self.sizes[0]))

    @property
    def full(self) -> bool:
        """Whether there is room for no size more."""
        return self.n == len(self.sizes)

    def at(self, t: int) -> float:
        """The size at the draw of round `t`."""
        k = self.n - 1
        while k > 0 and self.since[k] > t:
            k -= 1
        return float(self.sizes[k])

    def cover(self, size: float, issued: int, *, first: bool) -> bool:
        """Double until it covers a `size` of V; whether it had to. Before the first outcome nothing was weighed."""
        b = self.now
        if size <= b:
            return False
        while size > b:
            b *= 2.0
        k = 0 if first else self.n
        self.since[k], self.sizes[k] = 0 if first else issued, b
        self.numbers[0] = k + 1
        return True

    def grow(self) -> None:
        """Make room for twice as many."""
        self.since, self.sizes = grown(self.since, 2 * len(self.sizes)), grown(self.sizes, 2 * len(self.sizes))

    def rescale(self, v: float, issued: int) -> None:
        """Count in units in which V is `v` times what it was."""
        self.sizes *= v
        size = self.now
        power = 2.0 ** math.ceil(math.log2(size))
        if power > size:
            self.cover(power, issued, first=False)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The whole state."""
        return {"since": self.since[: self.n], "sizes": self.sizes[: self.n]}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from the state in `arrays`."""
        n = len(arrays["sizes"])
        while n >= len(self.sizes):
            self.grow()
        self.since[:n], self.sizes[:n], self.numbers[0] = arrays["since"], arrays["sizes"], n


# --------
# Labels that heap on a few values are noticed, in bounded memory and at next to no cost.

_SHARE = 0.02  # the share of one value that is called an atom
_FIRST_LOOK = 200
_WINDOW = 1000


class TieDetector:
    """Looks at the last 1,000 labels (or all there are) after 200, 400, 800, ... of them, and warns once.

    Between looks nothing is kept: labels far from the next look are only counted.

    Parameters
    ----------
    advice, labels_are : str
        What the warning says last, and how it names what heaps up.
    """

    __slots__ = ("advice", "labels", "labels_are", "n", "warned")

    def __init__(
        self,
        advice: str = "Pass jitter= the spacing of the labels to spread them out",
        labels_are: str = "labels are",
    ) -> None:
        self.advice, self.labels_are = advice, labels_are
        self.labels: list[float] = []
        self.n = 0
        self.warned = False

    def add(self, y: float) -> None:
        """Count a label, and warn if one value has come too often."""
        self.n += 1
        look = self._next_look(self.n)
        if self.n > look - _WINDOW:
            self.labels.append(y)
        if self.n == look:
            self._look()

    def add_many(self, labels: Float64Array) -> None:
        """`add` for each label; a warning that is raised as an error leaves no trace."""
        before = list(self.labels), self.n, self.warned
        done = 0
        try:
            while done < len(labels):
                look = self._next_look(self.n + 1)
                part = labels[done : done + look - self.n]
                n_kept = min(self.n + len(part) - (look - _WINDOW), len(part))
                if n_kept > 0:
                    self.labels.extend(part[len(part) - n_kept :].tolist())
                self.n += len(part)
                done += len(part)
                if self.n == look:
                    self._look()
        except AtomsWarning:
            self.labels, self.n, self.warned = before
            raise

    @staticmethod
    def _next_look(n: int) -> int:
        """The first look after `n - 1` labels."""
        return _FIRST_LOOK << max(0, (-(-n // _FIRST_LOOK) - 1).bit_length())

    def _look(self) -> None:
        values, counts = np.unique(self.labels, return_counts=True)
        n_looked, self.labels = len(self.labels), []
        most = int(np.argmax(counts))
        if not self.warned and counts[most] > _SHARE * n_looked:
            self.warned = True
            warnings.warn(
                f"{counts[most]} of {n_looked} {self.labels_are} equal to {values[most]:g}, and the quantile's "
                f"guarantee assumes labels without such atoms. {self.advice}",
                AtomsWarning,
                stacklevel=5,
            )

    def arrays(self) -> dict[str, Float64Array]:
        """The state as one array: the two numbers, then the labels."""
        return {"labels": np.array([self.n, self.warned, *self.labels], dtype=np.float64)}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""
        n, warned, *self.labels = arrays["labels"].tolist()
        self.n, self.warned = int(n), bool(warned)
