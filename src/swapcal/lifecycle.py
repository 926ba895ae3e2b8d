"""The life of a case: its states, one table that says what becomes of each event, and the order of learning."""

import math
from heapq import heappop, heappush
from typing import Any, Literal, NamedTuple

from swapcal import inputs

# Of a case. Known: its outcome has come and is not learned yet. The last three are closed.
STATES = ("unknown", "waiting", "known", "learned", "expired", "forgotten")
# Of an event: what became of it.
STATUSES = (
    "forecast",
    "same forecast",
    "learned",
    "repeated",
    "unknown",
    "expired",
    "invalid",
    "held",
    "forgotten",
    "contradicted",
    "corrected",
    "conflict",
)
# What may come: a case, or one with the id of another case; an outcome that is new or the one that had come, another
# one, or one that is not allowed; the word that none will come.
EVENTS = ("predict", "predict other", "learn", "learn other", "learn invalid", "forget")

# The status of each of `EVENTS` by the state of its case.
TABLE: dict[str, tuple[str, ...]] = {
    "unknown": ("forecast", "forecast", "unknown", "unknown", "unknown", "unknown"),
    "waiting": ("same forecast", "conflict", "learned", "learned", "invalid", "forgotten"),
    "known": ("same forecast", "conflict", "repeated", "contradicted", "contradicted", "contradicted"),
    "learned": ("same forecast", "conflict", "repeated", "contradicted", "contradicted", "contradicted"),
    "expired": ("same forecast", "conflict", "expired", "expired", "expired", "expired"),
    "forgotten": ("same forecast", "conflict", "contradicted", "contradicted", "contradicted", "repeated"),
}

# The state of a case after an event of this status; after any other it stays what it is.
NEXT = {
    "forecast": "waiting",
    "learned": "learned",
    "held": "known",
    "corrected": "known",
    "forgotten": "forgotten",
    "expired": "expired",
}


class Entry(NamedTuple):
    """A case: its state, its outcome where that has come, and what it was asked with, where that is compared."""

    state: str
    y: float | None = None
    asked: bytes | None = None


class Event(NamedTuple):
    """A case (`kind` "predict"), an outcome ("learn"; invalid where it is not allowed), or that none will come."""

    kind: Literal["predict", "learn", "forget"]
    y: float | None = None
    asked: bytes | None = None
    invalid: bool = False


def answer(
    entry: Entry | None, event: Event, *, expired: bool = False, held: bool = False, corrections: bool = False
) -> tuple[str, str]:
    """What becomes of an event, and the state of its case afterwards: `TABLE`, and nothing else.

    Parameters
    ----------
    entry : Entry or None
        The case; None for one that is not known.
    event : Event
        What comes.
    expired : bool
        Whether an outcome of the case would come too late by now.
    held : bool
        Whether its outcome must wait for a moment ahead, or for outcomes of earlier forecasts.
    corrections : bool
        Whether an outcome may be replaced by another one before it is learned.

    Returns
    -------
    tuple of str
        One of `STATUSES`, and one of `STATES`.

    Examples
    --------
    >>> case = Entry("learned", 1.0)
    >>> [answer(case, Event("learn", y)) for y in (1.0, 0.0)]
    [('repeated', 'learned'), ('contradicted', 'learned')]
    """
    state = "unknown" if entry is None else entry.state
    if expired and state in ("waiting", "known"):
        state = "expired"
    column: str = event.kind
    if event.kind == "learn":
        if event.invalid:
            column = "learn invalid"
        elif entry is not None and entry.y != event.y:
            column = "learn other"
    elif event.kind == "predict" and entry is not None and entry.asked != event.asked:
        column = "predict other"
    status = TABLE[state][EVENTS.index(column)]
    if status == "learned" and held:
        status = "held"
    elif corrections and state == "known" and column == "learn other":
        status = "corrected"
    return status, NEXT.get(status, state)


# --------
# Which known outcomes may be learned now.


class KnownOutcome(NamedTuple):
    """An outcome that has come: of this round, to be learned at this moment; with what its update will need."""

    round: int
    y: float
    due: float
    ticket: Any


class Order:
    """Holds outcomes until they are due and, by forecast, until nobody waits for an earlier one.

    For single events what `engine.schedule.schedule` is for recorded streams.

    Parameters
    ----------
    by : {"arrival", "forecast"}
        "forecast": an outcome is learned when those of all earlier forecasts have come and are due, or have had
        `settle` rounds to come.
    settle : int, optional
        After so many further forecasts nobody waits for an outcome any more. None: always.
    first : int
        Nobody waits for the outcomes of earlier rounds than this.

    Examples
    --------
    >>> order = Order("forecast", settle=10)
    >>> order.add(1, 0.3)
    >>> order.due(issued=2)
    []
    >>> order.add(0, 0.9)
    >>> [outcome.y for outcome in order.due(issued=2)]
    [0.9, 0.3]

    Nobody waits for an outcome that will not come.

    >>> order.add(3, 0.5)
    >>> order.skip(2)
    >>> [outcome.y for outcome in order.due(issued=4)]
    [0.5]
    """

    def __init__(self, by: str = "arrival", settle: int | None = None, first: int = 0) -> None:
        self.by = inputs.one_of(by, "order", ("arrival", "forecast"))
        self.settle = None if settle is None else inputs.integer(settle, "settle", 1)
        # By forecast: nobody waits for an earlier round than this.
        self.front = first
        self.known: dict[int, KnownOutcome] = {}
        # Rounds from the front on whose outcomes will not come.
        self.gone: set[int] = set()
        self._ahead: list[tuple[float, int]] = []
        self._ripe: list[int] = []

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, round: int) -> bool:
        return round in self.known

    def add(self, round: int, y: float, due: float = -math.inf, ticket: Any = None) -> None:
        """One more outcome, or another one in its place; NaN for a moment that never comes."""
        if not math.isnan(due) and (round not in self.known or self.known[round].due != due):
            heappush(self._ahead, (due, round))
        self.known[round] = KnownOutcome(round, y, due, ticket)

    def skip(self, round: int) -> None:
        """The outcome of a round will not come, or too late: nobody waits for it."""
        self.known.pop(round, None)
        if self.by == "forecast" and round >= self.front:
            self.gone.add(round)

    def due(self, issued: int, now: float = math.inf) -> list[KnownOutcome]:
        """What is to be learned before round number `issued` is forecast, at this moment; it is held no more."""
        while self._ahead and self._ahead[0][0] <= now:
            heappush(self._ripe, heappop(self._ahead)[1])
        if self.by == "forecast":
            settled = self.front if self.settle is None else issued - self.settle + 1
            if self.front < settled:
                self.front, self.gone = settled, {t for t in self.gone if t >= settled}
            while self.front in self.gone or self._is_due(self.front, now):
                self.gone.discard(self.front)
                self.front += 1
        outcomes = []
        while self._ripe and (self.by == "arrival" or self._ripe[0] < self.front):
            ripe = heappop(self._ripe)
            if self._is_due(ripe, now):
                outcomes.append(self.known.pop(ripe))
        return outcomes

    def _is_due(self, round: int, now: float) -> bool:
        return round in self.known and self.known[round].due <= now
