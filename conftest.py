"""For all tests and doctests: draws that are the same every time."""

import pytest

from swapcal.engine import kernels


@pytest.fixture(autouse=True)
def _same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasters that are given no seed get 0, where otherwise each would get one of its own."""
    monkeypatch.setattr(kernels, "fresh_seed", lambda: 0)
