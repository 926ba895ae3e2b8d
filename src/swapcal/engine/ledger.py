"""What happened at the forecasts themselves, beside what the theorem promises of it; and labels that heap up."""

import warnings

import numpy as np
import numpy.typing as npt

from swapcal.engine.values import grown
from swapcal.errors import AtomsWarning
from swapcal.protocols import Evidence, Hypotheses, Row
from swapcal.typing import Float64Array

DRIFT, RESERVED, PEAK = 0, 1, 2
FORECASTS, LUCK, VARIANCE, LATEST = 0, 1, 2, 3
_MOST = 1e300


class Ledger:
    """Per value: the sums of x V at the forecast, and of x (V(forecast) - V(evidence point)), the signed rounding.

    The evidence is taken where the theorem wants it, the error is counted at forecasts; the ledger keeps the
    difference, so that the guarantee can be evaluated on what was observed, without an assumption on the labels.

    And for all rounds together, what the proof needs where outcomes come late or a value was played outright
    (docs/guarantees.md, section 2): `drift`, by how much the potential may have risen beyond the draws; `reserved`, the
    size of the draws whose outcomes are out; and the largest that the sum of both ever was.

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
        # The sum of forecasts that have had their outcome; what their draws have added to the potential; how much that
        # may vary, in the sense of docs/guarantees.md, section 5; and how much the latest draw may, before its outcome.
        self.totals = np.zeros(4)

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

    @property
    def mean_forecast(self) -> float | None:
        """Of the rounds that have had their outcome."""
        return float(self.totals[FORECASTS]) / self.n_rounds if self.n_rounds else None

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

    def record(self, slot: int, row: Row, value: float, v: float, v_evidence: float) -> None:
        """Add a round that forecast the value in `slot`."""
        self.sums[slot, row.indices] += row.values * v
        if v != v_evidence:
            self.rounding[slot, row.indices] += row.values * (v - v_evidence)
        self.rounds[0] += 1
        self.totals[FORECASTS] += value

    def move(self, slot: int, cell: int, row: Row, v: float, v_shown: float) -> None:
        """What was shown, in the cell of its nearest value, was not what was said."""
        self.moved_sums[slot, row.indices] -= row.values * v
        self.moved_sums[cell, row.indices] += row.values * v_shown
        self.moved_counts[slot] -= 1.0
        self.moved_counts[cell] += 1.0

    def settle(
        self, evidence: Evidence, slot: int, row: Row, phi: float, v_evidence: float, open_rounds: int, *, latest: bool
    ) -> None:
        """What the outcome of a draw adds to the drift, by the evidence in force now; before the evidence learns it.

        `latest`: no other forecast has been made since. Then it is known what the draw could have changed.
        """
        drift = self.drift
        drift[DRIFT] += evidence.drift(slot, row, phi, v_evidence)
        drift[RESERVED] = drift[RESERVED] - evidence.reserve(phi) if open_rounds > 1 else 0.0
        self._look()
        self.totals[LUCK] += phi * v_evidence
        if latest:
            self._vary(v_evidence * v_evidence)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        self.sums, self.rounding = grown(self.sums, capacity), grown(self.rounding, capacity)
        self.moved_sums, self.moved_counts = grown(self.moved_sums, capacity), grown(self.moved_counts, capacity)

    def rescale(self, v: float) -> None:
        """Count in units in which V is `v` times what it was."""
        for sums in (self.sums, self.rounding, self.moved_sums):
            sums *= v

    def error(self, hypotheses: Hypotheses, counts: Float64Array, r: float, *, said: bool = False) -> float:
        """The swap multicalibration error of what was shown so far, or `said`, whose visits are the `counts`."""
        sums = self.sums if said else self.sums + self.moved_sums
        counts = counts if said else counts + self.moved_counts
        visited = counts > 0
        n = counts[visited]
        return float(np.sum(n * (hypotheses.supremum(sums[visited]) / n) ** r))


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
