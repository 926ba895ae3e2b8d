"""Fixtures of several files."""

import pytest

from swapcal.engine import state, values


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasters have room for 2 values at first instead of 32, so that it grows every few values."""
    for module in (state, values):
        monkeypatch.setattr(module, "ROOM", 2)
