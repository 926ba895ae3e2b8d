"""The chance level: exact signs on small streams, what happens on calibrated ones, weights, clusters, merging."""

from itertools import product

import numpy as np
import pytest

from swapcal.audits import chance
from swapcal.audits.chance import ChanceLevel, StratifiedSample, null_level
from swapcal.typing import Float64Array, IntArray

N_PLACES, N_LEVELS, N_COLUMNS = 8, 6, 5
N_FUNCTIONS = 1 + N_LEVELS * N_COLUMNS


def rows(n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, Float64Array]:
    """Places, overlapping groups (everybody first, and columns that repeat the one before), and the true shares."""
    place = rng.integers(0, N_PLACES, n)
    values = rng.integers(0, N_LEVELS, (n, N_COLUMNS))
    values[:, 1] = values[:, 0]
    values[:, 3] = np.where(rng.random(n) < 0.8, values[:, 2], values[:, 3])
    groups = np.concatenate([np.zeros((n, 1), dtype=np.int64), 1 + N_LEVELS * np.arange(N_COLUMNS) + values], axis=1)
    return place, groups, (place + 0.5) / N_PLACES


def add(sample: StratifiedSample, place: IntArray, groups: IntArray, wv: Float64Array) -> None:
    k = groups.shape[1]
    sample.add(place, np.full(len(place), k), np.repeat(place, k), groups.ravel(), np.repeat(wv, k))


def table(place: IntArray, groups: IntArray, x: Float64Array) -> Float64Array:
    keys = (place[:, None] * N_FUNCTIONS + groups).ravel()
    sums: Float64Array = np.bincount(keys, np.repeat(x, groups.shape[1]), N_PLACES * N_FUNCTIONS).astype(np.float64)
    return sums.reshape(N_PLACES, N_FUNCTIONS)


def error(place: IntArray, groups: IntArray, wv: Float64Array, w: Float64Array) -> float:
    count = np.bincount(place, w, N_PLACES)
    largest = np.abs(table(place, groups, wv)).max(axis=1)
    return float(np.sum(np.divide(largest**2, count, out=np.zeros(N_PLACES), where=count > 0)))


def level(place: IntArray, groups: IntArray, wv: Float64Array, w: Float64Array) -> ChanceLevel:
    sample = StratifiedSample()
    add(sample, place, groups, wv)
    return null_level(sample, np.bincount(place, w, N_PLACES).astype(np.float64), table(place, groups, wv**2))


def test_with_all_rows_in_the_sample_it_is_the_mean_over_signs() -> None:
    rng = np.random.default_rng(0)
    place, groups, p = rows(9, rng)
    v = p - (rng.random(9) < p)
    exact = [error(place, groups, v * signs, np.ones(9)) for signs in product([-1.0, 1.0], repeat=9)]
    found = level(place, groups, v, np.ones(9))
    assert found.mean == pytest.approx(np.mean(exact), rel=0.08)
    assert found.high == pytest.approx(np.quantile(exact, 0.95), rel=0.15)


@pytest.mark.parametrize("weighted", [False, True])
def test_calibrated_streams_show_what_is_foretold(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    seen, foretold = [], []
    for run in range(80):
        place, groups, p = rows(6000, rng)
        w = rng.random(6000) ** 4 if weighted else np.ones(6000)
        wv = w * (p - (rng.random(6000) < p))
        seen.append(error(place, groups, wv, w))
        if run < 8:
            foretold.append(level(place, groups, wv, w))
    spread = np.std(seen) / np.sqrt(len(seen))
    assert abs(np.mean([one.mean for one in foretold]) - np.mean(seen)) < 3 * spread + 0.03 * np.mean(seen)
    assert np.mean(np.array(seen) > np.mean([one.high for one in foretold])) < 0.12


def test_a_small_sample_of_many_rows_serves_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    place, groups, p = rows(30_000, rng)
    v = p - (rng.random(30_000) < p)
    small = level(place, groups, v, np.ones(30_000)).mean
    monkeypatch.setattr(chance, "MOST", 1 << 20)
    monkeypatch.setattr(chance, "TOTAL", 1 << 24)
    assert small == pytest.approx(level(place, groups, v, np.ones(30_000)).mean, rel=0.08)


def test_signs_by_cluster_where_rows_of_a_day_move_together() -> None:
    rng = np.random.default_rng(3)
    n_days, per_day = 150, 40
    day = np.repeat(np.arange(n_days), per_day)
    seen, foretold, by_row = [], [], []
    for run in range(40):
        place, groups, _ = rows(n_days * per_day, rng)
        v = 0.3 * rng.normal(size=n_days)[day] + 0.2 * rng.normal(size=len(day))
        ones = np.ones(len(day))
        seen.append(error(place, groups, v, ones))
        if run >= 5:
            continue
        k = groups.shape[1]
        cells = (place[:, None] * N_FUNCTIONS + groups).ravel()
        keys, where = np.unique(np.repeat(day, k) * N_PLACES * N_FUNCTIONS + cells, return_inverse=True)
        sums = np.bincount(where, np.repeat(v, k)).astype(np.float64)
        unit, cell = np.divmod(keys, N_PLACES * N_FUNCTIONS)
        sample = StratifiedSample()
        lengths = np.bincount(unit, minlength=n_days)
        sample.add(np.zeros(n_days, dtype=np.int64), lengths, cell // N_FUNCTIONS, cell % N_FUNCTIONS, sums)
        squares = np.bincount(cell, sums**2, N_PLACES * N_FUNCTIONS).astype(np.float64)
        foretold.append(
            null_level(sample, np.bincount(place, minlength=N_PLACES).astype(float), squares.reshape(N_PLACES, -1)).mean
        )
        by_row.append(level(place, groups, v, ones).mean)
    assert np.mean(foretold) == pytest.approx(np.mean(seen), rel=0.15)
    assert np.mean(by_row) < 0.6 * np.mean(seen)


def test_the_sample_does_not_depend_on_batches_and_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "MOST", 40)
    rng = np.random.default_rng(4)
    place, groups, p = rows(5000, rng)
    one, many = StratifiedSample(), StratifiedSample()
    add(one, place, groups, p)
    for start in range(0, 5000, 137):
        part = slice(start, start + 137)
        add(many, place[part], groups[part], p[part])
    for name, array in one.arrays().items():
        assert np.array_equal(array, many.arrays()[name]), name
    left, right = StratifiedSample(part=1), StratifiedSample(part=2)
    add(left, place[:2000], groups[:2000], p[:2000])
    add(right, place[2000:], groups[2000:], p[2000:])
    keys = np.concatenate([left.arrays()["key"], right.arrays()["key"]])
    strata = np.concatenate([left.arrays()["stratum"], right.arrays()["stratum"]])
    left.merge(right)
    assert left.n_units == 5000
    for stratum in range(N_PLACES):
        kept = np.sort(left.arrays()["key"][left.arrays()["stratum"] == stratum])
        assert np.array_equal(kept, np.sort(keys[strata == stratum])[:40])
    again = StratifiedSample()
    again.restore(one.arrays(), 5000)
    add(again, place, groups, p)
    add(one, place, groups, p)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in one.arrays().items())


def test_every_row_is_kept_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "MOST", 50)
    kept = np.zeros(500)
    for part in range(200):
        sample = StratifiedSample(part)
        nothing, number = np.zeros(500, dtype=np.int64), np.arange(500)
        sample.add(nothing, nothing + 1, nothing, number, np.ones(500))
        kept[sample.arrays()["function"].astype(np.int64)] += 1
    assert kept.sum() == 200 * 50
    assert np.abs(kept - 20).max() < 5 * np.sqrt(18)


def test_a_linear_class_is_judged_by_its_norm() -> None:
    """At r = 2 the mean is the sum of all squares over the rounds, exactly."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3)) / 3
    v = rng.choice([-0.5, 0.5], 400)
    sample = StratifiedSample()
    sample.add(
        np.zeros(400, dtype=np.int64),
        np.full(400, 3),
        np.zeros(1200, dtype=np.int64),
        np.tile(np.arange(3), 400),
        (x * v[:, None]).ravel(),
    )
    squares = ((x * v[:, None]) ** 2).sum(axis=0)
    assert null_level(sample, np.array([400.0]), squares[None], n_linear=3).mean == pytest.approx(
        squares.sum() / 400, rel=0.15
    )


def test_no_rows_have_no_chance() -> None:
    assert null_level(StratifiedSample(), np.zeros(0), np.zeros((0, 3))) == (0.0, 0.0)
