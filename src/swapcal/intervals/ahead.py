"""Several steps ahead: a forecaster for each step, and outcomes that find their forecasts by themselves."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from swapcal import inputs
from swapcal.errors import InvalidInput

F = TypeVar("F")


class _Predicts(Protocol[F]):
    def predict(self, x: Any, hint: float | None = None) -> F: ...

    def update(self, forecast: F, y: float) -> None: ...


class MultiHorizon(Generic[F]):
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

    def __init__(self, make: Callable[[int, int], _Predicts[F]], steps: int, *, exact: bool = False) -> None:
        self.steps, self.exact = inputs.integer(steps, "steps", 1), bool(exact)
        self.forecasters = [[make(h, k) for k in range(h if exact else 1)] for h in range(1, self.steps + 1)]
        self.time = 0
        self._open: dict[int, list[tuple[int, int, F]]] = {}

    @property
    def waiting(self) -> int:
        """Forecasts that wait for their outcome."""
        return sum(map(len, self._open.values()))

    def predict(self, xs: Sequence[Any], hints: Sequence[float | None] | None = None) -> list[F]:
        """Forecasts of the next H times, from their contexts and hints; once for each time.

        Parameters
        ----------
        xs : sequence
            Contexts of times t + 1, ..., t + H.
        hints : sequence, optional
            Your own model's forecasts of these.

        Returns
        -------
        list
            One forecast for each step.
        """
        if len(xs) != self.steps or (hints is not None and len(hints) != self.steps):
            raise InvalidInput(f"{self.steps} contexts are needed, one for each step, and as many hints or none")
        if self.time + self.steps in self._open:
            raise InvalidInput("forecasts for this time have been made; give its outcome to update before the next")
        forecasts = []
        for h in range(1, self.steps + 1):
            turn = self.time % h if self.exact else 0
            forecast = self.forecasters[h - 1][turn].predict(xs[h - 1], None if hints is None else hints[h - 1])
            self._open.setdefault(self.time + h, []).append((h, turn, forecast))
            forecasts.append(forecast)
        return forecasts

    def update(self, y: float | None) -> None:
        """The outcome of the next time (None: it never came); time goes on by one.

        Parameters
        ----------
        y : float or None
            The outcome of time t + 1.
        """
        due = self._open.pop(self.time + 1, [])
        if y is not None:
            for h, turn, forecast in due:
                self.forecasters[h - 1][turn].update(forecast, y)
        self.time += 1
