"""Sums of clusters against a dictionary, in any batches, and merged."""

import numpy as np
import pytest

from swapcal.audits.groups import ClusterSums
from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array, IntArray


def stream(seed: int) -> tuple[IntArray, IntArray, IntArray, Float64Array]:
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    lengths = rng.integers(0, 4, len(clusters))
    entry_rows = np.repeat(np.arange(len(clusters)), lengths)
    return clusters, entry_rows, rng.integers(0, 5, len(entry_rows)), rng.normal(size=len(entry_rows))


def add(sums: ClusterSums, start: int, stop: int, parts: tuple[IntArray, IntArray, IntArray, Float64Array]) -> None:
    clusters, entry_rows, cells, values = parts
    inside = (entry_rows >= start) & (entry_rows < stop)
    sums.add(clusters[start:stop], entry_rows[inside] - start, cells[inside], values[inside])


@pytest.mark.parametrize("batch", [1, 3, 7, 1000])
def test_any_batches_give_the_sums_of_a_dictionary(batch: int) -> None:
    clusters, entry_rows, cells, values = parts = stream(0)
    by_cluster: dict[tuple[int, int], float] = {}
    for row, cell, value in zip(entry_rows, cells, values, strict=True):
        key = (int(clusters[row]), int(cell))
        by_cluster[key] = by_cluster.get(key, 0.0) + value
    sums = ClusterSums(5)
    for start in range(0, len(clusters), batch):
        add(sums, start, start + batch, parts)
    sums.close()
    for cell in range(5):
        own = [value for (_, other), value in by_cluster.items() if other == cell]
        assert sums.terms[cell] == len(own)
        assert sums.total[cell] == pytest.approx(sum(own))
        assert sums.squares[cell] == pytest.approx(sum(one**2 for one in own))


def test_parts_merge_to_the_whole_once_they_are_closed() -> None:
    parts = stream(1)
    cut = int(np.searchsorted(parts[0], 20))
    whole, first, second = ClusterSums(5), ClusterSums(5), ClusterSums(5)
    add(whole, 0, len(parts[0]), parts)
    add(first, 0, cut, parts)
    add(second, cut, len(parts[0]), parts)
    with pytest.raises(InvalidInput, match="still open"):
        first.merge(second)
    for one in (whole, first, second):
        one.close()
    first.merge(second)
    for name in ("terms", "total", "squares"):
        assert np.allclose(getattr(first, name), getattr(whole, name))


def test_arrays_of_different_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be as many"):
        ClusterSums(2).add(np.array([0]), np.array([0]), np.array([0, 1]), np.array([1.0]))
