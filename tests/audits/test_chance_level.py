"""The chance level: exact signs on small streams, what happens on calibrated ones, weights, and the sample."""

from itertools import product

import numpy as np
import pytest

from swapcal.audits import chance
from swapcal.audits.chance import ChanceLevel, StratifiedSample, null_level
from swapcal.audits.sums import Positions, Scored
from swapcal.hypotheses import Finite
from swapcal.protocols import Rows
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
    n, k = groups.shape
    sample.add(Scored(wv, wv, wv, place, Rows(k * np.arange(n + 1), groups.ravel(), np.ones(n * k))))


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


def test_the_sample_does_not_depend_on_batches_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "MOST", 40)
    rng = np.random.default_rng(4)
    place, groups, p = rows(5000, rng)
    one, many, again, copy = (StratifiedSample() for _ in range(4))
    add(one, place, groups, p)
    for start in range(0, 5000, 137):
        part = slice(start, start + 137)
        add(many, place[part], groups[part], p[part])
    assert np.bincount(one.arrays()["place"].astype(int)).tolist() == [40] * N_PLACES
    again.restore(one.arrays())
    at = Positions(np.arange(N_PLACES)[::-1], None)
    assert copy.merge(one, at)
    assert not copy.merge(one, at)
    assert sorted(copy.arrays()["key"]) == sorted(one.arrays()["key"])
    assert null_places(copy)[::-1] == null_places(one)
    for same in (many, again):
        assert all(np.array_equal(array, same.arrays()[name]) for name, array in one.arrays().items())
    add(again, place, groups, p)
    add(one, place, groups, p)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in one.arrays().items())


def null_places(sample: StratifiedSample) -> list[list[float]]:
    """The keys of each place."""
    arrays = sample.arrays()
    return [np.sort(arrays["key"][arrays["place"] == k]).tolist() for k in range(N_PLACES)]


def test_every_row_is_kept_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "MOST", 50)
    kept = np.zeros(500)
    for part in range(200):
        sample = StratifiedSample()
        sample.n_units = 500 * part  # other rows of one stream have other keys
        add(sample, np.zeros(500, dtype=np.int64), np.arange(500)[:, None], np.ones(500))
        kept[sample.arrays()["function"].astype(np.int64)] += 1
    assert kept.sum() == 200 * 50
    assert np.abs(kept - 20).max() < 5 * np.sqrt(18)


def test_a_linear_class_is_judged_by_its_norm() -> None:
    """At r = 2 the mean is the sum of all squares over the rounds, exactly."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3)) / 3
    v = rng.choice([-0.5, 0.5], 400)
    sample, none = StratifiedSample(7), np.zeros(0, dtype=np.int64)
    groups, linear = Rows(np.zeros(401, dtype=np.int64), none, np.zeros(0)), Finite(3).rows(np.clip(x, -1, 1), 400)
    sample.add(Scored(v, v, v, np.zeros(400, dtype=np.int64), groups, linear))
    squares = ((np.clip(x, -1, 1) * v[:, None]) ** 2).sum(axis=0)
    level = null_level(sample, np.array([400.0]), squares[None], n_linear=3)
    assert level.mean == pytest.approx(squares.sum() / 400, rel=0.15)


def test_no_rows_have_no_chance() -> None:
    assert null_level(StratifiedSample(), np.zeros(0), np.zeros((0, 3))) == (0.0, 0.0)
