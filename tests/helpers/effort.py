"""How much of a repeated test is played: a part of it in `make test`, all of it in `make thorough`."""

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

__all__ = ["ALL", "crossed", "some"]

ALL = os.environ.get("SWAPCAL_EFFORT", "") == "all"
"""Whether everything is played."""


def some(n: int, least: int = 10) -> int:
    """How many of `n` repetitions to play: a fifth, but at least `least`; all of them with SWAPCAL_EFFORT=all."""
    return n if ALL else min(n, max(least, n // 5))


def crossed(*choices: Iterable[Any], of: int = 3) -> list[tuple[Any, ...]]:
    """The cases of a grid: those whose places add up to a multiple of `of`; all of them with SWAPCAL_EFFORT=all.

    Every choice is among them, and so is every pair of choices from two lists, if what the other lists choose can add
    up to anything: the faults of one choice, and of two together, are found in an `of`-th of the time.
    """
    places = product(*(tuple(enumerate(each)) for each in choices))
    return [tuple(v for _, v in case) for case in places if ALL or sum(k for k, _ in case) % of == 0]


def part(whole: int, part: int) -> int:
    """How many repetitions to play: `part` of them, or with SWAPCAL_EFFORT=all the `whole`."""
    return whole if ALL else part
