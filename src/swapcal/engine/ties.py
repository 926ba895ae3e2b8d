"""Notices labels that heap on a few values, in bounded memory and at next to no cost."""

import warnings

import numpy as np

from swapcal.errors import AtomsWarning
from swapcal.typing import Float64Array

_SHARE = 0.02  # the share of one value that is called an atom
_FIRST_LOOK = 200
_WINDOW = 1000


class TieDetector:
    """Looks at the last 1,000 labels (or all there are) after 200, 400, 800, ... of them, and warns once.

    Between looks nothing is kept: labels far from the next look are only counted.

    Parameters
    ----------
    advice, labels_are : str
        What the warning says last, and how it names what heaps up.
    """

    __slots__ = ("advice", "labels", "labels_are", "n", "warned")

    def __init__(
        self,
        advice: str = "Pass jitter= the spacing of the labels to spread them out",
        labels_are: str = "labels are",
    ) -> None:
        self.advice, self.labels_are = advice, labels_are
        self.labels: list[float] = []
        self.n = 0
        self.warned = False

    def add(self, y: float) -> None:
        """Count a label, and warn if one value has come too often."""
        self.n += 1
        look = self._next_look(self.n)
        if self.n > look - _WINDOW:
            self.labels.append(y)
        if self.n == look:
            self._look()

    def add_many(self, labels: Float64Array) -> None:
        """`add` for each label; a warning that is raised as an error leaves no trace."""
        before = list(self.labels), self.n, self.warned
        done = 0
        try:
            while done < len(labels):
                look = self._next_look(self.n + 1)
                part = labels[done : done + look - self.n]
                kept = min(self.n + len(part) - (look - _WINDOW), len(part))
                if kept > 0:
                    self.labels.extend(part[len(part) - kept :].tolist())
                self.n += len(part)
                done += len(part)
                if self.n == look:
                    self._look()
        except AtomsWarning:
            self.labels, self.n, self.warned = before
            raise

    @staticmethod
    def _next_look(n: int) -> int:
        """The first look after `n - 1` labels."""
        return _FIRST_LOOK << max(0, (-(-n // _FIRST_LOOK) - 1).bit_length())

    def _look(self) -> None:
        values, counts = np.unique(self.labels, return_counts=True)
        n_looked, self.labels = len(self.labels), []
        most = int(np.argmax(counts))
        if not self.warned and counts[most] > _SHARE * n_looked:
            self.warned = True
            warnings.warn(
                f"{counts[most]} of {n_looked} {self.labels_are} equal to {values[most]:g}, and the quantile's "
                f"guarantee assumes labels without such atoms. {self.advice}",
                AtomsWarning,
                stacklevel=5,
            )

    def arrays(self) -> dict[str, Float64Array]:
        """The state as one array: the two numbers, then the labels."""
        return {"labels": np.array([self.n, self.warned, *self.labels], dtype=np.float64)}

    def restore(self, arrays: dict[str, Float64Array]) -> None:
        """Continue from the state in `arrays`."""
        n, warned, *self.labels = arrays["labels"].tolist()
        self.n, self.warned = int(n), bool(warned)
