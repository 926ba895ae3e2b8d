"""e-BH: the definition, what it contains, and its share of false discoveries on dependent cells."""

import numpy as np
import pytest

from naive_intervals import cell_evidence
from swapcal.audits import Audit
from swapcal.audits.groups import bias_of_group, group_sums
from swapcal.audits.intervals import LogWealth, both_sides, cell_bias, discoveries
from swapcal.hypotheses import Finite
from swapcal.properties import Probability
from swapcal.protocols import Rows


def test_the_definition_with_loops() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        e = np.exp(rng.normal(size=30) * 4)
        order = sorted(range(30), key=lambda i: -e[i])
        k_best = max((k for k in range(1, 31) if e[order[k - 1]] >= 30 / (k * 0.1)), default=0)
        assert set(np.flatnonzero(discoveries(np.log(e), 0.1))) == set(order[:k_best])


def test_cells_that_could_have_been_there_count() -> None:
    assert discoveries(np.log([50.0]), 0.05).tolist() == [True]
    assert discoveries(np.log([50.0]), 0.05, n_possible=3).tolist() == [False]
    assert discoveries(np.zeros(0), 0.05).tolist() == []


def test_whatever_bonferroni_finds_is_found() -> None:
    rng = np.random.default_rng(1)
    count = np.full(300, 500.0)
    ones = rng.binomial(500, np.where(np.arange(300) < 60, 0.4, 0.3)).astype(float)
    found = cell_bias(count, ones, 0.3 * count, 0.05 / 300)
    surely = (found.low > 0) | (found.high < 0)
    called = discoveries(both_sides(cell_evidence(count, ones, 0.3 * count)), 0.05)
    assert (called >= surely).all()
    assert called.sum() > 1.2 * surely.sum()


def test_false_discoveries_are_a_small_share_though_cells_share_their_rows() -> None:
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(60):
        members = rng.random((40, 1500)) < 0.5
        biased = np.arange(1500) < 500
        y = rng.random(1500) < np.where(biased, 0.7, 0.3)
        members[10:, :500] = False  # cells 10 to 39 hold no row with a bias
        count, ones = members.sum(axis=1).astype(float), members.astype(float) @ y
        called = discoveries(both_sides(cell_evidence(count, ones, 0.3 * count)), 0.2)
        shares.append(called[10:].sum() / max(called.sum(), 1))
    assert np.mean(shares) < 0.2
    assert called[:10].sum() >= 5


def test_half_of_the_larger_side_or_all_of_it_where_one_martingale_is_behind_both() -> None:
    sides = LogWealth(np.log([8.0, 0.1]), np.log([0.2, 6.0]))
    assert np.allclose(both_sides(sides), np.log([4.0, 3.0]))
    assert np.allclose(both_sides(sides, one_test=True), np.log([8.0, 6.0]))


@pytest.mark.parametrize("binary", [True, False])
def test_a_group_whose_interval_leaves_out_zero_is_off(binary: bool) -> None:
    """One group of forty has one more event at each step: where its interval first leaves out 0, it is first off."""
    n_rows, outside, off = 1500, [], []
    rows = Rows(np.arange(n_rows + 1), np.ones(n_rows, dtype=np.int64), np.ones(n_rows))
    others = Rows(np.arange(391), np.repeat(np.arange(2, 41), 10), np.ones(390))
    for events in range(450, 600):
        audit = Audit(Probability(), Finite(41))
        audit.update_many((np.arange(n_rows) < events).astype(np.float64), np.full(n_rows, 0.3), rows)
        audit.update_many((np.arange(390) % 10 < 3).astype(np.float64), np.full(390, 0.3), others)
        table = audit.table()
        sums = group_sums(table, 0.3 * table.active if binary else None, table.value)
        found = bias_of_group(sums, tuple(f"g{g}" for g in range(41)), np.zeros(41))
        outside.append(found.low[1] > 0 or found.high[1] < 0)
        off.append(found.significant[1] > 0)
    assert outside == off
    assert 0 < sum(off) < 150
