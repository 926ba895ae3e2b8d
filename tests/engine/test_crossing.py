"""The search for bins to play against its oracle, `naive.py`, which sees the evidence of all bins."""

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import swapcal as sc
from naive import Naive
from swapcal.engine.crossing import Play, bisect, bracket
from swapcal.roles import Elicitable

TARGETS: dict[bool, Elicitable] = {
    True: sc.Mean(),
    False: sc.Property(lambda p, y: (p - y) * math.exp(-4.0 * abs(p - y)), name="rises and falls"),
}
"""By whether V rises with the forecast."""


def searched(phi: Sequence[float], hint: float | None, monotone: bool = True) -> tuple[Play, list[int]]:
    """What the engine plays, which must be what the oracle plays, and the bins it looked at, none of them twice."""
    grid, looked = sc.Grid(0.0, 1.0, len(phi)), []

    def look(bin: int) -> float:
        looked.append(bin)
        return phi[bin]

    play = bisect(look, grid, monotone) if hint is None else bracket(look, grid, hint, monotone)
    oracle = Naive(TARGETS[monotone], 1, naive.linear, None, 0, len(phi))
    choice = oracle.without_hint(list(phi)) if hint is None else oracle.near(list(phi), hint)
    assert (play.lower, play.upper, play.p_lower, play.border) == (
        choice.lower,
        choice.upper,
        choice.p_lower,
        choice.evidence_at,
    )
    assert len(looked) == len(set(looked)), "no bin is looked at twice"
    return play, looked


EVIDENCE = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=60)
RUNS = st.lists(st.tuples(st.sampled_from([-1.0, 1.0, 3.0]), st.integers(1, 30)), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    phi=st.one_of(EVIDENCE, RUNS.map(lambda runs: [sign for sign, length in runs for _ in range(length)])),
    hint=st.one_of(st.none(), st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0])),
    monotone=st.booleans(),
)
def test_the_search_for_a_crossing(phi: list[float], hint: float | None, monotone: bool) -> None:
    """On grids of up to 180 bins, where the steps double; the engine must also look at few bins only."""
    _, looked = searched(phi, hint, monotone)
    assert len(looked) <= (2 if hint is None else 10) + 3 * math.log2(len(phi) + 1)


@pytest.mark.parametrize("n", range(1, 8))
def test_every_search_on_few_bins(n: int) -> None:
    """All signs of the evidence, from hints at every border, mid-point and between them."""
    hints = [None, *(k / (4 * n) for k in range(4 * n + 1))]
    for phi, hint in itertools.product(itertools.product((-1.0, 0.0, 2.0) if n < 6 else (-1.0, 2.0), repeat=n), hints):
        searched(phi, hint)


@pytest.mark.parametrize("n", [20, 33, 48])
def test_every_search_with_one_or_two_changes_of_sign(n: int) -> None:
    """Long grids, where steps double, an end may be reached on one side first, and sign changes be jumped over."""
    for first, second in itertools.combinations_with_replacement(range(n + 1), 2):
        for sign, k in itertools.product((-1.0, 1.0), range(0, n + 1, 3)):
            searched([sign] * first + [-2.0 * sign] * (second - first) + [sign] * (n - second), k / n)


@pytest.mark.parametrize("n", [2, 11, 33])
def test_an_end_is_played_before_a_crossing_further_off(n: int) -> None:
    """The hint is at an end whose evidence points outward: one look, whatever the evidence is elsewhere."""
    for sign, end in ((1.0, 0), (-1.0, n - 1)):
        phi = [sign if i == end else -sign for i in range(n)]
        play, looked = searched(phi, end / (n - 1))
        assert (play.lower, play.upper, play.border) == (end, end, end / (n - 1))
        assert looked == [end]


def test_ends_are_alike() -> None:
    """The search plays one end where, seen in a mirror, it plays the other: a turn is over when both sides have looked.

    Hints at mid-points are left out: a mid-point counts as lying to the left of its hint.
    """
    played = 0
    for phi in itertools.product((-1.0, 2.0), repeat=7):
        mirrored = [-value for value in reversed(phi)]
        for k in range(1, 28, 2):
            one, two = searched(phi, k / 28)[0], searched(mirrored, 1.0 - k / 28)[0]
            ends = [play.border if play.lower == play.upper else None for play in (one, two)]
            assert ends in ([None, None], [0.0, 1.0], [1.0, 0.0]), (phi, k)
            played += ends != [None, None]
    assert played > 300
