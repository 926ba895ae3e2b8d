"""Adversaries against the grid: the arena's, one that changes sides, and one that lures forecasts into new values."""

from collections.abc import Iterator
from dataclasses import dataclass

from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable
from swapcal.simulate.adversaries import Adversary, Arena, Books, Far, Greedy, Odds, groups, rounds
from swapcal.typing import Float64Array
from swapcal_benchmarks.rivals.duels import ADVERSARIES, adversary

__all__ = ["Game", "Lure", "Turncoat", "games"]

_FUNCTIONS, _SEED, _FORECASTER_SEED = 8, 11, 3
_WINDOW, _NARROW = 0.2, 0.002
_PROPERTIES: dict[str, Elicitable] = {"mean": Mean(), "quantile": Quantile(0.9), "expectile": Expectile(0.8)}


@dataclass(frozen=True, slots=True)
class Lure(Adversary):
    """Labels lie at the hint, so that values appear there; a value that was played less than twice is punished."""

    fresh: int = 2

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """At the hint, or at the far end for a value that is new."""
        place = books.places.get(odds.lower)
        if place is None or books.counts[place] < self.fresh:
            return 0.0 if odds.lower > 0.5 else 1.0
        return 0.5 if hint is None else hint


@dataclass(frozen=True, slots=True)
class Turncoat(Adversary):
    """The hint is right for half of the rounds, and its opposite from then on."""

    n_rounds: int

    def location(self, t: int, books: Books, x: Float64Array, hint: float | None, odds: Odds) -> float:
        """At the hint, or across."""
        at = 0.5 if hint is None else hint
        return at if t < self.n_rounds / 2 else 1.0 - at


@dataclass(frozen=True, slots=True)
class Game:
    """A property, an adversary by name, and a number of rounds; to be played in any process."""

    question: str
    adversary: str
    n_rounds: int

    @property
    def name(self) -> str:
        """As it is called in tables."""
        return f"{self.question}, {self.adversary}, T = {self.n_rounds:,}"

    @property
    def cost(self) -> float:
        """Rounds; one takes as long as a hundred of a recorded stream."""
        return 100.0 * self.n_rounds

    def __call__(self) -> tuple[float, int]:
        """SMCal_2 over T^(1/3) of what the engine said, and its values."""
        asked = _PROPERTIES[self.question]
        learner = OnlineRegression() if self.adversary == "greedy, learning" else None
        forecaster = Forecaster(asked, Finite(_FUNCTIONS), seed=_FORECASTER_SEED, hint=learner, protect="nothing")
        played = self._adversary(asked)
        books = Books(asked, forecaster.hypotheses, _FUNCTIONS)
        for each in rounds(forecaster, played, self.n_rounds):
            books.record(each.forecast.value, each.x, each.y)
        return books.error() / self.n_rounds ** (1.0 / 3.0), int((books.counts > 0).sum())

    def _adversary(self, asked: Elicitable) -> Adversary:
        if self.adversary in ADVERSARIES:
            return adversary(self.adversary, asked, Finite(_FUNCTIONS), self.n_rounds, _SEED)
        pool, width = groups(_FUNCTIONS, _SEED), None if self.question == "mean" else _WINDOW
        if self.adversary == "turncoat":
            return Turncoat(Arena(pool, width=width, hints="random", seed=_SEED), self.n_rounds)
        if self.adversary == "lure":
            return Lure(Arena(pool, width=_NARROW, hints="random", seed=_SEED))
        alone = Arena(pool, width=width, seed=_SEED)
        return Far(alone) if self.adversary == "far, no hint" else Greedy(alone)


def games() -> Iterator[Game]:
    """All of them, short and long."""
    others = ("greedy, no hint", "far, no hint", "greedy, learning", "turncoat", "lure")
    for n_rounds in (4_000, 20_000):
        for question in _PROPERTIES:
            yield from (Game(question, each, n_rounds) for each in (*ADVERSARIES, *others))
