"""Errors as the stream goes by: noted after 100 rounds, and each time after a quarter more."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from swapcal.typing import Float64Array

__all__ = ["ErrorHistory"]

FIRST, PACE = 100, 1.25


class ErrorHistory:
    """Errors at fixed numbers of rounds, whatever the batches are.

    Batches are cut where a note is due: some 50 times in ten million rounds.

    Examples
    --------
    >>> history, done = ErrorHistory(), 0
    >>> for part in history.parts(done, np.ones(150, dtype=bool)):
    ...     done = part.stop
    ...     if history.due(done):
    ...         history.note(done, 0.5)
    >>> history.series(done, 0.25)
    [array([100., 125., 150.]), array([0.5 , 0.5 , 0.25])]
    """

    def __init__(self) -> None:
        self._due = FIRST
        self._noted: list[list[float]] = []

    def parts(self, n_rounds: int, known: npt.NDArray[np.bool_]) -> Iterator[slice]:
        """Parts of the next rows, cut where a note is due; `known` says which rows are rounds."""
        rounds, start = n_rounds + np.cumsum(known), 0
        while start < len(known):
            end = int(np.searchsorted(rounds, self._due)) + 1 if rounds[-1] >= self._due else len(known)
            yield slice(start, end)
            start = end

    def due(self, n_rounds: int) -> bool:
        """Whether it is time for a note."""
        return n_rounds >= self._due

    def note(self, n_rounds: int, *errors: float) -> None:
        """Keep the errors after so many rounds."""
        self._noted.append([float(n_rounds), *errors])
        self._due = int(self._due * PACE)

    def series(self, n_rounds: int, *now: float) -> list[Float64Array]:
        """Rounds, and each error at these; the last entry is how it is `now`."""
        noted = self._noted
        if not noted or noted[-1][0] < n_rounds:
            noted = [*noted, [float(n_rounds), *now]]
        return list(np.array(noted, dtype=np.float64).T)

    def arrays(self) -> dict[str, Float64Array]:
        """The whole state, as arrays that may be saved; `restore` goes on from it."""
        return {"noted": np.array(self._noted, dtype=np.float64), "due": np.array([float(self._due)])}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Go on from what `arrays` held; a ValueError where notes and the next one do not belong together."""
        noted, due = arrays["noted"].tolist(), FIRST
        for _ in noted:
            due = int(due * PACE)
        if arrays["due"].tolist() != [float(due)]:
            raise ValueError("the next note of errors is due at another number of rounds")
        self._noted, self._due = noted, due
