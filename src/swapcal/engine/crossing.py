"""Which values to play: a zero of the evidence, two neighbors where it changes sign, or an end of the domain.

Any of them keeps the guarantee, so the choice is free and goes to sharpness: the one next to where the search starts,
in the direction in which the evidence points. Phi is evaluated only where the search looks, one value at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

from swapcal.engine.values import Values

__all__ = ["Kind", "Play", "outright", "search"]

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
