"""Verdicts over 500 groups: calibrated files are called fine, and one biased group among them is named."""

import numpy as np
import pytest

from effort import part
from swapcal.tasks.audit import audit
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.result import Result
from swapcal.typing import Float64Array, IntArray

N_GROUPS, N_ROWS, N_COLUMNS = 500, 100_000, 10
PER_COLUMN = N_GROUPS // N_COLUMNS


def file(seed: int, bias: float) -> tuple[Float64Array, Float64Array, IntArray]:
    """Outcomes with a base rate of 25 %, forecasts that know something, ten columns of 50 values, 2,000 rows each."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 6, N_ROWS)
    groups = rng.integers(0, PER_COLUMN, (N_ROWS, N_COLUMNS)) + PER_COLUMN * np.arange(N_COLUMNS)
    pi = np.clip(p - bias * (groups[:, 0] == 7), 0.0, 1.0)
    return (rng.random(N_ROWS) < pi).astype(float), p, groups


def said(seed: int, bias: float) -> Result:
    """What `swapcal audit` says of such a file."""
    y, p, groups = file(seed, bias)
    columns = {f"c{k}": np.char.add("v", (groups[:, k] % PER_COLUMN).astype(str)) for k in range(N_COLUMNS)}
    return audit({"y": y, "p": p, **columns}, TaskConfig("y", "p", list(columns)))


def test_the_verdict_itself_on_one_file_of_each_kind() -> None:
    assert said(0, 0.0).verdict.kind == "CALIBRATED"
    named = said(1, 0.1).verdict
    assert named.kind == "BIASED"
    assert "c0=v7" in named.headline


@pytest.mark.slow
def test_verdicts_of_whole_audits() -> None:
    fair, biased = part(200, 60), part(50, 15)
    kinds = [said(3000 + seed, 0.0).verdict.kind for seed in range(fair)]
    # One file in twenty, and two standard errors: 16 of 200.
    assert sum(kind != "CALIBRATED" for kind in kinds) <= 0.05 * fair + 2.0 * np.sqrt(0.05 * 0.95 * fair)
    named = ["c0=v7" in said(4000 + seed, 0.06).verdict.headline for seed in range(biased)]
    assert sum(named) >= 0.8 * biased
