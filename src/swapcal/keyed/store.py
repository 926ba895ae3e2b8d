"""States by key in one SQLite file: what does not fit into memory, and what outlives the process."""

import sqlite3
from collections.abc import Iterator
from os import PathLike, fspath

from swapcal.errors import StateFileError

__all__ = ["Store"]


class Store:
    """A table from key to bytes, with the time at which each was last used."""

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else fspath(path)
        self._file = sqlite3.connect(":memory:" if self.path is None else self.path, check_same_thread=False)
        try:
            if self.path is not None:
                self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS states (key TEXT PRIMARY KEY, used REAL NOT NULL, state BLOB NOT NULL)"
            )
            self._file.execute("CREATE TABLE IF NOT EXISTS plain (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise StateFileError(f"{self.path} is not a store of keyed states ({error})") from error

    def put(self, states: list[tuple[str, float, bytes]]) -> None:
        """Store or replace states, in one transaction."""
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", states)

    def get(self, key: str) -> tuple[float, bytes] | None:
        """When a key was last used, and its state; None if it has none here."""
        found: tuple[float, bytes] | None = self._file.execute(
            "SELECT used, state FROM states WHERE key = ?", (key,)
        ).fetchone()
        return found

    def drop(self, before: float) -> list[str]:
        """Forget the keys that were last used before a time; their names."""
        with self._file:
            gone = [key for (key,) in self._file.execute("SELECT key FROM states WHERE used < ?", (before,))]
            self._file.execute("DELETE FROM states WHERE used < ?", (before,))
        return gone

    def forget(self, key: str) -> None:
        """Forget one key."""
        with self._file:
            self._file.execute("DELETE FROM states WHERE key = ?", (key,))

    def keys(self) -> Iterator[str]:
        """The keys that have a state here."""
        return (key for (key,) in self._file.execute("SELECT key FROM states ORDER BY key"))

    def write(self, name: str, value: bytes) -> None:
        """Keep something that belongs to no key."""
        with self._file:
            self._file.execute("INSERT OR REPLACE INTO plain VALUES (?, ?)", (name, value))

    def read(self, name: str) -> bytes | None:
        """What `write` kept."""
        found = self._file.execute("SELECT value FROM plain WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def settle(self) -> None:
        """Move what was written from the journal into the file itself."""
        if self.path is not None:
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
