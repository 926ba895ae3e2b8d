"""Losses before and after on the same rounds: the interval of their difference."""

import math

import numpy as np
import pytest
from scipy import stats

from swapcal.audits.intervals import student_quantile
from swapcal.audits.scores import PairedLosses


def test_blocks_are_a_t_interval() -> None:
    rng = np.random.default_rng(0)
    before = rng.random(5000)
    after = before - 0.01 + 0.1 * rng.normal(size=5000)
    blocks, piecewise = PairedLosses(), PairedLosses()
    blocks.add(before, after)
    for start in range(0, 5000, 37):
        piecewise.add(before[start : start + 37], after[start : start + 37])
    pair = blocks.paired()
    assert pair == piecewise.paired() or abs(pair.low - piecewise.paired().low) < 1e-12
    assert pair.difference == pytest.approx(np.mean(after - before))
    reference = stats.ttest_1samp(after - before, 0.0).confidence_interval(0.95)
    assert pair.high - pair.low == pytest.approx(reference.high - reference.low, rel=0.1)
    assert blocks.sums.shape[1] <= 1024
    assert blocks.sums[0].sum() == 5000


def test_blocks_allow_for_neighbors_that_resemble_each_other() -> None:
    """Differences that come in runs of 40 equal ones have an interval far wider than if they were independent."""
    rng = np.random.default_rng(1)
    difference = np.repeat(rng.normal(size=2000), 40)
    pair, naive = PairedLosses(), difference.std() / np.sqrt(len(difference))
    pair.add(np.zeros(80_000), difference)
    found = pair.paired()
    assert (found.high - found.low) / 2 / 1.96 > 4 * naive


def test_blocks_with_weights_state_and_few_rounds() -> None:
    blocks = PairedLosses()
    assert blocks.paired() is None
    blocks.add(np.array([1.0, 5.0]), np.array([2.0, 9.0]), np.array([1.0, 0.0]))
    pair = blocks.paired()
    assert (pair.before, pair.after, pair.difference, pair.high) == (1.0, 2.0, 1.0, math.inf)
    again = PairedLosses()
    again.restore(blocks.arrays())
    assert again.paired() == pair
    for degrees in (7, 30, 500):
        assert student_quantile(stats.norm.ppf(0.975), degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-3)
