"""What the engine is to do for some events, in which order: found from their ids, before anything is played."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swapcal.engine.arrivals import Arrivals
from swapcal.engine.state import State
from swapcal.engine.waiting import LABEL
from swapcal.stepping.book import Book
from swapcal.stepping.case_events import EXPIRED, FORECAST, INVALID, LEARNED, REPEATED, SAME, UNKNOWN, Id
from swapcal.typing import Float64Array, IntArray

__all__ = ["EventPlan", "planned"]


@dataclass(slots=True)
class EventPlan:
    """New cases are rows, from 0 on; `arriving` and `ends` say which outcomes are learned before which of them."""

    codes: npt.NDArray[np.uint8]
    forecast: Float64Array
    """Of events whose forecast was known before."""
    row_of: IntArray
    """The row whose forecast an event has; -1 for none."""
    rows: list[int] = field(default_factory=list)
    chosen: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The new ones among the cases."""
    arriving: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    outcomes: dict[int, float] = field(default_factory=dict)
    learned_lines: list[int] = field(default_factory=list)
    learned_labels: Float64Array = field(default_factory=lambda: np.zeros(0))
    closed: dict[Id, int] = field(default_factory=dict)
    """Cases that no longer wait, with the event that closed them."""
    low: float = 0.0

    @property
    def learned_rows(self) -> list[int]:
        """Rows whose outcome is among the events."""
        return list(self.outcomes)

    @property
    def labels(self) -> Float64Array:
        """Of all rows; those whose outcome is out wait with a label that counts for nothing."""
        labels = np.full(len(self.rows), self.low)
        labels[list(self.outcomes)] = list(self.outcomes.values())
        return labels

    def arrivals(self) -> Arrivals:
        """For the engine. A row that is alone in being learned before the next one is learned at once."""
        n = len(self.rows)
        codes, ends = np.array(self.arriving, dtype=np.int64), np.array(self.ends, dtype=np.int64)
        starts, stops = ends[1:], np.append(ends[2:], len(codes))[:n]
        alone = np.zeros(n, dtype=np.bool_)
        single = np.flatnonzero(stops - starts == 1)
        alone[single] = codes[starts[single]] == single
        kept = np.ones(len(codes), dtype=np.bool_)
        kept[starts[alone]] = False
        before = np.concatenate([[0], np.cumsum(kept)])
        return Arrivals(codes[kept], before[ends], (~alone).astype(np.uint8), np.full(n, np.nan))


def planned(ids: Sequence[Id], cases: IntArray, labels: Float64Array, book: Book, state: State) -> EventPlan:
    """The plan of some events; the book and the labels of rounds that wait are changed on the way.

    Parameters
    ----------
    ids : sequence
        Of the events.
    cases : array
        Which events are cases.
    labels : array
        Outcomes; infinite where one is not allowed.
    book : Book
        The cases so far.
    state : State
        Of the forecaster.

    Returns
    -------
    EventPlan
        For the engine.
    """
    n, first, window = len(labels), state.pending.issued, state.pending.window
    plan = EventPlan(np.full(n, UNKNOWN, dtype=np.uint8), np.full(n, np.nan), np.full(n, -1, dtype=np.int64))
    plan.low = float(state.values.low)
    waiting, born = state.waiting, state.values.born
    lines, rounds, _ = waiting.dues()
    line_of = dict(zip(rounds.tolist(), lines.tolist(), strict=True))
    opened, done, closed, rows = book.open, book.done, plan.closed, plan.rows
    codes, forecast, row_of = plan.codes, plan.forecast, plan.row_of
    learned: list[float] = []
    chosen: list[int] = []
    number = -1
    for i, (name, y) in enumerate(zip(ids, labels.tolist(), strict=True)):
        t = opened.get(name)
        if y != y:
            number += 1
        if t is None:
            if name in closed:
                earlier = closed[name]
                row_of[i], forecast[i] = row_of[earlier], forecast[earlier]
                ended = int(codes[earlier])
            elif name in done:
                forecast[i], ended = done[name]
            elif y != y:
                codes[i], row_of[i], opened[name] = FORECAST, len(rows), first + len(rows)
                plan.ends.append(len(plan.arriving))
                rows.append(i)
                chosen.append(number)
                continue
            else:
                continue
            codes[i] = SAME if y != y else REPEATED if ended == LEARNED else EXPIRED
            continue
        line = -1 if t >= first else line_of[t]
        if line < 0:
            row_of[i] = t - first
        else:
            forecast[i] = waiting.shown(line, born)
        if y != y:
            codes[i] = SAME
        elif y == np.inf:
            codes[i] = INVALID
        else:
            late = first + len(rows) - t > window
            codes[i], closed[name] = EXPIRED if late else LEARNED, i
            del opened[name]
            plan.arriving.append(t - first if line < 0 else -1 - line)
            if line < 0:
                plan.outcomes[t - first] = y
            else:
                waiting.numbers[line, LABEL] = y
                plan.learned_lines.append(line)
            if not late:
                learned.append(y)
    plan.chosen, plan.learned_labels = np.array(chosen, dtype=np.int64), np.array(learned)
    return plan
