"""Which case is which round: the cases that wait, and the last ones that no longer do."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import StateFileError
from swapcal.packing import Layout, Shape, Words
from swapcal.stepping.case_events import EXPIRED, LEARNED, Id

__all__ = ["Book", "Done"]


class Done(NamedTuple):
    """A case that no longer waits: the forecast that it had, and whether it was learned from or has expired."""

    forecast: float
    code: int


class Book:
    """Cases by id. Those that no longer wait are kept for a while, so that a repeated outcome does not look unknown.

    Parameters
    ----------
    remember : int
        How many cases that no longer wait are kept.
    """

    __slots__ = ("done", "open", "remember")

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.open: dict[Id, int] = {}
        self.done: dict[Id, Done] = {}

    def close(self, closed: Iterable[tuple[Id, Done]]) -> None:
        """These no longer wait; the oldest of all that do not are forgotten."""
        for name, done in closed:
            self.open.pop(name, None)
            self.done.pop(name, None)
            self.done[name] = done
        for name in list(self.done)[: max(len(self.done) - self.remember, 0)]:
            del self.done[name]

    def arrays(self) -> tuple[bytes, list[Any]]:
        """The header and the arrays."""
        ids = [list(self.open), list(self.done), self.remember]
        done = list(self.done.values())
        expired = np.array([each.code == EXPIRED for each in done], dtype=np.uint8)
        rounds = np.array(list(self.open.values()), dtype=np.int64)
        values = np.array([each.forecast for each in done], dtype=np.float64)
        return json.dumps(ids, separators=(",", ":")).encode(), [rounds, values, expired]

    @classmethod
    def read(cls, header: bytes, words: Words) -> "Book":
        """The book that `arrays` wrote."""
        waiting, done, remember = json.loads(header)
        sound = type(remember) is int and 0 <= len(done) <= remember < 1 << 31
        sound = sound and all(type(name) in (str, int) for name in (*waiting, *done))
        if not sound or len({*waiting, *done}) != len(waiting) + len(done):
            raise StateFileError("these bytes of a stream are damaged: its cases contradict each other")
        shapes = {"rounds": Shape((len(waiting),), np.int64), "values": Shape((len(done),))}
        arrays = words.arrays(Layout.of({**shapes, "expired": Shape((len(done),), np.uint8)}, loose=("values",)))
        book = cls(remember)
        book.open = dict(zip(waiting, arrays["rounds"].tolist(), strict=True))
        codes = [EXPIRED if each else LEARNED for each in arrays["expired"].tolist()]
        book.done = {k: Done(v, c) for k, v, c in zip(done, arrays["values"].tolist(), codes, strict=True)}
        return book
