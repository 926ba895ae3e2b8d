"""Everything that a running service holds: its writer, who may, what is counted, and what is being watched."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import httpx

import swapcal as sc
from swapcal.audits.column import Column
from swapcal.service.access import Access
from swapcal.service.config import Config
from swapcal.service.metrics import Metrics
from swapcal.service.registry import Registry
from swapcal.service.report import ReportPages
from swapcal.service.schemas import Problem, StreamStatus
from swapcal.service.store import EventStore, NotOwner
from swapcal.service.stream import AuditReading, Stream, read_audits
from swapcal.service.writer import Writer

# --------
# The pulse of each stream, once a second: what the live page shows. Dear numbers only while somebody watches.

EVERY = 1.0
HISTORY = 300
AUDIT_EVERY = 2.0
ALARMS_SHOWN = 10
GROUPS_SHOWN = 20
FEW = 30
"""Groups with fewer rounds are not shown on the page while there are others."""

Pulse = dict[str, Any]


class Pulses:
    """A short history of every stream, and whoever listens to it."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._history: dict[str, deque[Pulse]] = {}
        self._listeners: dict[str, set[asyncio.Queue[Pulse]]] = {}
        self._audits: dict[str, tuple[float, AuditReading]] = {}

    @property
    def n_listeners(self) -> int:
        """How many listen now."""
        return sum(map(len, self._listeners.values()))

    def history(self, name: str) -> list[Pulse]:
        """The last minutes of a stream."""
        return list(self._history.get(name, ()))

    def listen(self, name: str) -> asyncio.Queue[Pulse]:
        """A queue that gets the pulses to come; give it back to `leave`."""
        listener: asyncio.Queue[Pulse] = asyncio.Queue(maxsize=10)
        self._listeners.setdefault(name, set()).add(listener)
        return listener

    def leave(self, name: str, listener: asyncio.Queue[Pulse]) -> None:
        """Stop listening."""
        self._listeners.get(name, set()).discard(listener)

    async def run(self) -> None:
        """Until it is canceled."""
        while True:
            started = time.monotonic()
            try:
                await self._beat()
            except Problem:
                # The store is down, or the queue is full: no pulse, and no page that says otherwise.
                self._audits.clear()
            await asyncio.sleep(max(0.1, EVERY - (time.monotonic() - started)))

    async def _beat(self) -> None:
        watched = {name for name, listeners in self._listeners.items() if listeners}
        statuses = await self._writer.submit(lambda registry: [_look(one) for one in registry.streams.values()])
        for status, recent_before, recent_after, alarms in statuses:
            name = status.name
            pulse = self._pulse(status, recent_before, recent_after, alarms)
            self._history.setdefault(name, deque(maxlen=HISTORY)).append(pulse)
            if name in watched:
                full = pulse | await self._audited(name)
                for listener in self._listeners.get(name, set()):
                    # A listener that does not keep up misses pulses, and nobody waits for it.
                    if not listener.full():
                        listener.put_nowait(full)
        for name in set(self._history) - {status.name for status, *_ in statuses}:
            del self._history[name]

    def _pulse(
        self, status: StreamStatus, recent_before: float | None, recent_after: float | None, alarms: list[Any]
    ) -> Pulse:
        now, history = time.time(), self._history.get(status.name)
        last = history[-1] if history else None
        gap = now - last["at"] if last else 0.0
        return {
            "at": now,
            "forecasts": status.forecasts,
            "outcomes": status.outcomes,
            "forecast_rate": (status.forecasts - last["forecasts"]) / gap if last and gap > 0 else 0.0,
            "outcome_rate": (status.outcomes - last["outcomes"]) / gap if last and gap > 0 else 0.0,
            "pending": status.pending,
            "held": status.held,
            "expired": status.expired,
            "forgotten": status.forgotten,
            "late": status.late,
            "lateness": status.lateness,
            "room": status.room,
            "groups": status.groups,
            "loss_before": recent_before,
            "loss_after": recent_after,
            "total_before": status.loss_before,
            "total_after": status.loss_after,
            "n_alarms": status.alarms,
            "groups_alarmed": status.groups_alarmed,
            "model_alarms": status.model_alarms,
            "model_groups_alarmed": status.model_groups_alarmed,
            "watched": status.watched,
            "alarms": alarms,
        }

    async def _audited(self, name: str) -> Pulse:
        """What the audits say; a few seconds old at most."""
        at, reading = self._audits.get(name, (0.0, None))
        if reading is None or time.monotonic() - at > AUDIT_EVERY:
            before, after = await self._writer.submit(lambda registry: _audits(registry, name))
            reading = await asyncio.to_thread(read_audits, name, before, after)
            self._audits[name] = (time.monotonic(), reading)
        return {
            "swap_before": reading.before.swap_multicalibration,
            "swap_after": reading.after.swap_multicalibration,
            "off_before": reading.before.groups_off,
            "off_after": reading.after.groups_off,
            "worst": ([one for one in reading.groups if one.rounds >= FEW] or reading.groups)[:GROUPS_SHOWN],
        }


def _look(stream: Stream) -> tuple[StreamStatus, float | None, float | None, list[Any]]:
    scores, alarms = stream.scores, [] if stream.watch is None else stream.watch.alarms[-ALARMS_SHOWN:]
    return stream.status(), scores.recent_before.mean(), scores.recent_after.mean(), alarms


def _audits(registry: Registry, name: str) -> tuple[Column, Column]:
    return registry.get(name).audits()


log = logging.getLogger("swapcal.service")
TOKENS_EVERY = 2.0
Found = TypeVar("Found")


class Server:
    """A service around one store.

    Parameters
    ----------
    config
        As `config.read` gives it.
    store
        As `event_store.open_store` gives it; the writer opens and closes it.
    """

    def __init__(self, config: Config, store: EventStore) -> None:
        self.config, self.metrics = config, Metrics()
        self.access = Access(config, self.metrics)
        self.writer = Writer(
            store,
            self.metrics,
            room=config.limits.queue,
            snapshot_every=config.service.snapshot_every,
            max_streams=config.limits.streams,
        )
        self.pulses = Pulses(self.writer)
        self.pages = ReportPages()
        self.stopping = asyncio.Event()
        self.http = httpx.AsyncClient(timeout=10.0, limits=httpx.Limits(max_connections=64))

    async def look(self, look: Callable[[Registry], Found]) -> Found:
        """Something read or done in the writer's thread."""
        found: Found = await self.writer.submit(look)
        return found

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From the first request to the last: streams of the configuration are made, and nothing taken is lost."""
        self.writer.start(asyncio.get_running_loop())
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._prepare()
            tasks = [asyncio.create_task(self._tokens()), asyncio.create_task(self.pulses.run())]
            yield
        finally:
            self.stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.writer.stop()
            await self.http.aclose()

    async def _prepare(self) -> None:
        """Make the streams of the configuration; one that is there with other settings ends the start."""
        for name, spec in self.config.streams.items():
            try:
                made = await self.look(lambda registry, name=name, spec=spec: registry.create(name, spec))  # type: ignore[misc]
                log.info("stream made" if made else "stream there", extra={"stream": name})
            except NotOwner:
                log.info("stream elsewhere", extra={"stream": name})
            except Problem as problem:
                if problem.status == 503:
                    log.warning("stream not ready", extra={"stream": name, "reason": problem.detail})
                else:
                    raise sc.InvalidInput(f"stream {name!r}: {problem.detail}") from problem
        await self._refresh()
        if self.writer.refusal is not None:
            raise sc.InvalidInput(f"the store cannot be used: {self.writer.refusal}") from self.writer.refusal

    async def _refresh(self) -> None:
        try:
            self.access.refresh(await self.look(lambda registry: registry.store.tokens()))
        except Problem as problem:
            # The tokens known so far stay good.
            log.warning("tokens not read", extra={"reason": problem.detail})

    async def _tokens(self) -> None:
        while True:
            await asyncio.sleep(TOKENS_EVERY)
            await self._refresh()
