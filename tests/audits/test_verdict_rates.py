"""Verdicts over 500 groups: calibrated files are called fine, and one biased group among them is named."""

import numpy as np
import pytest

from swapcal.audits.intervals import cell_bias, forecast_bins, group_bias
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result
from swapcal.typing import Float64Array, IntArray

N_GROUPS, N_ROWS, N_COLUMNS, N_PLACES = 500, 100_000, 10, 20
PER_COLUMN = N_GROUPS // N_COLUMNS
EVERYBODY, GROUPS, CELLS = 0.1, 0.6, 0.3
"""Shares of the error rate."""


def file(seed: int, bias: float) -> tuple[Float64Array, Float64Array, IntArray]:
    """Outcomes with a base rate of 25 %, forecasts that know something, ten columns of 50 values, 2,000 rows each."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 6, N_ROWS)
    groups = rng.integers(0, PER_COLUMN, (N_ROWS, N_COLUMNS)) + PER_COLUMN * np.arange(N_COLUMNS)
    pi = np.clip(p - bias * (groups[:, 0] == 7), 0.0, 1.0)
    return (rng.random(N_ROWS) < pi).astype(float), p, groups


def off(y: Float64Array, p: Float64Array, groups: IntArray) -> tuple[bool, IntArray, int]:
    """Whether everybody is off, which groups are over all their rows, and how many cells are, at 5 % all together."""
    entries = np.repeat(np.arange(N_ROWS), N_COLUMNS)
    flat, ones = groups.ravel(), np.ones(len(entries))

    def sums(rows: IntArray, n: int, weights: Float64Array) -> Float64Array:
        return np.bincount(rows, weights, n).astype(np.float64)

    bins = forecast_bins(p)[entries] * N_GROUPS + flat
    counts, hits = (sums(bins, 26 * N_GROUPS, w).reshape(26, -1) for w in (ones, y[entries]))
    found = group_bias(counts, hits, sums(flat, N_GROUPS, p[entries]), 0.05 * GROUPS / N_GROUPS)
    cells = (p * N_PLACES).astype(np.int64)[entries] * N_GROUPS + flat
    n_cells = N_PLACES * N_GROUPS
    n, Y, P = (sums(cells, n_cells, w) for w in (ones, y[entries], p[entries]))
    per_cell = cell_bias(n, Y, P, 0.05 * CELLS / n_cells)
    bins = forecast_bins(p)
    total = group_bias(
        sums(bins, 26, np.ones(N_ROWS))[:, None], sums(bins, 26, y)[:, None], np.array([p.sum()]), 0.05 * EVERYBODY
    )
    n_significant = np.count_nonzero((per_cell.low > 0) | (per_cell.high < 0))
    everybody = bool((total.low[0] > 0) | (total.high[0] < 0))
    return everybody, np.flatnonzero((found.low > 0) | (found.high < 0)), int(n_significant)


def test_one_file_of_each_kind() -> None:
    everybody, groups, cells = off(*file(0, 0.0))
    assert (everybody, groups.tolist(), cells) == (False, [], 0)
    assert off(*file(1, 0.1))[1].tolist() == [7]


@pytest.mark.slow
def test_calibrated_files_are_fine_and_a_planted_bias_is_named() -> None:
    verdicts = [off(*file(1000 + seed, 0.0)) for seed in range(200)]
    assert sum(everybody or groups.size > 0 or cells > 0 for everybody, groups, cells in verdicts) <= 10
    named = [7 in off(*file(2000 + seed, 0.06))[1] for seed in range(100)]
    assert sum(named) >= 80


def said(seed: int, bias: float) -> Result:
    """What `swapcal audit` says of such a file."""
    y, p, groups = file(seed, bias)
    columns = {f"c{k}": np.char.add("v", (groups[:, k] % PER_COLUMN).astype(str)) for k in range(N_COLUMNS)}
    return audit({"y": y, "p": p, **columns}, TaskConfig("y", "p", list(columns)))


def test_the_verdict_itself_on_one_file_of_each_kind() -> None:
    assert said(0, 0.0).verdict.kind == "fine"
    named = said(1, 0.1).verdict
    assert named.kind == "recalibrate"
    assert "c0=v7" in named.headline


@pytest.mark.slow
def test_verdicts_of_whole_audits() -> None:
    kinds = [said(3000 + seed, 0.0).verdict.kind for seed in range(200)]
    assert sum(kind != "fine" for kind in kinds) <= 10
    named = ["c0=v7" in said(4000 + seed, 0.06).verdict.headline for seed in range(50)]
    assert sum(named) >= 40
