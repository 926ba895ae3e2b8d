"""Independent jobs over the cores: results in the order of the requests, whatever finishes first."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import wait as wait_for
from typing import Protocol, TypeVar

__all__ = ["Job", "run_jobs"]

R = TypeVar("R", covariant=True)


class Job(Protocol[R]):
    """Something to be computed in any process: all it needs is in it, its seed too."""

    @property
    def cost(self) -> float:
        """How long it takes beside other jobs, in any unit; for the progress bar, and to start long ones first."""

    def __call__(self) -> R:
        """The result."""


def run_jobs(
    jobs: Sequence[Job[R]], *, workers: int | None = None, done: Callable[[float], None] | None = None
) -> list[R]:
    """The results of `jobs`, in their order.

    Parameters
    ----------
    jobs : sequence of Job
        They must survive pickling unless `workers` is 1.
    workers : int, optional
        Processes; all cores by default. With 1 everything happens in this process.
    done : callable, optional
        Told the cost of every job that has finished.

    Notes
    -----
    On an error or an interrupt the jobs that wait are dropped, those that run are ended, and the exception goes on to
    the caller. Processes are started fresh and not forked, because a progress bar is a thread and a fork may copy its
    locks.
    """
    count = min(workers or os.cpu_count() or 1, max(len(jobs), 1))
    report = done or (lambda cost: None)
    if count == 1:
        results = []
        for job in jobs:
            results.append(job())
            report(job.cost)
        return results
    return _in_processes(jobs, count, report)


def _in_processes(jobs: Sequence[Job[R]], count: int, report: Callable[[float], None]) -> list[R]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_obey)
    try:
        # Long jobs first, so that no core is left with one at the end.
        order = sorted(range(len(jobs)), key=lambda k: -jobs[k].cost)
        futures: dict[Future[R], int] = {pool.submit(jobs[k]): k for k in order}
        results: dict[int, R] = {}
        waiting = set(futures)
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                k = futures[future]
                results[k] = future.result()
                report(jobs[k].cost)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()
    return [results[k] for k in range(len(jobs))]


def _obey() -> None:
    """In a worker: leave Ctrl-C, which reaches every process of a terminal, to the one that waits; and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers, and they would wait for jobs, and hold its files, forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
