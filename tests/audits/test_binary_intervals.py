"""F1 and F2: against loops, against adversaries who stop when it looks worst, and beside Clopper and Pearson."""

import numpy as np
import pytest

from effort import ALL
from naive_intervals import (
    ADVERSARIES,
    Adversary,
    clopper_pearson,
    group_lower,
    played,
    share_lower,
    steady,
)
from swapcal.audits.intervals import CENTERS, cell_bias, forecast_bins, group_bias
from swapcal.typing import Float64Array


def sums_by_bin(y: Float64Array, p: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Counts, ones and forecasts of one group."""
    bins = forecast_bins(p)
    counts, ones = (np.bincount(bins, weights, 26).astype(np.float64)[:, None] for weights in (np.ones(len(y)), y))
    return counts, ones, np.array([p.sum()])


@pytest.mark.parametrize("delta", [0.1, 0.05 / 1000])
def test_f1_is_the_root_of_the_formula(delta: float) -> None:
    rng = np.random.default_rng(0)
    count = np.floor(10 ** rng.uniform(0, 5, 60))
    ones = np.floor(rng.random(60) ** 3 * (count + 1))
    found = cell_bias(count, ones, 0.4 * count, delta)
    low = [0.4 - 1 + share_lower(int(n), int(n - k), delta) for n, k in zip(count, ones, strict=True)]
    high = [0.4 - share_lower(int(n), int(k), delta) for n, k in zip(count, ones, strict=True)]
    assert np.allclose(found.low, low, atol=1e-6)
    assert np.allclose(found.high, high, atol=1e-6)
    assert (found.low <= np.array(low) + 1e-12).all()  # Newton stays on the safe side
    assert (found.high >= np.array(high) - 1e-12).all()


def test_f2_is_the_root_of_the_formula_row_by_row() -> None:
    rng = np.random.default_rng(1)
    for n in (3, 40, 300):
        p = rng.random(n) ** 2 * 0.98 + 0.01
        y = (rng.random(n) < np.clip(p - 0.1, 0, 1)).astype(float)
        c = CENTERS[forecast_bins(p)]
        found = group_bias(*sums_by_bin(y, p), 0.05)
        low = max(group_lower(y.tolist(), p.tolist(), c.tolist(), 0.05), p.mean() - 1)
        flipped = group_lower((1 - y).tolist(), (1 - p).tolist(), (1 - c).tolist(), 0.05)
        high = min(-flipped, p.mean())
        assert low - 1e-6 < found.low[0] <= low + 1e-12
        assert high + 1e-6 > found.high[0] >= high - 1e-12


def test_wealth_at_the_true_average_is_at_most_the_martingale() -> None:
    """The concavity step: dividing by what the average mean would win, not row by row, never helps the bettor."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        pi, rate = rng.random(30), float(np.exp(rng.uniform(-6, 6)))
        y = rng.random(30) < pi
        martingale = np.sum(np.log1p(rate * y) - np.log1p(rate * pi))
        ours = np.sum(np.log1p(rate * y)) - 30 * np.log1p(rate * pi.mean())
        assert ours <= martingale + 1e-12


def test_a_cell_without_rows_knows_nothing() -> None:
    nothing = np.zeros(1)
    assert [end.tolist() for end in cell_bias(nothing, nothing, nothing, 0.05)] == [[-1.0], [1.0]]
    assert [end.tolist() for end in group_bias(np.zeros((26, 1)), np.zeros((26, 1)), nothing, 0.05)] == [[-1.0], [1.0]]
    assert cell_bias(np.zeros(0), np.zeros(0), np.zeros(0), 0.05).low.shape == (0,)


def worst_misses(adversary: Adversary, n_streams: int, n_rows: int, delta: float, seed: int) -> tuple[float, float]:
    """Share of streams whose interval misses its bias at some row, for F1 and F2; forecasts wander around the truth."""
    y, pi = played(adversary, n_streams, n_rows, seed)
    p = np.clip(pi + np.random.default_rng(seed).normal(size=pi.shape) * 0.1, 0.001, 0.999)
    missed = np.zeros((2, n_streams), dtype=bool)
    counts, ones = np.zeros((26, n_streams)), np.zeros((26, n_streams))
    P, bias = np.zeros(n_streams), np.zeros(n_streams)
    streams = np.arange(n_streams)
    for t in range(n_rows):
        bins = forecast_bins(p[t])
        counts[bins, streams] += 1
        ones[bins, streams] += y[t]
        P += p[t]
        bias += p[t] - pi[t]
        if t % 3 == 0 or t < 30:
            cells = cell_bias(counts.sum(axis=0), ones.sum(axis=0), P, delta)
            groups = group_bias(counts, ones, P, delta)
            for k, found in enumerate((cells, groups)):
                missed[k] |= (bias / (t + 1) < found.low - 1e-12) | (bias / (t + 1) > found.high + 1e-12)
    f1, f2 = missed.mean(axis=1)
    return float(f1), float(f2)


LONG = [(0.05, 1000, 300), *([(0.1, 1500, 500), (0.01, 1500, 500)] if ALL else [])]
SLOW = [pytest.param(*each, marks=pytest.mark.slow) for each in LONG]


@pytest.mark.parametrize(("delta", "n_streams", "n_rows"), [(0.2, 400, 200), *SLOW])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_adversaries_who_stop_when_it_looks_worst_miss_as_rarely_as_promised(
    adversary: Adversary, delta: float, n_streams: int, n_rows: int
) -> None:
    slack = 3 * np.sqrt(delta / n_streams) if n_streams >= 1000 else 0.0  # of few streams the truth is well below
    assert max(worst_misses(adversary, n_streams, n_rows, delta, seed=6)) <= delta + slack


@pytest.mark.slow
def test_a_thousand_cells_left_when_they_look_worst_are_wrong_together_as_rarely_as_promised() -> None:
    wrong = 0
    for run in range(20):
        y, _ = played(steady, 1000, 2000, run)
        Y = np.cumsum(y, axis=0)
        n = np.arange(1.0, 2001.0)[:, None] + np.zeros(1000)
        worst = np.argmax(np.abs(Y - 0.3 * n) / np.sqrt(n), axis=0), np.arange(1000)
        found = cell_bias(n[worst], Y[worst], 0.3 * n[worst], 0.05 / 1000)
        wrong += bool(((found.low > 0) | (found.high < 0)).any())
    assert wrong <= 3


@pytest.mark.parametrize(("n", "most"), [(30, 1.2), (200, 1.24), (2000, 1.26), (20000, 1.28)])
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_half_widths_beside_clopper_and_pearson(n: int, most: float, share: float) -> None:
    delta, ones = 0.05 / 1000, round(n * share)
    found = cell_bias(np.array([float(n)]), np.array([float(ones)]), np.array([n * share]), delta)
    low, high = clopper_pearson(n, ones, delta)
    assert 1.0 < (found.high[0] - found.low[0]) / (high - low) < most


def test_groups_over_all_rows_pay_only_for_what_forecasts_leave() -> None:
    """Forecasts near 0 and 1 explain most of the outcomes: F2 is far narrower than F1, and never much wider."""
    rng = np.random.default_rng(8)
    p = np.where(rng.random(4000) < 0.5, 0.05, 0.95)
    y = (rng.random(4000) < p).astype(float)
    counts, ones, P = sums_by_bin(y, p)
    f1, f2 = cell_bias(counts.sum(axis=0), ones.sum(axis=0), P, 1e-4), group_bias(counts, ones, P, 1e-4)
    assert (f2.high - f2.low)[0] < 0.55 * (f1.high - f1.low)[0]
    p = np.full(4000, 0.004)
    y = (rng.random(4000) < p).astype(float)
    counts, ones, P = sums_by_bin(y, p)
    f1, f2 = cell_bias(counts.sum(axis=0), ones.sum(axis=0), P, 1e-4), group_bias(counts, ones, P, 1e-4)
    assert (f2.high - f2.low)[0] < 1.06 * (f1.high - f1.low)[0]
