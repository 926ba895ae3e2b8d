"""One thread owns all state: it plays what waits, stores it in one transaction, and then answers.

Requests that arrive while a transaction is written wait and share the next one: the disk is asked once for many.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import swapcal as sc
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.metrics import Metrics
from swapcal.service.registry import Registry
from swapcal.service.schemas import Problem, StoreDown
from swapcal.service.spec import seconds
from swapcal.service.store import Commit, EventStore, NotOwner

log = logging.getLogger("swapcal.service")

AT_ONCE = 4096
"""Cases that share a transaction, at most; what comes later has the next."""
IDLE = 0.25
REOPEN_EVERY = 0.5
PRUNE_EVERY = 60.0
PRUNE_AT_ONCE = 5000
UNAVAILABLE = "the store cannot write now, and nothing was changed; send the same request again"

Look = Callable[[Registry], Any]
"""Something done in the writer's thread, after what was sent before it has been stored."""


class _Waiting(NamedTuple):
    job: ForecastJob | OutcomeJob | Look
    size: int
    future: asyncio.Future[Any]


class Writer:
    """The queue and its thread.

    Parameters
    ----------
    store
        Opened, used and closed in the thread alone.
    room
        How many cases can wait in the queue; more are refused with 503.
    snapshot_every
        Events between snapshots: what must be replayed after a crash, at most.
    max_streams
        How many streams there may be.
    """

    def __init__(
        self, store: EventStore, metrics: Metrics, *, room: int, snapshot_every: int, max_streams: int
    ) -> None:
        self.registry, self.metrics = Registry(store, max_streams), metrics
        self.store, self.room, self.snapshot_every = store, room, snapshot_every
        self.ready, self.queued = False, 0
        self.refusal: sc.SwapcalError | None = None
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._gathered: list[_Waiting] = []
        self._thread = threading.Thread(target=self._run, name="swapcal-writer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = self._tried = self._pruned = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread; answers come back on `loop`."""
        self._loop = loop
        self._thread.start()

    async def submit(self, job: ForecastJob | OutcomeJob | Look, size: int = 1) -> Any:
        """What became of a job; raises `Problem` or `Elsewhere` where it was refused as a whole."""
        if self.queued + size > self.room:
            self.metrics.queue_full += 1
            raise Problem(503, "too much waits to be stored; send the same request again", retry_after=1)
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        self.queued += size
        # Whatever the loop reads in one turn goes over together: the thread wakes once, and they share a transaction.
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append(_Waiting(job, size, future))
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._queue.put(gathered)

    async def stop(self) -> None:
        """Finish what waits, write snapshots, and let go of the store."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        going = True
        self._reopen()
        while going:
            taken, going = self._take()
            if not self.ready:
                self._reopen()
            if taken:
                self._round(taken)
            self._prune()
        self._finish()

    def _take(self) -> tuple[list[_Waiting], bool]:
        """All that waits, after waiting a moment for the first; and whether to go on."""
        taken: list[_Waiting] = []
        size = 0
        try:
            some = self._queue.get(timeout=IDLE)
            while some is not None:
                taken += some
                size += sum(one.size for one in some)
                if size >= AT_ONCE:
                    return taken, True
                some = self._queue.get_nowait()
        except queue.Empty:
            return taken, True
        return taken, False

    def _round(self, taken: list[_Waiting]) -> None:
        jobs = [one for one in taken if isinstance(one.job, (ForecastJob, OutcomeJob))]
        results: list[tuple[_Waiting, Any]] = []
        if jobs:
            results = list(zip(jobs, self._store([one.job for one in jobs]), strict=True))  # type: ignore[misc]
        for one in taken:
            if callable(one.job):
                results.append((one, self._look(one.job)))
        self._answer(results)

    def _store(self, jobs: Sequence[ForecastJob | OutcomeJob]) -> list[Any]:
        """Play jobs and store what they did; where that fails, nothing has happened."""
        if not self.ready:
            return [self._down()] * len(jobs)
        started = time.perf_counter()
        try:
            played = play(jobs, self.registry, time.time(), self.snapshot_every)
            if played.commits:
                committing = time.perf_counter()
                self.store.commit(played.commits)
                self.metrics.committed(time.perf_counter() - committing, sum(len(c.cases) for c in played.commits))
        except StoreDown as error:
            self._lost(error)
            return [self._down()] * len(jobs)
        except NotOwner as error:
            self.registry.forget(*{job.stream for job in jobs}, error.name)
            retry = Problem(
                503, "this stream has just moved to another worker; send the same request again", retry_after=1
            )
            return [retry] * len(jobs)
        except Exception as error:
            self.registry.forget(*{job.stream for job in jobs})
            if len(jobs) > 1:
                # Whoever is to blame shall not take the others along.
                return [result for job in jobs for result in self._store([job])]
            if isinstance(error, sc.SwapcalError):
                return [Problem(422, str(error))]
            log.exception("a request failed", extra={"stream": jobs[0].stream})
            self.metrics.failures += 1
            return [Problem(500, f"something unforeseen happened ({type(error).__name__}); nothing was changed")]
        self._count(jobs, played.answers, played.commits)
        self.metrics.played(time.perf_counter() - started)
        return list(played.answers)

    def _count(
        self, jobs: Sequence[ForecastJob | OutcomeJob], answers: Sequence[Any], commits: Sequence[Commit]
    ) -> None:
        for one in commits:
            stream = self.registry.streams[one.name]
            if one.snapshot is not None:
                stream.snapshot_seq = one.seq
                self.metrics.snapshots += 1
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, list):
                self.metrics.answered(job.stream, "forecast" if isinstance(job, ForecastJob) else "outcome", answer)

    def _look(self, look: Look) -> Any:
        if not self.ready:
            return self._down()
        try:
            return look(self.registry)
        except StoreDown as error:
            self._lost(error)
            return self._down()
        except Exception as error:
            return error

    def _answer(self, results: list[tuple[_Waiting, Any]]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._resolve, results)

    def _resolve(self, results: list[tuple[_Waiting, Any]]) -> None:
        for one, result in results:
            self.queued -= one.size
            # Whoever asked may have hung up.
            if not one.future.done():
                one.future.set_result(result)

    def _down(self) -> Problem:
        problem = Problem(503, UNAVAILABLE, retry_after=1)
        problem.store_down = True
        return problem

    def _lost(self, error: Exception) -> None:
        """The store failed: memory may be ahead of it, so memory goes."""
        log.error("store lost", extra={"reason": str(error)})
        self.metrics.store_losses += 1
        self.ready = False
        self._tried = time.monotonic()
        self.registry.forget_all()

    def _reopen(self) -> None:
        if time.monotonic() - self._tried < REOPEN_EVERY:
            return
        self._tried = time.monotonic()
        try:
            self.store.open()
            for name in self.store.names():
                try:
                    self.registry.get(name)
                except (NotOwner, Problem) as refusal:
                    log.warning("stream not taken", extra={"stream": name, "reason": str(refusal)})
            self.ready = True
        except StoreDown as error:
            log.error("store not open", extra={"reason": str(error)})
        except sc.SwapcalError as error:
            # No use in trying again: a version that cannot be read, for instance.
            self.refusal = error
            log.error("store refused", extra={"reason": str(error)})

    def _prune(self) -> None:
        """Now and then, delete cases that are older than the stream keeps them; a few at a time."""
        if not self.ready or time.monotonic() - self._pruned < PRUNE_EVERY:
            return
        self._pruned = time.monotonic()
        try:
            for stream in self.registry.streams.values():
                before = time.time() - seconds(stream.spec.keep)
                self.metrics.pruned += self.store.prune(stream.name, before, stream.snapshot_seq, PRUNE_AT_ONCE)
        except StoreDown as error:
            self._lost(error)

    def _finish(self) -> None:
        """Leave nothing to replay: an orderly stop ends with snapshots."""
        try:
            for name, stream in self.registry.streams.items():
                if stream.seq > stream.snapshot_seq:
                    self.store.commit([Commit(name, stream.epoch, stream.seq, (), (), stream.to_bytes())])
            self.registry.forget(*list(self.registry.streams))
            self.store.close()
        except (StoreDown, NotOwner) as error:
            log.error("no snapshot at the end", extra={"reason": str(error)})
