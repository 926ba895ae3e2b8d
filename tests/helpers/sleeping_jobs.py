"""Jobs that say who they are and take long; in a file of their own, as processes import where their work is defined."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from swapcal_benchmarks.cores import run_jobs

__all__ = ["sleep_twice"]


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
    run_jobs([Sleeping(path) for path in paths], workers=2)
