"""Sums of groups and clusters: the method that fits, any batches, and numbers that a loop gives."""

import numpy as np
import pytest
from scipy import stats

from swapcal.audits import Audit
from swapcal.audits.groups import MOST_CLUSTERS, ClusterSums, group_sums
from swapcal.audits.intervals import Terms, exact_bias, forecast_bins
from swapcal.audits.sums import Positions, Scored, Sums, SumTable
from swapcal.hypotheses import Finite
from swapcal.properties import Probability
from swapcal.protocols import Rows
from swapcal.sparse import sliced
from swapcal.typing import Float64Array


def stream(n: int, seed: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 5, n)
    return p - (rng.random(n) < p), p, (rng.random((n, 4)) < [1.0, 0.5, 0.2, 0.01]).astype(float)


def rows_of(x: Float64Array) -> Rows:
    return Finite(x.shape[1]).rows(x, len(x))


def summed(x: Float64Array, v: Float64Array, weights: Float64Array | None = None) -> SumTable:
    sums = Sums(x.shape[1])
    sums.add_many(np.zeros(len(v)), v, rows_of(x), weights)
    return sums.table()


def test_binary_groups_get_f2() -> None:
    v, p, x = stream(3000, 0)
    audit = Audit(Probability(), Finite(4))
    audit.update_many(np.round(p - v), p, x)
    table = audit.table()
    whole = group_sums(table, table.value[:, None] * table.active, table.value)
    for g in range(4):
        members = x[:, g] > 0
        bins = forecast_bins(p[members])
        sums = [np.bincount(bins, w, 26).astype(float)[:, None] for w in (np.ones(len(bins)), (p - v)[members])]
        wanted = exact_bias(sums[0], sums[1], np.array([p[members].sum()]), 0.01)
        assert whole.mean[g] == pytest.approx(v[members].mean())
        assert (whole.bias(0.01).low[g], whole.bias(0.01).high[g]) == pytest.approx((wanted.low[0], wanted.high[0]))
    assert whole.exact


def test_weighted_rows_get_f3() -> None:
    v, _, x = stream(3000, 1)
    w = np.random.default_rng(2).random(3000)
    sums = group_sums(summed(x, v, w))
    for g in range(4):
        members = x[:, g] > 0
        terms = (w * v)[members]
        parts = [np.array([one]) for one in (float(len(terms)), terms.sum(), (terms**2).sum(), w[members].sum())]
        wanted = Terms(parts[0], parts[1], parts[2], parts[3], float(((w * v) ** 2).mean())).bias(0.01, once=True)
        assert sums.mean[g] == pytest.approx(np.average(v[members], weights=w[members]))
        assert sums.bias(0.01).low[g] == pytest.approx(wanted.low[0])
    assert (sums.bias(0.01).low[3], sums.bias(0.01).high[3]) == (-1.0, 1.0)  # below 100 rows
    assert not sums.exact


def test_clusters_widen_what_hangs_together() -> None:
    rng = np.random.default_rng(3)
    day = np.repeat(np.arange(100), 30)
    v = 0.2 * rng.normal(size=100)[day] + 0.1 * rng.normal(size=3000)
    x = np.ones((3000, 1))
    by_day = ClusterSums(1)
    by_day.add(Scored(v, v, v, np.zeros(3000, dtype=np.int64), rows_of(x), clusters=day))
    rows, days = group_sums(summed(x, v)), group_sums(summed(x, v), clusters=by_day)
    narrow, wide = rows.bias(0.05), days.bias(0.05)
    assert (wide.high - wide.low)[0] > 3 * (narrow.high - narrow.low)[0]
    assert wide.low[0] < 0 < wide.high[0]


def test_a_group_without_rows_has_no_mean() -> None:
    assert np.isnan(group_sums(Sums(1).table()).mean[0])


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_clusters_in_any_order_and_in_parts_give_the_sums_of_a_dictionary(batch: int) -> None:
    rng = np.random.default_rng(0)
    clusters = rng.permutation(np.repeat(rng.integers(0, 1 << 50, 40), rng.integers(1, 9, 40)))
    v, x = rng.normal(size=len(clusters)), rng.random((len(clusters), 5)) * (rng.random((len(clusters), 5)) < 0.3)
    by_cluster: dict[tuple[int, int], float] = {}
    for row, cell in zip(*np.nonzero(x), strict=True):
        key = (int(clusters[row]), int(cell))
        by_cluster[key] = by_cluster.get(key, 0.0) + v[row] * x[row, cell]
    sums, halves = ClusterSums(5), [ClusterSums(5), ClusterSums(5)]
    for start in range(0, len(clusters), batch):
        end = min(start + batch, len(clusters))
        here, places = slice(start, end), np.zeros(end - start, dtype=np.int64)
        part = Scored(v[here], v[here], v[here], places, sliced(rows_of(x), start, end), clusters=clusters[here])
        sums.add(part)
        halves[start // batch % 2].add(part)
    assert halves[0].merge(halves[1], Positions(np.zeros(1, dtype=np.int64), None))
    for each in (sums, halves[0]):
        totals, sizes = each.groups()
        assert each.count == 40
        for cell in range(5):
            own = {cluster: value for (cluster, other), value in by_cluster.items() if other == cell}
            assert np.count_nonzero(sizes[:, cell]) == len(own)
            found = dict(zip(each.ids.astype(int).tolist(), totals[:, cell].tolist(), strict=True))
            assert {cluster: found[cluster] for cluster in own} == pytest.approx(own)


def test_intervals_over_clusters_are_those_of_a_cluster_robust_regression() -> None:
    """Sandwich of a mean of unequal clusters, one degree of freedom taken off, and Student's quantile."""
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(30), rng.integers(5, 40, 30))
    v = 0.1 + 0.2 * rng.normal(size=30)[cluster] + 0.1 * rng.normal(size=len(cluster))
    x = np.ones((len(v), 1))
    by_cluster = ClusterSums(1)
    by_cluster.add(Scored(v, v, v, np.zeros(len(v), dtype=np.int64), rows_of(x), clusters=cluster))
    found = group_sums(summed(x, v), clusters=by_cluster).bias(0.01)
    left = np.bincount(cluster, v - v.mean())
    error = np.sqrt(30 / 29 * (left**2).sum()) / len(v)
    ends = v.mean() + error * stats.t.ppf([0.005, 0.995], 29)
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(ends), rel=1e-4)


def test_more_clusters_than_there_is_room_for_share_places() -> None:
    n = MOST_CLUSTERS + 500
    sums, zeros = ClusterSums(1), np.zeros(n, dtype=np.int64)
    v = np.ones(n)
    sums.add(Scored(v, v, v, zeros, rows_of(np.ones((n, 1))), clusters=np.arange(n)))
    assert (sums.count, sums.groups()[0].sum()) == (MOST_CLUSTERS, n)
