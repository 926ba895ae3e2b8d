"""Two forecasters in two threads, beside work of which it is known that threads share the cores."""

import hashlib
import os
import time
from collections.abc import Callable
from threading import Thread

from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Linear
from swapcal.properties import Mean
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.ratio import compare, median
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["measure"]

_BYTES = 30_000_000
_AGAINST = "the same one after the other, by the wall clock"


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """`run` twice at once, and as a control a hash, which lets go of Python's lock too."""
    X, y = timed_streams.dense(max(sizes.rounds, 100_000), 10)

    def run(k: int) -> Callable[[], object]:
        forecaster = Forecaster(Mean(), Linear(10), horizon=len(y), seed=k)
        return lambda: forecaster.run(X, y)

    data = bytes(_BYTES)

    def digest(k: int) -> Callable[[], object]:
        return lambda: hashlib.sha256(data).digest()

    # In turns, so that both see what else the machine is doing.
    turns = [(_pair(run), _pair(digest)) for _ in range(sizes.repeats)]
    ours, control = (median(ratios) for ratios in zip(*turns, strict=True))
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    note = f"0.5 is as good as two free cores can do; {os.cpu_count()} cores, load {load} at the time"
    return [
        ours.row("threads", "two forecasters in two threads", _AGAINST, note=note),
        control.row("threads", "a control: two SHA-256 sums in two threads", _AGAINST),
    ]


def _pair(job: Callable[[int], Callable[[], object]]) -> float:
    """The time of two jobs at once over that of two jobs in turn."""

    def together() -> Callable[[], None]:
        workers = [Thread(target=job(k)) for k in range(2)]

        def work() -> None:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        return work

    def in_turn() -> Callable[[], object]:
        jobs = [job(k) for k in range(2)]
        return lambda: [each() for each in jobs]

    return compare(together, in_turn, 1, clock=time.perf_counter).measured
