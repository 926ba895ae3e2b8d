"""Who takes part: every rival that is found, the paper's algorithms, and this package's engine."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal.paper import Algorithm1, Algorithm2
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.rivals import all_rivals
from swapcal.rivals.card import Card
from swapcal.rivals.practice import Clairvoyant
from swapcal.typing import Float64Array

__all__ = ["Contestant", "Entry", "all_contestants"]

_PENDING = 1024
"""How long a forecast may wait in the engine: as in every other method, so that state sizes can be compared."""


class Entry(Protocol):
    """A method that has been set up for one game."""

    @property
    def hypotheses(self) -> Any:
        """For whom."""

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """A forecast."""

    def update(self, forecast: Forecast, y: float) -> None:
        """Its outcome."""

    def run(self, X: Any, y: Any, hints: Any = None) -> Float64Array:
        """A whole recorded stream."""

    @property  # comes last: below it, the name means what is forecast
    def property(self) -> Elicitable:
        """What it forecasts."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A name, a card, and how to set the method up.

    Parameters
    ----------
    name : str
        As in the tables.
    card : Card
        What the method says of itself.
    make : callable
        From property, hypotheses, horizon and seed to an `Entry`; refuses by `InvalidInput` what it does not cover.
    ours : bool
        Whether it is this package's engine.
    hint : {"model", "none", "truth"}
        What is passed as the hint: everybody gets the model and may ignore it.
    altered : bool
        Whether it speaks mid-points and not its own points, so that its claim is not about what is measured.
    """

    name: str
    card: Card
    make: Callable[[Elicitable, Hypotheses, int, int], Entry]
    ours: bool = False
    hint: str = "model"
    altered: bool = False


class Withheld:
    """A method that is never told the hint."""

    def __init__(self, inner: Entry) -> None:
        self.inner = inner
        self.property = inner.property
        self.hypotheses = inner.hypotheses

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """A forecast without the hint."""
        return self.inner.predict(x)

    def update(self, forecast: Forecast, y: float) -> None:
        """Its outcome."""
        self.inner.update(forecast, y)

    def run(self, X: Any, y: Any, hints: Any = None) -> Float64Array:
        """A whole recorded stream, without the hints."""
        return self.inner.run(X, y)


def all_contestants() -> dict[str, Contestant]:
    """Everybody, by name: ours, the paper's, then the rivals as they are found."""
    everybody = [*_engines(), *_paper(), *(_rival(kind) for kind in all_rivals().values())]
    return {each.name: each for each in everybody}


def _rival(kind: Any) -> Contestant:
    # Some methods speak points at the ends of their bins, in two bins at once, and promise something of each bin. The
    # audit tells forecasts apart by value, so they speak mid-points here: the option is theirs, and made for audits.
    option = inspect.signature(kind).parameters.get("forecasts")
    extra = {"forecasts": "middle"} if option is not None and option.default == "point" else {}

    def make(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        made: Entry = kind(property, hypotheses, horizon=horizon, seed=seed, **extra)
        return made

    hint = "truth" if kind is Clairvoyant else "model"
    return Contestant(kind.card.name, kind.card, make, hint=hint, altered=bool(extra))


def _engines() -> list[Contestant]:
    def engine(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        return Forecaster(property, hypotheses, horizon=horizon, seed=seed, max_pending=_PENDING, protect="nothing")

    def alone(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        return Withheld(engine(property, hypotheses, horizon, seed))

    def learning(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        regression = OnlineRegression()
        options: dict[str, Any] = {"hint": regression, "max_pending": _PENDING, "protect": "nothing"}
        return Forecaster(property, hypotheses, horizon=horizon, seed=seed, **options)

    return [
        Contestant("swapcal", _engine_card("swapcal", "nothing"), alone, ours=True, hint="none"),
        Contestant("swapcal + model", _engine_card("swapcal + model", "nothing of the model"), engine, ours=True),
        Contestant(
            "swapcal + regression",
            _engine_card("swapcal + regression", "nothing of the regression", "O(k (s + 19))"),
            learning,
            ours=True,
        ),
    ]


def _engine_card(name: str, assumes: str, cost: str = "O(k s), s values looked at, few; N of them, O(T^(1/3))") -> Card:
    return Card(
        name=name,
        reference="this package, docs/guarantees.md",
        assumes=assumes,
        properties=("elicitable",),
        classes=("finite", "linear"),
        exponent=1.0 / 3.0,
        error="SMCal_2",
        cost=cost,
    )


def _paper() -> list[Contestant]:
    reference = "Hu, Luo, Senapati, Sharan (2026), Efficient Swap Multicalibration of Elicitable Properties"
    first = Card(
        name="Algorithm 1",
        reference=f"{reference}, Algorithm 1",
        assumes="horizon known; for quantiles, labels with a bounded density",
        properties=("elicitable",),
        classes=("finite",),
        exponent=1.0 / 3.0,
        error="SMCal_2",
        cost="O(N |F|) times the projection's iterations, N = T^(1/3)",
    )
    second = Card(
        name="Algorithm 2",
        reference=f"{reference}, Algorithm 2",
        assumes="an online agnostic learner; horizon known; for quantiles, labels with a bounded density",
        properties=("elicitable",),
        classes=("finite", "linear"),
        exponent=1.0 / 3.0,
        error="SMCal_2",
        cost="2N predictions of the learner, N = T^(1/3)",
    )

    def one(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        first.check(property, hypotheses)
        return Algorithm1(property, hypotheses.n, horizon=horizon, seed=seed)

    def two(property: Elicitable, hypotheses: Hypotheses, horizon: int, seed: int) -> Entry:
        second.check(property, hypotheses)
        n = hypotheses.n
        learner = MultiplicativeWeights(n) if hypotheses.dual == "max" else GradientDescent(n)
        return Algorithm2(property, learner, horizon=horizon, seed=seed)

    return [Contestant(first.name, first, one), Contestant(second.name, second, two)]
