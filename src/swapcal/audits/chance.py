"""What forecasts know: the loss of the best constant, and their own after the best change of each value."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits.histograms import OutcomeBins, root
from swapcal.engine.arithmetic import GOLDEN, mix64
from swapcal.protocols import Elicitable, Rows
from swapcal.typing import Float64Array, IntArray

# --------
# A random sample of rows from each place, or of clusters: in one pass, of bounded size, and mergeable.

MOST = 256
"""Units that are kept of a place."""

LEAST = 16
TOTAL = 1 << 15
"""Units that are kept in all; with many places there are fewer of each, but `LEAST` at least."""

NAMES = ("key", "stratum", "length", "place", "function", "value")


class StratifiedSample:
    """Units (rows, or clusters of rows), each with its entries (place, function, value).

    Parameters
    ----------
    part : int
        Number of the part of the stream, if parts are sampled apart and merged later; sets the random keys.

    Notes
    -----
    Each unit gets a random key, and those with the smallest keys of their stratum are kept: a uniform sample without
    replacement of each stratum (bottom-k sampling). The k smallest of a union are among the k smallest of the parts, so
    samples merge exactly. After the first units hardly any pass, and a unit costs little more than its key. Memory: 24
    bytes a unit and 16 an entry, for 32,768 units at most while there are 2,048 strata or fewer.
    """

    def __init__(self, part: int = 0) -> None:
        self.part = part
        self.n_units = 0
        self.n_strata = 0
        self._arrays = {name: np.zeros(0, dtype=np.float64 if name == "value" else np.int64) for name in NAMES}
        self._arrays["key"] = np.zeros(0)
        self._waiting: list[dict[str, npt.NDArray[np.generic]]] = []
        self._n_waiting = 0
        self._limits = np.zeros(0)

    def add(
        self, strata: IntArray, lengths: IntArray, places: IntArray, functions: IntArray, values: Float64Array
    ) -> None:
        """Add units.

        Parameters
        ----------
        strata, lengths : array, shape (units,)
            The stratum of each unit (for rows: their place; for clusters: 0), and its number of entries.
        places, functions, values : array, shape (entries,)
            The entries of all units, one unit after the other; values are w f V, or their sums over a cluster.
        """
        if not len(strata):
            return
        keys = self._keys(len(strata))
        self.n_units += len(strata)
        self.n_strata = max(self.n_strata, int(strata.max()) + 1)
        if len(self._limits) < self.n_strata:
            self._limits = np.concatenate([self._limits, np.ones(self.n_strata - len(self._limits))])
        kept = np.flatnonzero(keys < self._limits[strata])
        if not kept.size:
            return
        starts = np.cumsum(lengths) - lengths
        entries = _ranges(starts[kept], lengths[kept])
        new = (keys[kept], strata[kept], lengths[kept], places[entries], functions[entries], values[entries])
        self._waiting.append(dict(zip(NAMES, new, strict=True)))
        self._n_waiting += len(kept)
        if self._n_waiting > max(len(self._arrays["key"]), 4096):
            self._trim()

    def add_rows(
        self, places: IntArray, wv: Float64Array, rows: Rows, linear: Rows | None = None, width: int = 0
    ) -> None:
        """Add rows as units: their places, w V, the values of the groups, and of a linear class from `width` on.

        As `add`, but entries are made for the rows only that are kept.
        """
        if not len(places):
            return
        self.n_strata = max(self.n_strata, int(places.max()) + 1)
        if len(self._limits) < self.n_strata:
            self._limits = np.concatenate([self._limits, np.ones(self.n_strata - len(self._limits))])
        keys = self._keys(len(places))
        self.n_units += len(places)
        kept = np.flatnonzero(keys < self._limits[places])
        if not kept.size:
            return
        parts = []
        for offset, each in ((0, rows), (width, linear)):
            if each is not None:
                lengths = np.diff(each.indptr)[kept]
                at = _ranges(each.indptr[:-1][kept], lengths)
                owner = np.repeat(np.arange(len(kept)), lengths)
                parts.append((owner, each.indices[at] + offset, each.values[at] * wv[kept][owner]))
        owner, functions, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        lengths = np.bincount(owner, minlength=len(kept))
        new = (keys[kept], places[kept], lengths, places[kept][owner], functions[order], values[order])
        self._waiting.append(dict(zip(NAMES, new, strict=True)))
        self._n_waiting += len(kept)
        if self._n_waiting > max(len(self._arrays["key"]), 4096):
            self._trim()

    def merge(self, other: "StratifiedSample") -> None:
        """Add the sample of another part; give the parts different numbers."""
        self._waiting.append(other.arrays())
        self.n_units += other.n_units
        self.n_strata = max(self.n_strata, other.n_strata)
        self._trim()

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The sample: key, stratum and number of entries of each unit; place, function and value of each entry."""
        self._trim()
        return dict(self._arrays)

    def renumbered(self, start: int, to: int) -> "StratifiedSample":
        """A copy whose functions from `start` on are numbered from `to` on."""
        arrays = self.arrays()
        function: IntArray = arrays["function"].astype(np.int64)
        copy = StratifiedSample(self.part)
        copy.restore({**arrays, "function": np.where(function >= start, function - start + to, function)}, self.n_units)
        return copy

    def restore(self, arrays: dict[str, npt.NDArray[np.generic]], n_units: int) -> None:
        """Go on from what `arrays` held after `n_units` units."""
        self._waiting, self.n_units = [dict(arrays)], n_units
        self._arrays = {name: array[:0] for name, array in self._arrays.items()}
        self.n_strata = int(np.max(arrays["stratum"], initial=-1)) + 1
        self._trim()

    def _keys(self, n: int) -> Float64Array:
        """Uniform numbers in [0, 1), a function of (part, number of the unit): cuts into batches change nothing."""
        with np.errstate(over="ignore"):
            z = np.arange(self.n_units + 1, self.n_units + n + 1, dtype=np.uint64) * np.uint64(GOLDEN)
            z += np.uint64(mix64(self.part + GOLDEN))
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _trim(self) -> None:
        """Keep the smallest keys of each stratum."""
        if not self._waiting:
            return
        joined = {name: np.concatenate([self._arrays[name], *(w[name] for w in self._waiting)]) for name in NAMES}
        self._waiting, self._n_waiting = [], 0
        most = int(np.clip(TOTAL // max(self.n_strata, 1), LEAST, MOST))
        order = np.lexsort((joined["key"], joined["stratum"]))
        stratum = joined["stratum"][order]
        rank = np.arange(len(order)) - np.searchsorted(stratum, stratum)
        kept = order[rank < most]
        lengths = joined["length"]
        entries = _ranges((np.cumsum(lengths) - lengths)[kept], lengths[kept])
        self._arrays = {name: array[kept if name in NAMES[:3] else entries] for name, array in joined.items()}
        # A stratum that is full takes only keys below its largest.
        self._limits = np.ones(self.n_strata)
        full = order[rank == most - 1]
        self._limits[joined["stratum"][full]] = joined["key"][full]


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """start, start + 1, ..., start + length - 1 for each pair, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    positions: IntArray = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return positions


# --------
# What chance alone does: the swap error that perfectly calibrated forecasts would show on the same cells.

N_DRAWS = 300
SHARE = 0.95


class ChanceLevel(NamedTuple):
    """Mean of the swap error under perfect calibration, and what it stays below in 95 streams of 100."""

    mean: float
    high: float


def null_level(
    sample: StratifiedSample,
    count: Float64Array,
    squares: Float64Array,
    r: float = 2.0,
    *,
    n_linear: int = 0,
    seed: int = 0,
) -> ChanceLevel:
    r"""Chance of the swap error SMCal_r: the errors of the same rows with random signs.

    .. math:: \sum_p n_p \sup_f \Big| \frac{1}{n_p} \sum_{t: p_t = p} \epsilon_t w_t f(x_t) V_t \Big|^r

    with one sign for each row or cluster, shared by all its functions, and n_p the sum of weights at p.

    Parameters
    ----------
    sample : UnitSample
        Of the rows of each place, or of clusters.
    count : array, shape (places,)
        n_p: sums of weights; the number of rows, where there are none.
    squares : array, shape (places, functions)
        Sums over the whole stream of (w f V)^2, or of the squared sums of clusters.
    r : float
        Power of the error.
    n_linear : int
        The last `n_linear` functions are coordinates of a linear class, whose supremum is their Euclidean norm.
    seed : int
        Of the draws.

    Notes
    -----
    Under calibration, V has mean 0 given the past, so the sums of w f V over a place have mean 0 and the covariances
    that random signs give them: sums of w^2 f g V^2. Sums of cells that hold many rows are nearly normal. The variances
    are taken from the whole stream; the correlations between functions of a place, of which there are too many to be
    kept, from the sample. A function that has no unit in the sample is drawn by itself. Where forecasts are biased, V^2
    contains the squared bias, which makes the level too high by as much as that is of V^2: a bias worth speaking of
    exceeds it many times over.

    Cost: 300 products of the sample's entries; half a second for 650 groups at 20 places. On calibrated streams the
    mean is within 3 % of what happens; drawing all functions independently gives 40 % too much (`docs/audits.md`).
    """
    arrays, draw = sample.arrays(), np.random.default_rng(seed)
    n_functions = squares.shape[1]
    lengths: IntArray = arrays["length"].astype(np.int64)
    place: IntArray = arrays["place"].astype(np.int64)
    function: IntArray = arrays["function"].astype(np.int64)
    value = arrays["value"].astype(np.float64)
    unit = np.repeat(np.arange(len(lengths)), lengths)
    normals = draw.standard_normal((len(lengths), N_DRAWS))
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(count) + 1))
    total = np.zeros(N_DRAWS)
    for p in np.flatnonzero(count > 0):
        here = order[bounds[p] : bounds[p + 1]]
        units, row = np.unique(unit[here], return_inverse=True)
        functions, column = np.unique(function[here], return_inverse=True)
        entries = np.zeros((len(functions), len(units)))
        np.add.at(entries, (column, row), value[here])
        seen = (entries**2).sum(axis=1)
        wanted = squares[p, functions]
        # Where all units of the place are there, signs are what is meant; a few of many stand for sums, near to normal.
        near = np.abs(seen - wanted) <= 1e-8 + 1e-9 * np.abs(wanted)
        whole = bool(near.all()) and np.count_nonzero(squares[p]) == len(functions)
        multipliers = np.where(normals[units] > 0, 1.0, -1.0) if whole else normals[units]
        scale = np.sqrt(np.divide(wanted, seen, out=np.zeros_like(seen), where=seen > 0))
        sums = np.zeros((n_functions, N_DRAWS))
        sums[functions] = scale[:, None] * (entries @ multipliers)
        unseen = squares[p] > 0
        unseen[functions[seen > 0]] = False
        alone = np.flatnonzero(unseen)
        sums[alone] = np.sqrt(squares[p, alone])[:, None] * draw.standard_normal((len(alone), N_DRAWS))
        total += count[p] * (_supremum(sums, n_linear) / count[p]) ** r
    return ChanceLevel(float(total.mean()), float(np.quantile(total, SHARE)))


def _supremum(sums: Float64Array, n_linear: int) -> Float64Array:
    n_own = len(sums) - n_linear
    largest: Float64Array = np.abs(sums[:n_own]).max(axis=0, initial=0.0)
    return np.maximum(largest, np.linalg.norm(sums[n_own:], axis=0)) if n_linear else largest


MOST_PLACES = 200


class Skill(NamedTuple):
    """Losses of the best constant and of ideally recalibrated forecasts, and the slope of the latter on forecasts.

    ideal: with the advantage taken off that fitting a value to each place has by chance. value: the best constant.
    """

    constant: float
    ideal: float
    slope: float | None
    value: float


def skill_of_mean(
    sums: tuple[float, float, float], fitted: Float64Array, value: Float64Array, count: Float64Array
) -> Skill:
    """The same for squared error, exactly, from sums alone.

    Parameters
    ----------
    sums : tuple of 3 floats
        Sums of w, w y and w y^2.
    fitted, value, count : array, shape (places,)
        Mean outcome, mean forecast and weight of each place.
    """
    weight, total, squares = sums
    mean = total / weight
    constant = max(squares / weight - mean * mean, 0.0)
    between = float(np.sum(count * (fitted - mean) ** 2)) / weight
    ideal = max(constant - between, 0.0)
    return Skill(constant, _fair(constant, ideal, len(value), weight), _slope(value, fitted, count), mean)


def _fair(constant: float, ideal: float, n_places: int, weight: float) -> float:
    """The ideal loss with what a value fitted to each place gains by chance given back."""
    return min(constant, ideal + constant * (n_places - 1) / max(weight, 1.0))


def _slope(value: Float64Array, fitted: Float64Array, count: Float64Array) -> float | None:
    share = count / count.sum()
    spread = share @ (value - share @ value) ** 2
    return float(share @ ((value - share @ value) * (fitted - share @ fitted)) / spread) if spread > 0 else None


def skill(
    property: Elicitable, outcomes: OutcomeBins, histograms: Float64Array, value: Float64Array, count: Float64Array
) -> Skill:
    """From one histogram of outcomes for each place, shape (places, bins of outcomes), in order of the forecasts.

    Notes
    -----
    A value fitted to each of m places gains about (m - 1) / T of the loss by chance, as for squared error; that much
    is given back. Where there are more than 200 places, neighbors are taken together.
    """
    histograms, value, count = _merged(histograms, value, count)
    points = outcomes.points(spread=True)
    roots = points if not property.continuous else outcomes.points(spread=False)
    overall = histograms.sum(axis=0, keepdims=True)
    best = root(property, overall, roots)
    constant = _loss(property, best, overall, points)
    fitted = root(property, histograms, roots)
    ideal = _loss(property, fitted, histograms, points)
    ideal = _fair(constant, ideal, len(value), float(count.sum()))
    return Skill(constant, ideal, _slope(value, fitted, count), float(best[0]))


def _loss(property: Elicitable, p: Float64Array, histograms: Float64Array, points: Float64Array) -> float:
    losses = np.asarray(property.loss(p[:, None, None], points[None, :, :])).mean(axis=2)
    return float(np.sum(losses * histograms) / np.sum(histograms))


def _merged(
    histograms: Float64Array, value: Float64Array, count: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    if len(value) <= MOST_PLACES:
        return histograms, value, count
    at = np.minimum((np.cumsum(count) - count) / count.sum() * MOST_PLACES, MOST_PLACES - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    together = np.add.reduceat(count, starts)
    return (
        np.add.reduceat(histograms, starts, axis=0),
        np.add.reduceat(value * count, starts) / together,
        together,
    )
