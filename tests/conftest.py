"""Fixtures of several files."""

import pytest

from swapcal.engine import state, values


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasters have room for 12 values at first instead of 32, one more than a stream starts with: it grows soon."""
    for module in (state, values):
        monkeypatch.setattr(module, "ROOM", 12)
