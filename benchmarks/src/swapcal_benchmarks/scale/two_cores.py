"""`swapcal run --by` on one core and on two, and for few keys and many, one after the other."""

import contextlib
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

__all__ = ["ManyKeys", "TwoCores", "many_keys", "two_cores"]


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
    with tempfile.TemporaryDirectory() as folder:
        path, total = Path(folder) / "rows.csv", n_keys * n_rows
        _write(path, n_keys, total)
        found: dict[int, list[list[float]]] = {1: [], 2: []}
        for _ in range(repetitions):
            for n, results in found.items():
                command = [sys.executable, "-m", "swapcal_benchmarks.scale.two_cores", str(path), str(n)]
                told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                results.append(json.loads(told))
    (one, one_cpu), (two, two_cpu) = (np.min(found[n], axis=0).tolist() for n in (1, 2))
    return TwoCores(total, n_keys, one, two, one_cpu, two_cpu, os.getloadavg()[0])


class ManyKeys(NamedTuple):
    """Seconds, processor seconds and the most memory (MB, of all processes) of a run by key."""

    keys: int
    rows: int
    seconds: float
    cpu: float
    memory: float


def many_keys(n_keys: int, n_rows: int) -> ManyKeys:
    """A run on two cores over rows of keys in any order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        _write(path, n_keys, n_keys * n_rows)
        command = [sys.executable, "-m", "swapcal_benchmarks.scale.two_cores", str(path), "2"]
        most = 0.0
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
            assert run.stdout is not None
            while run.poll() is None:
                most = max(most, _memory(run.pid))
                time.sleep(0.2)
            seconds, cpu = json.loads(run.stdout.read())
    return ManyKeys(n_keys, n_rows, seconds, cpu, most)


def _memory(session: int) -> float:
    """Megabytes that the processes of a session have to themselves, and their shares of what they have together."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                if os.getsid(int(entry.name)) == session:
                    lines = (entry / "smaps_rollup").read_text().splitlines()
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024.0


def _write(path: Path, n_keys: int, total: int) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, n_keys, total), (rng.random(total) < 0.4).astype(int), rng.random(total).round(4)]
    columns += [rng.choice(["f", "m"], total), rng.choice(["old", "young", "none"], total)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["store", "late", "score", "sex", "age"])
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


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
