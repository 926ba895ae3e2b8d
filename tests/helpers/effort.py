"""How much of a repeated test is played: a fifth in `make test`, all of it in `make thorough`."""

import os

__all__ = ["ALL", "some"]

ALL = os.environ.get("SWAPCAL_EFFORT", "") == "all"
"""Whether everything is played."""


def some(n: int, least: int = 10) -> int:
    """How many of `n` repetitions to play: a fifth, but at least `least`; all of them with SWAPCAL_EFFORT=all."""
    return n if ALL else min(n, max(least, n // 5))
