"""Which value of which key has which position: handed out in the order of the stream, never taken back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from swapcal.errors import StateFileError
from swapcal.tables.definitions import Key
from swapcal.typing import IntArray

__all__ = ["KeyedColumn", "Token", "Vocabulary"]

Token = tuple[str | None, ...]
"""The texts of a key's columns; None where one is missing."""

_OTHER, _MISSING = -2, -1
_CANDIDATES = 50
"""Values of a key that are counted before they are frequent enough, per position: what lies beyond is never frequent,
and a column of identifiers must not fill the memory."""


class KeyedColumn(NamedTuple):
    """A key's column: row t has `tokens[codes[t]]`, and code -1 is missing. Tokens are distinct; some may not occur."""

    codes: IntArray
    tokens: Sequence[Token]


@dataclass(slots=True, eq=False)
class Vocabulary:
    """Positions of values, shared by all keys.

    A value gets the next position when it is seen for the `rare`-th time, while there are free ones; before that, and
    for good if there are none left, it is its key's "other". Room for every key's "other" and "missing" is reserved
    from the start, so that they are always there when they are needed.
    """

    names: list[str]
    n: int
    rare: int
    keys: Sequence[Key]
    label: Callable[[int, Token], str]
    known: list[dict[Token, int]] = field(init=False)
    counts: list[dict[Token, int]] = field(init=False)
    other: list[int] = field(init=False)
    missing: list[int] = field(init=False)
    refused: str | None = field(default=None, init=False)
    """Title of the first key that had a value and no position for it."""

    def __post_init__(self) -> None:
        self.known, self.counts = [{} for _ in self.keys], [{} for _ in self.keys]
        # An intersection has no "missing" of its own: a missing part is a value like others. 0 says that none is due.
        self.other, self.missing = [-1 for _ in self.keys], [-1 if len(key.columns) == 1 else 0 for key in self.keys]

    @property
    def free(self) -> int:
        """How many positions new values may still take."""
        return self.n - len(self.names) - self.other.count(-1) - self.missing.count(-1)

    def add(self, key: int, token: Token) -> int:
        """The next position, for a value; there must be a free one."""
        position = self.known[key][token] = len(self.names)
        self.names.append(self.label(key, token))
        self.counts[key].pop(token, None)
        if not self.free:
            self.counts = [{} for _ in self.keys]
        return position

    def place(self, key: int, token: Token | None) -> int:
        """The position of one value of a key, None if it is missing; learns it."""
        if token is None:
            return self._missing(key)
        position = self.known[key].get(token)
        if position is not None:
            return position
        if self.free > 0:
            counts = self.counts[key]
            count = counts.get(token, 0) + 1
            if count >= self.rare:
                return self.add(key, token)
            if token in counts or self._room(key) > 0:
                counts[token] = count
        elif self.refused is None:
            self.refused = self.keys[key].title
        return self._other(key)

    def place_many(self, columns: Sequence[KeyedColumn]) -> list[IntArray]:
        """Positions of many rows, key by key; what `place` gives row by row, and learns what it learns.

        Positions are handed out in the order of rows and, within a row, of keys; only the rows at which something gets
        one are looked at one by one.
        """
        tables = [self._table(key, column) for key, column in enumerate(columns)]
        starts: list[dict[int, int]] = [{} for _ in columns]
        events: list[tuple[int, int, int]] = []
        pending: list[list[tuple[Token, int]]] = []
        for key, (column, table) in enumerate(zip(columns, tables, strict=True)):
            found, waiting = self._events(key, column, table)
            events += found
            pending.append(waiting)
        for row, key, what in sorted(events):
            if what == _MISSING:
                tables[key][-1] = self._missing(key)
            elif what == _OTHER:
                self._other(key)
            elif self.free > 0:
                tables[key][what] = self.add(key, columns[key].tokens[what])
                starts[key][what] = row
            else:
                self.refused = self.refused or self.keys[key].title
                self._other(key)
        if self.free > 0:
            for key, waiting in enumerate(pending):
                for token, count in waiting:
                    self.counts[key][token] = self.counts[key].get(token, 0) + count
        return [self._placed(key, *parts) for key, parts in enumerate(zip(columns, tables, starts, strict=True))]

    def _table(self, key: int, column: KeyedColumn) -> IntArray:
        """Position of each token, -1 where it has none; the last entry is that of a missing value, whose code is -1."""
        get = self.known[key].get
        return np.array([*(get(token, -1) for token in column.tokens), self.missing[key]], dtype=np.int64)

    def _events(
        self, key: int, column: KeyedColumn, table: IntArray
    ) -> tuple[list[tuple[int, int, int]], list[tuple[Token, int]]]:
        """(row, key, what) wherever a position may be needed, and the counts of values that stay too rare for one."""
        events: list[tuple[int, int, int]] = []
        waiting: list[tuple[Token, int]] = []
        if (table >= 0).all():
            return events, waiting
        if table[-1] < 0:
            gone = np.flatnonzero(column.codes < 0)
            events += [(int(gone[0]), key, _MISSING)] if gone.size else []
        unknown = table < 0
        unknown[-1] = False
        rows = np.flatnonzero(unknown[column.codes])
        if not rows.size:
            return events, waiting
        if self.free <= 0:
            self.refused = self.refused or self.keys[key].title
            return [*events, (int(rows[0]), key, _OTHER)], waiting
        order = np.argsort(column.codes[rows], kind="stable")
        rows, codes = rows[order], column.codes[rows[order]]
        begin = np.flatnonzero(np.diff(codes, prepend=-1))
        found = sorted(
            zip(rows[begin].tolist(), begin.tolist(), np.diff(begin, append=len(rows)).tolist(), strict=True)
        )
        room, counts = self._room(key), self.counts[key]
        for first, at, count in found:
            token = column.tokens[codes[at]]
            if self.rare > 1 and token not in counts:
                room -= 1
                if room < 0:
                    events.append((first, key, _OTHER))
                    continue
            need = self.rare - counts.get(token, 0)
            if count >= need:
                events.append((int(rows[at + need - 1]), key, int(codes[at])))
            else:
                waiting.append((token, count))
            if need > 1:
                events.append((first, key, _OTHER))
        return events, waiting

    def _placed(self, key: int, column: KeyedColumn, table: IntArray, starts: dict[int, int]) -> IntArray:
        """The positions of a column's rows; a value that got its position in these rows had none before."""
        positions = np.where(table < 0, self.other[key], table)[column.codes]
        if self.rare > 1 and starts:
            since = np.zeros(len(table), dtype=np.int64)
            since[list(starts)] = list(starts.values())
            positions[np.arange(len(positions)) < since[column.codes]] = self.other[key]
        return positions

    def _room(self, key: int) -> int:
        """How many further values of a key may be counted."""
        return _CANDIDATES * self.n - len(self.known[key]) - len(self.counts[key])

    def _other(self, key: int) -> int:
        if self.other[key] < 0:
            self.other[key] = len(self.names)
            self.names.append(f"{self.keys[key].title}=other")
        return self.other[key]

    def _missing(self, key: int) -> int:
        if self.missing[key] < 0:
            self.missing[key] = len(self.names)
            self.names.append(f"{self.keys[key].title}=missing")
        return self.missing[key]

    def copy(self) -> "Vocabulary":
        """An independent copy."""
        twin = Vocabulary(list(self.names), self.n, self.rare, self.keys, self.label)
        twin.known, twin.counts = [dict(one) for one in self.known], [dict(one) for one in self.counts]
        twin.other, twin.missing, twin.refused = list(self.other), list(self.missing), self.refused
        return twin

    def unite(self, other: "Vocabulary") -> IntArray:
        """Take in the values that another one of the same keys has found; where each of its positions is here.

        Its own positions stay; room is made for all. Values that were too rare in both stay so until they are seen.
        """
        owners = [(at, key, token) for key, one in enumerate(other.known) for token, at in one.items()]
        self.n += max(0, sum(token not in self.known[key] for _, key, token in owners) - self.free)
        positions = np.arange(len(other.names), dtype=np.int64)
        found: list[tuple[int, int, Token | str]] = list(owners)
        found += [(at, key, "other") for key, at in enumerate(other.other) if at > 0]
        found += [(at, key, "missing") for key, at in enumerate(other.missing) if at > 0]
        for at, key, what in sorted(found, key=lambda one: one[0]):
            if isinstance(what, str):
                positions[at] = self._other(key) if what == "other" else self._missing(key)
            else:
                positions[at] = self.known[key][what] if what in self.known[key] else self.add(key, what)
        for mine, theirs, known in zip(self.counts, other.counts, self.known, strict=True):
            for token, count in theirs.items():
                if token not in known and self.free > 0:
                    mine[token] = min(mine.get(token, 0) + count, self.rare - 1)
        self.refused = self.refused or other.refused
        return positions

    def spec(self) -> dict[str, Any]:
        """Plain data."""
        listed = [[[[*token], at] for token, at in one.items()] for one in self.known]
        counted = [[[[*token], count] for token, count in one.items()] for one in self.counts]
        specials = {"other": list(self.other), "missing": list(self.missing)}
        return {"names": list(self.names), "known": listed, "counts": counted, **specials}

    def restore(self, spec: Any) -> None:
        """Take over what `spec` wrote, if that is what a vocabulary of these keys can have learned."""
        names, other, missing = list(spec["names"]), list(spec["other"]), list(spec["missing"])
        known = [{tuple(token): at for token, at in one} for one in spec["known"]]
        counts = [{tuple(token): count for token, count in one} for one in spec["counts"]]
        lengths = {len(part) for part in (other, missing, known, counts)}
        if lengths != {len(self.keys)} or not self._sound(names, other, missing, known, counts):
            raise StateFileError("this state file is damaged: the positions of its groups contradict each other")
        self.names, self.other, self.missing, self.known, self.counts = names, other, missing, known, counts

    def _sound(self, names: list[Any], other: list[Any], missing: list[Any], known: Any, counts: Any) -> bool:
        """Whether every position has one owner, and the name of that."""
        owners: dict[int, str] = {}
        claims = 0
        for key, definition in enumerate(self.keys):
            single = len(definition.columns) == 1
            for token, count in counts[key].items():
                if not _is_token(token, definition) or type(count) is not int or not 0 < count < self.rare:
                    return False
            for token, at in known[key].items():
                if type(at) is not int or not _is_token(token, definition):
                    return False
                owners[at], claims = self.label(key, token), claims + 1
            for at, what in ((other[key], "other"), (missing[key], "missing")):
                if type(at) is not int or (what == "missing" and not single and at != 0):
                    return False
                if at != -1 and (what == "other" or single):
                    owners[at], claims = f"{definition.title}={what}", claims + 1
        first = len(self.names)
        free = self.n - len(names) - other.count(-1) - missing.count(-1)
        everywhere = claims == len(owners) and sorted(owners) == list(range(first, len(names)))
        return everywhere and free >= 0 and names == [*self.names, *(owners[at] for at in sorted(owners))]


def _is_token(token: Token, key: Key) -> bool:
    """Whether it may be a value of the key: texts, and None for a part of several that is missing."""
    texts = all(part is None or (type(part) is str and part != "") for part in token)
    return texts and len(token) == len(key.columns) and token != (None,)
