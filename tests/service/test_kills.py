"""Killed at random moments under load: nothing that was answered is lost, nothing is learned twice, no bit differs."""

from pathlib import Path

import pytest

from effort import part
from service_killing import ORDERED, SPEC, check_store, killed

pytestmark = pytest.mark.slow
FEW = 2
MANY = part(50, 12)
"""Of each of four series for each store: 200 kills with SWAPCAL_EFFORT=all."""


def test_killed_with_sqlite(tmp_path: Path) -> None:
    store = str(tmp_path / "swapcal.db")
    load = killed(tmp_path, store, FEW)
    assert check_store(store, load) > 100


def test_killed_with_postgresql(tmp_path: Path, postgres: str) -> None:
    load = killed(tmp_path, postgres, FEW)
    assert check_store(postgres, load) > 100


def test_killed_while_outcomes_are_held(tmp_path: Path) -> None:
    store = str(tmp_path / "swapcal.db")
    load = killed(tmp_path, store, FEW, spec=ORDERED)
    assert check_store(store, load, ORDERED) > 100


@pytest.mark.parametrize("round", range(4))
def test_killed_many_times_with_sqlite(tmp_path: Path, round: int) -> None:
    store, spec = str(tmp_path / "swapcal.db"), ORDERED if round == 3 else SPEC
    check_store(store, killed(tmp_path, store, MANY, seed=round, spec=spec), spec)


@pytest.mark.parametrize("round", range(4))
def test_killed_many_times_with_postgresql(tmp_path: Path, postgres: str, round: int) -> None:
    spec = ORDERED if round == 3 else SPEC
    check_store(postgres, killed(tmp_path, postgres, MANY, seed=round, spec=spec), spec)
