"""When known outcomes are learned: for single events, and for recorded streams, it is one rule."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swapcal.engine.schedule import schedule
from swapcal.lifecycle import Order


def events_one_by_one(
    known: list[float], clock: list[float], first: int, held: dict[int, float], order: Order, gone: set[int]
) -> list[list[int]]:
    """Rounds that are learned before each row; those that are held from before are known, or wait for ever."""
    for t, due in held.items():
        order.add(t, 0.0, due)
    before = []
    for row, now in enumerate(clock):
        before.append([outcome.round for outcome in order.due(first + row, now)])
        if row in gone:
            order.skip(first + row)
        elif not math.isnan(known[row]):
            order.add(first + row, 0.0, known[row])
    return before


def in_one_plan(
    known: list[float],
    clock: list[float] | None,
    first: int,
    held: dict[int, float],
    by: str,
    settle: int | None,
    gone: set[int],
) -> list[list[int]]:
    n, rounds = len(known), np.array(list(held), dtype=np.int64)
    mask = np.array([row in gone for row in range(n)], dtype=bool)
    moments = np.array(known) - (first if clock is None else 0.0)
    lines = np.arange(len(rounds), dtype=np.int64) + 40
    waiting = lines, rounds, np.array(list(held.values()), dtype=np.float64)
    codes, ends, late, _ = schedule(moments, clock, n, first, waiting, by, settle, mask)
    before = [[first + c if c >= 0 else int(rounds[-1 - c - 40]) for c in codes[a:b]] for a, b in pairwise(ends)]
    for row in np.flatnonzero(late == 0).tolist():
        if row + 1 < n and row not in gone:
            before[row + 1] = sorted([*before[row + 1], first + row])  # alone before the next row
    return before


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[float], list[float] | None, int, dict[int, float], set[int]]:
    n, first = draw(st.integers(1, 12)), draw(st.integers(0, 5))
    timed = draw(st.booleans())
    clock = [float(first + row) for row in range(n)]
    if timed:
        clock = np.cumsum(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n))).tolist()
    delay = st.one_of(st.just(math.nan), st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, 9.0]))
    known = [now + wait for now, wait in zip(clock, draw(st.lists(delay, min_size=n, max_size=n)), strict=True)]
    held = {t: draw(st.sampled_from([math.nan, clock[0], clock[0] + 2.0])) for t in range(first) if draw(st.booleans())}
    gone = {row for row in range(n) if draw(st.integers(0, 4)) == 0}
    known = [math.nan if row in gone else each for row, each in enumerate(known)]
    return known, clock if timed else None, first, held, gone


@settings(max_examples=400, deadline=None)
@given(streams(), st.sampled_from(["arrival", "forecast"]), st.sampled_from([None, 1, 2, 3, 7]))
def test_single_events_and_recorded_streams_are_one_rule(
    stream: tuple[list[float], list[float] | None, int, dict[int, float], set[int]], by: str, settle: int | None
) -> None:
    known, clock, first, held, gone = stream
    order = Order(by, settle)
    for t in range(first):
        if t not in held:
            order.skip(t)
    times = clock if clock is not None else [float(first + row) for row in range(len(known))]
    # A row that is gone is no outcome: the plan has it neither among codes nor as learned at once.
    plan = [
        [t for t in rounds if t - first not in gone]
        for rounds in in_one_plan(known, clock, first, held, by, settle, gone)
    ]
    assert events_one_by_one(known, times, first, held, order, gone) == plan


def test_a_corrected_outcome_takes_the_place_of_the_first() -> None:
    order = Order()
    order.add(0, 0.1, 5.0)
    order.add(0, 0.2, 7.0)
    assert order.due(1, 6.0) == []
    assert [outcome.y for outcome in order.due(1, 7.0)] == [0.2]
    assert len(order) == 0


def test_rounds_to_be_skipped_are_kept_no_longer_than_needed() -> None:
    """An order that only hears of outcomes that will not come stays small."""
    order = Order("forecast", 10)
    for t in [*range(1, 50, 2), *range(0, 50, 2)]:
        order.skip(t)
        assert order.due(issued=t + 1) == []
    assert (len(order), len(order.gone)) == (0, 0)
