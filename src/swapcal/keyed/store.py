"""States by key in one SQLite file: what does not fit into memory, and what outlives the process."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, ClassVar

from swapcal.errors import StateFileError


class Store:
    """A table from key to bytes, with the time at which each was last used. A file belongs to one store at a time."""

    journal: ClassVar[str] = "WAL"
    synchronous: ClassVar[str] = "FULL"

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else fspath(path)
        place = ":memory:" if self.path is None else self.path
        self._file = sqlite3.connect(place, timeout=0.0, check_same_thread=False)
        try:
            if self.path is not None:
                # Before the journal, so that the lock is of the file itself: it ends with the process at the latest.
                self._file.execute("PRAGMA locking_mode=EXCLUSIVE")
                self._file.execute(f"PRAGMA journal_mode={self.journal}")
                self._file.execute(f"PRAGMA synchronous={self.synchronous}")
            self._file.execute("BEGIN EXCLUSIVE")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS states (key TEXT PRIMARY KEY, used REAL NOT NULL, state BLOB NOT NULL)"
            )
            self._file.execute("CREATE TABLE IF NOT EXISTS plain (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
            self._file.commit()
        except sqlite3.DatabaseError as error:
            self._file.close()
            if "locked" in str(error):
                used = f"{self.path} is in use, here or in another process, and two would undo each other's rounds"
                raise StateFileError(f"{used}; close the other one first, or give each a file of its own") from None
            raise StateFileError(f"{self.path} is not a store of keyed states ({error})") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it, or nothing and a named error."""
        try:
            with self._file:
                yield self._file
        except sqlite3.Error as error:
            where = {None: "in memory", "": "in a temporary file"}.get(self.path, self.path)
            raise StateFileError(f"the store {where} could not be used: {error}") from error

    def put(self, states: list[tuple[str, float, bytes]]) -> None:
        """Store or replace states, in one transaction."""
        with self._transaction() as file:
            file.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", states)

    def get(self, key: str) -> tuple[float, bytes] | None:
        """When a key was last used, and its state; None if it has none here."""
        with self._transaction() as file:
            row = file.execute("SELECT used, state FROM states WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], bytes(row[1]))

    def drop(self, before: float) -> list[str]:
        """Forget the keys that were last used before a time; their names."""
        with self._transaction() as file:
            gone = [key for (key,) in file.execute("SELECT key FROM states WHERE used < ?", (before,))]
            file.execute("DELETE FROM states WHERE used < ?", (before,))
        return gone

    def forget(self, key: str) -> None:
        """Forget one key."""
        with self._transaction() as file:
            file.execute("DELETE FROM states WHERE key = ?", (key,))

    def keys(self) -> Iterator[str]:
        """The keys that have a state here."""
        return (key for (key,) in self._file.execute("SELECT key FROM states ORDER BY key"))

    def write(self, name: str, value: bytes) -> None:
        """Keep something that belongs to no key."""
        with self._transaction() as file:
            file.execute("INSERT OR REPLACE INTO plain VALUES (?, ?)", (name, value))

    def read(self, name: str) -> bytes | None:
        """What `write` kept."""
        row = self._file.execute("SELECT value FROM plain WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def settle(self) -> None:
        """Move what was written from the journal into the file itself."""
        if self.path is not None:
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ScratchStore(Store):
    """States that end with the process: nothing waits for the disk, and the file has no name to be left over."""

    journal, synchronous = "OFF", "OFF"

    def __init__(self) -> None:
        super().__init__("")


class StateStore(Store):
    """What a run by key has done: states by key, what was asked, the rows that are done, where the output ends.

    Every commit is one transaction, so a kill leaves the last. There is one file and no other beside it.
    """

    journal = "DELETE"

    def begun(self) -> dict[str, Any] | None:
        """The plain data of the last commit; None before the first."""
        done = self.read("done")
        return None if done is None else dict(json.loads(done))

    def claim(self, out: str) -> bool:
        """Say which output this run is about to begin; whether a run that was killed before its first commit had."""
        before = self.read("claim")
        self.write("claim", out.encode())
        return before == out.encode()

    def audits(self) -> tuple[bytes, bytes]:
        """Of all rows that are done, before and after."""
        return self.read("before") or b"", self.read("after") or b""

    def states(self, keys: Iterable[str]) -> list[tuple[str, bytes]]:
        """The states of those keys that have one."""
        stored = {key: self.get(key) for key in keys}
        return [(key, one[1]) for key, one in stored.items() if one is not None]

    def __len__(self) -> int:
        n: int = self._file.execute("SELECT count(*) FROM states").fetchone()[0]
        return n

    def commit(self, states: list[tuple[str, bytes]], plain: dict[str, Any], audits: tuple[bytes, bytes]) -> None:
        """All of it, or on a kill nothing."""
        with self._transaction() as file:
            file.executemany("INSERT OR REPLACE INTO states VALUES (?, 0.0, ?)", states)
            rows = [("done", json.dumps(plain).encode()), ("before", audits[0]), ("after", audits[1])]
            file.executemany("INSERT OR REPLACE INTO plain VALUES (?, ?)", rows)
