"""Fixtures of several files."""

import pytest

from swapcal.engine import schedule as horizon


@pytest.fixture
def three_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without a horizon start with 3 bins instead of 11.

    So the first refinement comes after 333 rounds of a mean instead of 16,394: oracles and loops get there in no time.
    """
    monkeypatch.setattr(horizon, "_FIRST", 3)
