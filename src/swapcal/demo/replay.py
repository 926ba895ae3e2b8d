"""`swapcal serve --demo`: the flights of 2013, replayed, so that there is something to see.

The flights come in the order of the timetable with a plain model's forecast; outcomes come late, in another order, and
for canceled flights the word that none will come.
"""

import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.client import Client, Retries, Unreachable
from swapcal.datasets import locate
from swapcal.demo import flights as source
from swapcal.service.config import Config, Service, checked
from swapcal.service.schemas import Case, Outcome
from swapcal.service.spec import StreamSpec

# Flights a second.
RATE = 300
# Outcomes come after so many further flights: an hour to half a day, with 920 flights a day.
LATE_BY = (40, 400)
TICK = 0.1
# Flights in the year.
YEAR = 336_776
_SHARED: dict[str, Any] = {
    "groups": [one if isinstance(one, str) else list(one) for one in source.GROUPS],
    "horizon": YEAR,
    "delay": "1d",
}
_MINUTES: dict[str, Any] = {"low": source.LOW, "high": source.HIGH, "outside": "clip", "jitter": 1.0}
STREAMS = {
    "arrives-late": StreamSpec(**_SHARED),
    "delay-minutes": StreamSpec(property="quantile", level=0.9, **_MINUTES, **_SHARED),
}
TASKS = {"late": "arrives-late", "delay": "delay-minutes"}


@dataclass(frozen=True, slots=True)
class Flights:
    """Columns of the flights, and for each stream the model's forecasts and the outcomes; NaN is none."""

    columns: dict[str, list[Any]]
    hints: dict[str, np.ndarray[Any, Any]]
    outcomes: dict[str, np.ndarray[Any, Any]]

    def __len__(self) -> int:
        return len(self.columns["carrier"])


def flights(rows: int | None = None) -> Flights:
    """The flights of the demo, with the model's forecasts."""
    scene = source.scene(locate(), rows)
    columns = {name: scene.columns[name].to_pylist() for name in ("carrier", "origin", "hour", "dest")}
    hints = {TASKS[task.name]: task.model(lambda done: None) for task in scene.tasks}
    outcomes = {TASKS[task.name]: np.asarray(scene.columns[task.question.y]) for task in scene.tasks}
    return Flights(columns, hints, outcomes)


def demo_config(port: int, folder: Path | None = None) -> Config:
    """A configuration for the demo: both streams, in a file that goes when the folder goes, for this machine alone."""
    where = Path(tempfile.mkdtemp(prefix="swapcal-demo-")) if folder is None else folder
    service = Service(port=port, store=str(where / "swapcal.db"), auth=False, log="warning")
    return checked(Config(service=service, streams=dict(STREAMS)))


class Replay(threading.Thread):
    """Sends the flights to a service, as a client would, until told to stop.

    Parameters
    ----------
    url
        Of the service.
    rate
        Flights a second.
    rows
        The first so many flights of the year, or all of them.
    """

    def __init__(
        self, url: str, rate: int = RATE, rows: int | None = None, say: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(name="swapcal-replay", daemon=True)
        self.url, self.rate, self.rows = url, rate, rows
        self.say = say if say is not None else lambda sentence: None
        self.over = threading.Event()

    def run(self) -> None:
        """Play until the last outcome has been sent, or until `over` is set."""
        played, n = flights(self.rows), max(1, int(self.rate * TICK))
        rng, waiting = random.Random(2013), deque[list[tuple[str, Outcome]]]([[] for _ in range(LATE_BY[1] // n + 2)])
        try:
            with Client(self.url, retries=Retries(attempts=3)) as client:
                for k in range(0, len(played), n):
                    started = time.monotonic()
                    here = range(k, min(k + n, len(played)))
                    for stream in STREAMS:
                        client.forecasts(stream, list(self._cases(played, stream, here)))
                        for row in here:
                            y = float(played.outcomes[stream][row])
                            outcome = Outcome(f"flight-{row}", y if y == y else None)
                            waiting[rng.randint(*LATE_BY) // n].append((stream, outcome))
                    self._learn(client, waiting.popleft())
                    waiting.append([])
                    if self.over.wait(max(0.0, TICK - (time.monotonic() - started))):
                        return
                for due in waiting:
                    self._learn(client, due)
                self.say("the year is over: all flights have been replayed")
        except Unreachable:
            # The service has been stopped, which is how the demo ends.
            return

    def _cases(self, played: Flights, stream: str, here: range) -> Iterator[Case]:
        for row in here:
            context = {name: column[row] for name, column in played.columns.items()}
            yield Case(f"flight-{row}", context, float(played.hints[stream][row]))

    def _learn(self, client: Client, due: list[tuple[str, Outcome]]) -> None:
        for stream in STREAMS:
            outcomes = [outcome for name, outcome in due if name == stream]
            for k in range(0, len(outcomes), 500):
                client.outcomes(stream, outcomes[k : k + 500])
