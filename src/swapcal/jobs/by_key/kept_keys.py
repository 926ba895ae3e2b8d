"""What a run by key has done so far, in one SQLite file: every commit is one transaction, so a kill leaves the last."""

import json
import sqlite3
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

from swapcal.errors import StateFileError

__all__ = ["KeptKeys"]


class KeptKeys:
    """States by key, and one line of plain data: what was asked, the rows that are done, where the output ends."""

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else fspath(path)
        self._file = sqlite3.connect(":memory:" if self.path is None else self.path)
        try:
            self._file.execute("CREATE TABLE IF NOT EXISTS states (key TEXT PRIMARY KEY, state BLOB NOT NULL)")
            self._file.execute("CREATE TABLE IF NOT EXISTS plain (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise StateFileError(
                f"{self.path} is not the state of a run by key ({error}); give another --state"
            ) from None

    def begun(self) -> dict[str, Any] | None:
        """The plain data of the last commit; None before the first."""
        found = self._file.execute("SELECT value FROM plain WHERE name = 'done'").fetchone()
        return None if found is None else dict(json.loads(found[0]))

    def audits(self) -> list[bytes]:
        """Of all rows that are done, before and after."""
        found = self._file.execute("SELECT value FROM plain WHERE name IN ('after', 'before') ORDER BY name DESC")
        return [bytes(value) for (value,) in found]

    def states(self, keys: Iterable[str]) -> list[tuple[str, bytes]]:
        """The states of those keys that have one."""
        ask = "SELECT state FROM states WHERE key = ?"
        found = ((key, self._file.execute(ask, (key,)).fetchone()) for key in keys)
        return [(key, bytes(row[0])) for key, row in found if row is not None]

    def __len__(self) -> int:
        n: int = self._file.execute("SELECT count(*) FROM states").fetchone()[0]
        return n

    def commit(self, states: list[tuple[str, bytes]], plain: dict[str, Any], audits: tuple[bytes, bytes]) -> None:
        """All of it, or on a kill nothing."""
        if self.path is None:
            return
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO states VALUES (?, ?)", states)
            rows = [("done", json.dumps(plain).encode()), ("before", audits[0]), ("after", audits[1])]
            self._file.executemany("INSERT OR REPLACE INTO plain VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
