"""`swapcal serve --demo`: the flights of 2013, replayed, so that there is something to see.

The flights come in the order of the timetable with the forecasts of a frozen model; outcomes come late, in another
order.
"""

import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from swapcal import datasets
from swapcal.client import Client, Retries, Unreachable
from swapcal.demo import GROUPS
from swapcal.service.config import Config, Service, checked
from swapcal.service.schemas import Case, Outcome
from swapcal.service.spec import StreamSpec

# Flights a second.
RATE = 300
# Outcomes come after so many further flights: an hour to half a day, with 920 flights a day.
LATE_BY = (40, 400)
TICK = 0.1
_SHARED: dict[str, Any] = {"groups": [one if isinstance(one, str) else list(one) for one in GROUPS], "delay": "1d"}
# In minutes, from an hour early to five hours late; one flight in 400 is outside.
_MINUTES: dict[str, Any] = {"property": "mean", "low": -60.0, "high": 300.0, "outside": "clip"}
STREAMS = {"arrives-late": StreamSpec(**_SHARED), "delay-minutes": StreamSpec(**_MINUTES, **_SHARED)}
# Of each stream, the columns of the model's forecasts and of the outcomes.
COLUMNS = {"arrives-late": ("score", "late"), "delay-minutes": ("expected", "delay")}
CONTEXT = ("carrier", "origin", "hour")


def demo_config(port: int, folder: Path | None = None) -> Config:
    """A configuration for the demo: both streams, in a file that goes when the folder goes, for this machine alone."""
    where = Path(tempfile.mkdtemp(prefix="swapcal-demo-")) if folder is None else folder
    service = Service(port=port, store=str(where / "swapcal.db"), auth=False, log="warning")
    return checked(Config(service=service, streams=dict(STREAMS)))


def cases(flights: Any, stream: str) -> Iterator[Case]:
    """The cases of some flights."""
    for row, flight in zip(flights.index, flights.to_dict("records"), strict=True):
        context = {name: flight[name] for name in CONTEXT}
        yield Case(f"flight-{row}", context, float(flight[COLUMNS[stream][0]]))


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
        played, n = datasets.flights()[: self.rows], max(1, int(self.rate * TICK))
        rng, waiting = random.Random(2013), deque[list[tuple[str, Outcome]]]([[] for _ in range(LATE_BY[1] // n + 2)])
        try:
            with Client(self.url, retries=Retries(attempts=3)) as client:
                for k in range(0, len(played), n):
                    started = time.monotonic()
                    here = played[k : k + n]
                    for stream, (_, y) in COLUMNS.items():
                        client.forecasts(stream, list(cases(here, stream)))
                        for row, outcome in zip(here.index, here[y].tolist(), strict=True):
                            late = Outcome(f"flight-{row}", float(outcome))
                            waiting[rng.randint(*LATE_BY) // n].append((stream, late))
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

    def _learn(self, client: Client, due: list[tuple[str, Outcome]]) -> None:
        for stream in STREAMS:
            outcomes = [outcome for name, outcome in due if name == stream]
            for k in range(0, len(outcomes), 500):
                client.outcomes(stream, outcomes[k : k + 500])
