"""How adversaries choose. Each is a few lines: what it wants, and how it finds a context and a label for it."""

import math
from dataclasses import dataclass, field

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.streams.adversaries.arena import Arena
from swapcal.streams.adversaries.books import Books
from swapcal.streams.adversaries.playing import Odds
from swapcal.typing import Float64Array

__all__ = ["AntiHint", "Far", "Greedy", "GroupTargeted", "Sine", "Sweep"]


@dataclass(frozen=True, slots=True)
class Greedy:
    """The location that raises the swap error most, in expectation over the draw; contexts at random.

    The error sup_f (S_f + f(x) V)^2 / (n + 1) is convex in V, so labels below both forecasts, above both, or around
    them are all that can be best, and only these three are tried (the first two where labels are binary).
    """

    arena: Arena

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """The best of the candidates."""
        low, high = books.property.low, books.property.high
        bottom, top = books.property.domain
        candidates = [low, high]
        if self.arena.width is not None:
            middle = 0.5 * (odds.lower + odds.upper)
            candidates.append(low + (high - low) * (middle - bottom) / (top - bottom))
        labels = np.array([self.arena.nodes(each, low, high) for each in candidates])
        i, j = books.place(odds.lower), books.place(odds.upper)
        v = books.property.identification(np.array([odds.lower, odds.upper]), labels[:, :, np.newaxis])
        sums = books.sums[[i, j]] + np.asarray(v)[..., np.newaxis] * x
        n = np.array([books.counts[i] + 1.0, books.counts[j] + 1.0])
        error = books.hypotheses.supremum(sums) ** 2 @ (np.array([odds.p_lower, 1.0 - odds.p_lower]) / n)
        return candidates[int(error.sum(axis=1).argmax())]


@dataclass(frozen=True, slots=True)
class Far:
    """The end of the label range that is farther from the expected forecast; contexts at random."""

    arena: Arena

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the expected forecast is in the upper half."""
        bottom, top = books.property.domain
        expected = odds.p_lower * odds.lower + (1.0 - odds.p_lower) * odds.upper
        return books.property.low if 2.0 * expected > bottom + top else books.property.high


@dataclass(frozen=True, slots=True)
class GroupTargeted:
    """The function that suffers most at any forecast value: its cases, and labels that drive its sums further out."""

    arena: Arena
    _members: list[list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = np.abs(self.arena.contexts)
        members = [np.flatnonzero(column >= 0.5 * max(column.max(), 1e-300)).tolist() for column in size.T]
        object.__setattr__(self, "_members", members)

    def context(self, t: int, books: Books, u: float) -> int:
        """A case on which the worst function is large."""
        sums = books.sums[books.worst()]
        if books.hypotheses.dual != "max":
            return int(np.abs(self.arena.contexts @ sums).argmax()) if t else self.arena.row(u)
        members = self._members[int(np.abs(sums).argmax())]
        return members[int(u * len(members))] if members else self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low labels (V > 0) if the sums of the worst function at the two forecasts grow with V, else high ones."""
        i, j = books.place(odds.lower), books.place(odds.upper)
        gains = books.sums[[i, j]] * x
        worst = books.sums[books.worst()]
        at = gains.sum(axis=1) if books.hypotheses.dual != "max" else gains[:, int(np.abs(worst).argmax())]
        push = odds.p_lower * float(at[0]) / (books.counts[i] + 1.0)
        push += (1.0 - odds.p_lower) * float(at[1]) / (books.counts[j] + 1.0)
        return books.property.low if push > 0.0 else books.property.high


@dataclass(frozen=True, slots=True)
class Sweep:
    """The location goes slowly up and down the label range, one way in `period` rounds, so that every bin is used."""

    arena: Arena
    period: float = field(default=5000.0, kw_only=True)

    def __post_init__(self) -> None:
        _check_period(self.period)

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """A triangular wave of time."""
        share = abs((t / self.period + 1.0) % 2.0 - 1.0)
        return books.property.low + share * (books.property.high - books.property.low)


@dataclass(frozen=True, slots=True)
class Sine:
    """The location swings around the middle of the label range, once in `period` rounds."""

    arena: Arena
    period: float = field(default=1000.0, kw_only=True)

    def __post_init__(self) -> None:
        _check_period(self.period)

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """A sine of time."""
        share = 0.5 + 0.45 * math.sin(2.0 * math.pi * t / self.period)
        return books.property.low + share * (books.property.high - books.property.low)


@dataclass(frozen=True, slots=True)
class AntiHint:
    """Whatever the hint says, the label is at the other end; contexts at random. The arena must give hints."""

    arena: Arena

    def __post_init__(self) -> None:
        if self.arena.hints is None:
            raise InvalidInput("AntiHint contradicts hints; give its arena hints='constant', 'alternating' or 'random'")

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the hint is in the upper half."""
        bottom, top = books.property.domain
        return books.property.low if hint is not None and 2.0 * hint > bottom + top else books.property.high


def _check_period(period: float) -> None:
    if not (math.isfinite(period) and period > 0.0):
        raise InvalidInput(f"period must be a positive number of rounds; got {period!r}")
