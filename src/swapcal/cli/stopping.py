"""Ctrl-C during a run: it finishes its batch, and says how to go on."""

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

__all__ = ["afterwards", "interruptible"]

PATIENCE = 3.0
"""Seconds that somebody who pressed Ctrl-C may have to wait for the end of a batch, or for input from a pipe."""


def afterwards(out: Path | None, state: Path | None) -> str:
    """What to say after Ctrl-C: where the rows are, and how to go on."""
    if state is None:
        kept = "nothing was written" if out is None else f"the rows so far are in {out}"
        return f"{kept}, and without --state it cannot go on from there"
    arguments = [each for each in sys.argv[1:] if each not in ("--fresh", "--overwrite")]
    return f"go on with  {shlex.join(['swapcal', *arguments])}"


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """While this lasts, Ctrl-C lets the run finish its batch; at once if it is pressed again or a batch takes long."""
    pressed, asked = False, time.monotonic()

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed or time.monotonic() - asked > PATIENCE:
            raise KeyboardInterrupt
        pressed = True

    def stop() -> bool:
        nonlocal asked
        asked = time.monotonic()
        return pressed

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
