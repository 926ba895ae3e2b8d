"""`swapcal run --by` with one process and with two, on the same file, one after the other."""

import csv
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swapcal.jobs.by_key import run_by_key
from swapcal.jobs.question import Question

__all__ = ["TwoCores", "two_cores"]


class TwoCores(NamedTuple):
    """Seconds of one process and of two, the best of the repetitions, and the load of the machine meanwhile."""

    rows: int
    keys: int
    one: float
    two: float
    load: float


def two_cores(n_keys: int, n_rows: int, *, repetitions: int = 2) -> TwoCores:
    """Keys with two columns of groups and a hint; the start of the processes is within the time."""
    rng = np.random.default_rng(0)
    total = n_keys * n_rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        columns = [rng.integers(0, n_keys, total), (rng.random(total) < 0.4).astype(int), rng.random(total).round(4)]
        columns += [rng.choice(["f", "m"], total), rng.choice(["old", "young", "none"], total)]
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["store", "late", "score", "sex", "age"])
            writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
        question = Question("late", "score", ["sex", "age", ("sex", "age")], low=0.0, high=1.0)
        best = {1: np.inf, 2: np.inf}
        for _ in range(repetitions):
            for processes in best:
                begun = time.perf_counter()
                run_by_key(path, question, "store", seed=1, processes=processes)
                best[processes] = min(best[processes], time.perf_counter() - begun)
    return TwoCores(total, n_keys, float(best[1]), float(best[2]), os.getloadavg()[0])
