"""Which process plays which key: settled when a key is first seen, so that nobody has to count the rows before."""

from typing import Any

import numpy as np

from swapcal.tables.coded import Coded
from swapcal.typing import IntArray

__all__ = ["Owners"]


class Owners:
    """Keys by process. New keys of some rows are dealt out the heaviest first, each to who has least to do with them.

    So every part of a stream is spread as evenly as a greedy rule can: where all its keys are new, the load of the
    fullest is at most 4/3 of the best possible (Graham 1969).

    Parameters
    ----------
    n : int
        Number of processes.

    Examples
    --------
    >>> owners = Owners(2)
    >>> owners.deal(Coded(np.array([0, 0, 0, 1, 1, 2]), ("a", "b", "c")))
    (array([0, 1, 1]), ['a', 'b', 'c'])
    """

    __slots__ = ("_known", "_n")

    def __init__(self, n: int) -> None:
        self._n, self._known = n, dict[Any, int]()

    def __len__(self) -> int:
        return len(self._known)

    def deal(self, keys: Coded) -> tuple[IntArray, list[Any]]:
        """The process of each distinct key of some rows, in the order of `keys.values`; and which of them are new."""
        counts = np.bincount(keys.codes, minlength=len(keys.values))
        owner = np.array([self._known.get(key, -1) for key in keys.values], dtype=np.int64)
        loads = np.bincount(owner[owner >= 0], weights=counts[owner >= 0], minlength=self._n)
        fresh = np.flatnonzero((owner < 0) & (counts > 0))
        for place in fresh[np.argsort(-counts[fresh], kind="stable")].tolist():
            least = int(np.argmin(loads))
            self._known[keys.values[place]] = owner[place] = least
            loads[least] += counts[place]
        return np.maximum(owner, 0), [keys.values[place] for place in fresh.tolist()]
