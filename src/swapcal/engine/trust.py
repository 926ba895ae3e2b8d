"""When a hint is played at its word, and on which side it is rounded.

A hint's value may be played outright while the evidence against it is small: the potential of every active function
may reach (e n)^trust. Whether it *should* be is what the hint's own record says, the errors that it would have made by
itself (`record`): it is trusted while that record is clean for every active function. A hint whose record is not clean
is overruled, unless overruling it has cost more than it has gained; then it is trusted half as far.

Rounding a trusted hint is free on either side. If the hint is right, V is negative on average below it and positive
above; so where a value already shows bias, the side is chosen that takes bias away. This undoes most of what chance
adds to the error.
"""

import math

from swapcal.engine.crossing import Play, outright
from swapcal.engine.record import HintRecord
from swapcal.engine.values import Values
from swapcal.roles import Evidence, Row

__all__ = ["NOISE", "trusted"]

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
