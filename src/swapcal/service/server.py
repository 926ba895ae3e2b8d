"""Everything that a running service holds: its writer, who may, what is counted, and what is being watched."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx
import msgspec

import swapcal as sc
from swapcal.service.access import Access
from swapcal.service.config import Config
from swapcal.service.metrics import Metrics
from swapcal.service.registry import Registry
from swapcal.service.report import ReportPages
from swapcal.service.schemas import AuditView, Problem
from swapcal.service.store import EventStore, NotOwner
from swapcal.service.stream import Stream, audit_view
from swapcal.service.writer import Writer

log = logging.getLogger("swapcal.service")
STALL_EVERY = 0.1
TOKENS_EVERY = 2.0
LIVE_EVERY = 1.0
AUDIT_EVERY = 2.0
HISTORY = 300
ALARMS_SHOWN = 10
GROUPS_SHOWN = 20
# Groups with fewer rounds are not shown on the page while there are others.
FEW = 30
Result = TypeVar("Result")


class Server:
    """A service around one store.

    Parameters
    ----------
    config
        As `config.read` gives it.
    store
        As `open_store` gives it; the writer opens and closes it.
    """

    def __init__(self, config: Config, store: EventStore) -> None:
        self.config, self.metrics = config, Metrics()
        self.access = Access(config, self.metrics)
        self.writer = Writer(
            store,
            self.metrics,
            max_queued=config.limits.queue,
            snapshot_every=config.service.snapshot_every,
            max_streams=config.limits.streams,
        )
        self.live = LiveNumbers(self)
        self.pages = ReportPages()
        self.stopping = asyncio.Event()
        self.stop_at = 0.0
        self.http = httpx.AsyncClient(timeout=10.0, limits=httpx.Limits(max_connections=64))
        self._missing = dict(config.streams)

    async def query(self, query: Callable[[Registry], Result]) -> Result:
        """Something read or done in the writer's thread."""
        result: Result = await self.writer.submit(query)
        return result

    async def audit(self, name: str) -> AuditView:
        """The errors of a stream's hints and forecasts, and every group's bias."""
        before, after = await self.query(lambda registry: registry.get(name).scores.audits())
        return await asyncio.to_thread(audit_view, name, before, after)

    def begin_stop(self) -> None:
        """End what would go on for as long as somebody watches; `stop_seconds` run from now."""
        self.stopping.set()
        self.stop_at = self.stop_at or time.monotonic() + self.config.service.stop_seconds

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From the first request to the last: streams of the configuration are made, and nothing taken is lost."""
        self.writer.start(asyncio.get_running_loop())
        tasks = [asyncio.create_task(_again_and_again(self._stalled, STALL_EVERY))]
        try:
            await self._refresh(starting=True)
            for work, pause in ((self._refresh, TOKENS_EVERY), (self.live.refresh, LIVE_EVERY)):
                tasks.append(asyncio.create_task(_again_and_again(work, pause)))
            yield
        finally:
            self.begin_stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.writer.stop(max(0.5, self.stop_at - time.monotonic()))
            await self.http.aclose()

    async def _stalled(self) -> None:
        self.writer.give_up()

    async def _refresh(self, *, starting: bool = False) -> None:
        """Make what is missing of the configuration's streams, and read the tokens; those known so far stay good.

        A stream that is there with other settings ends the start.
        """
        for name, spec in list(self._missing.items()):
            try:
                created = await self.query(lambda registry, name=name, spec=spec: registry.create(name, spec))  # type: ignore[misc]
                log.info("stream made" if created else "stream there", extra={"stream": name})
            except NotOwner:
                log.info("stream elsewhere", extra={"stream": name})
            except Problem as problem:
                if starting and problem.status != 503:
                    raise sc.InvalidInput(f"stream {name!r}: {problem.detail}") from problem
                log.warning("stream not ready", extra={"stream": name, "reason": problem.detail})
                if problem.store_down:
                    break
            del self._missing[name]
        try:
            self.access.refresh(await self.query(lambda registry: registry.store.tokens()))
        except Problem as problem:
            log.warning("tokens not read", extra={"reason": problem.detail})
        if starting and self.writer.refusal is not None:
            raise sc.InvalidInput(f"the store cannot be used: {self.writer.refusal}") from self.writer.refusal


class LiveNumbers:
    """What the live page shows: a short history of every stream, a line a second, and whoever listens to it.

    Dear numbers, those of the audits, are there only while somebody listens.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._history: dict[str, deque[dict[str, Any]]] = {}
        self._listeners: dict[str, set[asyncio.Queue[dict[str, Any]]]] = {}
        self._audits: dict[str, tuple[float, AuditView]] = {}

    @property
    def n_listeners(self) -> int:
        """How many listen now."""
        return sum(map(len, self._listeners.values()))

    def history(self, name: str) -> list[dict[str, Any]]:
        """The last minutes of a stream."""
        return list(self._history.get(name, ()))

    @contextlib.contextmanager
    def listen(self, name: str) -> Iterator[asyncio.Queue[dict[str, Any]]]:
        """A queue that gets the lines to come."""
        listener: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=10)
        self._listeners.setdefault(name, set()).add(listener)
        try:
            yield listener
        finally:
            self._listeners[name].discard(listener)

    async def refresh(self) -> None:
        """One more line for every stream."""
        try:
            lines = await self._server.query(
                lambda registry: {name: _line(stream) for name, stream in registry.streams.items()}
            )
            for name, line in lines.items():
                history = self._history.setdefault(name, deque(maxlen=HISTORY))
                history.append(_with_rates(line, history))
                listeners = self._listeners.get(name)
                if listeners:
                    full = line | await self._audited(name)
                    for listener in listeners:
                        # A listener that does not keep up misses lines, and nobody waits for it.
                        if not listener.full():
                            listener.put_nowait(full)
            self._history = {name: self._history[name] for name in lines}
        except Problem:
            # The store is down, or the queue is full: no line, and no page that says otherwise.
            self._audits.clear()

    async def _audited(self, name: str) -> dict[str, Any]:
        """What the audits say; a few seconds old at most."""
        at, audit = self._audits.get(name, (0.0, None))
        if audit is None or time.monotonic() - at > AUDIT_EVERY:
            audit = await self._server.audit(name)
            self._audits[name] = (time.monotonic(), audit)
        return {
            "swap_before": audit.before.swap_multicalibration,
            "swap_after": audit.after.swap_multicalibration,
            "off_before": audit.before.groups_off,
            "off_after": audit.after.groups_off,
            "worst": ([one for one in audit.groups if one.rounds >= FEW] or audit.groups)[:GROUPS_SHOWN],
        }


def _line(stream: Stream) -> dict[str, Any]:
    status = stream.status()
    return msgspec.structs.asdict(status) | {
        "at": time.time(),
        "loss_before": _mean(stream.scores.recent_before),
        "loss_after": _mean(stream.scores.recent_after),
        "total_before": status.loss_before,
        "total_after": status.loss_after,
        "n_alarms": status.alarms,
        "alarms": stream.monitors["watch"].alarms[-ALARMS_SHOWN:] if stream.monitors else [],
    }


def _mean(numbers: deque[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _with_rates(line: dict[str, Any], history: deque[dict[str, Any]]) -> dict[str, Any]:
    last = history[-1] if history else line
    gap = line["at"] - last["at"]
    for rate, count in (("forecast_rate", "forecasts"), ("outcome_rate", "outcomes")):
        line[rate] = (line[count] - last[count]) / gap if gap > 0 else 0.0
    return line


async def _again_and_again(work: Callable[[], Awaitable[None]], pause: float) -> None:
    """Until it is canceled; a failure is told, and does not end it."""
    while True:
        await asyncio.sleep(pause)
        try:
            await work()
        except Exception:
            log.exception("background work failed")
