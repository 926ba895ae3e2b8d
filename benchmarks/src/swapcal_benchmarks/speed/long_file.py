"""A long CSV file through the commands, on one core: rows a second and peak memory, reading and writing included."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["measure", "play", "write"]

_GROUPS = ("region", "plan", "device")
_VALUES = (10, 6, 4)  # 20 groups in all
_FASTEST, _LARGEST = 300_000.0, 500.0
_CHUNK = 500_000


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """`swapcal audit` and `swapcal run` on a file of as many rows as a long run has rounds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.csv"
        write(path, sizes.long)
        return [row for command in ("audit", "run") for row in _rows(command, path, sizes.long)]


def write(path: Path, n_rows: int) -> None:
    """A file with a 0/1 outcome, a model's forecast, and 20 groups in three columns of text."""
    rng = np.random.default_rng(7)
    with path.open("w", encoding="utf-8") as file:
        file.write("y,p," + ",".join(_GROUPS) + "\n")
        for start in range(0, n_rows, _CHUNK):
            m = min(_CHUNK, n_rows - start)
            p = rng.beta(2.0, 3.0, m)
            parts = [rng.integers(0, k, m) for k in _VALUES]
            y = rng.random(m) < np.clip(p + 0.1 * (parts[0] == 0), 0.0, 1.0)
            lines = zip(y.astype(int).tolist(), p.tolist(), *(part.tolist() for part in parts), strict=True)
            file.writelines(f"{y},{p:.4f},region {a},plan {b},device {c}\n" for y, p, a, b, c in lines)


def _rows(command: str, path: Path, n_rows: int) -> list[TargetRow]:
    what = f"swapcal {command}, {n_rows:,} CSV rows, 20 groups, one core"
    child = [sys.executable, "-m", "swapcal_benchmarks.speed.long_file", command, str(path)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return [
            TargetRow(section="files", what=what, target=_FASTEST, least=True, unit="rows/s", note=f"it failed: {why}")
        ]
    found = json.loads(done.stdout)
    speed = n_rows / found["seconds"]
    note = f"{found['seconds']:.1f} seconds of processor time, the start of the program included"
    return [
        TargetRow(section="files", what=what, measured=speed, target=_FASTEST, least=True, unit="rows/s", note=note),
        TargetRow(section="files", what=f"{what}: peak", measured=found["peak"] / 1e6, target=_LARGEST, unit="MB"),
    ]


def play(command: str, path: Path) -> dict[str, float]:
    """Run a command in this process, on one core; processor seconds and peak bytes."""
    import resource

    from swapcal.tables.records import read
    from swapcal.tasks import audit as auditing
    from swapcal.tasks.config import TaskConfig
    from swapcal.tasks.runner import run
    from swapcal_benchmarks.speed.memory import peak

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    question = TaskConfig("y", "p", groups=_GROUPS, learn=False)
    if command == "audit":
        auditing.audit(read(str(path), columns=question.columns), question)
    else:
        run(str(path), question, out=path.with_suffix(".out.csv"), overwrite=True)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"seconds": used.ru_utime + used.ru_stime, "peak": float(peak())}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(sys.argv[1], Path(sys.argv[2]))))
