"""The search for values to play against its oracle, `naive.py`, which sees the evidence of all values."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import swapcal as sc
from effort import some
from naive import Naive
from swapcal.engine.values import Play, Values, search

DEBT = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.25])


class Told(Naive):
    """The oracle's search on evidence and debts that are told, not learned."""

    def told(self, phi: Sequence[float], owed: Sequence[float], start: int) -> naive.Play:
        evidence, debts = dict(zip(self.values, phi, strict=True)), dict(zip(self.values, owed, strict=True))
        self.phi = lambda value, x: evidence[value]  # type: ignore[method-assign]
        self.owed = lambda value, x: debts[value]  # type: ignore[method-assign]
        return self.search(start, [])


def searched(phi: Sequence[float], owed: Sequence[float], start: int) -> tuple[Play, list[int]]:
    """What the engine plays, which must be what the oracle plays, and the ranks it looked at, none of them twice."""
    n, looked = len(phi), list[int]()
    values = Values(0.0, 1.0, n)
    values.spread(n)

    def look(slot: int) -> float:
        looked.append(slot)
        return phi[slot]

    play = search(look, lambda slot: owed[slot], values, start)
    expected = Told(sc.Mean(), 1, naive.linear, None, 0, n).told(phi, owed, start)
    at = play.evidence_at if play.evidence_at is not None else float(values.by_slot[play.lower])
    assert (values.by_slot[play.lower], values.by_slot[play.upper], play.p_lower, at, play.kind) == (
        expected.lower,
        expected.upper,
        expected.p_lower,
        expected.evidence_at,
        expected.kind,
    )
    assert (play.phi_lower, play.phi_upper) == (expected.phi_lower, expected.phi_upper)
    assert len(looked) == len(set(looked)), "no value is looked at twice"
    return play, looked


EVIDENCE = st.lists(st.tuples(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), DEBT), min_size=1, max_size=40)


@settings(max_examples=some(300))
@given(given=EVIDENCE, share=st.floats(0.0, 1.0, exclude_max=True))
def test_the_search(given: list[tuple[float, float]], share: float) -> None:
    """It goes against the evidence, one value at a time, so it looks at no more than lie between start and play."""
    start = int(share * len(given))
    play, looked = searched([phi for phi, _ in given], [owed for _, owed in given], start)
    ends = (play.lower, play.upper)
    assert len(looked) == 1 + max(abs(start - end) for end in ends)
    # Every change of sign that is met goes from too low to too high.
    assert play.kind != "pair" or play.phi_lower < 0.0 < play.phi_upper


@pytest.mark.parametrize("n", range(1, 8))
def test_every_search_on_few_values(n: int) -> None:
    """All signs of the evidence, from every start."""
    for phi in itertools.product((-1.0, 0.0, 2.0) if n < 6 else (-1.0, 2.0), repeat=n):
        for start in range(n):
            searched(phi, [0.0] * n, start)
