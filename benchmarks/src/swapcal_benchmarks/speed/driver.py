"""The kernels as a program without Python: compiled from the repository's sources, with the package's flags."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FLAGS", "PROGRAM", "SOURCES", "WORKLOADS", "Driver", "compiler", "missing"]

PROGRAM = Path(__file__).resolve().parents[3] / "cpp" / "driver.cpp"
SOURCES = PROGRAM.parents[2] / "cpp"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""As in CMakeLists.txt, so that the program runs the instructions that the package runs."""

WORKLOADS = {
    "finite": "Finite(20), dense",
    "linear": "Linear(10)",
    "sparse": "Finite(10,000), 10 entries active",
    "hint": "Finite(20), dense, with a hint and 10 levels",
}
ROUNDS = 2048
"""Of the block that the driver plays, as in driver.cpp."""


def missing(*, counting: bool) -> str | None:
    """Why there can be no driver here, or no counting; None if all is there."""
    if not (PROGRAM.exists() and SOURCES.exists()):
        return "the sources of the kernels are not here; run it in the repository"
    if shutil.which("c++") is None:
        return "there is no C++ compiler (c++)"
    if counting and shutil.which("valgrind") is None:
        return "valgrind is not installed"
    return None


def compiler() -> str:
    """The first line that the compiler says of itself."""
    done = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


@dataclass(frozen=True, slots=True)
class Driver:
    """A compiled driver."""

    path: Path

    @classmethod
    def built(cls, folder: Path) -> "Driver":
        """Compile it into `folder`; seconds."""
        path = folder / "swapcal-driver"
        command = ["c++", *FLAGS, f"-I{SOURCES}", str(PROGRAM), "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        return cls(path)

    def play(self, workload: str, passes: int) -> tuple[float, str]:
        """The sum of the forecasts of all passes, and the vector instructions that the machine picked."""
        total, vectors = self._said([str(self.path), workload, str(passes)]).split()
        return float(total), vectors

    def single_precision_gain(self, passes: int) -> tuple[float, float]:
        """How many times faster float32 state is: dense, and sparse in a wide class."""
        dense, sparse = self._said([str(self.path), "float32", str(passes)]).split()
        return float(dense), float(sparse)

    def instructions(self, workload: str) -> float:
        """Instructions that a round takes: what two more passes over the block add, so that set-up does not count."""
        return (self._counted(workload, 3) - self._counted(workload, 1)) / (2 * ROUNDS)

    def _counted(self, workload: str, passes: int) -> int:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(self.path)]
        done = subprocess.run([*command, workload, str(passes)], check=True, capture_output=True, text=True)
        found = re.search(r"Collected : (\d+)", done.stderr)
        if found is None:
            raise RuntimeError(f"valgrind gave no count: {done.stderr.strip().splitlines()[-1:]}")
        return int(found.group(1))

    @staticmethod
    def _said(command: list[str]) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
