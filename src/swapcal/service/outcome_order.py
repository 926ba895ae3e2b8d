"""Outcomes in the order of their forecasts: for delays that depend on the outcome, where the first to come mislead."""

from heapq import heappop, heappush
from typing import NamedTuple, cast

import swapcal as sc
from swapcal.forecast import Identity
from swapcal.service.store import pack, unpack
from swapcal.state import Packed, Saved, Stateful


class HeldOutcome(NamedTuple):
    """An outcome that has come: of this forecast, which had this hint."""

    forecast: sc.Forecast
    hint: float | None
    y: float


class OutcomeOrder(Stateful):
    """Holds an outcome back until those of all earlier forecasts have come, or have had `settle` rounds to come.

    The rule of `Forecaster.run` with `order="forecast"`, for outcomes that come one by one.

    Parameters
    ----------
    settle
        After so many further forecasts nobody waits for an outcome any more.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster, order = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1), OutcomeOrder(settle=10)
    >>> early, late = (forecaster.predict([1.0]) for _ in range(2))
    >>> order.take(HeldOutcome(late, None, 0.3))
    >>> order.due(issued=2)
    []
    >>> order.take(HeldOutcome(early, None, 0.9))
    >>> [held.y for held in order.due(issued=2)]
    [0.9, 0.3]

    Nobody waits for an outcome that will not come.

    >>> early, late = (forecaster.predict([1.0]) for _ in range(2))
    >>> order.take(HeldOutcome(late, None, 0.5))
    >>> order.skip(early.round)
    >>> [held.y for held in order.due(issued=4)]
    [0.5]
    """

    kind = "outcome order"

    def __init__(self, settle: int) -> None:
        self.settle = settle
        self._front = 0
        """Nobody waits for the outcome of an earlier round than this."""
        self._held: dict[int, HeldOutcome] = {}
        self._gone: set[int] = set()
        """Rounds whose outcomes will not come."""
        self._rounds: list[int] = []

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, round: int) -> bool:
        return round in self._held

    def take(self, outcome: HeldOutcome) -> None:
        """One more outcome."""
        self._held[outcome.forecast.round] = outcome
        heappush(self._rounds, outcome.forecast.round)

    def skip(self, round: int) -> None:
        """The outcome of a round will not come."""
        self._gone.add(round)
        heappush(self._rounds, round)

    def due(self, issued: int) -> list[HeldOutcome]:
        """The outcomes to be learned before round number `issued` is forecast, in order; they are held no more."""
        due: list[HeldOutcome] = []
        if self._rounds:
            self._front = max(self._front, issued - self.settle + 1)
            while self._front in self._held or self._front in self._gone:
                self._front += 1
            while self._rounds and self._rounds[0] < self._front:
                first = heappop(self._rounds)
                if first in self._gone:
                    self._gone.remove(first)
                else:
                    due.append(self._held.pop(first))
        return due

    def to_state(self) -> Saved:
        """What it is made of: the outcomes that are held, with their forecasts."""
        held = [one for _, one in sorted(self._held.items())]
        packed = [pack(one.forecast, cast(Identity, one.forecast.forecaster)) for one in held]
        lines = [[len(data), one.hint, one.y] for data, one in zip(packed, held, strict=True)]
        plain = {"settle": self.settle, "front": self._front, "held": lines, "gone": sorted(self._gone)}
        return Saved(plain, {}, {"forecasts": b"".join(packed)})

    @classmethod
    def from_state(cls, packed: Packed, *, identity: Identity | None = None) -> "OutcomeOrder":
        """Make it again; forecasts are those of a forecaster of this identity."""
        plain, forecasts, at = packed.plain, packed.parts["forecasts"], 0
        order = cls(plain["settle"])
        order._front = plain["front"]
        for length, hint, y in plain["held"]:
            order.take(HeldOutcome(unpack(forecasts[at : at + length], cast(Identity, identity)), hint, y))
            at += length
        for gone in plain["gone"]:
            order.skip(gone)
        return order
