"""Several steps ahead: a forecaster for each step, and outcomes that find their forecasts by themselves."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from swapcal import inputs, sparse
from swapcal.engine.lateness import Lateness, lateness_together
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.intervals.interval import Interval
from swapcal.intervals.quantiles import Quantiles
from swapcal.lifecycle import Entry, Event, Order, answer
from swapcal.protocols import Row
from swapcal.state import Packed, Saved, Stateful

F = TypeVar("F")

# Models that can be saved.
_KINDS: tuple[Any, ...] = (Forecaster, Quantiles, Interval)
# So many times that are closed are known, to tell repeated outcomes from unknown ones.
_REMEMBERED = 256


class _Predicts(Protocol[F]):
    def predict(self, x: Any, hint: float | None = None) -> F: ...

    def update(self, forecast: F, y: float) -> None: ...


class MultiHorizon(Stateful, Generic[F]):
    """Forecasts of the next H outcomes of a series, made again at every time.

    At time t it forecasts times t + 1 to t + H, each by the forecaster of its step. When the outcome of a time arrives,
    every forecast that was made for that time learns it.

    Guarantee: forecasters of one step keep theirs. For h steps ahead, outcomes arrive when h - 1 further forecasts
    have been made, and the theorem asks for each outcome before the next forecast. `exact=True` therefore keeps h
    forecasters for step h and uses them in turn, so that each has had its outcome when it forecasts again; each then
    has T/h rounds, and the errors of the h add up. Without it one forecaster serves each step: it learns faster, and
    its guarantee is flagged as broken by late outcomes.

    Parameters
    ----------
    make : callable
        Makes a forecaster for a step and turn, as in `lambda step, turn: Interval(0.9, groups, seed=step)`; anything
        with `predict(x, hint)` and `update(forecast, y)`.
    steps : int
        H.
    exact : bool
        Whether forecasters take turns.
    order, settle
        In which order late outcomes are learned, as for `Forecaster.run`; of times.
    corrections : bool
        Whether an outcome that is not learned yet may be replaced by another one.
    max_pending : int
        How many times later an outcome can come; at most what the forecasters allow.

    Examples
    --------
    >>> import swapcal as sc
    >>> ahead = MultiHorizon(lambda step, turn: sc.Forecaster(sc.Mean(), sc.Finite(1), seed=step), steps=3)
    >>> [round(float(f), 2) for f in ahead.predict([[1], [1], [1]], hints=[0.2, 0.3, 0.4])]
    [0.2, 0.3, 0.4]
    >>> ahead.update(0.25)   # the outcome of time 1: what was forecast one step ahead of it learns
    >>> ahead.waiting
    2
    """

    kind = "multi-horizon"

    def __init__(
        self,
        make: Callable[[int, int], _Predicts[F]],
        steps: int,
        *,
        exact: bool = False,
        order: str = "arrival",
        settle: int | None = None,
        corrections: bool = False,
        max_pending: int = 1 << 16,
    ) -> None:
        self.steps, self.exact, self.corrections = inputs.integer(steps, "steps", 1), bool(exact), bool(corrections)
        self.forecasters = [[make(h, k) for k in range(h if exact else 1)] for h in range(1, self.steps + 1)]
        self.order, self.max_pending = Order(order, settle, first=1), inputs.integer(max_pending, "max_pending", 1)
        self.time = 0
        self._open: dict[int, list[tuple[int, int, F]]] = {}
        self._closed: dict[int, Entry] = {}

    @property
    def waiting(self) -> int:
        """Forecasts that wait for their outcome."""
        return sum(map(len, self._open.values()))

    def lateness(self) -> Lateness:
        """How late outcomes come, and how much of the corrections is shown, of all steps; see `Forecaster.lateness`.

        Returns
        -------
        Lateness
            Means over the forecasters of all steps, and sentences about them.
        """
        every: dict[str, Any] = {
            f"step {h}" + (f", turn {turn + 1}" if self.exact else ""): each
            for h, turns in enumerate(self.forecasters, 1)
            for turn, each in enumerate(turns)
        }
        return lateness_together({name: each.lateness() for name, each in every.items()})

    def predict(
        self, xs: Sequence[Any], hints: Sequence[float | None] | None = None, weights: Sequence[float] | None = None
    ) -> list[F]:
        """Forecasts of the next H times, from their contexts and hints; once for each time.

        Parameters
        ----------
        xs : sequence
            Contexts of times t + 1, ..., t + H.
        hints : sequence, optional
            Your own model's forecasts of these.
        weights : sequence, optional
            The share in (0, 1] for which each of them counts.

        Returns
        -------
        list
            One forecast for each step.
        """
        if len(xs) != self.steps or (hints is not None and len(hints) != self.steps):
            raise InvalidInput(f"{self.steps} contexts are needed, one for each step, and as many hints or none")
        shares = None if weights is None else inputs.vector(weights, "weights", self.steps)
        if shares is not None and not (shares > 0.0).all():
            raise InvalidInput("weights of steps ahead must be above 0; leave out what does not count")
        if self.time + self.steps in self._open:
            raise InvalidInput("forecasts for this time have been made; give its outcome to update before the next")
        forecasts = []
        for h in range(1, self.steps + 1):
            turn = self.time % h if self.exact else 0
            forecaster: Any = self.forecasters[h - 1][turn]
            x = xs[h - 1]
            if shares is not None:
                functions = forecaster.hypotheses
                rows = functions.rows(sparse.weighted(functions, [x], shares[h - 1 : h], 1), 1)
                x = Row(rows.indices, rows.values)
            forecast = forecaster.predict(x, None if hints is None else hints[h - 1])
            self._open.setdefault(self.time + h, []).append((h, turn, forecast))
            forecasts.append(forecast)
        return forecasts

    def update(self, y: float | None, *, known: float | None = None) -> None:
        """The outcome of the next time; time goes on by one.

        Parameters
        ----------
        y : float or None
            The outcome of time t + 1. None: it never comes. NaN: it comes later, by `learn`.
        known : float, optional
            The time from which on it may be learned. None: now.
        """
        if y is not None and y == y:
            self._label(float(y))
        self.time += 1
        for time in [time for time in self._open if time < self.time - self.max_pending]:
            self._close(time, Entry("expired"))
            self.order.skip(time)
        if y is None or y == y:
            self.learn(self.time, y, known=known)
        self._learn_due()

    def learn(self, time: int, y: float | None, *, known: float | None = None) -> str:
        """The outcome of a time that has passed: learned by all forecasts of that time, once.

        Parameters
        ----------
        time : int
            Which one, from 1 on.
        y : float or None
            Its outcome. None: it never comes.
        known : float, optional
            The time from which on it may be learned. None: now.

        Returns
        -------
        str
            What became of it, one of `lifecycle.STATUSES`.
        """
        event = Event("forget") if y is None else Event("learn", float(y))
        if y is not None:
            try:
                self._label(float(y))
            except InvalidInput:
                event = event._replace(invalid=True)
        entry = self._entry(time)
        status, _ = answer(entry, event, corrections=self.corrections)
        if status == "forgotten":
            self._close(time, Entry("forgotten"))
            self.order.skip(time)
            self._learn_due()
        elif status in ("learned", "corrected") and y is not None:
            self.order.add(time, float(y), -math.inf if known is None else float(known))
            self._learn_due()
            if time in self._open:
                status, _ = answer(entry, event, held=True, corrections=self.corrections)
        return status

    def _label(self, y: float) -> None:
        """Refuse an outcome that the forecasters would refuse, before anything has changed."""
        model: Any = self.forecasters[0][0]
        label = getattr(getattr(model, "rules", model), "label", None)
        if label is not None:
            label(y)

    def _entry(self, time: int) -> Entry | None:
        """The life of a time that has passed; None for others."""
        if time not in self._open or time > self.time:
            return self._closed.get(time)
        return Entry("known", self.order.known[time].y) if time in self.order else Entry("waiting")

    def _learn_due(self) -> None:
        for outcome in self.order.due(self.time + 1, self.time):
            for h, turn, forecast in self._open[outcome.round]:
                self.forecasters[h - 1][turn].update(forecast, outcome.y)
            self._close(outcome.round, Entry("learned", outcome.y))

    def _close(self, time: int, entry: Entry) -> None:
        del self._open[time]
        self._closed[time] = entry
        if len(self._closed) > _REMEMBERED:
            del self._closed[next(iter(self._closed))]

    def to_state(self) -> Saved:
        """What it is made of; forecasters are Forecaster, Quantiles or Interval."""
        model: Any = self.forecasters[0][0]
        if not isinstance(model, _KINDS):
            raise InvalidInput(f"forecasters that can be saved are Forecaster, Quantiles, Interval; got {model!r}")
        rules = [self.steps, self.exact, self.order.by, self.order.settle, self.corrections, self.max_pending]
        tickets: Any = {time: [[h, k, f.to_dict()] for h, k, f in some] for time, some in self._open.items()}  # type: ignore[attr-defined]
        known = [[time, outcome.y, outcome.due] for time, outcome in self.order.known.items()]
        closed = [[time, *entry[:2]] for time, entry in self._closed.items()]
        lives = [self.time, list(tickets.items()), known, closed, self.order.front, sorted(self.order.gone)]
        parts = {f"{h}.{k}": each.to_bytes() for h, some in enumerate(self.forecasters) for k, each in enumerate(some)}  # type: ignore[attr-defined]
        return Saved([model.kind, rules, lives], {}, parts)

    @classmethod
    def from_state(cls, packed: Packed, **_: Any) -> "MultiHorizon[F]":
        """Make it again."""
        name, (steps, exact, by, settle, corrections, max_pending), lives = packed.plain
        kind = next(each for each in _KINDS if each.kind == name)
        forecast: Any = getattr(kind, "forecast_type", Forecast)

        def make(h: int, k: int) -> Any:
            return kind.from_bytes(packed.parts[f"{h - 1}.{k}"])

        rules: Any = {"exact": exact, "order": by, "settle": settle, "corrections": corrections}
        horizons = cls(make, steps, max_pending=max_pending, **rules)
        horizons.time, tickets, known, closed, horizons.order.front, gone = lives
        horizons._open = {time: [(h, k, forecast.from_dict(f)) for h, k, f in some] for time, some in tickets}
        horizons._closed = {time: Entry(state, y) for time, state, y in closed}
        for time, y, due in known:
            horizons.order.add(time, y, due)
        horizons.order.gone = set(gone)
        return horizons
