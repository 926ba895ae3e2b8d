"""The values that can be forecast, which of them a round plays, and when there is a new one.

A round plays a zero of the evidence, two neighbors where it changes sign, or an end of the domain. Any of them keeps
the guarantee, so the choice is free and goes to sharpness: the one next to where the search starts, in the direction in
which the evidence points. Phi is evaluated only where the search looks, one value at a time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.protocols import Evidence, Row
from swapcal.typing import Float64Array, IntArray

# --------
# The grid of forecasts: the one place that turns values into bins and bins into values.


@dataclass(frozen=True, slots=True)
class Grid:
    """`n` equal bins of the interval [low, high], numbered from 0; a bin forecasts its mid-point.

    Bin i is [border(i), border(i + 1)), the last one closed.

    Parameters
    ----------
    low, high : float
        The ends of the interval.
    n : int
        Number of bins, 1 or more.

    Examples
    --------
    >>> grid = Grid(0.0, 1.0, 4)
    >>> grid.midpoints
    array([0.125, 0.375, 0.625, 0.875])
    >>> grid.bin(0.5), grid.border(2), grid.midpoint(2)
    (2, 0.5, 0.625)
    """

    low: float
    high: float
    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise InvalidInput(f"a grid needs a whole number of bins, 1 or more; got {self.n!r}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidInput(f"a grid needs finite ends with low < high; got low={self.low!r}, high={self.high!r}")

    @property
    def width(self) -> float:
        """Width of a bin."""
        return (self.high - self.low) / self.n

    def border(self, i: int) -> float:
        """Left end of bin `i`; `border(n)` is the right end of the last one.

        Parameters
        ----------
        i : int
            From 0 to n.

        Returns
        -------
        float
            In the domain.
        """
        return self.low + (self.high - self.low) * (i / self.n)

    def midpoint(self, i: int) -> float:
        """The value that bin `i` forecasts.

        Parameters
        ----------
        i : int
            From 0 to n - 1.

        Returns
        -------
        float
            In the domain.
        """
        return self.low + (self.high - self.low) * ((2 * i + 1) / (2 * self.n))

    @property
    def midpoints(self) -> Float64Array:
        """The values that can be forecast, in increasing order."""
        return self.low + (self.high - self.low) * ((2 * np.arange(self.n) + 1) / (2 * self.n))

    def bin(self, value: float) -> int:
        """The bin that holds `value`; values outside the interval belong to the nearest bin.

        Parameters
        ----------
        value : float
            In the domain.

        Returns
        -------
        int
            From 0 to n - 1.
        """
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        i = min(int(share * self.n), self.n - 1)
        # The quotient may be rounded across a border, by one bin at most.
        if i > 0 and value < self.border(i):
            return i - 1
        return i + 1 if i < self.n - 1 and value >= self.border(i + 1) else i

    def bins(self, values: Float64Array) -> IntArray:
        """`bin` for an array.

        Parameters
        ----------
        values : array
            In the domain.

        Returns
        -------
        array of int
            Of the same shape.
        """
        borders = self.low + (self.high - self.low) * (np.arange(1, self.n) / self.n)
        return np.searchsorted(borders, np.asarray(values, dtype=np.float64), side="right")

    def round(self, values: Float64Array) -> Float64Array:
        """Each value replaced by the mid-point of its bin.

        Parameters
        ----------
        values : array
            In the domain.

        Returns
        -------
        array
            Of the same shape.
        """
        return self.midpoints[self.bins(values)]


# For how many values there is room at first; numbers of a gap.
ROOM, OF_A_GAP = 32, 5


class Values:
    """Values in [low, high], each with a slot that it keeps for good: its place in order of birth.

    Whatever is gathered for a value is kept under its slot; its rank is its place in increasing order. The gap of rank
    i lies between the values of ranks i - 1 and i; the first one begins at `low`, and that of rank n ends at `high`. A
    gap counts what `cut` adds to it: rounds, their rounding, their noise, and what rounding hints has cost beside the
    hints' own loss. Values are found by bisection, and added by shifting ranks: O(log n) and O(n).

    Parameters
    ----------
    low, high : float
        Ends of the domain.
    capacity : int
        For how many values there is room.

    Examples
    --------
    >>> values = Values(0.0, 1.0)
    >>> values.add(0.5), values.add(0.1), values.add(0.3)
    (0, 1, 2)
    >>> values.sorted, values.nearest(0.24), values.slot(1)
    (array([0.1, 0.3, 0.5]), 1, 2)
    """

    __slots__ = ("by_slot", "gaps", "high", "low", "numbers", "order", "ranked")

    def __init__(self, low: float, high: float, capacity: int = ROOM) -> None:
        self.low, self.high = low, high
        self.by_slot: Float64Array = np.zeros(capacity)
        self.order: IntArray = np.zeros(capacity, dtype=np.int64)
        # The values once more, by rank: side by side in memory, where a bisection looks for them.
        self.ranked: Float64Array = np.zeros(capacity)
        self.gaps: Float64Array = np.zeros((capacity + 1, OF_A_GAP))
        # How many; in an array, because kernels count too.
        self.numbers: IntArray = np.zeros(1, dtype=np.int64)

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.numbers[0])

    @property
    def capacity(self) -> int:
        """How many there is room for."""
        return len(self.by_slot)

    @property
    def sorted(self) -> Float64Array:
        """The values in increasing order."""
        return self.ranked[: self.n].copy()

    def unit(self, x: float) -> float:
        """Where `x` lies between the ends, in [0, 1]."""
        return (x - self.low) / (self.high - self.low)

    def slot(self, rank: int) -> int:
        """The slot of the value of a rank."""
        return int(self.order[rank])

    def value(self, rank: int) -> float:
        """The value of a rank."""
        return float(self.ranked[rank])

    def above(self, x: float) -> int:
        """The first rank whose value is at least `x`; n if there is none."""
        return int(np.searchsorted(self.ranked[: self.n], x, side="left"))

    def nearest(self, x: float) -> int:
        """The rank of the value next to `x`, the lower one of two that are as near."""
        i = self.above(x)
        return i - 1 if i == self.n or (i > 0 and x - self.value(i - 1) <= self.value(i) - x) else i

    def find(self, x: float) -> int:
        """The slot of the value `x`; -1 if it is not one."""
        i = self.above(x)
        return self.slot(i) if i < self.n and self.value(i) == x else -1

    def add(self, x: float) -> int:
        """A new value, and its slot. It must not be there yet; both parts of the gap in which it lies start anew."""
        n, i = self.n, self.above(x)
        self.by_slot[n] = x
        for array, own in ((self.order, n), (self.ranked, x)):
            array[i + 1 : n + 1] = array[i:n].copy()
            array[i] = own
        self.gaps[i + 1 : n + 2] = self.gaps[i : n + 1].copy()
        self.gaps[i : i + 2] = 0.0
        self.numbers[0] = n + 1
        return n

    def spread(self, n: int) -> None:
        """Start with the mid-points of `n` equal bins."""
        for midpoint in Grid(self.low, self.high, n).midpoints.tolist():
            self.add(midpoint)

    def widen(self, low: float, high: float, v: float) -> None:
        """Go on in a wider domain, in whose units V is `v` times what it was; gaps that grow start anew."""
        self.gaps *= (1.0, v, v * v, v, v)
        self.gaps[0 if low < self.low else self.n] = 0.0
        self.low, self.high = low, high

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` values."""
        self.by_slot, self.order, self.ranked = (
            grown(each, capacity) for each in (self.by_slot, self.order, self.ranked)
        )
        self.gaps = grown(self.gaps, capacity + 1)

    def arrays(self) -> dict[str, Any]:
        """The whole state."""
        return {"by_slot": self.by_slot[: self.n], "gaps": self.gaps[: self.n + 1]}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from the state in `arrays`; there must be room for it."""
        n = len(arrays["by_slot"])
        self.by_slot[:n], self.gaps[: n + 1], self.numbers[0] = arrays["by_slot"], arrays["gaps"], n
        self.order[:n] = np.argsort(arrays["by_slot"], kind="stable")
        self.ranked[:n] = self.by_slot[self.order[:n]]


def grown(array: Any, n_rows: int) -> Any:
    """`array` with empty rows behind it, `n_rows` in all."""
    larger = np.zeros((n_rows, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


# --------
# Which values to play.

# How a play was found: "zero", "pair", "low" and "high" for the ends, "trusted" for a hint at its word.
Kind = str

# A number for each slot.
Of = Callable[[int], float]


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

# Squared standard errors, for each unit of 1 + ln n, that a clean record may show.
CLEAN = 2.0


class HintRecord:
    """Per function the sum of x V(hint, y) and of its square; and for all rounds with a hint, five totals.

    The functions of a block stand together: the length of the vector of sums, and the sum of ||x||^2 V^2.

    Totals: rounds; sum of V(hint)^2; what overruling hints has cost in loss, and the sum of squares of that; values
    that hints have added to the grid. The loss is the one of which V is the derivative, by the trapezoid rule.

    Parameters
    ----------
    n : int
        Number of functions.
    blocks : array of int, optional
        The block of each; by default each is one by itself.
    """

    __slots__ = ("blocks", "squares", "sums", "totals")

    def __init__(self, n: int, blocks: IntArray | None = None) -> None:
        self.sums, self.blocks = np.zeros(n), blocks
        self.squares = np.zeros(n if blocks is None or not n else int(blocks[-1]) + 1)
        self.totals = np.zeros(5)

    def clean(self, row: Row, size: float) -> bool:
        """Whether no active function shows a significant bias of the hint.

        One more outcome as large as any has been must not clear or convict a hint, so each sum is first moved by that
        `size` of V towards 0.
        """
        limit = CLEAN * (1.0 + math.log(max(float(self.totals[0]), 1.0)))
        if self.blocks is None:
            active, sizes = row.indices, np.abs(self.sums.take(row.indices))
        else:
            active = np.unique(self.blocks.take(row.indices))
            parts = [self.sums[self.blocks.searchsorted(b) : self.blocks.searchsorted(b + 1)] for b in active]
            sizes = np.sqrt([float((part * part).cumsum()[-1]) for part in parts])
        beyond = np.maximum(sizes - size, 0.0)
        return bool((beyond * beyond <= limit * self.squares.take(active)).all())

    @property
    def missed(self) -> bool:
        """Whether overruling hints has cost more than it has gained, by a standard error."""
        return float(self.totals[2]) > math.sqrt(float(self.totals[3]))

    def add(self, row: Row, v_hint: float, overruled: float | None) -> None:
        """A round with a hint: V there, and the loss of the forecast over the hint's where it was overruled."""
        gains = row.values * v_hint
        self.sums[row.indices] += gains
        if self.blocks is None:
            self.squares[row.indices] += gains * gains
        else:
            # One after the other, as `at` does.
            np.add.at(self.squares, self.blocks.take(row.indices), gains * gains)
        self.totals[0] += 1.0
        self.totals[1] += v_hint * v_hint
        if overruled is not None:
            self.totals[2] += overruled
            self.totals[3] += overruled * overruled

    def rescale(self, v: float) -> None:
        """Count in units in which V is `v` times what it was, in a domain where hints may add values anew."""
        self.sums *= v
        self.squares *= v * v
        self.totals *= (1.0, v * v, v, v * v, 0.0)

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
# is cut in the middle when the rounding stands out: its square exceeds a multiple of the sum of V^2. So coin flips,
# rare events, quiet real numbers and quantiles of any density are one case, whatever the unit.
#
# At an end of the domain there is no noise before the first outcome that is not at that end: a share of one such
# outcome, as large as V has been, is taken off the rounding first. Where a trusted hint was rounded, a gap is cut the
# sooner the more that costs: a value in use costs about a round's V^2 of swap error for each doubling of the functions,
# whatever it saves. What rounding costs is the loss that is expected if the hint is right, |nearest - hint| |V(nearest)
# - V(hint)| / 2; it is measured by the hint's own loss.
#
# Number of values: a gap of width w around x (in units of the domain) is cut only after n rounds with n w^2 >= FLOOR x
# (1 - x), and rounds are counted once; so T rounds make at most order (T / FLOOR)^(1/3) cuts, and a stream whose
# forecasts sit on k values makes k log T of them. Near an end of the domain gaps may be as fine as the variance of a
# probability is small there.

# Values with which a stream may start: mid-points of equal bins without a hint, the first hints with one.
FIRST = 11

# Swap error that values which hints alone have put there may cost, once the first rounds are over: each costs about a
# round's V^2 by chance, which is at most 1/4 for a probability.
SPEND = 1.5

# A value this near a hint, relative to the distance from the hint to the nearer end, serves for it; and one this near
# the property of all outcomes, relative to their mean distance, for rounds without a hint.
NEAR, NEAR_START = 0.01, 0.25

HINTED = 2.0
# A gap is cut when the square of its rounding exceeds this multiple of its noise: where hints were rounded, and where
# the rounding is between two neighbors, which other rounds can heal.
PAIR = 16.0

# No cut before n w^2 reaches this multiple of x (1 - x).
FLOOR = 0.002

# The share of one outcome that is taken off at an end.
END = 0.2

# The share of a hint's loss for which rounding it is cut as above; how much sooner it is cut at most where it costs
# more. Where a gap is wider than this part of the way to the nearer end, it is cut no later: there a share of the loss
# says little.
DEAR, SOONEST, WIDE = 0.05, 0.25, 0.25


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


def lacking(values: Values, record: HintRecord, start: float, reach: float, rounds: int) -> float | None:
    """A value that rounds without a hint need: at the property of all outcomes, or a mean distance beside it.

    Else a forecast that was too low would go up to the next of the first values, however far it is from all outcomes.
    """
    beyond = float(record.totals[4]) - FIRST
    if beyond >= 0.0 and beyond * beyond * beyond >= rounds:
        return None
    for side in (0.0, -1.0, 1.0):
        unit = values.unit(start) + side * reach
        x = values.low + (values.high - values.low) * unit
        near = NEAR_START * reach if side == 0.0 else 2.0 * NEAR_START * reach
        if 0.0 < unit < 1.0 and abs(values.unit(values.value(values.nearest(x))) - unit) > near:
            return x
    return None


class Rounded(NamedTuple):
    """What a round says of the gap at `at`: its rounding and noise, what rounding a hint cost, and the hint's loss."""

    at: float
    rounding: float
    noise: float
    cost: float = 0.0
    lost: float = 0.0


def cut(values: Values, kind: Kind, round: Rounded, size: float) -> float | None:
    """Count a round in its gap; the new value in the middle of it, if it is to be cut. |V| was at most `size`."""
    rank = values.above(round.at)
    if rank < values.n and values.value(rank) == round.at:
        return None  # a value by now
    gap = values.gaps[rank]
    gap += (1.0, *round[1:])
    n, total, noises, cost, lost = gap.tolist()
    left = values.value(rank - 1) if rank else values.low
    right = values.value(rank) if rank < values.n else values.high
    first, last = values.unit(left), values.unit(right)
    width, middle, factor = last - first, 0.5 * (first + last), PAIR
    if kind in ("low", "high"):
        total = max(total - END * size, 0.0)
    elif kind == "trusted":
        factor = HINTED
        if cost > 0.0:
            times = max(DEAR * lost / cost, SOONEST)
            if times > 1.0 and width > WIDE * min(middle, 1.0 - middle):
                times = 1.0
            factor = HINTED * times
    if total * total <= factor * noises or n * width * width < FLOOR * (0.25 * (first + last) * (2.0 - first - last)):
        return None
    middle = 0.5 * (left + right)
    return middle if left < middle < right else None


# --------
# When a hint is played at its word, and on which side it is rounded.
#
# A hint's value may be played outright while the evidence against it is small: the potential of every active function
# may reach (e n)^trust. Whether it *should* be is what the hint's own record says, the errors that it would have made
# by itself (`record`): it is trusted while that record is clean for every active function. A hint whose record is not
# clean is overruled, unless overruling it has cost more than it has gained; then it is trusted half as far.
#
# Rounding a trusted hint is free on either side. If the hint is right, V is negative on average below it and positive
# above; so where a value already shows bias, the side is chosen that takes bias away. This undoes most of what chance
# adds to the error.

# Evidence below this level is what a single visit leaves behind: no side is chosen for it.
NOISE = 0.05


def trusted(
    evidence: Evidence,
    record: HintRecord,
    row: Row,
    columns: Row,
    values: Values,
    hint: float,
    trust: float,
    size: float,
) -> Play | None:
    """The value to play at the hint's word, or None if it is not trusted: `columns` are functions, |V| <= `size`."""
    if not record.clean(columns, size):
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
