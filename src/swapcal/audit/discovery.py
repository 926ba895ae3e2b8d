"""The worst subgroups that nobody listed: searched on one half of the rows, confirmed on the other."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swapcal.audit.discovery_columns import Column
from swapcal.audit.leaks import Leak, find_leaks
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray

__all__ = ["Discovery", "Subgroup", "discover"]

SHRINKAGE = 50.0
"""Rows without bias that are added to each subgroup in the search: the score is S^2 / (n + 50)."""

WORTH = 6.0
"""The search ends where no score is above this many mean squares of V: chance alone gives more among some hundred."""

SIMPLER = 0.9
"""A single condition is preferred to two that score at most 1 / 0.9 as much."""

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


class Discovery(NamedTuple):
    """Subgroups, the confirmed ones first; leaks; and the share of the mean square of V that correcting them removes.

    `explained` is measured on the half that was not searched; near 0, or below, where there is nothing to find.
    """

    subgroups: tuple[Subgroup, ...]
    leaks: tuple[Leak, ...]
    explained: float

    @property
    def confirmed(self) -> tuple[Subgroup, ...]:
        """The subgroups whose bias was confirmed."""
        return tuple(one for one in self.subgroups if one.confirmed)


def discover(
    columns: Sequence[Column],
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
    columns : sequence of Column
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
    >>> columns = [Column("city", city, tuple("ABCD")), Column("shift", shift, ("early", "late", "night", "none"))]
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
    found = _search([column.codes[first] for column in usable], v[first], w[first], picks, smallest)
    left, subgroups = v[second].copy(), []
    for pick in found:
        members = _members(usable, pick.conditions, second)
        left[members] -= pick.correction
        name = " and ".join(usable[c].labels[code] for c, code in pick.conditions)
        rows = second[members]
        subgroups.append(_tested(name, pick, v[rows], w[rows], ids[rows], alpha / len(found)))
    subgroups.sort(key=lambda one: (not one.confirmed, one.p_value))
    before = float(w[second] @ v[second] ** 2)
    explained = 1.0 - float(w[second] @ left**2) / before if before > 0 else 0.0
    return Discovery(tuple(subgroups), leaks, explained)


class _Pick(NamedTuple):
    conditions: tuple[tuple[int, int], ...]
    rows: int
    bias: float
    correction: float
    """What is subtracted from V: the mean that was left after earlier picks, shrunk."""


def _check(columns: Sequence[Column], v: Float64Array, w: Float64Array) -> None:
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
    found: list[_Pick] = []
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
        if any(one.conditions == conditions for one in found):
            break
        found.append(_Pick(conditions, int(np.count_nonzero(members)), bias, correction))
    return found


def _members(
    columns: Sequence[Column], conditions: tuple[tuple[int, int], ...], rows: IntArray
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
