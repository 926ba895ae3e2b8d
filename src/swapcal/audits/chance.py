"""What chance alone would show, from a sample of rows; and what forecasts know: their skill."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audits.histograms import OutcomeBins, root
from swapcal.audits.sums import Positions, Scored
from swapcal.engine.kernels import GOLDEN, mix64, row_keys
from swapcal.errors import StateFileError
from swapcal.protocols import Elicitable
from swapcal.state import check_bounds
from swapcal.typing import Float64Array, IntArray

# Rows that are kept of a place.
MOST = 256

LEAST = 16
# Rows that are kept in all; with many places there are fewer of each, but `LEAST` at least.
TOTAL = 1 << 15

NAMES = ("key", "place", "length", "function", "value")


class StratifiedSample:
    """A random sample of the rows of each place (a forecast value), each row with its entries: function and w f V.

    Parameters
    ----------
    start : int
        The number of the first coordinate of a linear class beside the groups.

    Notes
    -----
    Each row gets a random key, and those with the smallest keys of their place are kept: a uniform sample without
    replacement (bottom-k sampling), in one pass. After the first rows hardly any pass, and a row costs little more than
    its key. Memory: 24 bytes a row and 16 an entry, for 32,768 rows at most while there are 2,048 places or fewer.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.n_units = 0
        self.n_places = 0
        self._arrays = {name: np.zeros(0, dtype=np.float64 if name == "value" else np.int64) for name in NAMES}
        self._arrays["key"] = np.zeros(0)
        self._waiting: list[dict[str, npt.NDArray[Any]]] = []
        self._n_waiting = 0
        self._limits = np.zeros(0)

    def add(self, scored: Scored) -> None:
        """Add rows; entries are made of those only that are kept."""
        places = scored.slots
        if not len(places):
            return
        self.n_places = max(self.n_places, int(places.max()) + 1)
        self._limits = np.append(self._limits, np.ones(max(self.n_places - len(self._limits), 0)))
        keys = row_keys(self.n_units, len(places), mix64(GOLDEN))
        self.n_units += len(places)
        chosen = np.flatnonzero(keys < self._limits[places])
        if not chosen.size:
            return
        parts = []
        for offset, each in ((0, scored.rows), (self.start, scored.linear)):
            if each is not None:
                lengths = np.diff(each.indptr)[chosen]
                at = _ranges(each.indptr[:-1][chosen], lengths)
                owner = np.repeat(np.arange(len(chosen)), lengths)
                parts.append((owner, each.indices[at] + offset, each.values[at] * scored.wv[chosen][owner]))
        owner, functions, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        lengths = np.bincount(owner, minlength=len(chosen))
        new = (keys[chosen], places[chosen], lengths, functions[order], values[order])
        self._waiting.append(dict(zip(NAMES, new, strict=True)))
        self._n_waiting += len(chosen)
        if self._n_waiting > max(len(self._arrays["key"]), 4096):
            self._trim()

    def merge(self, other: "StratifiedSample", at: Positions) -> bool:
        """Go on from another one, before the first row; two parts have drawn the same keys, which do not mix."""
        if self.n_units and other.n_units:
            return False
        if other.n_units:
            arrays = other.arrays()
            self.start = max(self.start, 0 if at.groups is None else int(at.groups.max(initial=-1)) + 1)
            functions = other._functions(self.start, at.groups)
            place = at.slots[arrays["place"].astype(np.int64)]
            self.restore({**arrays, "place": place, "function": functions, "start": np.array([self.start])})
        return True

    def arrays(self) -> dict[str, Float64Array]:
        """The sample: key, place and number of entries of each row; function and value of each entry."""
        self._trim()
        numbers = {"units": np.array([self.n_units]), "start": np.array([self.start])}
        return {name: array.astype(np.float64) for name, array in {**self._arrays, **numbers}.items()}

    def _functions(self, start: int, groups: IntArray | None = None) -> IntArray:
        """The functions of the entries where the linear class begins at `start`, and the groups are at `groups`."""
        self._trim()
        function: IntArray = np.asarray(self._arrays["function"], dtype=np.int64)
        linear = function >= self.start
        own = function if groups is None else groups[np.where(linear, 0, function)]
        return np.where(linear, function - self.start + start, own) if self.start else own

    @staticmethod
    def check(arrays: dict[str, Float64Array], n_places: int, n: int, n_linear: int = 0) -> None:
        """No place and no function lies beyond those that there are, and every entry belongs to a row."""
        start = float(arrays["start"][0])
        highest = {"key": 1.0, "place": n_places - 1, "function": max(n, start + n_linear) - 1, "start": n}
        for name in (*NAMES[:4], "units", "start"):
            check_bounds(f"sample.{name}", arrays[name], 0.0, highest.get(name, 2.0**53))
        rows = {len(arrays[name]) for name in NAMES[:3]}
        entries = {len(arrays["function"]), len(arrays["value"]), int(arrays["length"].sum())}
        if len(rows) != 1 or len(entries) != 1:
            raise StateFileError("this saved state is damaged: a sample has more or fewer entries than its rows")

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `arrays` held."""
        self.n_units, self.start = (int(arrays[name][0]) for name in ("units", "start"))
        self._waiting = [{name: arrays[name].astype(self._arrays[name].dtype) for name in NAMES}]
        self._arrays = {name: array[:0] for name, array in self._arrays.items()}
        self.n_places = int(np.max(arrays["place"], initial=-1)) + 1
        self._trim()

    def _trim(self) -> None:
        """Keep the smallest keys of each place."""
        if not self._waiting:
            return
        joined = {name: np.concatenate([self._arrays[name], *(w[name] for w in self._waiting)]) for name in NAMES}
        self._waiting, self._n_waiting = [], 0
        most = int(np.clip(TOTAL // max(self.n_places, 1), LEAST, MOST))
        order = np.lexsort((joined["key"], joined["place"]))
        place = joined["place"][order]
        rank = np.arange(len(order)) - np.searchsorted(place, place)
        chosen = order[rank < most]
        lengths = joined["length"]
        entries = _ranges((np.cumsum(lengths) - lengths)[chosen], lengths[chosen])
        self._arrays = {name: array[chosen if name in NAMES[:3] else entries] for name, array in joined.items()}
        # A place that is full takes only keys below its largest.
        self._limits = np.ones(self.n_places)
        full = order[rank == most - 1]
        self._limits[joined["place"][full]] = joined["key"][full]


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
    sample: StratifiedSample, count: Float64Array, squares: Float64Array, r: float = 2.0, *, n_linear: int = 0
) -> ChanceLevel:
    r"""Chance of the swap error SMCal_r: the errors of the same rows with random signs.

    .. math:: \sum_p n_p \sup_f \Big| \frac{1}{n_p} \sum_{t: p_t = p} \epsilon_t w_t f(x_t) V_t \Big|^r

    with one sign for each row, shared by all its functions, and n_p the sum of weights at p.

    Parameters
    ----------
    sample : StratifiedSample
        Of the rows of each place.
    count : array, shape (places,)
        n_p: sums of weights; the number of rows, where there are none.
    squares : array, shape (places, functions)
        Sums over the whole stream of (w f V)^2.
    r : float
        Power of the error.
    n_linear : int
        The last `n_linear` functions are coordinates of a linear class, whose supremum is their Euclidean norm.

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
    n_functions, draw = squares.shape[1], np.random.default_rng(0)
    functions_of_entries, arrays = sample._functions(n_functions - n_linear), sample._arrays
    lengths: IntArray = np.asarray(arrays["length"], dtype=np.int64)
    function, value, place = functions_of_entries, arrays["value"], np.repeat(arrays["place"], lengths)
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
    # Losses of a probability are affine in the outcome, up to a term without the forecast: means of bins tell them.
    points = outcomes.points(spread=property.outcome(0.0, 0.0) is None)
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
    return (np.add.reduceat(histograms, starts, axis=0), np.add.reduceat(value * count, starts) / together, together)
