"""What a start costs: imports, and the command's help."""

import subprocess
import sys
import time

from swapcal_benchmarks.speed.ratio import median
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["measure"]

_TIMED = "import time; start = time.perf_counter(); {work}; print(time.perf_counter() - start)"


def measure(sizes: SpeedSizes) -> list[TargetRow]:
    """Imports without the interpreter's own start, which both sides share; commands with it."""
    numpy = "import numpy"
    imports = (
        ("import swapcal", "import swapcal", 1.3, "names are loaded when they are first used"),
        ("import swapcal; swapcal.Forecaster", "import swapcal; swapcal.Forecaster", None, "NumPy and the engine"),
    )
    rows = []
    for what, work, target, note in imports:
        ratio = median([_inside(work) / _inside(numpy) for _ in range(sizes.starts)])
        rows.append(ratio.row("startup", what, numpy, target, note=note))
    bare = [sys.executable, "-c", "import typer"]
    ours = [sys.executable, "-m", "swapcal.cli", "--help"]
    ratio = median([_whole(ours) / _whole(bare) for _ in range(sizes.starts)])
    against = 'python -c "import typer"'
    rows.append(ratio.row("startup", "swapcal --help", against, 2.0))
    return rows


def _inside(work: str) -> float:
    """Seconds that a piece of code takes in a fresh interpreter."""
    command = [sys.executable, "-c", _TIMED.format(work=work)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _whole(command: list[str]) -> float:
    """Seconds from the start of a process to its end."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start
