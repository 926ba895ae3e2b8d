"""`python turn_cost.py`: what taking turns costs an event, as a share of it, measured in one run."""

import sys
import time
from collections.abc import Callable

import numpy as np

import swapcal as sc

N_EVENTS, N_TIMES = 200, 200


def nanoseconds(call: Callable[[], None]) -> float:
    """Of one call."""
    began = time.perf_counter_ns()
    for _ in range(N_EVENTS):
        call()
    return (time.perf_counter_ns() - began) / N_EVENTS


def main() -> None:
    """Events with arrays, which take no turn, with lists, which take two, and two turns alone; the least of many."""
    forecaster, array = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=1), np.array([1.0, 0.0, 1.0])

    def turns() -> None:
        for _ in range(2):
            with forecaster._turns:
                pass

    calls = (
        lambda: forecaster.update(forecaster.predict(array, 0.3), 0.5),
        lambda: forecaster.update(forecaster.predict([1.0, 0.0, 1.0], 0.3), 0.5),
        turns,
    )
    compiled, listed, alone = np.min([[nanoseconds(call) for call in calls] for _ in range(N_TIMES)], axis=0)
    sys.stdout.write(
        f"an event with arrays takes no turn ({compiled:.0f} ns); one with lists takes two, {alone:.0f} of "
        f"{listed:.0f} ns: {100.0 * alone / listed:.1f} %\n"
    )


if __name__ == "__main__":
    main()
