"""When the grid gets a new value: where rounding to the present ones has been shown to cost, and nowhere else.

A gap between two neighbors gathers the rounding of the rounds that fall into it, and the noise of their outcomes. It is
cut in the middle when the rounding stands out: its square exceeds a multiple of the sum of V^2. So coin flips, rare
events, quiet real numbers and quantiles of any density are one case, whatever the unit.

Number of values: a gap of width w around x (in units of the domain) is cut only after n rounds with n w^2 >= FLOOR x (1
- x), and rounds are counted once; so T rounds make at most order (T / FLOOR)^(1/3) cuts, and a stream whose forecasts
sit on k values makes k log T of them. Near an end of the domain gaps may be as fine as the variance of a probability
is small there.
"""

from swapcal.engine.record import HintRecord
from swapcal.engine.values import Values

__all__ = ["FIRST", "FLOOR", "HINTED", "PAIR", "SPEND", "adds", "cut"]

FIRST = 11
"""Values with which a stream may start: mid-points of equal bins without a hint, the first hints with one."""

SPEND = 1.5
"""Swap error that values which hints alone have put there may cost, once the first rounds are over: each costs about a
round's V^2 by chance, which is at most 1/4 for a probability."""

NEAR = 0.01
"""A value this near a hint, relative to the distance from the hint to the nearer end, serves for it."""

HINTED = 2.0
PAIR = 16.0
"""A gap is cut when the square of its rounding exceeds this multiple of its noise: where hints were rounded, and where
the rounding is between two neighbors, which other rounds can heal."""

FLOOR = 0.002
"""No cut before n w^2 reaches this multiple of x (1 - x)."""


def adds(values: Values, record: HintRecord, hint: float) -> bool:
    """Whether a hint becomes a value itself: nothing is near it, and little has been spent on such values.

    The hints of the first rounds always do, so that a stream starts as its model.
    """
    if not values.n:
        return True
    added = float(record.totals[4])
    rounds, squares = float(record.totals[0]), float(record.totals[1])
    beyond = added - FIRST
    if rounds >= FIRST and added * squares > SPEND * rounds:
        return False
    if beyond >= 0.0 and beyond * beyond * beyond >= rounds:
        return False
    unit = values.unit(hint)
    near = NEAR * min(unit, 1.0 - unit)
    return abs(values.unit(values.value(values.nearest(hint))) - unit) > near


def cut(values: Values, at: float, rounding: float, noise: float, factor: float) -> float | None:
    """Count a round that was rounded at `at`; the new value in the middle of its gap, if the gap is to be cut."""
    rank = values.above(at)
    if rank < values.n and values.value(rank) == at:
        return None  # a value by now
    gap = values.gaps[rank]
    gap += (1.0, rounding, noise)
    n, total, noises = gap.tolist()
    left = values.value(rank - 1) if rank else values.low
    right = values.value(rank) if rank < values.n else values.high
    first, last = values.unit(left), values.unit(right)
    if total * total <= factor * noises or n * (last - first) * (last - first) < FLOOR * (
        0.25 * (first + last) * (2.0 - first - last)
    ):
        return None
    middle = 0.5 * (left + right)
    return middle if left < middle < right else None
