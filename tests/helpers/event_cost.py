"""`python event_cost.py`: what marks and turns cost an event, as shares of it.

Marks in instructions, which valgrind counts (a minute of it): those of a mark in a program of the kernels alone, beside
those of a whole event, its call from Python included. Turns in nanoseconds, as threads do not count alike there: events
and turns alternate in one process, and the least of many times counts.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import swapcal as sc
from swapcal_benchmarks.speed.driver import Driver

N_EVENTS, N_CALLS, N_TIMES = 40_000, 100, 400
N_FUNCTIONS = 20


def play(n_events: int) -> None:
    """Events with arrays, as the compiled engine takes them."""
    rng = np.random.default_rng(0)
    rows, y = list(rng.uniform(-1.0, 1.0, (1000, N_FUNCTIONS))), rng.random(1000).tolist()
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(N_FUNCTIONS), seed=1)
    for t in range(n_events):
        forecaster.update(forecaster.predict(rows[t % 1000], 0.3), y[t % 1000])


def instructions(n_events: int) -> int:
    """Of a process that plays so many."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-W", "ignore"]
    done = subprocess.run([*command, __file__, str(n_events)], capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr[-500:]
    return int(found.group(1))


def nanoseconds(call: Callable[[], object]) -> float:
    """Of one call."""
    began = time.perf_counter_ns()
    for _ in range(N_CALLS):
        call()
    return (time.perf_counter_ns() - began) / N_CALLS


def turns() -> tuple[float, float]:
    """Nanoseconds of an event that Python has to read, and of its two turns."""
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(N_FUNCTIONS), seed=1)
    x = np.linspace(-1.0, 1.0, N_FUNCTIONS, dtype=np.float32)
    assert forecaster._engine.predict(x, 0.3, None) is None

    def event() -> None:
        forecaster.update(forecaster.predict(x, 0.3), 0.5)

    def two() -> None:
        with forecaster._turns:
            pass
        with forecaster._turns:
            pass

    read, taken = np.min([[nanoseconds(event), nanoseconds(two)] for _ in range(N_TIMES)], axis=0).tolist()
    return read, taken


def main() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as folder:
        mark = Driver.built(Path(folder)).instructions("marks")
    event = (instructions(1000 + N_EVENTS) - instructions(1000)) / N_EVENTS
    read, taken = turns()
    sys.stdout.write(
        f"an event with an array of {N_FUNCTIONS} takes no turn; its mark is {mark:,.0f} of {event:,.0f} instructions: "
        f"{100.0 * mark / event:.1f} %\n"
        f"an event that Python has to read takes two turns, {taken:,.0f} of {read:,.0f} ns: "
        f"{100.0 * taken / read:.1f} %\n"
    )


if __name__ == "__main__":
    play(int(sys.argv[1])) if len(sys.argv) > 1 else main()
