"""A model that is made of several forecasters: rounds of its own, and recorded streams played row by row."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from swapcal import inputs, sparse
from swapcal.engine.lateness import Lateness, lateness_together
from swapcal.engine.pending import Asked, HeldForecast, HeldForecasts, OpenRounds
from swapcal.engine.schedule import Schedule, blanks, delay_rule, planned, play_each
from swapcal.errors import InvalidInput, StateFileError, UnknownForecast
from swapcal.protocols import Hypotheses
from swapcal.state import Stateful
from swapcal.typing import Float64Array, IntArray


class CompositeForecast:
    """What a composite forecasts: a dataclass that knows its round, and can be stored until the outcome comes.

    stored: its fields, and how each is read from plain data.
    """

    __slots__ = ()
    stored: ClassVar[Mapping[str, Callable[[Any], Any]]]
    round: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an infinite number is a text."""
        return {name: _plain(getattr(self, name)) for name in self.stored}

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The forecast that `to_dict` wrote down."""
        try:
            return cls(**{name: read(data[name]) for name, read in cls.stored.items()})
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownForecast(f"this is not a stored {cls.__name__} ({error})") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The forecast that `to_json` wrote down."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise UnknownForecast(f"this is not a stored {cls.__name__}: it is not JSON") from None
        return cls.from_dict(data)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return str(value) if value in (math.inf, -math.inf) else value


def several(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """How a field of several is read."""
    return lambda values: tuple(map(read, values))


def perhaps(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """How a field is read that may be None."""
    return lambda value: None if value is None else read(value)


F = TypeVar("F", bound=CompositeForecast)


class Composite(Stateful, ABC, Generic[F]):
    """Rounds that are counted, closed once and held by number, over the forecasters that play them.

    Parameters
    ----------
    max_pending : int
        How many rounds a forecast can wait for its outcome before it expires.
    """

    hypotheses: Hypotheses
    forecast_type: ClassVar[Any]

    def __init__(self, max_pending: int) -> None:
        self.rounds, self.held = OpenRounds(inputs.integer(max_pending, "max_pending", 1)), HeldForecasts()

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Numbers that a forecast consists of."""

    @abstractmethod
    def outputs(self, forecast: F) -> Sequence[float]:
        """These numbers."""

    @abstractmethod
    def label(self, y: Any) -> float:
        """An outcome that is allowed."""

    @abstractmethod
    def forecasters_by_name(self) -> Mapping[str, Any]:
        """The forecasters of which all outcomes are told, by what people call them."""

    @abstractmethod
    def _learn(self, forecast: F, y: float) -> None:
        """Let the forecasters learn an outcome that is allowed."""

    @abstractmethod
    def _forget(self, forecast: F) -> None:
        """Let the forecasters forget a forecast."""

    @property
    def n_pending(self) -> int:
        """Forecasts that wait for their outcome."""
        return self.rounds.open

    def lateness(self) -> Lateness:
        """How late outcomes come, and how much of the corrections is shown; see `Forecaster.lateness`.

        Returns
        -------
        Lateness
            Means over the forecasters, and sentences about all of them.
        """
        return lateness_together({name: each.lateness() for name, each in self.forecasters_by_name().items()})

    def update(self, forecast: F, y: float) -> None:
        """Learn the outcome `y` of a forecast: in any order, once each.

        Parameters
        ----------
        forecast
            What `predict` returned, or what was stored of it.
        y : float or int
            The outcome.
        """
        self._check(forecast, "update")
        label = self.label(y)
        self.rounds.check(forecast.round)
        self._learn(forecast, label)
        self.rounds.close(forecast.round)

    def forget(self, forecast: F) -> None:
        """Say that the outcome of a forecast will not come: it is closed, and nothing is learned from it."""
        self._check(forecast, "forget")
        self.rounds.check(forecast.round)
        self._forget(forecast)
        self.rounds.close(forecast.round)

    def _check(self, forecast: Any, verb: str) -> None:
        if not isinstance(forecast, self.forecast_type):
            raise UnknownForecast(f"{verb} takes what predict returned; got {inputs.short_repr(forecast)}")

    def _open(self) -> int:
        """The number of a new round."""
        if self.rounds.full:
            self.rounds.grow()
        return self.rounds.issue()[0]

    @abstractmethod
    def _case(self, asked: Asked, t: int) -> F:
        """The forecast of case `t`."""

    @abstractmethod
    def _given(self, n: int, hints: Any, features: Any) -> tuple[Any, Any]:
        """The hints of cases and what else they bring, checked; None for none."""

    def read(self, X: Any, n: int, hints: Any = None, features: Any = None, weights: Any = None) -> Asked:
        """What `n` cases bring, checked; for `swapcal.cases.Cases`, like the next five."""
        extras = self._given(n, hints, features)
        contexts = X if weights is None else sparse.weighted(self.hypotheses, X, weights, n)
        return Asked(self.hypotheses.rows(contexts, n), *extras)

    def allowed(self, y: Float64Array) -> Float64Array:
        """Outcomes that are allowed, infinite for others; NaN stays."""
        return np.array([label if label != label else self._or_infinite(label) for label in y.tolist()])

    def _or_infinite(self, label: float) -> float:
        try:
            return self.label(label)
        except InvalidInput:
            return np.inf

    def play(self, asked: Asked, y: Float64Array, plan: Schedule | None) -> Float64Array:
        """Forecast cases and learn outcomes as the plan says; nothing is undone on an error."""
        out = np.empty((len(y), self.n_outputs))
        play_each(_Player(self, asked, out), y, plan)
        return out

    def set_outcomes(self, lines: IntArray, y: Float64Array, due: Float64Array) -> None:
        """The outcomes of rounds that are held, which the next plan says when to learn."""
        self.held.fill(lines, y, due)

    def held_outputs(self, lines: IntArray) -> Float64Array:
        """The forecasts of rounds that are held, a row each."""
        return np.array([self.outputs(self.held[t].forecast) for t in lines.tolist()]).reshape(-1, self.n_outputs)

    def forget_held(self, line: int) -> None:
        """Forget a round that is held."""
        held = self.held.pop(line)
        if self.rounds.is_open(line):
            self.forget(held.forecast)

    def _run(
        self,
        X: Any,
        y: Any,
        hints: Any = None,
        features: Any = None,
        *,
        missing: str = "skip",
        weights: Any = None,
        known: Any = None,
        times: Any = None,
        order: str = "arrival",
        settle: int | None = None,
        waits: Any = None,
    ) -> Float64Array:
        """A whole recorded stream, as `Forecaster.run`; a row of weight 0 is forecast, and forgotten at once."""
        labels = inputs.vector(y, "y", missing=inputs.one_of(missing, "missing", ("error", "skip")) == "skip")
        n, late = len(labels), delay_rule(known, times, order, settle)
        waiting, shares = None if waits is None else inputs.mask(waits, "waits", n), None
        if weights is not None:
            shares = inputs.vector(weights, "weights", n)
            some = shares > 0.0
            labels, waiting = np.where(some, labels, np.nan), None if waiting is None else waiting & some
            shares = np.where(shares == 0.0, 1.0, shares)
        labels = np.array([label if label != label else self.label(label) for label in labels.tolist()])
        asked = self.read(X, n, hints, features, shares)
        return self.play(asked, labels, planned(self.rounds, self.held, labels, late, waiting))

    def fill_in(self, rounds: Any, y: Any, *, known: Any = None) -> Float64Array:
        """Learn outcomes that were missing when `run` played their rounds, with `waits`: as `Forecaster.fill_in`.

        Parameters
        ----------
        rounds : array of int
            Numbers of rounds, from 0, each once.
        y : array
            Their outcomes.
        known : array, optional
            When each outcome is known, as for `run`, which then learns it when that is due. NaN, or None: now.

        Returns
        -------
        array, rounds by outputs
            The forecasts of these rounds.
        """
        numbers = inputs.vector(rounds, "rounds")
        labels = np.array([self.label(label) for label in inputs.vector(y, "y", len(numbers)).tolist()])
        lines, due = blanks(self.rounds, self.held, numbers, known)
        out = self.held_outputs(lines)
        self.held.fill(lines, labels, due)
        for t in lines[np.isnan(due)].tolist():
            self.learn_held(t)
        return out

    def rounds_plain(self) -> dict[str, Any]:
        """Which rounds wait, and those that are held, as plain data."""
        self.held.let_go(self.rounds.issued - self.rounds.window)
        held = [[t, each.forecast.to_dict(), _or_none(each.y), _or_none(each.due)] for t, each in self.held.items()]
        return {"issued": self.rounds.issued, "open": self.rounds.waiting().tolist(), "held": held}

    def restore_rounds(self, plain: dict[str, Any], max_pending: int) -> None:
        """Go on from what `rounds_plain` gave."""
        self.rounds, self.held = OpenRounds(max_pending), HeldForecasts()
        issued, waiting = int(plain["issued"]), np.array(plain["open"], dtype=np.int64)
        numbers = [int(t) for t, *_ in plain["held"]]
        ends = [max(issued - max_pending, 0) - 1, *waiting.tolist(), issued]
        if any(a >= b for a, b in pairwise(ends)) or sorted({*numbers} & {*ends[1:-1]}) != numbers:
            raise StateFileError("this saved state is damaged: the rounds that wait are not those that were forecast")
        self.rounds.restore(issued, waiting, np.ones(len(waiting), dtype=np.uint32))
        for t, (_, forecast, y, due) in zip(numbers, plain["held"], strict=True):
            self.held[t] = HeldForecast(self.forecast_type.from_dict(forecast), _or_nan(y), _or_nan(due))

    def learn_held(self, t: int) -> None:
        """Learn the outcome of a round that is held; one that has expired meanwhile is let go."""
        held = self.held.pop(t)
        if self.rounds.is_open(t):
            self.update(held.forecast, held.y)


class _Player(Generic[F]):
    """A composite on some cases."""

    def __init__(self, model: Composite[F], asked: Asked, out: Float64Array) -> None:
        self.model, self.asked, self.out = model, asked, out
        self.learn, self.forget, self.learn_held = model.update, model.forget, model.learn_held

    def predict(self, t: int) -> F:
        forecast = self.model._case(self.asked, t)
        self.out[t] = self.model.outputs(forecast)
        return forecast

    def hold(self, ticket: F, y: float, due: float) -> int:
        self.model.held[ticket.round] = HeldForecast(ticket, y, due)
        return ticket.round


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number


def _or_nan(number: float | None) -> float:
    return np.nan if number is None else float(number)
