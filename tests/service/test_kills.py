"""Killed at random moments under load: nothing that was answered is lost, nothing is learned twice, no bit differs."""

from pathlib import Path
from typing import Any

import pytest

from effort import ALL, part
from service_killing import ORDERED, SPEC, check_store, killed

pytestmark = pytest.mark.slow
SERIES = [(0, SPEC), (1, ORDERED), *([(2, SPEC), (3, SPEC)] if ALL else [])]
"""Seed and stream: 12 kills for each store, and 200 with SWAPCAL_EFFORT=all."""


@pytest.mark.parametrize(("seed", "spec"), SERIES)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_killed(tmp_path: Path, where: str, seed: int, spec: Any, request: pytest.FixtureRequest) -> None:
    store = str(tmp_path / "swapcal.db") if where == "sqlite" else request.getfixturevalue(where)
    assert check_store(store, killed(tmp_path, store, part(50, 6), seed=seed, spec=spec), spec) > 100
