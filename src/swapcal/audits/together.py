"""The global test: whether there is bias at all, where no single group or range of forecasts can be named.

Each family of groups that have no row in common (values of a column, ranges of forecasts, both crossed) is tested by
its weighted sum of squares; the smallest p-value counts as many times as there are families. Where rows form clusters,
one sum over all groups and ranges is compared with those that random signs of the clusters give.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swapcal.typing import Float64Array

# Terms from which a sum counts as normal, where outcomes are not 0 or 1; clusters of a group from which it is tested.
FEWEST_TERMS, FEWEST_OF_GROUP = 100, 10
N_SIGNS = 399


class Family(NamedTuple):
    """Sums S of cells without common rows, and their cumulants under calibration, of order 2 to 6: shape (5, cells)."""

    total: Float64Array
    cumulants: Float64Array


def family_of_events(rows: Float64Array, ones: Float64Array, forecasts: Float64Array) -> Family:
    """Cells of binary V, shape (strata, cells): under calibration sums of Bernoullis whose means are the forecasts."""
    p = np.clip(np.divide(forecasts, rows, out=np.full(rows.shape, 0.5), where=rows > 0), 1e-9, 1.0 - 1e-9)
    v, d = p * (1.0 - p), 1.0 - 2.0 * p
    each = (v, v * d, v * (1 - 6 * v), v * d * (1 - 12 * v), v * (1 - 30 * v + 120 * v * v))
    return Family((forecasts - ones).sum(axis=0), np.stack([(rows * one).sum(axis=0) for one in each]))


def family_of_terms(terms: Float64Array, total: Float64Array, squares: Float64Array) -> Family:
    """Cells of other V, which count as normal: those with enough terms."""
    enough = (terms >= FEWEST_TERMS) & (squares > 0)
    nothing = np.zeros(np.count_nonzero(enough))
    return Family(total[enough], np.stack([squares[enough], *(nothing for _ in range(4))]))


def p_value(family: Family) -> float:
    r"""The probability that the weighted sum of squares is as large under calibration.

    .. math:: T = \sum_i w_i S_i^2 / \kappa_{2,i}, \quad w_i = 2 / \mathrm{Var}(S_i^2 / \kappa_{2,i})

    with the first three moments of T, which are known, put into a gamma distribution. Cells of few events weigh little.
    """
    used = family.cumulants[0] > 1e-12
    if not used.any():
        return 1.0
    k2 = family.cumulants[0, used]
    k3, _, k6 = (family.cumulants[j, used] / k2 ** ((j + 2) / 2) for j in (1, 3, 4))
    k4 = family.cumulants[2, used] / k2**2
    variance = np.maximum(2.0 + k4, 0.5)
    weight = 2.0 / variance
    total = float(weight @ (family.total[used] ** 2 / k2))
    spread = float(weight**2 @ variance)
    third = float(weight**3 @ np.maximum(8.0 + 12.0 * k4 + 10.0 * k3**2 + k6, 1e-3))
    x, degrees = (total - float(weight.sum())) / math.sqrt(spread), 8.0 * spread**3 / third**2
    ratio = max(1.0 + x * math.sqrt(2.0 / degrees), 0.0)
    z = (ratio ** (1.0 / 3.0) - 1.0 + 2.0 / (9.0 * degrees)) / math.sqrt(2.0 / (9.0 * degrees))
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def p_value_of_families(families: Sequence[Family]) -> float:
    """The smallest p-value, times the number of families."""
    values = [p_value(family) for family in families if len(family.total) > 1]
    return min(1.0, len(values) * min(values)) if values else 1.0


def p_value_of_signs(parts: Sequence[tuple[Float64Array, Float64Array]]) -> float:
    """How often clusters with random signs give as large a sum of squares; parts are sums, shape (clusters, cells).

    Beside the sums stands the least variance that each cell has if its forecasts are right: a cell without events shows
    no spread at all.
    """
    columns, totals, shares = [], [], []
    for sums, least in parts:
        enough = np.count_nonzero(sums, axis=0) >= FEWEST_OF_GROUP
        if enough.any():
            some = sums[:, enough]
            squares = (some**2).sum(axis=0)
            columns.append(some / np.sqrt(squares))
            totals.append(some.sum(axis=0) / np.sqrt(np.maximum(squares, least[enough])))
            shares.append(np.full(some.shape[1], 1.0 / some.shape[1]))
    if not columns:
        return 1.0
    table, weight = np.concatenate(columns, axis=1), np.concatenate(shares)
    signs = np.where(np.random.default_rng(0).random((N_SIGNS, len(table))) < 0.5, -1.0, 1.0)
    seen, drawn = weight @ np.concatenate(totals) ** 2, (signs @ table) ** 2 @ weight
    return float((1 + np.count_nonzero(drawn >= seen)) / (1 + N_SIGNS))
