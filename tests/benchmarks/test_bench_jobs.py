"""Jobs of the benchmarks in processes of their own: errors reach the caller, and nobody outlives a parent."""

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from swapcal.errors import InvalidInput
from swapcal_benchmarks import cores as bench_jobs


@dataclass(frozen=True)
class Raising:
    error: BaseException
    cost: float = 1.0

    def __call__(self) -> None:
        raise self.error


@dataclass(frozen=True)
class Sleeping:
    """Writes the number of its process, and takes longer than anybody waits for it."""

    path: str
    cost: float = 1.0

    def __call__(self) -> None:
        Path(self.path).write_text(str(os.getpid()))
        time.sleep(1200.0)


def sleep_twice(paths: list[str]) -> None:
    """One job for each path, in two processes."""
    bench_jobs.run_jobs([Sleeping(path) for path in paths], workers=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_and_interrupts_in_jobs_reach_the_caller(workers: int) -> None:
    with pytest.raises(InvalidInput, match="this job fails"):
        bench_jobs.run_jobs([Raising(InvalidInput("this job fails"))] * 2, workers=workers)
    if workers == 1:
        with pytest.raises(KeyboardInterrupt):
            bench_jobs.run_jobs([Raising(KeyboardInterrupt())], workers=1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes where Linux shows them")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    parent = multiprocessing.get_context("spawn").Process(target=sleep_twice, args=([str(each) for each in files],))
    parent.start()
    try:
        assert _soon(lambda: all(each.exists() and each.read_text() for each in files))
    finally:
        parent.kill()
        parent.join()
    workers = [int(each.read_text()) for each in files]
    assert _soon(lambda: not any(_runs(pid) for pid in workers))


def _soon(met: Callable[[], bool], seconds: float = 600.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not met():
        time.sleep(0.05)
    return met()


def _runs(pid: int) -> bool:
    """Whether a process is there and no mere entry that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
