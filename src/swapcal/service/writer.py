"""One thread owns all state: it plays what waits, stores it in one transaction, and then answers.

Requests that arrive while a transaction is written wait and share the next one: the disk is asked once for many.
Whatever happens here or in the store, every request is answered.
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
from swapcal.service.store import Commit, EventStore, NotOwner
from swapcal.tasks.config import parse_delay

log = logging.getLogger("swapcal.service")

# Cases that share a transaction, at most; what comes later has the next.
AT_ONCE = 4096
IDLE = 0.25
REOPEN_EVERY = 0.5
PRUNE_EVERY = 60.0
PRUNE_AT_ONCE = 5000
UNAVAILABLE = "the store cannot write now, and nothing was changed; send the same request again"
STALLED = "the store does not answer, and may or may not have changed; send the same request again"

# Something done in the writer's thread, after what was sent before it has been stored.
Query = Callable[[Registry], Any]


class _Waiting(NamedTuple):
    job: ForecastJob | OutcomeJob | Query
    size: int
    future: asyncio.Future[Any]


class Writer:
    """The queue and its thread.

    Parameters
    ----------
    store
        Opened, used and closed in the thread alone.
    max_queued
        How many cases can wait in the queue; more are refused with 503.
    snapshot_every
        Events between snapshots: what must be replayed after a crash, at most.
    max_streams
        How many streams there may be.
    """

    def __init__(
        self, store: EventStore, metrics: Metrics, *, max_queued: int, snapshot_every: int, max_streams: int
    ) -> None:
        self.registry, self.metrics = Registry(store, max_streams), metrics
        self.store, self.max_queued, self.snapshot_every = store, max_queued, snapshot_every
        self.queued = 0
        self.refusal: sc.SwapcalError | None = None
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._gathered: list[_Waiting] = []
        # Those that have no answer yet, with their sizes. The event loop's own.
        self._unanswered: dict[asyncio.Future[Any], int] = {}
        # At the end of its time a store that does not answer is left alone.
        self._thread = threading.Thread(target=self._run, name="swapcal-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = False
        self._tried = self._pruned = 0.0
        self._started = time.time(), time.monotonic()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread; answers come back on `loop`."""
        self._loop = loop
        self._thread.start()

    @property
    def is_stalled(self) -> bool:
        """Whether the store has not answered for longer than it may."""
        since = self.store.since
        return since is not None and time.monotonic() - since > self.store.seconds

    @property
    def ready(self) -> bool:
        """Whether streams are loaded, and the store works."""
        return self._is_open and not self.is_stalled and self._thread.is_alive()

    async def submit(self, job: ForecastJob | OutcomeJob | Query, size: int = 1) -> Any:
        """What became of a job; raises `Problem` or `NotOwner` where it was refused as a whole."""
        if self.is_stalled:
            raise _down(UNAVAILABLE)
        if self.queued + size > self.max_queued:
            self.metrics.queue_full += 1
            raise Problem(503, "too much waits to be stored; send the same request again", retry_after=1)
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        self.queued += size
        self._unanswered[future] = size
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

    async def give_up(self) -> None:
        """Answer all that waits while the store is stalled; the event loop asks for it now and then."""
        if self.is_stalled and self._unanswered:
            log.error("store stalled", extra={"waiting": self.queued})
            self._resolve([(future, _down(STALLED)) for future in self._unanswered])

    async def stop(self, within: float) -> None:
        """Finish what waits, write snapshots, and let go of the store; or leave it, where that takes too long."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join, within)
        if self._thread.is_alive():
            log.error("no snapshot at the end", extra={"reason": "the store does not answer"})

    def _run(self) -> None:
        going = True
        while going:
            taken: list[_Waiting] = []
            try:
                if not self._is_open:
                    self._reopen()
                going = self._take(taken)
                self._answer(taken, self._round([one for one in taken if not one.future.done()]))
                self._prune()
            except Exception as error:
                log.exception("the writer failed")
                self.metrics.failures += 1
                self._lost(error)
                problem = f"something unforeseen happened ({type(error).__name__}); send the same request again"
                self._answer(taken, {one.future: Problem(500, problem) for one in taken})
        self._finish()

    def _take(self, taken: list[_Waiting]) -> bool:
        """Add all that waits, after waiting a moment for the first; whether to go on."""
        size = 0
        try:
            some = self._queue.get(timeout=IDLE)
            while some is not None:
                taken += some
                size += sum(one.size for one in some)
                if size >= AT_ONCE:
                    return True
                some = self._queue.get_nowait()
        except queue.Empty:
            return True
        return False

    def _round(self, taken: list[_Waiting]) -> dict[asyncio.Future[Any], Any]:
        """What became of each job; queries come last."""
        jobs = [one for one in taken if not callable(one.job)]
        played = self._store([one.job for one in jobs]) if jobs else []  # type: ignore[misc]
        results = dict(zip((one.future for one in jobs), played, strict=True))
        return results | {one.future: self._query(one.job) for one in taken if callable(one.job)}

    def _store(self, jobs: Sequence[ForecastJob | OutcomeJob]) -> list[Any]:
        """Play jobs and store what they did; where that fails, nothing has happened."""
        if not self._is_open:
            return [_down(UNAVAILABLE)] * len(jobs)
        started = time.perf_counter()
        try:
            played = play(jobs, self.registry, time.time(), self.snapshot_every)
            if played.commits:
                committing = time.perf_counter()
                self.store.commit(played.commits)
                self.metrics.commit_seconds.add(time.perf_counter() - committing)
                self.metrics.commit_cases.add(sum(len(one.cases) for one in played.commits))
        except StoreDown as error:
            self._lost(error)
            return [_down(UNAVAILABLE)] * len(jobs)
        except NotOwner as error:
            self.registry.forget(*{job.stream for job in jobs}, error.name)
            moved = "this stream has just moved to another worker; send the same request again"
            return [Problem(503, moved, retry_after=1)] * len(jobs)
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
        for one in played.commits:
            if one.snapshot is not None:
                self.registry.streams[one.name].snapshot_seq = one.seq
                self.metrics.snapshots += 1
        for job, answer in zip(jobs, played.answers, strict=True):
            if isinstance(answer, list):
                self.metrics.answered(job.stream, "forecast" if isinstance(job, ForecastJob) else "outcome", answer)
        self.metrics.round_seconds.add(time.perf_counter() - started)
        return list(played.answers)

    def _query(self, query: Query) -> Any:
        if not self._is_open:
            return _down(UNAVAILABLE)
        try:
            return query(self.registry)
        except StoreDown as error:
            self._lost(error)
            return _down(UNAVAILABLE)
        except Exception as error:
            return error

    def _answer(self, taken: list[_Waiting], results: dict[asyncio.Future[Any], Any]) -> None:
        assert self._loop is not None
        if taken and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, [(one.future, results.get(one.future)) for one in taken])

    def _resolve(self, results: list[tuple[asyncio.Future[Any], Any]]) -> None:
        for future, result in results:
            self.queued -= self._unanswered.pop(future, 0)
            # Whoever asked may have hung up, or was answered when the store stalled.
            if not future.done():
                future.set_result(result)

    def _lost(self, error: Exception) -> None:
        """The store failed: memory may be ahead of it, so memory goes."""
        log.error("store lost", extra={"reason": str(error)})
        self.metrics.store_losses += 1
        self._is_open = False
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
            self._is_open = True
        except StoreDown as error:
            log.error("store not open", extra={"reason": str(error)})
        except sc.SwapcalError as error:
            # No use in trying again: a version that cannot be read, for instance.
            self.refusal = error
            log.error("store refused", extra={"reason": str(error)})

    def _prune(self) -> None:
        """Now and then, delete cases that are older than the stream keeps them; a few at a time."""
        if not self._is_open or time.monotonic() - self._pruned < PRUNE_EVERY:
            return
        self._pruned = time.monotonic()
        try:
            for stream in self.registry.streams.values():
                before = self._now() - parse_delay(stream.spec.keep)[0]
                self.metrics.pruned += self.store.prune(stream.name, before, stream.snapshot_seq, PRUNE_AT_ONCE)
        except StoreDown as error:
            self._lost(error)

    def _now(self) -> float:
        """The time, but never ahead of how long it has run: what a clock that jumps deletes does not come back."""
        return min(time.time(), self._started[0] + time.monotonic() - self._started[1])

    def _finish(self) -> None:
        """Leave nothing to replay: an orderly stop ends with snapshots."""
        try:
            for name, stream in self.registry.streams.items():
                if stream.seq > stream.snapshot_seq:
                    self.store.commit([Commit(name, stream.epoch, stream.seq, (), (), stream.to_bytes())])
            self.registry.forget(*list(self.registry.streams))
            self.store.close()
        except Exception as error:
            log.error("no snapshot at the end", extra={"reason": str(error)})


def _down(detail: str) -> Problem:
    return Problem(503, detail, retry_after=1, store_down=True)
