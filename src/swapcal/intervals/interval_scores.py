"""How good intervals are: coverage for every group, width, and the proper score of the two together."""

from typing import Any

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["group_coverage", "interval_score"]


def interval_score(y: Any, lower: Any, upper: Any, coverage: float = 0.9) -> Float64Array:
    r"""Width, and :math:`2 / (1 - c)` times the distance to outcomes outside: proper for the central interval.

    Examples
    --------
    >>> interval_score([0.5, 3.0], [0.0, 0.0], [1.0, 1.0], 0.9)
    array([ 1., 41.])

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102, section 6.2.
    """
    y, lower, upper = (np.asarray(a, dtype=np.float64) for a in (y, lower, upper))
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return np.asarray((upper - lower) + 2.0 / (1.0 - coverage) * outside, dtype=np.float64)


def group_coverage(covered: Any, groups: Any, at_least: int = 1) -> dict[int, float]:
    """The share of covered outcomes in every group that has at least so many rounds.

    Parameters
    ----------
    covered : array of bool
        Whether each outcome was covered.
    groups : array, rounds by groups
        Who is in which group: entries that are not zero.
    at_least : int
        Smaller groups are left out.

    Returns
    -------
    dict
        From the position of a group to its coverage.

    Examples
    --------
    >>> group_coverage([True, False, True], [[1, 0], [1, 1], [1, 1]])
    {0: 0.6666666666666666, 1: 0.5}
    """
    hits, members = np.asarray(covered, dtype=np.float64), np.asarray(groups) != 0
    if members.ndim != 2 or members.shape[0] != len(hits):
        raise InvalidInput(
            f"groups must be a table with one row for each of {len(hits)} rounds; got shape {members.shape}"
        )
    counts = members.sum(axis=0)
    found = np.flatnonzero(counts >= max(at_least, 1))
    return {int(j): float(hits[members[:, j]].mean()) for j in found}
