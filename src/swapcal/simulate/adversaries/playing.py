"""The game: an adversary against a forecaster, round by round."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.roles import Elicitable
from swapcal.simulate.adversaries.arena import Arena
from swapcal.simulate.adversaries.books import Books, Scored
from swapcal.typing import Float64Array

__all__ = ["Adversary", "Odds", "Opponent", "Played", "PlayedRound", "play", "rounds"]


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
    def hypotheses(self) -> Scored:
        """For whom."""

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """A forecast."""

    def update(self, forecast: Forecast, y: float) -> None:
        """Its outcome."""

    @property  # comes last: below it, the name means what is forecast
    def property(self) -> Elicitable:
        """What it forecasts."""


class Adversary(Protocol):
    """A strategy. It chooses before the draw, and what it is told never depends on the draw of the current round."""

    @property
    def arena(self) -> Arena:
        """The limits within which it plays."""

    def context(self, t: int, books: Books, u: float) -> int:
        """The row of the pool that is round t's context; `u` is uniform in [0, 1)."""

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """Where in the label range the label shall be, given the forecasts' distribution."""


def rounds(forecaster: Opponent, adversary: Adversary, n_rounds: int) -> Iterator[PlayedRound]:
    """Play and hand out each round once its outcome is learned; the same game for the same seeds.

    Parameters
    ----------
    forecaster : Opponent
        With `predict`, `update`, `property` and `hypotheses`: a `Forecaster`, or a method of `swapcal.rivals`.
    adversary : Adversary
        Such as `Greedy(Arena(groups(5, seed=0)))`.
    n_rounds : int
        1 or more.

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
    if isinstance(n_rounds, bool) or not isinstance(n_rounds, int) or n_rounds < 1:
        raise InvalidInput(f"n_rounds must be a whole number, 1 or more; got {n_rounds!r}")
    arena, sought = adversary.arena, forecaster.property
    books = Books(sought, forecaster.hypotheses, arena.contexts.shape[1])
    dice = np.random.default_rng(arena.seed).random((n_rounds, 3))
    for t in range(n_rounds):
        for_context, for_hint, for_label = dice[t].tolist()
        x = arena.contexts[adversary.context(t, books, for_context)]
        hint = arena.hint(t, for_hint, sought.domain)
        forecast = forecaster.predict(x, hint)
        location = adversary.location(t, books, x, hint, _odds(forecast))
        y = arena.label(location, for_label, sought.low, sought.high)
        forecaster.update(forecast, y)
        books.record(forecast.value, x, y)
        yield PlayedRound(x, hint, forecast, y)


def _odds(forecast: Forecast) -> Odds:
    """The distribution without the draw: in the order of the values, not of their luck."""
    if forecast.value < forecast.other:
        return Odds(forecast.value, forecast.other, forecast.probability)
    if forecast.value > forecast.other:
        return Odds(forecast.other, forecast.value, 1.0 - forecast.probability)
    return Odds(forecast.value, forecast.value, 1.0)


def play(forecaster: Opponent, adversary: Adversary, n_rounds: int) -> Played:
    """Play `n_rounds` rounds; the forecaster learns every outcome before the next forecast.

    Cost: 10 to 50 microseconds a round besides the forecaster's own.

    Parameters
    ----------
    forecaster, adversary, n_rounds
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
    history = list(rounds(forecaster, adversary, n_rounds))
    hints = None if history[0].hint is None else np.array([each.hint for each in history], dtype=np.float64)
    return Played(
        np.array([each.x for each in history]),
        np.array([each.y for each in history]),
        np.array([each.forecast.value for each in history]),
        hints,
    )
