"""`swapcal run --by` on one core and on two, on the same file, one after the other."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swapcal.tasks.by_key import run_by_key
from swapcal.tasks.config import TaskConfig

__all__ = ["TwoCores", "two_cores"]


class TwoCores(NamedTuple):
    """Seconds on one core and on two, the best of the repetitions; processor seconds; the load of the machine."""

    rows: int
    keys: int
    one: float
    two: float
    one_cpu: float
    two_cpu: float
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
        found: dict[int, list[list[float]]] = {1: [], 2: []}
        for _ in range(repetitions):
            for n, results in found.items():
                command = [sys.executable, "-m", "swapcal_benchmarks.scale.two_cores", str(path), str(n)]
                told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                results.append(json.loads(told))
    (one, one_cpu), (two, two_cpu) = (np.min(found[n], axis=0).tolist() for n in (1, 2))
    return TwoCores(total, n_keys, one, two, one_cpu, two_cpu, os.getloadavg()[0])


def _played(path: str, n: int) -> tuple[float, float]:
    """Seconds and processor seconds with `n` processes on `n` cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n])
    question = TaskConfig("late", "score", ["sex", "age", ("sex", "age")], low=0.0, high=1.0, by="store", seed=1)
    begun = time.perf_counter()
    found = run_by_key(path, question, processes=n)
    return time.perf_counter() - begun, found.seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_played(sys.argv[1], int(sys.argv[2]))))
