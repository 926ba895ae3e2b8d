"""Which bins to play: a zero of the evidence, two neighbors where it changes sign, or an end of the grid.

Any of them keeps the guarantee, so the choice is free and goes to sharpness: the one nearest a hint where there is
one, and bisection where there is none. Phi is evaluated only where the search looks, one bin at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

from swapcal.engine.grid import Grid

__all__ = ["Play", "bisect", "bracket", "outright"]

Phi = Callable[[int], float]


class Play(NamedTuple):
    """Two neighboring bins (or twice the same one), the probability of the lower, and where evidence is taken.

    `border` is None where the evidence is taken at the forecast itself; otherwise it is the point of which both bins
    are neighbors, so that E[Phi V] = 0 over the draw whatever the label is.
    """

    lower: int
    upper: int
    p_lower: float
    border: float | None

    def evidence_at(self, forecast: float) -> float:
        """Where V is taken for the evidence of a round that forecast `forecast`."""
        return forecast if self.border is None else self.border


def outright(bin: int) -> Play:
    """One bin for sure, with the evidence taken at its mid-point: right where Phi is zero or the hint is trusted."""
    return Play(bin, bin, 1.0, None)


def _crossing(grid: Grid, lower: int, at_lower: float, at_upper: float, monotone: bool) -> Play:
    """Probabilities that cancel the evidence of two neighbors with opposite signs."""
    size_lower, size_upper = abs(at_lower), abs(at_upper)
    p_lower = size_upper / (size_lower + size_upper)
    # Positive below negative: if V increases with the forecast, E[Phi V] <= 0 at the mid-points themselves, no border
    # is needed.
    healing = at_lower > 0.0 and monotone
    return Play(lower, lower + 1, p_lower, None if healing else grid.border(lower + 1))


def _end(grid: Grid, sign_positive: bool) -> Play:
    """All evidence of one sign: the lowest bin if forecasts were too high, else the highest.

    V(low, .) <= 0 <= V(high, .), so that evidence taken at that end can only heal.
    """
    i = 0 if sign_positive else grid.n - 1
    return Play(i, i, 1.0, grid.low if sign_positive else grid.high)


def _narrow(phi: Phi, grid: Grid, left: int, right: int, at_left: float, at_right: float, monotone: bool) -> Play:
    """Bisect between two bins of opposite signs until they are neighbors or a zero is met."""
    while right - left > 1:
        middle = (left + right) // 2
        at_middle = phi(middle)
        if at_middle == 0.0:
            return outright(middle)
        if (at_middle > 0.0) == (at_left > 0.0):
            left, at_left = middle, at_middle
        else:
            right, at_right = middle, at_middle
    return _crossing(grid, left, at_left, at_right, monotone)


def bisect(phi: Phi, grid: Grid, monotone: bool) -> Play:
    """Without a hint: an up-crossing by bisection from both ends, at most 2 + log2 N evaluations."""
    last = grid.n - 1
    at_first = phi(0)
    if at_first == 0.0:
        return outright(0)
    if at_first > 0.0:
        return _end(grid, True)
    at_last = phi(last) if last else at_first
    if at_last == 0.0:
        return outright(last)
    if at_last < 0.0:
        return _end(grid, False)
    return _narrow(phi, grid, 0, last, at_first, at_last, monotone)


def bracket(phi: Phi, grid: Grid, hint: float, monotone: bool, linear_steps: int = 4) -> Play:
    """The zero or sign change nearest `hint`, looked for on both sides.

    First the two mid-points around the hint; then outward, one bin at a time for `linear_steps` steps and in doubling
    steps from there, with a bisection where a doubled step has jumped over a sign change: O(log N) evaluations. An end
    whose evidence points outward ends the search.
    """
    near = grid.bin(hint)
    left = near if hint >= grid.midpoint(near) else near - 1
    right = min(left + 1, grid.n - 1)
    left = max(left, 0)
    at_left = phi(left)
    at_right = phi(right) if right != left else at_left
    if at_left == 0.0 and at_right == 0.0:
        return outright(left if hint - grid.midpoint(left) <= grid.midpoint(right) - hint else right)
    if at_left == 0.0 or at_right == 0.0:
        return outright(left if at_left == 0.0 else right)
    positive = at_left > 0.0
    if positive != (at_right > 0.0):
        return _crossing(grid, left, at_left, at_right, monotone)
    step, taken = 1, 0
    while left > 0 or right < grid.n - 1:
        # That end may be played at once; to look on would carry the forecast far inward.
        if (positive and left == 0) or (not positive and right == grid.n - 1):
            break
        if left > 0:
            further = max(left - step, 0)
            at_further = phi(further)
            if at_further == 0.0:
                return outright(further)
            if (at_further > 0.0) != positive:
                return _narrow(phi, grid, further, left, at_further, at_left, monotone)
            left, at_left = further, at_further
        if right < grid.n - 1:
            further = min(right + step, grid.n - 1)
            at_further = phi(further)
            if at_further == 0.0:
                return outright(further)
            if (at_further > 0.0) != positive:
                return _narrow(phi, grid, right, further, at_right, at_further, monotone)
            right, at_right = further, at_further
        taken += 1
        if taken >= linear_steps:
            step *= 2
    return _end(grid, positive)
