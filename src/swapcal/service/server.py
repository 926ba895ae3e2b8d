"""Everything that a running service holds: its writer, who may, what is counted, and what is being watched."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import httpx

import swapcal as sc
from swapcal.service.access import Access
from swapcal.service.config import Config
from swapcal.service.event_store import Elsewhere, EventStore
from swapcal.service.metrics import Metrics
from swapcal.service.problems import Problem
from swapcal.service.pulses import Pulses
from swapcal.service.registry import Registry
from swapcal.service.report_job import ReportPages
from swapcal.service.writer import Writer

__all__ = ["Server"]

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
            except Elsewhere:
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
