"""Scores that people know: of 0/1 outcomes, losses before and after, means of groups; and how they went over time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from swapcal.audits.intervals import student_quantile
from swapcal.audits.sums import Part, Positions, Scored, added, bins_between, counted, grown
from swapcal.text.numbers import percent, relative
from swapcal.typing import Float64Array

# Forecasts of 0 and 1 count as this near to them in the log loss, as in scikit-learn.
SMALLEST = 1e-15

N_FINE = 10_000


@dataclass(frozen=True, slots=True)
class BinaryScores:
    """brier = miscalibration - discrimination + uncertainty (CORP); log_loss; auc, None where all outcomes agree.

    miscalibration: what isotonic recalibration takes off. discrimination: what that has over the base rate.
    """

    brier: float
    log_loss: float
    auc: float | None
    miscalibration: float
    discrimination: float
    uncertainty: float
    base_rate: float


def fine_edges(p: Float64Array) -> Float64Array:
    """Inner edges of about 10,000 bins between quantiles of a sample of forecasts; of fewer values, each has its own.

    Examples
    --------
    >>> fine_edges(np.array([0.1, 0.5, 0.5, 0.9]))
    array([0.3, 0.7])
    """
    distinct = np.unique(p)
    if len(distinct) > N_FINE:
        distinct = np.unique(np.quantile(p, np.arange(N_FINE) / (N_FINE - 1), method="inverted_cdf"))
    edges: Float64Array = (distinct[1:] + distinct[:-1]) / 2
    return edges


class ScoreSums(Part):
    """What the scores are read from: per fine bin of forecasts, weight and ones; and sums of losses, which are exact.

    Where every forecast value has its bin, so are AUC and the parts; else they are within about 0.0001.
    """

    saved = ("sums", "losses", "edges")

    def __init__(self, edges: Float64Array) -> None:
        self.edges = edges
        self.sums = np.zeros((2, len(edges) + 1))
        self.losses = np.zeros(2)

    def add(self, scored: Scored) -> None:
        """Add rows; outcomes are 0 or 1."""
        self.add_rows(scored.y, scored.p, scored.weights)

    def add_rows(self, y: Float64Array, p: Float64Array, weights: Float64Array | None = None) -> None:
        """Add outcomes, forecasts and weights."""
        bins, n = bins_between(self.edges, p), len(self.edges) + 1
        w = np.ones(len(y)) if weights is None else weights
        self.sums[0] += np.bincount(bins, weights, n)
        self.sums[1] += np.bincount(bins, y if weights is None else w * y, n)
        q = np.clip(np.where(y > 0.5, p, 1.0 - p), SMALLEST, 1.0)
        self.losses += [float(np.sum(w * (p - y) ** 2)), float(-np.sum(w * np.log(q)))]

    def merge(self, other: "ScoreSums", at: Positions) -> bool:
        """Add another part of the stream, if it has the same bins."""
        if not np.array_equal(self.edges, other.edges):
            return False
        self.sums += other.sums
        self.losses += other.losses
        return True

    def scores(self) -> BinaryScores:
        """The scores of the rows so far."""
        used = self.sums[0] > 0
        weight, ones = self.sums[:, used]
        total, events = float(weight.sum()), float(ones.sum())
        rate = events / total
        zeros = weight - ones
        auc = None
        if 0.0 < events < total:
            below = np.cumsum(zeros) - zeros
            auc = float(np.sum(ones * (below + zeros / 2)) / (events * (total - events)))
        fitted = isotonic(ones / weight, weight)
        brier, log_loss = (self.losses / total).tolist()
        uncertainty = rate * (1.0 - rate)
        recalibrated = float(np.sum(ones * (1.0 - fitted) ** 2 + zeros * fitted**2)) / total
        return BinaryScores(
            brier=brier,
            log_loss=log_loss,
            auc=auc,
            miscalibration=brier - recalibrated,
            discrimination=uncertainty - recalibrated,
            uncertainty=uncertainty,
            base_rate=rate,
        )


def isotonic(means: Float64Array, weights: Float64Array) -> Float64Array:
    """Isotonic regression: the nondecreasing sequence nearest to `means` (pool adjacent violators).

    Examples
    --------
    >>> isotonic(np.array([0.1, 0.5, 0.3, 0.8]), np.ones(4))
    array([0.1, 0.4, 0.4, 0.8])
    """
    blocks: list[list[float]] = []
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        blocks.append([mean, weight, 1.0])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean_last, weight_last, n_last = blocks.pop()
            mean_first, weight_first, n_first = blocks.pop()
            both = weight_first + weight_last
            blocks.append([(mean_first * weight_first + mean_last * weight_last) / both, both, n_first + n_last])
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


# --------
# Losses before and after on the same rounds: sums over blocks of the stream, and the interval of their difference.

N_BLOCKS = 1024
# Blocks below which an interval means nothing.
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Paired:
    """Mean loss before and after, and the interval of the mean difference (after - before) from paired blocks."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    confidence: float

    @property
    def relative(self) -> tuple[str, str, str]:
        """The lower end, the difference and the upper end, in percent of the loss before."""
        low, middle, high = (relative(v, self.before) for v in (self.low, self.difference, self.high))
        return low, middle, high

    @property
    def change(self) -> str:
        """The difference and its interval, in words."""
        low, middle, high = self.relative
        return f"{middle} ({percent(self.confidence)} interval {low} to {high})"


class PairedLosses(Part):
    """Sums of losses over blocks of neighboring rounds; when the blocks run out, neighbors are joined in pairs.

    Memory: at most 1,024 blocks, whatever the length of the stream.

    Notes
    -----
    Rounds near each other resemble each other, so their differences are not independent; sums over blocks that are
    long enough nearly are. The interval is Student's, over blocks of at least T^(1/3) rounds.

    Examples
    --------
    >>> blocks = PairedLosses()
    >>> blocks.add(np.full(5000, 0.25), np.full(5000, 0.2) + np.arange(5000) % 2 / 100)
    >>> pair = blocks.paired()
    >>> round(pair.difference, 4), pair.low <= pair.difference <= pair.high < 0
    (-0.045, True)
    """

    saved = ("sums", "length")

    def __init__(self) -> None:
        self.length = 1
        # Rounds, weights, losses before and after of each block; the last block may be incomplete.
        self.sums = np.zeros((4, 0))

    def add(self, before: Float64Array, after: Float64Array, weights: Float64Array | None = None) -> None:
        """Add the losses of the next rounds, one entry each."""
        w = np.ones(len(before)) if weights is None else weights
        rounds = np.stack([np.ones(len(before)), w, w * before, w * after])
        done = self.sums.shape[1]
        filled = int(self.sums[0, -1]) if done else 0
        if 0 < filled < self.length:
            head = min(self.length - filled, rounds.shape[1])
            self.sums[:, -1] += rounds[:, :head].sum(axis=1)
            rounds = rounds[:, head:]
        if rounds.shape[1]:
            starts = np.arange(0, rounds.shape[1], self.length)
            self.sums = np.concatenate([self.sums, np.add.reduceat(rounds, starts, axis=1)], axis=1)
        self._shorten()

    def merge(self, other: "PairedLosses") -> None:
        """Add the blocks of another part of the stream."""
        if not other.sums.shape[1]:
            return
        length = max(self.length, other.length)
        parts = [_joined(each.sums, length // each.length) for each in (self, other) if each.sums.shape[1]]
        self.sums, self.length = np.concatenate(parts, axis=1), length
        self._shorten()

    def _shorten(self) -> None:
        """Join neighbors in pairs while there are too many blocks."""
        while self.sums.shape[1] > N_BLOCKS:
            self.sums = _joined(self.sums, 2)
            self.length *= 2

    def paired(self, confidence: float = 0.95) -> Paired | None:
        """Mean losses and the interval of their difference; None before the first round that counts."""
        total = self.sums.sum(axis=1)
        if not total[1] > 0:
            return None
        longest = max(1, math.ceil(total[0] ** (1 / 3) / self.length))
        _, weight, before, after = _joined(self.sums, longest)
        difference = (total[3] - total[2]) / total[1]
        half = math.inf
        if len(weight) >= FEWEST:
            # The ratio of two sums: its residuals have mean 0, and their spread gives the standard error.
            residuals = (after - before) - difference * weight
            deviation = math.sqrt(float(residuals @ residuals) / (len(weight) - 1) * len(weight))
            z = NormalDist().inv_cdf(0.5 + confidence / 2)
            half = float(student_quantile(z, float(len(weight) - 1))) * deviation / float(total[1])
        return Paired(
            before=float(total[2] / total[1]),
            after=float(total[3] / total[1]),
            difference=float(difference),
            low=float(difference - half),
            high=float(difference + half),
            confidence=confidence,
        )


def _joined(sums: Float64Array, factor: int) -> Float64Array:
    joined: Float64Array = np.add.reduceat(sums, np.arange(0, sums.shape[1], factor), axis=1)
    return joined


class GroupMeans(Part):
    """Sums that can be kept: of each number over a group's rows, and how many rows those are.

    Parameters
    ----------
    n : int
        Number of groups.
    names : tuple of str
        What the numbers are called.

    Examples
    --------
    >>> from swapcal.protocols import Rows
    >>> means, rows = GroupMeans(2, ("width",)), Rows(np.array([0, 1, 3]), np.array([0, 0, 1]), np.ones(3))
    >>> y = np.zeros(2)
    >>> means.add(Scored(y, y, y, np.zeros(2, dtype=np.int64), rows, numbers=(np.array([1.0, 3.0]),)))
    >>> means.of("width"), means.rows
    (array([2., 3.]), array([2., 1.]))
    """

    saved = ("sums",)

    def __init__(self, n: int, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = np.zeros((1 + len(names), n))

    @property
    def rows(self) -> Float64Array:
        """Rows of each group."""
        rows: Float64Array = self.sums[0]
        return rows

    def add(self, scored: Scored) -> None:
        """Add rows, with one of their numbers for each of the names."""
        n, lengths = self.sums.shape[1], scored.lengths
        for k, number in enumerate((np.ones(len(lengths)), *scored.numbers)):
            each = number if scored.weights is None else number * scored.weights
            self.sums[k] += np.bincount(scored.rows.indices, np.repeat(each, lengths), n)

    def merge(self, other: "GroupMeans", at: Positions) -> bool:
        """Add another part of the stream, if it has the same numbers."""
        if self.names == other.names:
            self.sums = added(self.sums, other.sums, None, at.groups)
        return self.names == other.names

    def of(self, name: str) -> Float64Array:
        """The mean of a number in each group; NaN without rows."""
        total: Float64Array = self.sums[1 + self.names.index(name)]
        means: Float64Array = np.divide(total, self.rows, out=np.full(len(total), np.nan), where=self.rows > 0)
        return means


# --------
# Bias as the stream goes by: sums of every group over blocks of neighboring rows, in bounded memory.

N_STRETCHES = 64
# A bias that begins within this share of a group's rows has been there from the start.
EARLY = 0.1

# A later start is told only where the rows before it are this many standard errors away from the same bias.
CLEAR = 3.0


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
        self._sums = np.zeros((2, N_STRETCHES, 0))
        # What the first row of each block says of its time, if anything.
        self.labels: list[str | None] = []

    def add(self, scored: Scored) -> None:
        """Add rows."""
        n = len(scored.v)
        while self.n_rows + n > N_STRETCHES * self.length:
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
        self._noted: list[list[float]] = []

    @property
    def _due(self) -> int:
        """Rounds after which the next note is due."""
        due = FIRST
        for _ in self._noted:
            due = int(due * PACE)
        return due

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

    def series(self, n_rounds: int, *now: float) -> list[Float64Array]:
        """Rounds, and each error at these; the last entry is how it is `now`."""
        noted = self._noted
        if not noted or noted[-1][0] < n_rounds:
            noted = [*noted, [float(n_rounds), *now]]
        return list(np.array(noted, dtype=np.float64).T)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return {"noted": np.array(self._noted, dtype=np.float64)}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held."""
        self._noted = arrays["noted"].tolist()
