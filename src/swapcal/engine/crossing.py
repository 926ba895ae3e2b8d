"""Which values to play: a zero of the evidence, two neighbors where it changes sign, or an end of the domain.

Any of them keeps the guarantee, so the choice is free and goes to sharpness: the one next to where the search starts,
in the direction in which the evidence points. Phi is evaluated only where the search looks, one value at a time.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swapcal.engine.values import Values
from swapcal.protocols import Evidence, Row
from swapcal.typing import Float64Array

Kind = str
"""How a play was found: "zero", "pair", "low" and "high" for the ends, "trusted" for a hint at its word."""

Of = Callable[[int], float]
"""A number for each slot."""


class Play(NamedTuple):
    """Two neighbors (or twice the same value) by slot, the probability of the lower, and where evidence is taken.

    `evidence_at` is None where the evidence is taken at the forecast itself. `phi_lower` and `phi_upper` are the
    evidence that the draw cancels; 0 where nothing is drawn.
    """

    lower: int
    upper: int
    p_lower: float
    evidence_at: float | None
    kind: Kind
    phi_lower: float = 0.0
    phi_upper: float = 0.0


def outright(slot: int, kind: Kind) -> Play:
    """One value for sure, with the evidence taken at it."""
    return Play(slot, slot, 1.0, None, kind)


def search(phi: Of, owed: Of, values: Values, start: int) -> Play:
    """From rank `start` against the evidence: the first zero or sign change, or the end of the domain.

    If forecasts of a value were too high, those below it are looked at, one after the other, and the other way round.
    An end is played with the evidence taken at the end of the domain, where V has the sign that heals.

    Parameters
    ----------
    phi : callable
        Phi of a slot.
    owed : callable
        The signed rounding that a slot has gathered for this context, on average.
    values : Values
        What can be forecast.
    start : int
        The rank at which to begin.

    Returns
    -------
    Play
        At most n - 1 evaluations of `phi` after the first; next to the start, one or two.
    """
    i, at = start, phi(values.slot(start))
    if at == 0.0:
        return outright(values.slot(i), "zero")
    step = -1 if at > 0.0 else 1
    while True:
        j = i + step
        if j < 0 or j == values.n:
            low = j < 0
            return outright(values.slot(i), "low" if low else "high")._replace(
                evidence_at=values.low if low else values.high
            )
        beyond = phi(values.slot(j))
        if beyond == 0.0:
            return outright(values.slot(j), "zero")
        if (beyond > 0.0) != (at > 0.0):
            return _pair(owed, values, i, at, beyond) if step > 0 else _pair(owed, values, j, beyond, at)
        i, at = j, beyond


def _pair(owed: Of, values: Values, lower: int, at_lower: float, at_upper: float) -> Play:
    """Probabilities that cancel the evidence of two neighbors, and an evidence point that is common to both.

    That is the border half-way, unless one of them is owed: its forecasts have been worse than its evidence says, in
    the direction that evidence at the other's value takes away. Then that value is the evidence point, where rounding
    of the one heals, and the other is not rounded at all.
    """
    below, above = values.slot(lower), values.slot(lower + 1)
    size_lower, size_upper = abs(at_lower), abs(at_upper)
    p_lower = size_upper / (size_lower + size_upper)
    point = 0.5 * (values.value(lower) + values.value(lower + 1))
    heals_lower, heals_upper = p_lower * owed(below), -(1.0 - p_lower) * owed(above)
    if heals_lower > 0.0 and heals_lower >= heals_upper:
        point = values.value(lower + 1)
    elif heals_upper > 0.0:
        point = values.value(lower)
    return Play(below, above, p_lower, point, "pair", at_lower, at_upper)


# --------
# The hint's own record: the errors that it would have made by itself, and what overruling it has cost.

CLEAN = 2.0
"""Squared standard errors, for each unit of 1 + ln n, that a clean record may show."""


class HintRecord:
    """Per function the sum of x V(hint, y) and of its square; and for all rounds with a hint, five totals.

    Totals: rounds; sum of V(hint)^2; what overruling hints has cost in loss, and the sum of squares of that; values
    that hints have added to the grid. The loss is the one of which V is the derivative, by the trapezoid rule.

    Parameters
    ----------
    n : int
        Number of functions.
    """

    __slots__ = ("squares", "sums", "totals")

    def __init__(self, n: int) -> None:
        self.sums, self.squares = np.zeros(n), np.zeros(n)
        self.totals = np.zeros(5)

    def clean(self, row: Row) -> bool:
        """Whether no active function shows bias of the hint beyond doubt.

        One more outcome as large as any can be must not clear or convict a hint, so each sum is first moved by 1
        towards 0.
        """
        limit = CLEAN * (1.0 + math.log(max(float(self.totals[0]), 1.0)))
        beyond = np.maximum(np.abs(self.sums.take(row.indices)) - 1.0, 0.0)
        return bool((beyond * beyond <= limit * self.squares.take(row.indices)).all())

    @property
    def missed(self) -> bool:
        """Whether overruling hints has cost more than it has gained, by a standard error."""
        return float(self.totals[2]) > math.sqrt(float(self.totals[3]))

    def add(self, row: Row, v_hint: float, overruled: float | None) -> None:
        """A round with a hint: V there, and the loss of the forecast over the hint's where it was overruled."""
        gains = row.values * v_hint
        self.sums[row.indices] += gains
        self.squares[row.indices] += gains * gains
        self.totals[0] += 1.0
        self.totals[1] += v_hint * v_hint
        if overruled is not None:
            self.totals[2] += overruled
            self.totals[3] += overruled * overruled

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state."""
        return {"sums": self.sums, "squares": self.squares, "totals": self.totals}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""
        self.sums, self.squares, self.totals = (arrays[name].copy() for name in ("sums", "squares", "totals"))


# --------
# When the grid gets a new value: where rounding to the present ones has been shown to cost, and nowhere else.
#
# A gap between two neighbors gathers the rounding of the rounds that fall into it, and the noise of their outcomes. It
# is
# cut in the middle when the rounding stands out: its square exceeds a multiple of the sum of V^2. So coin flips, rare
# events, quiet real numbers and quantiles of any density are one case, whatever the unit.
#
# Number of values: a gap of width w around x (in units of the domain) is cut only after n rounds with n w^2 >= FLOOR x
# (1
# - x), and rounds are counted once; so T rounds make at most order (T / FLOOR)^(1/3) cuts, and a stream whose
# forecasts
# sit on k values makes k log T of them. Near an end of the domain gaps may be as fine as the variance of a probability
# is small there.

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


# --------
# When a hint is played at its word, and on which side it is rounded.
#
# A hint's value may be played outright while the evidence against it is small: the potential of every active function
# may reach (e n)^trust. Whether it *should* be is what the hint's own record says, the errors that it would have made
# by
# itself (`record`): it is trusted while that record is clean for every active function. A hint whose record is not
# clean
# is overruled, unless overruling it has cost more than it has gained; then it is trusted half as far.
#
# Rounding a trusted hint is free on either side. If the hint is right, V is negative on average below it and positive
# above; so where a value already shows bias, the side is chosen that takes bias away. This undoes most of what chance
# adds to the error.

NOISE = 0.05
"""Evidence below this level is what a single visit leaves behind: no side is chosen for it."""


def trusted(evidence: Evidence, record: HintRecord, row: Row, values: Values, hint: float, trust: float) -> Play | None:
    """The value to play at the hint's word, or None if the hint is not trusted here."""
    if not record.clean(row):
        trust = 0.5 * trust if record.missed else 0.0
    if trust <= 0.0:
        return None
    rank = values.nearest(hint)
    slot = values.slot(rank)
    level = evidence.level(slot, row)
    if not _allowed(evidence, slot, level, trust):
        return None
    side = values.value(rank) - hint
    if level > NOISE and evidence.phi(slot, row) * side > 0.0:
        other = rank - 1 if side > 0.0 else rank + 1
        if 0 <= other < values.n:
            beyond = values.slot(other)
            heals = evidence.phi(beyond, row) * (values.value(other) - hint) <= 0.0
            if heals and _allowed(evidence, beyond, evidence.level(beyond, row), trust):
                return outright(beyond, "trusted")
    return outright(slot, "trusted")


def _allowed(evidence: Evidence, slot: int, level: float, trust: float) -> bool:
    """Whether the evidence against a value is small enough to play it outright."""
    return level <= trust * (1.0 + math.log(max(float(evidence.counts[slot]), 1.0)))
