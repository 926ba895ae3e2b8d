"""Killed at random moments under load: nothing that was answered is lost, nothing is learned twice, no bit differs."""

from pathlib import Path
from typing import Any

import pytest

from effort import part
from service_killing import ORDERED, SPEC, check_store, killed

pytestmark = pytest.mark.slow
MANY = part(50, 12)
SERIES = [(2, 1, SPEC), (2, 1, ORDERED), *((MANY, seed, ORDERED if seed == 3 else SPEC) for seed in range(4))]
"""Kills, seed and stream: two kills for a look, and 200 for each store with SWAPCAL_EFFORT=all."""


@pytest.mark.parametrize(("kills", "seed", "spec"), SERIES)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_killed(tmp_path: Path, where: str, kills: int, seed: int, spec: Any, request: pytest.FixtureRequest) -> None:
    store = str(tmp_path / "swapcal.db") if where == "sqlite" else request.getfixturevalue(where)
    assert check_store(store, killed(tmp_path, store, kills, seed=seed, spec=spec), spec) > 100
