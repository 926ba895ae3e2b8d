"""Adversaries of the arena: they see everything but the draw, and are played live."""

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.rivals.card import kind_of
from swapcal.simulate.adversaries import (
    Adversary,
    AntiHint,
    Arena,
    Far,
    Greedy,
    GroupTargeted,
    Sweep,
    ball,
    groups,
)

__all__ = ["ADVERSARIES", "adversary"]

ADVERSARIES = ("greedy", "far", "targeted", "sweep", "anti-hint")

_WINDOW = 0.2
"""Width of the window of a real label: a density of 5."""


def adversary(name: str, property: Elicitable, hypotheses: Hypotheses, n_rounds: int, seed: int) -> Adversary:
    """The adversary called `name`; its hints are random, so that trust in them is a weakness.

    greedy raises the swap error as much as one label can. far takes the end of the range that is farther. targeted
    hunts the worst group at the worst forecast. sweep goes up and down the range four times. anti-hint puts the label
    at the end of the range that the hint denies.

    Examples
    --------
    >>> import swapcal as sc
    >>> type(adversary("far", sc.Mean(), sc.Finite(4), 100, seed=0)).__name__
    'Far'
    """
    pool = groups(hypotheses.n, seed) if hypotheses.dual == "max" else ball(hypotheses.n, seed)
    binary = kind_of(property) == "mean"
    arena = Arena(np.asarray(pool), width=None if binary else _WINDOW, hints="random", seed=seed)
    if name == "greedy":
        return Greedy(arena)
    if name == "far":
        return Far(arena)
    if name == "targeted":
        return GroupTargeted(arena)
    if name == "sweep":
        return Sweep(arena, period=max(n_rounds / 4.0, 1.0))
    if name == "anti-hint":
        return AntiHint(arena)
    raise InvalidInput(f"there is no adversary {name!r}; there are {', '.join(ADVERSARIES)}")
