"""The store in one file: SQLite in WAL mode, every commit flushed to the disk before anybody is answered."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import swapcal as sc
from swapcal.service.schemas import StoreDown
from swapcal.service.store import TABLES, Commit, EventStore, NotOwner, translated

SCHEMA_VERSION = 1
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000", "cache_size = -16384")


class Sqlite(EventStore):
    """One file, one owner: whoever first takes a stream locks the file's name, so that a second server is refused.

    Parameters
    ----------
    path
        Of the file. The lock is a file beside it; WAL and shared memory are SQLite's own.
    seconds
        How long to wait for somebody else who writes to the file.
    """

    errors = (sqlite3.Error, OSError)
    not_down = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.NotSupportedError)
    among = "IN (SELECT value FROM json_each(?))"
    listed = staticmethod(json.dumps)
    dialect = (
        ("swapcal_", ""),
        ("BIGINT GENERATED ALWAYS AS IDENTITY", "INTEGER"),
        ("BIGINT", "INTEGER"),
        ("BYTEA", "BLOB"),
        ("DOUBLE PRECISION", "REAL"),
        (' COLLATE "C"', ""),
    )

    def __init__(self, path: str, *, seconds: float = 10.0) -> None:
        super().__init__(seconds)
        self.path = Path(path)
        self._held: int | None = None
        self._files: list[tuple[int, int] | None] = []

    def open(self) -> None:
        """Connect and make tables that are missing."""
        super().close()
        with self._guard():
            self._check_file()
            # Cases hold personal data: nobody else on the machine reads them.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            db = sqlite3.connect(self.path, timeout=self.seconds, isolation_level=None, check_same_thread=False)
            for pragma in _PRAGMAS:
                db.execute(f"PRAGMA {pragma}")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                db.close()
                raise sc.StateFileError(
                    f"{self.path} has tables of version {version} and this swapcal reads {SCHEMA_VERSION}; upgrade it"
                )
            for statement in TABLES:
                db.execute(translated(statement, self.dialect))
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db, self._keys, self._files = db, {}, [_file(self.path), _file(f"{self.path}-wal")]

    def close(self) -> None:
        """Let go of file and lock."""
        super().close()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _check(self) -> None:
        if self._db is not None:
            self._check_file(f"{self.path}-wal")

    def _check_file(self, *beside: str) -> None:
        """What is written to a file that has lost its name is lost; and another file is another service's."""
        now = [_file(self.path), *map(_file, beside)]
        if self._files and now != self._files[: len(now)]:
            raise StoreDown(
                f"{self.path} was deleted or replaced while it was in use; put it back, or start the service again"
            )

    def _reason(self, error: Exception) -> str:
        return f"{self.path} cannot be used ({error})"

    def _execute(self, statement: str, *parameters: Any) -> Any:
        return self._connection.execute(translated(statement, self.dialect), parameters)

    def _cursor(self, statement: str, *parameters: Any) -> AbstractContextManager[Any]:
        return nullcontext(self._execute(statement, *parameters))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        db = self._connection
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _lock(self, name: str) -> None:
        if self._held is not None:
            return
        lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise NotOwner(name, None) from None
        self._held = lock

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        with self._guard():
            self._lock(name)
            return super().create(name, spec, snapshot)

    def _write(self, key: int, commit: Commit) -> None:
        self._connection.executemany(
            "INSERT INTO cases (stream, id, seq, request, forecast, created) VALUES (?, ?, ?, ?, ?, ?)",
            [(key, row.id, row.seq, row.request, row.packed, row.created) for row in commit.cases],
        )
        self._connection.executemany(
            "UPDATE cases SET y = ?, y_seq = ?, learned = ? WHERE stream = ? AND id = ?",
            [(row.y, row.y_seq, row.learned, key, row.id) for row in commit.outcomes],
        )


def _file(path: str | Path) -> tuple[int, int] | None:
    """Which file a path leads to; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
