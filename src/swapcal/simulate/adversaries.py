"""Adversaries: streams that see everything but the draw and choose contexts, hints and labels to do harm."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.simulate.streams import positive
from swapcal.typing import Float64Array

# Within which limits an adversary plays: a pool of contexts, a kind of label, a kind of hint.

HINTS = ("constant", "alternating", "random")


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """What the adversary may choose from; strategies differ only in how they choose.

    A strategy names a *location* in the label range, and the arena turns it into a label. Binary: the larger label with
    the probability at which the location divides the range, so that the ends are labels for sure. Otherwise: uniform
    on a window around the location, moved inward at the ends; its density is 1 / `width` of the range, which is the
    assumption that a quantile needs.

    Parameters
    ----------
    contexts : array of shape (n_rows, n)
        The pool of contexts, such as `groups(20, seed=0)`; each in the scale of the class, so that ||x|| <= 1 for
        `Linear`.
    width : float, optional
        Width of the window as a share of the label range; None for binary labels.
    hints : {"constant", "alternating", "random"}, optional
        Hostile hints: always the same value, one end of the domain and then the other, or uniform. None for none.
    seed : int
        Of all that the adversary draws.

    Examples
    --------
    >>> arena = Arena(groups(3, seed=0), width=0.2)
    >>> round(arena.label(0.0, 0.5, 0.0, 1.0), 3), Arena(groups(3, seed=0)).label(0.0, 0.5, 0.0, 1.0)
    (0.1, 0.0)
    """

    contexts: Float64Array
    width: float | None = field(default=None, kw_only=True)
    hints: str | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        pool = inputs.matrix(self.contexts, "contexts")
        if not pool.size:
            raise InvalidInput(f"contexts must be rows of numbers, at least one; got an array of shape {pool.shape}")
        if self.width is not None and not (math.isfinite(self.width) and 0.0 < self.width <= 1.0):
            raise InvalidInput(f"width is a share of the label range above 0 and up to 1, or None; got {self.width!r}")
        if self.hints is not None:
            inputs.one_of(self.hints, "hints", HINTS)
        inputs.integer(self.seed, "seed", 0)
        object.__setattr__(self, "contexts", pool)

    def row(self, u: float) -> int:
        """A row of the pool; `u` is uniform in [0, 1)."""
        return int(u * len(self.contexts))

    def hint(self, t: int, u: float, domain: tuple[float, float]) -> float | None:
        """The hint of round `t`."""
        low, high = domain
        if self.hints is None:
            return None
        share = {"constant": 0.7, "alternating": float(t % 2), "random": u}[self.hints]
        return low + share * (high - low)

    def label(self, location: float, u: float, low: float, high: float) -> float:
        """The label at `location`; `u` is uniform in [0, 1)."""
        if self.width is None:
            return high if u * (high - low) < location - low else low
        half = 0.5 * self.width * (high - low)
        center = min(max(location, low + half), high - half)
        return min(max(center + half * (2.0 * u - 1.0), low), high)

    def nodes(self, location: float, low: float, high: float) -> list[float]:
        """Labels that stand for what `location` may give, all equally likely."""
        if self.width is None:
            return [low if location - low < high - location else high]
        return [self.label(location, u, low, high) for u in (0.125, 0.375, 0.625, 0.875)]


def groups(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of memberships in `n` overlapping groups of different sizes; the first group holds all rows.

    Parameters
    ----------
    n : int
        Length of a context.
    seed : int
        Of the draws.
    n_rows : int
        Size of the pool.

    Returns
    -------
    array of shape (n_rows, n)
        For `Arena`.

    Examples
    --------
    >>> groups(4, seed=0, n_rows=2)
    array([[1., 1., 1., 1.],
           [1., 0., 0., 0.]])
    """
    rng = np.random.default_rng(seed)
    pool = (rng.random((n_rows, n)) < rng.uniform(0.1, 0.7, n)).astype(np.float64)
    pool[:, 0] = 1.0
    return pool


def signed(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of values of `n` functions in [-1, 1]: random signs for the first half of them, uniform for the others.

    Parameters
    ----------
    n, seed, n_rows : int
        As in `groups`.

    Returns
    -------
    array of shape (n_rows, n)
        Values in [-1, 1], for `Finite`.

    Examples
    --------
    >>> signed(3, seed=0, n_rows=2).round(2)
    array([[ 1.  , -1.  , -0.92],
           [-1.  ,  1.  ,  0.83]])
    """
    rng = np.random.default_rng(seed)
    pool = rng.uniform(-1.0, 1.0, (n_rows, n))
    half = (n + 1) // 2
    pool[:, :half] = np.where(pool[:, :half] < 0.0, -1.0, 1.0)
    return pool


def ball(n: int, seed: int, n_rows: int = 256) -> Float64Array:
    """A pool of points spread uniformly over the unit ball of dimension `n`.

    Parameters
    ----------
    n : int
        The dimension.
    seed, n_rows : int
        As in `groups`.

    Returns
    -------
    array of shape (n_rows, n)
        Points of norm below 1, for `Linear`.

    Examples
    --------
    >>> bool((np.linalg.norm(ball(3, seed=0), axis=1) < 1.0).all())
    True
    """
    rng = np.random.default_rng(seed)
    pool = rng.standard_normal((n_rows, n))
    pool /= np.sqrt(np.sum(pool**2, axis=1, keepdims=True))
    # A hair inside, so that rounding puts no point outside and the class leaves every one as it is.
    return pool * (rng.random((n_rows, 1)) ** (1.0 / n) * (1.0 - 1e-12))


# What an adversary knows of the past: for each value that was forecast, how often, and how badly for whom.


class Books:
    """Per forecast value: visits n, the vector S of sums of x V(forecast, y), and the error sup_f S_f^2 / n.

    The adversary keeps them itself, from forecasts and outcomes, so that they exist for any forecaster. A round costs
    O(n) for the vector and O(number of values) for `worst`.

    Parameters
    ----------
    property : Elicitable
        Whose identification function is summed.
    hypotheses : Hypotheses
        What turns sums into errors: a class of functions.
    n : int
        Length of a context.

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> books = Books(Mean(), Finite(2), 2)
    >>> books.record(0.5, np.array([1.0, 0.0]), 1.0)
    >>> books.record(0.5, np.array([1.0, 1.0]), 1.0)
    >>> books.values, books.sums[0], books.error()
    ([0.5], array([-1. , -0.5]), 0.5)
    """

    __slots__ = ("counts", "errors", "hypotheses", "places", "property", "sums", "values")

    def __init__(self, property: Elicitable, hypotheses: Hypotheses, n: int) -> None:
        self.property = property
        self.hypotheses = hypotheses
        self.places: dict[float, int] = {}
        self.values: list[float] = []
        self.sums = np.zeros((64, n))
        self.counts = np.zeros(64)
        self.errors = np.zeros(64)

    def place(self, value: float) -> int:
        """The row that belongs to a forecast value; a new value gets a new one."""
        if value in self.places:
            return self.places[value]
        i = self.places[value] = len(self.values)
        self.values.append(value)
        if i == len(self.counts):
            for name in ("sums", "counts", "errors"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        return i

    def record(self, value: float, x: Float64Array, y: float) -> None:
        """Enter a round."""
        i = self.place(value)
        self.sums[i] += x * self.property.identification(value, y)
        self.counts[i] += 1.0
        self.errors[i] = float(self.hypotheses.supremum(self.sums[i])) ** 2 / self.counts[i]

    def worst(self) -> int:
        """The row with the largest error; 0 before the first round."""
        return int(self.errors.argmax())

    def location(self, share: float) -> float:
        """The place in the label range that lies `share` of the way up, moved to the end if it is outside."""
        low, high = self.property.low, self.property.high
        return min(max(low + share * (high - low), low), high)

    def share(self, value: float) -> float:
        """How far up the domain a forecast lies."""
        low, high = self.property.domain
        return (value - low) / (high - low)

    def error(self) -> float:
        """The swap multicalibration error so far, with r = 2."""
        return float(np.sum(self.errors))


# The game: an adversary against a forecaster, round by round.


class Odds(NamedTuple):
    """The distribution from which the forecast was drawn; twice the same value where nothing was drawn.

    Parameters
    ----------
    lower, upper : float
        The two forecasts.
    p_lower : float
        Probability of the first.

    Examples
    --------
    >>> Odds(0.25, 0.75, 0.4).p_lower
    0.4
    """

    lower: float
    upper: float
    p_lower: float


class PlayedRound(NamedTuple):
    """One round as it went.

    Parameters
    ----------
    x : array
        The context.
    hint : float or None
        The hint, if the arena gives one.
    forecast : Forecast
        What the forecaster said.
    y : float
        The label.

    Examples
    --------
    >>> import swapcal as sc
    >>> from swapcal.simulate.adversaries import Far, groups
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=10, seed=1)
    >>> first = next(rounds(forecaster, Far(Arena(groups(2, seed=0))), 10))
    >>> first.x, first.hint, first.y
    (array([1., 0.]), None, 1.0)
    """

    x: Float64Array
    hint: float | None
    forecast: Forecast
    y: float


class Played(NamedTuple):
    """A whole game; `hints` is None where none were given.

    Parameters
    ----------
    x : array of shape (n_rounds, n)
        The contexts.
    y, p : array of shape (n_rounds,)
        Labels and forecasts.
    hints : array of shape (n_rounds,), or None
        The hints.

    Examples
    --------
    >>> played = Played(np.ones((2, 1)), np.array([0.0, 1.0]), np.array([0.5, 0.5]), None)
    >>> float(np.mean(played.p - played.y))
    0.0
    """

    x: Float64Array
    y: Float64Array
    p: Float64Array
    hints: Float64Array | None


class Opponent(Protocol):
    """What is asked of a forecaster to be played against."""

    @property
    def hypotheses(self) -> Hypotheses:
        """For whom."""

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """A forecast."""

    def update(self, forecast: Forecast, y: float) -> None:
        """Its outcome."""

    @property  # comes last: below it, the name means what is forecast
    def property(self) -> Elicitable:
        """What it forecasts."""


@dataclass(frozen=True, slots=True)
class Adversary(ABC):
    """A strategy. It chooses before the draw, and what it is told never depends on the draw of the current round.

    Parameters
    ----------
    arena : Arena
        The limits within which it plays.

    Examples
    --------
    >>> from swapcal.simulate.adversaries import Far, groups
    >>> isinstance(Far(Arena(groups(2, seed=0))), Adversary)
    True
    """

    arena: Arena

    def context(self, t: int, books: Books, u: float) -> int:
        """The row of the pool that is round t's context: at random, as `u` is uniform in [0, 1)."""
        return self.arena.row(u)

    @abstractmethod
    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Where in the label range the label shall be, given the forecasts' distribution."""


def rounds(
    forecaster: Opponent, adversary: Adversary, n_rounds: int, known: Hypotheses | None = None
) -> Iterator[PlayedRound]:
    """Play and hand out each round once its outcome is learned; the same game for the same seeds.

    Parameters
    ----------
    forecaster : Opponent
        With `predict`, `update`, `property` and `hypotheses`: a `Forecaster`, or a method of `swapcal.rivals`.
    adversary : Adversary
        Such as `Greedy(Arena(groups(5, seed=0)))`.
    n_rounds : int
        1 or more.
    known : Hypotheses, optional
        For whom the adversary adds up errors; by default the forecaster's class, which must not be a learner's.

    Returns
    -------
    iterator of PlayedRound
        One for each round, after the forecaster has learned its outcome.

    Examples
    --------
    >>> import swapcal as sc
    >>> from swapcal.simulate.adversaries import Sweep, groups
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), horizon=10, seed=1)
    >>> sum(each.y for each in rounds(forecaster, Sweep(Arena(groups(2, seed=0))), 10))
    0.0
    """
    inputs.integer(n_rounds, "n_rounds", 1)
    arena, sought = adversary.arena, forecaster.property
    books = Books(sought, forecaster.hypotheses if known is None else known, arena.contexts.shape[1])
    dice = np.random.default_rng(arena.seed).random((n_rounds, 3))
    for t in range(n_rounds):
        for_context, for_hint, for_label = dice[t].tolist()
        x = arena.contexts[adversary.context(t, books, for_context)]
        hint = arena.hint(t, for_hint, sought.domain)
        forecast = forecaster.predict(x, hint)
        location = adversary.location(t, books, x, hint, _odds(forecast))
        y = arena.label(location, for_label, sought.low, sought.high)
        forecaster.update(forecast, y)
        books.record(_said(forecast), x, y)
        yield PlayedRound(x, hint, forecast, y)


def _odds(forecast: Forecast) -> Odds:
    """The distribution without the draw: in the order of the values, not of their luck."""
    said = _said(forecast)
    if said < forecast.other:
        return Odds(said, forecast.other, forecast.probability)
    if said > forecast.other:
        return Odds(forecast.other, said, 1.0 - forecast.probability)
    return Odds(said, said, 1.0)


def _said(forecast: Forecast) -> float:
    """What the engine said; what is shown may be a share of it."""
    said = getattr(forecast, "said", None)
    return float(forecast.value) if said is None else float(said)


def play(forecaster: Opponent, adversary: Adversary, n_rounds: int, known: Hypotheses | None = None) -> Played:
    """Play `n_rounds` rounds; the forecaster learns every outcome before the next forecast.

    Cost: 10 to 50 microseconds a round besides the forecaster's own.

    Parameters
    ----------
    forecaster, adversary, n_rounds, known
        As in `rounds`.

    Returns
    -------
    Played
        The whole game, array by array.

    Examples
    --------
    >>> import swapcal as sc
    >>> from swapcal.simulate.adversaries import Arena, Greedy, groups, play
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(5), horizon=300, seed=1)
    >>> played = play(forecaster, Greedy(Arena(groups(5, seed=0))), 300)
    >>> played.x.shape, bool(np.isin(played.y, [0.0, 1.0]).all()), bool(forecaster.error() < forecaster.guarantee(0.05))
    ((300, 5), True, True)
    """
    history = list(rounds(forecaster, adversary, n_rounds, known))
    hints = None if history[0].hint is None else np.array([each.hint for each in history], dtype=np.float64)
    x, y = (np.array([getattr(each, name) for each in history]) for name in ("x", "y"))
    return Played(x, y, np.array([each.forecast.value for each in history]), hints)


# How adversaries choose. Each is a few lines: what it wants, and how it finds a context and a label for it.


@dataclass(frozen=True, slots=True)
class Greedy(Adversary):
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
    0.45
    """

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
class Far(Adversary):
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
    0.49
    """

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the expected forecast is in the upper half."""
        expected = odds.p_lower * odds.lower + (1.0 - odds.p_lower) * odds.upper
        return books.location(0.0 if books.share(expected) > 0.5 else 1.0)


@dataclass(frozen=True, slots=True)
class GroupTargeted(Adversary):
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
    0.435
    """

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
class Sweep(Adversary):
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

    period: float = field(default=5000.0, kw_only=True)

    def __post_init__(self) -> None:
        positive(self.period, "period")

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """A triangular wave of time."""
        return books.location(1.0 - abs(t / self.period % 2.0 - 1.0))


@dataclass(frozen=True, slots=True)
class AntiHint(Adversary):
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

    def __post_init__(self) -> None:
        if self.arena.hints is None:
            raise InvalidInput("AntiHint contradicts hints; give its arena hints='constant', 'alternating' or 'random'")

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Low if the hint is in the upper half."""
        return books.location(0.0 if hint is not None and books.share(hint) > 0.5 else 1.0)
