"""When a hint is played at its word, and on which side it is rounded.

A hint's bin may be played outright while the evidence against it is small: the potential of every active function may
reach (e n)^(2 trust), which the guarantee accounts for. Whether it *should* be is what the hint's own record says, the
errors that it would have made by itself: it is trusted while that record stays below (e n)^trust. So a hint that is
right costs next to nothing, and one that is biased is found out in its bin after a few rounds, for good.

Rounding a trusted hint to a mid-point is free on either side. If the hint is right, V is negative on average below it
and positive above; so where a bin already shows bias, the side is chosen that takes bias away. This undoes most of
what chance adds to the error, at the price of a slightly coarser rounding.
"""

import math

from swapcal.engine.crossing import Play, outright
from swapcal.engine.grid import Grid
from swapcal.roles import Evidence, HintRecord, Row

__all__ = ["ALLOWANCE", "NOISE", "trusted"]

ALLOWANCE = 2.0
"""The evidence may reach the power ALLOWANCE * trust, the record the power trust."""

NOISE = 1.0 / 3.0  # evidence below this level is what a single visit leaves behind


def trusted(
    evidence: Evidence, record: HintRecord | None, row: Row, grid: Grid, hint: float, trust: float
) -> Play | None:
    """The bin to play at the hint's word, or None if the hint is not trusted here."""
    if record is None or trust <= 0.0:
        return None
    nearest = grid.bin(hint)
    if record.level(nearest, row) > trust * _log(float(record.counts[nearest])):
        return None
    level = _allowed(evidence, nearest, row, trust)
    if level is None:
        return None
    side = grid.midpoint(nearest) - hint
    if level > NOISE and evidence.phi(nearest, row) * side > 0.0:
        other = nearest - 1 if side > 0.0 else nearest + 1
        heals = 0 <= other < grid.n and evidence.phi(other, row) * (grid.midpoint(other) - hint) <= 0.0
        if heals and _allowed(evidence, other, row, trust) is not None:
            return outright(other)
    return outright(nearest)


def _allowed(evidence: Evidence, bin: int, row: Row, trust: float) -> float | None:
    """The level of evidence against a bin, or None if it is too high to play the bin outright."""
    level = evidence.level(bin, row)
    return level if level <= ALLOWANCE * trust * _log(float(evidence.counts[bin])) else None


def _log(n: float) -> float:
    return 1.0 + math.log(max(n, 1.0))
