"""The processes: a part of the rows for each, and their answers."""

import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from swapcal.errors import SwapcalError
from swapcal.jobs.by_key.player import serve

__all__ = ["Team"]

_PLAYER = "swapcal.jobs.by_key.player"


class Team:
    """So many processes, each with a `Player`; they start while the caller goes on, and end with the `with` block.

    Questions are answered in their order, and further ones can be asked before the answers to the first are taken: so
    nobody waits for the slowest of each part.
    """

    def __init__(self, n: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="swapcal-")
        # A server that has imported everything once and is then copied: the import takes as long as 100,000 rows.
        served = sys.platform == "linux"
        context: Any = multiprocessing.get_context("forkserver" if served else "spawn")
        if served:
            context.set_forkserver_preload([_PLAYER])
        self._pipes, self._processes = [], []
        for _ in range(n):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __len__(self) -> int:
        return len(self._pipes)

    def begin(self, template: bytes, resident: int, n_bins: int) -> None:
        """Tell every process what to play; comes first, and has no answer."""
        for number, pipe in enumerate(self._pipes):
            pipe.send((template, Path(self._folder.name), number, resident, n_bins))

    def ask(self, what: str, arguments: Sequence[Any]) -> None:
        """Send a question to each process; `answers` must follow."""
        for pipe, argument in zip(self._pipes, arguments, strict=True):
            try:
                pipe.send((what, argument))
            except BrokenPipeError:
                list(self.answers())  # says why
                raise

    def answers(self) -> Iterator[Any]:
        """What each process says to the first question that waits; an error in one is raised here."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            try:
                answer = pipe.recv()
            except (EOFError, ConnectionResetError):
                process.join(5)
                raise SwapcalError(
                    f"a process of this run has died (exit code {process.exitcode}); the same command goes on"
                ) from None
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        self._folder.cleanup()

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
