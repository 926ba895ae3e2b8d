"""The worst subgroups that nobody listed: searched on one half of the rows, confirmed on the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.errors import InvalidInput
from swapcal.inputs import short_repr
from swapcal.typing import Float64Array, IntArray

# --------
# Raw columns as a few conditions each, for the search of subgroups: fifths of numbers, common values, missing ones.

N_BANDS = 5
N_VALUES = 12


class DiscoveryColumn(NamedTuple):
    """A column as codes: row t satisfies `labels[codes[t]]`, such as "age 30 to 45"; code -1 satisfies nothing.

    The labels of a column exclude each other.
    """

    name: str
    codes: IntArray
    labels: tuple[str, ...]


def banded(name: str, values: Float64Array, n_bands: int = N_BANDS) -> DiscoveryColumn:
    """A column of numbers in bands of about equally many rows; NaN is missing.

    Examples
    --------
    >>> column = banded("age", np.array([20.0, 30, 40, 50, 60, np.nan]), 2)
    >>> column.codes, column.labels
    (array([0, 0, 0, 1, 1, 2]), ('age up to 40', 'age above 40', 'age missing'))
    """
    missing = np.isnan(values)
    known = values[~missing]
    edges = np.unique(np.quantile(known, np.arange(1, n_bands) / n_bands)) if len(known) else np.zeros(0)
    edges = edges[edges < known.max()] if len(known) else edges
    codes = np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="left"))
    texts = [f"{edge:.6g}" for edge in edges.tolist()]
    labels = [f"{name} any"]
    if texts:
        between = [f"{name} above {a} to {b}" for a, b in pairwise(texts)]
        labels = [f"{name} up to {texts[0]}", *between, f"{name} above {texts[-1]}"]
    return DiscoveryColumn(name, codes.astype(np.int64), (*labels, f"{name} missing"))


def valued(name: str, codes: IntArray, values: Sequence[str], n_values: int = N_VALUES) -> DiscoveryColumn:
    """A column of values by its commonest ones; code -1 is missing, and rarer values satisfy nothing.

    Examples
    --------
    >>> column = valued("city", np.array([0, 1, 1, 2, -1]), ["Bonn", "Rome", "Oslo"], 1)
    >>> column.codes, column.labels
    (array([-1,  0,  0, -1,  1]), ('city=Rome', 'city missing'))
    """
    codes = np.asarray(codes, dtype=np.int64)
    if codes.size and not -1 <= codes.min() <= codes.max() < len(values):
        raise InvalidInput(
            f"codes of {short_repr(name)} must be from -1 to {len(values) - 1}; got {codes.min()} to {codes.max()}"
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    common = np.argsort(-counts, kind="stable")[:n_values]
    common = common[counts[common] > 0]
    new = np.full(len(values) + 1, -1, dtype=np.int64)
    new[common] = np.arange(len(common))
    new[-1] = len(common)
    return DiscoveryColumn(name, new[codes], (*(f"{name}={values[i]}" for i in common.tolist()), f"{name} missing"))


# --------
# Columns that give the outcome away: what is known from them could not have been known when the forecast was made.

LEAK_SHRINKAGE = 50.0
FEWEST_LEAK_ROWS = 50
# A column from whose values this share of the mean square of V is known is a leak. Bias, however bad, is far below.
LEAK = 0.5

# The same for a single value, among its own rows, if V is large there: "status=closed" where all outcomes are 1.
LEAK_OF_VALUE = 0.9


class Leak(NamedTuple):
    """A column, or one value of it, that gives the outcome away: `share` of the mean square of V is known from it."""

    name: str
    share: float


def find_leaks(
    columns: Sequence[DiscoveryColumn], v: Float64Array, w: Float64Array, first: IntArray, second: IntArray
) -> tuple[Leak, ...]:
    """Columns, and single values, from which most of V is known on rows that were not looked at."""
    leaks = []
    wv, wvv = w * v, w * v * v
    overall = float(wvv[second].sum()) / max(float(w[second].sum()), np.finfo(np.float64).tiny)
    for column in columns:
        width = len(column.labels) + 1
        size, total = (np.bincount(column.codes[first] + 1, x[first], width) for x in (w, wv))
        means = total / (size + LEAK_SHRINKAGE)
        means[0] = 0.0
        size, total, squares = (np.bincount(column.codes[second] + 1, x[second], width) for x in (w, wv, wvv))
        known = 2.0 * means * total - means**2 * size  # squares that are gone when the means are subtracted
        share = float(known.sum() / squares.sum()) if squares.sum() > 0 else 0.0
        if share >= LEAK:
            leaks.append(Leak(column.name, share))
            continue
        for code in range(1, width):
            big = size[code] >= FEWEST_LEAK_ROWS and (total[code] / size[code]) ** 2 >= overall / 4
            if big and known[code] >= LEAK_OF_VALUE * squares[code]:
                leaks.append(Leak(column.labels[code - 1], float(known[code] / squares[code])))
    return tuple(sorted(leaks, key=lambda leak: -leak.share))


# Rows without bias that are added to each subgroup in the search: the score is S^2 / (n + 50).
SHRINKAGE = 50.0

# The search ends where no score is above this many mean squares of V: chance alone gives more among some hundred.
WORTH = 6.0

# A single condition is preferred to two that score at most 1 / 0.9 as much.
SIMPLER = 0.9

MOST_ROWS = 200_000
FEWEST_ROWS = 50
FEWEST_TERMS = 30


class Subgroup(NamedTuple):
    """A subgroup, as found on one half and as it is on the other.

    name: its conditions. rows, bias: on the half that was not searched; the bias is the mean of V. bound: the end of
    its one-sided interval, fair to all picks together, that is nearest to 0. p_value: of no bias to that side, for this
    pick alone. confirmed: whether the bound leaves out 0. found_rows, found_bias: on the half searched, where the bias
    is made larger by the search.
    """

    name: str
    rows: int
    bias: float
    bound: float
    p_value: float
    confirmed: bool
    found_rows: int
    found_bias: float


@dataclass(frozen=True, slots=True)
class Discovery:
    """Subgroups, the confirmed ones first; leaks; and the share of the mean square of V that correcting them removes.

    `explained` is measured on the half that was not searched; near 0, or below, where there is nothing to find. rows:
    how many were looked at. unit: of the biases; empty where they are means of V.
    """

    subgroups: tuple[Subgroup, ...]
    leaks: tuple[Leak, ...]
    explained: float
    rows: int
    unit: str = ""

    @property
    def confirmed(self) -> tuple[Subgroup, ...]:
        """The subgroups whose bias was confirmed."""
        return tuple(one for one in self.subgroups if one.confirmed)


def discover(
    columns: Sequence[DiscoveryColumn],
    v: Float64Array,
    *,
    clusters: Any = None,
    weights: Float64Array | None = None,
    picks: int = 10,
    alpha: float = 0.05,
    smallest: float = 0.005,
    seed: int = 0,
) -> Discovery:
    """Search conjunctions of one or two conditions for bias, and test what was found on rows that were not searched.

    Guarantee, for many rows or clusters: with probability at least 1 - alpha every `confirmed` subgroup is biased to
    the side named. The tests are Student's, one-sided, at alpha / (picks made), and know nothing of the search.

    Parameters
    ----------
    columns : sequence of DiscoveryColumn
        What conditions can be about, `banded` or `valued`; the forecast itself is a good one.
    v : array, shape (rows,)
        V(p_t, y_t): positive where the forecast was too high.
    clusters : array, shape (rows,), optional
        Rows with the same entry depend on each other (a day, a person); they stay on one half, and tests add them up.
    weights : array, optional
        Of the rows.
    picks : int
        At most so many subgroups.
    alpha : float
        Probability with which anything is confirmed wrongly.
    smallest : float
        Share of the rows that a subgroup must have.
    seed : int
        Of the split.

    Notes
    -----
    Greedy: the subgroup with the largest S^2 / (n + 50) is picked, its mean is subtracted from its rows, and so on.
    Cost: a count over the rows for each pair of columns and pick; 200,000 rows are searched at most. Memory: O(rows).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> city, shift = (rng.integers(0, 4, 20_000) for _ in range(2))
    >>> v = rng.normal(size=20_000) * 0.3 + 0.1 * ((city == 2) & (shift == 1))
    >>> shifts = DiscoveryColumn("shift", shift, ("early", "late", "night", "none"))
    >>> columns = [DiscoveryColumn("city", city, tuple("ABCD")), shifts]
    >>> [(one.name, round(one.found_bias, 2)) for one in discover(columns, v).confirmed]
    [('C and late', 0.09)]
    """
    v = np.asarray(v, dtype=np.float64)
    w = np.ones(len(v)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(columns, v, w)
    ids = np.arange(len(v)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    searched = (np.random.default_rng(seed).permutation(int(ids.max(initial=-1)) + 1) % 2 == 0)[ids]
    first, second = np.flatnonzero(searched), np.flatnonzero(~searched)
    if len(first) > MOST_ROWS:
        first = np.sort(np.random.default_rng(seed).choice(first, MOST_ROWS, replace=False))
    leaks = find_leaks(columns, v, w, first, second)
    given_away = {leak.name for leak in leaks}
    usable = [column for column in columns if column.name not in given_away]
    candidates = _search([column.codes[first] for column in usable], v[first], w[first], picks, smallest)
    left, subgroups = v[second].copy(), []
    for pick in candidates:
        members = _members(usable, pick.conditions, second)
        left[members] -= pick.correction
        name = " and ".join(usable[c].labels[code] for c, code in pick.conditions)
        rows = second[members]
        subgroups.append(_tested(name, pick, v[rows], w[rows], ids[rows], alpha / len(candidates)))
    subgroups.sort(key=lambda one: (not one.confirmed, one.p_value))
    before = float(w[second] @ v[second] ** 2)
    explained = 1.0 - float(w[second] @ left**2) / before if before > 0 else 0.0
    return Discovery(tuple(subgroups), leaks, explained, len(v))


class _Pick(NamedTuple):
    conditions: tuple[tuple[int, int], ...]
    rows: int
    bias: float
    # What is subtracted from V: the mean that was left after earlier picks, shrunk.
    correction: float


def _check(columns: Sequence[DiscoveryColumn], v: Float64Array, w: Float64Array) -> None:
    for column in columns:
        if len(column.codes) != len(v) or len(w) != len(v):
            raise InvalidInput(
                f"column {column.name!r} has {len(column.codes)} rows, and there are {len(v)} values of V"
            )
        if column.codes.size and not -1 <= column.codes.min() <= column.codes.max() < len(column.labels):
            raise InvalidInput(f"codes of column {column.name!r} must be from -1 to {len(column.labels) - 1}")
    if not np.isfinite(v).all() or not np.isfinite(w).all() or (w < 0).any():
        raise InvalidInput("V and weights must be finite numbers, and weights 0 or more; leave other rows out")


def _search(codes: list[IntArray], v: Float64Array, w: Float64Array, picks: int, smallest: float) -> list[_Pick]:
    # One more code at the front of each column for rows that satisfy nothing there.
    codes = [column + 1 for column in codes]
    widths = [int(column.max(initial=0)) + 1 for column in codes]
    places: list[tuple[int, ...]] = [(i,) for i in range(len(codes))] + list(combinations(range(len(codes)), 2))
    least = max(smallest * float(w.sum()), FEWEST_ROWS)
    sizes: dict[tuple[int, ...], Float64Array] = {}
    left = v.copy()
    picks_so_far: list[_Pick] = []
    enough = WORTH * float(w @ v**2) / max(float(w.sum()), 1.0)
    for _ in range(picks):
        best: dict[int, tuple[float, tuple[int, ...], int]] = {}
        wv = w * left
        for place in places:
            keys = codes[place[0]] if len(place) == 1 else codes[place[0]] * widths[place[1]] + codes[place[1]]
            if place not in sizes:
                size = np.bincount(keys, w, math.prod(widths[c] for c in place)).astype(np.float64)
                grid = size.reshape([widths[c] for c in place])
                for axis in range(grid.ndim):
                    np.moveaxis(grid, axis, 0)[0] = 0.0
                sizes[place] = size
            size = sizes[place]
            sums = np.bincount(keys, wv, len(size))
            scores = np.where(size >= least, sums**2 / (size + SHRINKAGE), 0.0)
            top = int(scores.argmax())
            if scores[top] > best.get(len(place), (enough,))[0]:
                best[len(place)] = (float(scores[top]), place, top)
        if not best:
            break
        single = best.get(1, (0.0, (), 0))
        _, place, key = single if 2 not in best or single[0] >= SIMPLER * best[2][0] else best[2]
        wanted = (key,) if len(place) == 1 else divmod(key, widths[place[1]])
        members = np.logical_and.reduce([codes[c] == code for c, code in zip(place, wanted, strict=True)])
        size_here = float(w[members].sum())
        correction = float(wv[members].sum()) / (size_here + SHRINKAGE)
        left[members] -= correction
        bias = float(w[members] @ v[members]) / size_here
        conditions = tuple((c, int(code) - 1) for c, code in zip(place, wanted, strict=True))
        if any(one.conditions == conditions for one in picks_so_far):
            break
        picks_so_far.append(_Pick(conditions, int(np.count_nonzero(members)), bias, correction))
    return picks_so_far


def _members(
    columns: Sequence[DiscoveryColumn], conditions: tuple[tuple[int, int], ...], rows: IntArray
) -> npt.NDArray[np.bool_]:
    members: npt.NDArray[np.bool_] = np.logical_and.reduce([columns[c].codes[rows] == code for c, code in conditions])
    return members


def _tested(name: str, pick: _Pick, v: Float64Array, w: Float64Array, ids: IntArray, level: float) -> Subgroup:
    """The pick on fresh rows: Student's test over clusters, of a ratio of two sums."""
    size, total = float(w.sum()), float(w @ v)
    bias = total / size if size > 0 else 0.0
    terms = np.bincount(np.unique(ids, return_inverse=True)[1], w * (v - bias)) if len(ids) else np.zeros(0)
    n, p_value, bound = len(terms), 1.0, -math.copysign(1.0, pick.bias)
    if n >= FEWEST_TERMS and size > 0:
        error = math.sqrt(float(terms @ terms) * n / (n - 1)) / size
        t = math.copysign(1.0, pick.bias) * bias / error if error > 0 else math.inf * bias * pick.bias
        p_value = _tail(t, n - 1)
        bound = bias - math.copysign(1.0, pick.bias) * _quantile(1.0 - level, n - 1) * error
    confirmed = p_value <= level
    return Subgroup(name, len(v), bias, bound, p_value, confirmed, pick.rows, pick.bias)


def _normal_score(t: float, degrees: int) -> float:
    """The normal deviate with Student's tail at `t` (Wallace 1959); within 0.5 % from 29 degrees on."""
    d = degrees
    return math.copysign((8 * d + 1) / (8 * d + 3) * math.sqrt(d * math.log1p(t * t / d)), t)


def _tail(t: float, degrees: int) -> float:
    return 0.5 * math.erfc(_normal_score(t, degrees) / math.sqrt(2.0)) if math.isfinite(t) else float(t < 0)


def _quantile(share: float, degrees: int) -> float:
    """The inverse of `_tail`."""
    z, d = NormalDist().inv_cdf(share), degrees
    z *= (8 * d + 3) / (8 * d + 1)
    return math.copysign(math.sqrt(d * math.expm1(z * z / d)), z)
