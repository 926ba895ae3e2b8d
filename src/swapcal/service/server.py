"""Everything that a running service holds: its writer, who may, what is counted, and the pages that it made."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx

import swapcal as sc
from swapcal.service.access import Access
from swapcal.service.config import Config
from swapcal.service.metrics import Metrics
from swapcal.service.registry import Registry
from swapcal.service.report import ReportPages
from swapcal.service.schemas import Problem
from swapcal.service.store import EventStore, NotOwner
from swapcal.service.writer import Writer

log = logging.getLogger("swapcal.service")
STALL_EVERY = 0.1
TOKENS_EVERY = 2.0
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
        self.pages = ReportPages()
        # When it must have stopped; 0 while nobody asks for that.
        self.stop_at = 0.0
        self.http = httpx.AsyncClient(timeout=10.0, limits=httpx.Limits(max_connections=64))
        self._missing = dict(config.streams)

    async def query(self, query: Callable[[Registry], Result]) -> Result:
        """Something read or done in the writer's thread."""
        result: Result = await self.writer.submit(query)
        return result

    def begin_stop(self) -> None:
        """It is not ready any more, and `stop_seconds` run from now."""
        self.stop_at = self.stop_at or time.monotonic() + self.config.service.stop_seconds

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From the first request to the last: streams of the configuration are made, and nothing taken is lost."""
        self.writer.start(asyncio.get_running_loop())
        tasks = [asyncio.create_task(_again_and_again(self.writer.give_up, STALL_EVERY))]
        try:
            await self._refresh(starting=True)
            tasks.append(asyncio.create_task(_again_and_again(self._refresh, TOKENS_EVERY)))
            yield
        finally:
            self.begin_stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.writer.stop(max(0.5, self.stop_at - time.monotonic()))
            await self.http.aclose()

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


async def _again_and_again(work: Callable[[], Awaitable[None]], pause: float) -> None:
    """Until it is canceled; a failure is told, and does not end it."""
    while True:
        await asyncio.sleep(pause)
        try:
            await work()
        except Exception:
            log.exception("background work failed")
