"""How adversaries choose. Each is a few lines: what it wants, and how it finds a context and a label for it."""

import math
from dataclasses import dataclass, field

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.simulate.adversaries.arena import Arena
from swapcal.simulate.adversaries.books import Books
from swapcal.simulate.adversaries.playing import Odds
from swapcal.typing import Float64Array

__all__ = ["AntiHint", "Far", "Greedy", "GroupTargeted", "Sine", "Sweep"]


@dataclass(frozen=True, slots=True)
class Greedy:
    """The location that raises the swap error most, in expectation over the draw; contexts at random.

    The error sup_f (S_f + f(x) V)^2 / (n + 1) is convex in V, so labels below both forecasts, above both, or around
    them are all that can be best, and only these three are tried (the first two where labels are binary).

    Parameters
    ----------
    arena : Arena
        Within which limits it plays.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = Greedy(Arena(groups(3, seed=0)))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.445
    """

    arena: Arena

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """The best of the candidates."""
        low, high = books.property.low, books.property.high
        candidates = [low, high]
        if self.arena.width is not None:
            candidates.append(books.location(books.share(0.5 * (odds.lower + odds.upper))))
        labels = np.array([self.arena.nodes(each, low, high) for each in candidates])
        i, j = books.place(odds.lower), books.place(odds.upper)
        v = books.property.identification(np.array([odds.lower, odds.upper]), labels[:, :, np.newaxis])
        sums = books.sums[[i, j]] + np.asarray(v)[..., np.newaxis] * x
        n = np.array([books.counts[i] + 1.0, books.counts[j] + 1.0])
        error = books.hypotheses.supremum(sums) ** 2 @ (np.array([odds.p_lower, 1.0 - odds.p_lower]) / n)
        return candidates[int(error.sum(axis=1).argmax())]


@dataclass(frozen=True, slots=True)
class Far:
    """The end of the label range that is farther from the expected forecast; contexts at random.

    Parameters
    ----------
    arena : Arena
        Within which limits it plays.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = Far(Arena(groups(3, seed=0)))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.5
    """

    arena: Arena

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the expected forecast is in the upper half."""
        expected = odds.p_lower * odds.lower + (1.0 - odds.p_lower) * odds.upper
        return books.location(0.0 if books.share(expected) > 0.5 else 1.0)


@dataclass(frozen=True, slots=True)
class GroupTargeted:
    """The function and forecast value that fare worst: cases of that function, with labels on the side that hurts.

    The label lies `reach` of the range below the worst value if the forecasts there were too high for the function's
    cases, and above it otherwise (but on the other side where that is outside the range). So the forecaster is drawn
    back to the value, and errs again in the same direction.

    Parameters
    ----------
    arena : Arena
        Within which limits it plays.
    reach : float
        How far from the value the label lies, as a share of the label range.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = GroupTargeted(Arena(groups(3, seed=0)))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.505
    """

    arena: Arena
    reach: float = field(default=0.3, kw_only=True)
    _members: list[list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.reach <= 1.0:
            raise InvalidInput(f"reach is a share of the label range above 0 and up to 1; got {self.reach!r}")
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
        """Near the worst value, on the side that hurts."""
        worst = books.worst()
        sums = books.sums[worst]
        j = int(np.abs(sums).argmax())
        grows = float(sums @ x) if books.hypotheses.dual != "max" else float(sums[j] * x[j])
        value = books.share(books.values[worst] if t else odds.lower)
        share = value - math.copysign(self.reach, grows)
        # At the end of the range the forecaster is right to stay where it is; the other side moves it.
        return books.location(share if 0.0 <= share <= 1.0 else 2.0 * value - share)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The location goes slowly up and down the label range, one way in `period` rounds, so that every bin is used.

    Parameters
    ----------
    arena : Arena
        Within which limits it plays.
    period : float
        Rounds from one end of the range to the other.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = Sweep(Arena(groups(3, seed=0)))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.015
    """

    arena: Arena
    period: float = field(default=5000.0, kw_only=True)

    def __post_init__(self) -> None:
        _check_period(self.period)

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """A triangular wave of time."""
        return books.location(1.0 - abs(t / self.period % 2.0 - 1.0))


@dataclass(frozen=True, slots=True)
class Sine:
    """The location swings around the middle of the label range, once in `period` rounds.

    Parameters
    ----------
    arena : Arena
        Within which limits it plays.
    period : float
        Rounds of one swing.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = Sine(Arena(groups(3, seed=0)))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.7
    """

    arena: Arena
    period: float = field(default=1000.0, kw_only=True)

    def __post_init__(self) -> None:
        _check_period(self.period)

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """A sine of time."""
        return books.location(0.5 + 0.45 * math.sin(2.0 * math.pi * t / self.period))


@dataclass(frozen=True, slots=True)
class AntiHint:
    """Whatever the hint says, the label is at the other end; contexts at random. The arena must give hints.

    Parameters
    ----------
    arena : Arena
        Within which limits it plays; it must give hints.

    Examples
    --------
    >>> from swapcal import Finite, Forecaster, Mean
    >>> from swapcal.simulate.adversaries import groups, play
    >>> adversary = AntiHint(Arena(groups(3, seed=0), hints="alternating"))
    >>> forecaster = Forecaster(Mean(), Finite(3), horizon=200, seed=1)
    >>> float(play(forecaster, adversary, 200).y.mean())
    0.5
    """

    arena: Arena

    def __post_init__(self) -> None:
        if self.arena.hints is None:
            raise InvalidInput("AntiHint contradicts hints; give its arena hints='constant', 'alternating' or 'random'")

    def context(self, t: int, books: Books, u: float) -> int:
        """At random."""
        return self.arena.row(u)

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the hint is in the upper half."""
        return books.location(0.0 if hint is not None and books.share(hint) > 0.5 else 1.0)


def _check_period(period: float) -> None:
    if not (math.isfinite(period) and period > 0.0):
        raise InvalidInput(f"period must be a positive number of rounds; got {period!r}")
