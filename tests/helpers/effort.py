"""How much of a repeated test is played, by SWAPCAL_EFFORT: "quick" a little, "all" everything, else a part."""

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

EFFORT = os.environ.get("SWAPCAL_EFFORT", "")
ALL, QUICK = EFFORT == "all", EFFORT == "quick"


def part(whole: int, part: int) -> int:
    """How many repetitions to play: `part` of them, all of them, or a fifth of the part and at least one."""
    return whole if ALL else max(1, part // 5) if QUICK else part


def some(n: int, least: int = 10) -> int:
    """How many of `n` repetitions to play: a fifth, but at least `least`."""
    return part(n, min(n, max(least, n // 5)))


def halved(cases: Iterable[Any]) -> list[Any]:
    """The cases, of which every second one, beginning with the first, is played in `make slow`."""
    return [each if k % 2 or ALL else pytest.param(each, marks=pytest.mark.slow) for k, each in enumerate(cases)]


def crossed(*choices: Iterable[Any], of: int = 3) -> list[tuple[Any, ...]]:
    """The cases of a grid: those whose places add up to a multiple of `of`.

    Every choice is among them, and so is every pair of choices from two lists, if what the other lists choose can add
    up to anything: the faults of one choice, and of two together, are found in an `of`-th of the time.
    """
    places = product(*(tuple(enumerate(each)) for each in choices))
    return [tuple(v for _, v in case) for case in places if ALL or sum(k for k, _ in case) % of == 0]
