"""The processes: a part of the rows for each, and their answers."""

import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from swapcal.errors import SwapcalError
from swapcal.jobs.by_key.player import serve

__all__ = ["Team"]


class Team:
    """So many processes, each with a `Player`; they end with the `with` block."""

    def __init__(self, n: int, template: bytes, resident: int, n_bins: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="swapcal-")
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        for number in range(n):
            ours, theirs = context.Pipe()
            settings = (template, Path(self._folder.name), number, resident, n_bins)
            process = context.Process(target=serve, args=(theirs, *settings), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __len__(self) -> int:
        return len(self._pipes)

    def ask(self, what: str, arguments: Sequence[Any]) -> None:
        """Send a question to each process; `answers` must follow."""
        for pipe, argument in zip(self._pipes, arguments, strict=True):
            pipe.send((what, argument))

    def answers(self) -> Iterator[Any]:
        """What each process says; an error in one is raised here."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            try:
                answer = pipe.recv()
            except EOFError:
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
