"""`python event_cost.py`: what turns and marks cost an event, as a share of the instructions that it takes.

Needs valgrind, and a minute and a half. Each kind of call is counted in a process of its own, beside one that calls
nothing, so that the start of the interpreter does not count, and a busy machine does not matter.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np

import swapcal as sc

N_CALLS = 1000


def calls(kind: str) -> Callable[[], object]:
    """What is repeated."""
    forecaster, array = sc.Forecaster(sc.Mean(), sc.Finite(3), seed=1), np.array([1.0, 0.0, 1.0])
    single, kept = array.astype(np.float32), forecaster.predict(array, 0.3)
    for _ in range(50):
        forecaster.update(forecaster.predict(array, 0.3), 0.5)

    def event() -> None:
        forecaster.update(forecaster.predict(array, 0.3), 0.5)

    def read() -> None:
        forecaster.update(forecaster.predict(single, 0.3), 0.5)

    def turn() -> None:
        with forecaster._turns:
            pass

    # A mark is made within `predict`; called by itself it reads the forecast's fields besides, which `due` does not.
    made: dict[str, Callable[[], object]] = {
        "event": event,
        "read": read,
        "turn": turn,
        "mark": lambda: forecaster._engine.mark(kept),
        "due": lambda: forecaster._engine.due(),
        "nothing": lambda: None,
    }
    return made[kind]


def counted(kind: str) -> int:
    """Instructions of the whole process."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-W", "ignore"]
    done = subprocess.run(
        [*command, __file__, kind],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr[-500:]
    return int(found.group(1))


def main() -> None:
    """Print both shares."""
    total = {kind: counted(kind) for kind in ("event", "read", "turn", "mark", "due", "nothing")}
    event, read = ((total[kind] - total["nothing"]) / N_CALLS for kind in ("event", "read"))
    turns, mark = 2 * (total["turn"] - total["nothing"]) / N_CALLS, (total["mark"] - total["due"]) / N_CALLS
    sys.stdout.write(
        f"an event with arrays: {event:,.0f} instructions; no turn; its mark at most {mark:,.0f}, "
        f"{100.0 * mark / event:.1f} %\n"
        f"an event that Python has to read: {read:,.0f} instructions; its turns {turns:,.0f}, and with the mark "
        f"{100.0 * (turns + mark) / read:.1f} %\n"
    )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        call = calls(sys.argv[1])
        for _ in range(N_CALLS):
            call()
