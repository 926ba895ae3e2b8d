"""Peak memory of a long `run`, in a process of its own: `python -m swapcal_benchmarks.speed.memory KIND ROUNDS`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite
from swapcal.properties import Mean
from swapcal_benchmarks.speed import timed_streams
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["KINDS", "measure", "peak", "play"]

KINDS = {
    "dense": "Finite(10), dense rows",
    "hinted": "Finite(10), dense rows, a hint each",
    "sparse": "Finite(1,000), 5 entries active, compressed sparse rows",
}

_MEGABYTE = 1e6
_TARGET = 200.0
_STATUS = Path("/proc/self/status")


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """For each kind of input, the largest memory of the whole process without the input arrays."""
    return [_row(kind, sizes) for kind in KINDS]


def _row(kind: str, sizes: SpeedSizes) -> TargetRow:
    what, against = f"{KINDS[kind]}, {sizes.long:,} rounds", "peak of the process beyond the input arrays"
    command = [sys.executable, "-m", "swapcal_benchmarks.speed.memory", kind, str(sizes.long)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return TargetRow(
            section="memory", what=what, against=against, target=_TARGET, unit="MB", note=f"it failed: {why}"
        )
    found = json.loads(done.stdout)
    beyond = (found["peak"] - found["inputs"]) / _MEGABYTE
    why = "; compressed rows are checked as a whole, in arrays as long as theirs" if kind == "sparse" else ""
    return TargetRow(
        section="memory",
        what=what,
        against=against,
        measured=beyond,
        target=_TARGET,
        unit="MB",
        note=f"input arrays: {found['inputs'] / _MEGABYTE:,.0f} MB; the process before the run: "
        f"{(found['before'] - found['inputs']) / _MEGABYTE:,.0f} MB beyond them" + (why if beyond > _TARGET else ""),
    )


def play(kind: str, n_rounds: int) -> dict[str, int]:
    """Run a forecaster over a stream; bytes of the inputs, and the process's peaks before and after."""
    contexts: Any
    if kind == "sparse":
        contexts, y = timed_streams.sparse(n_rounds, 1_000, 5)
        arrays = [contexts.indptr, contexts.indices, contexts.data, y]
        forecaster = Forecaster(Mean(), Finite(1_000), horizon=n_rounds, seed=1)
    else:
        contexts, y = timed_streams.dense(n_rounds, 10)
        arrays = [contexts, y]
        forecaster = Forecaster(Mean(), Finite(10), horizon=n_rounds, seed=1)
    hints = np.full(n_rounds, 0.5) if kind == "hinted" else None
    if hints is not None:
        arrays.append(hints)
    before = peak()
    forecaster.run(contexts, y, hints)
    return {"inputs": sum(array.nbytes for array in arrays), "before": before, "peak": peak()}


def peak() -> int:
    """The most bytes of memory that this process has held so far."""
    if _STATUS.exists():
        # Unlike what getrusage says, it does not remember the process that started this one.
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(sys.argv[1], int(sys.argv[2]))))
