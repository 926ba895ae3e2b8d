"""The store in one file: SQLite in WAL mode, every commit flushed to the disk before anybody is answered."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import swapcal as sc
from swapcal.service.schemas import StoreDown
from swapcal.service.store import CASE, CaseRow, Commit, EventStore, NotOwner, StoredStream

SCHEMA_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS streams (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec BLOB NOT NULL, seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL);
-- Apart from its stream, as SQLite writes a row as a whole, and `seq` changes with every commit.
CREATE TABLE IF NOT EXISTS snapshots (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, snapshot BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS cases (
    stream INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, request BLOB NOT NULL, forecast BLOB NOT NULL,
    created REAL NOT NULL, y REAL, y_seq INTEGER, learned REAL, UNIQUE (stream, id));
CREATE INDEX IF NOT EXISTS cases_seq ON cases (stream, seq);
CREATE INDEX IF NOT EXISTS cases_y_seq ON cases (stream, y_seq) WHERE y_seq IS NOT NULL;
CREATE TABLE IF NOT EXISTS tokens (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, scopes TEXT NOT NULL, streams TEXT NOT NULL,
    created REAL NOT NULL);
"""
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

    def __init__(self, path: str, *, seconds: float = 10.0) -> None:
        super().__init__(seconds)
        self.path = Path(path)
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._files: list[tuple[int, int] | None] = []

    def open(self) -> None:
        """Connect and make tables that are missing."""
        if self._db is not None:
            self._db.close()
            self._db = None
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
            db.executescript(_TABLES)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db, self._keys, self._files = db, {}, [_file(self.path), _file(f"{self.path}-wal")]

    def close(self) -> None:
        """Let go of file and lock."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

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

    def _execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        return self._connection.execute(_dialect(statement), parameters)

    def _cursor(self, statement: str, *parameters: Any) -> AbstractContextManager[sqlite3.Cursor]:
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

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreDown("the store is not open")
        return self._db

    def _own(self, name: str) -> None:
        if self._lock is not None:
            return
        lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise NotOwner(name, None) from None
        self._lock = lock

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        with self._guard():
            self._own(name)
            with self._transaction():
                if self._key(name) >= 0:
                    return False
                self._execute("INSERT INTO streams (name, spec, seq, epoch) VALUES (?, ?, 0, 0)", name, spec)
                self._execute("INSERT INTO snapshots VALUES (?, 0, ?)", self._key(name), snapshot)
                return True

    def _delete(self, key: int) -> None:
        super()._delete(key)
        self._execute("DELETE FROM snapshots WHERE stream = ?", key)

    def acquire(self, name: str) -> StoredStream | None:
        """Become the owner under a new epoch."""
        with self._guard():
            self._own(name)
            with self._transaction():
                self._execute("UPDATE streams SET epoch = epoch + 1 WHERE name = ?", name)
                row = self._execute(
                    "SELECT name, spec, streams.seq, snapshot, snapshots.seq, epoch FROM streams JOIN snapshots "
                    "ON stream = key WHERE name = ?",
                    name,
                ).fetchone()
        return None if row is None else StoredStream(*row)

    def find(self, name: str, ids: Sequence[str]) -> dict[str, CaseRow]:
        """Those of the cases that there are."""
        # One statement for any number of ids: it is compiled once, and an id is never part of it.
        statement = f"SELECT {CASE} FROM cases WHERE stream = ? AND id IN (SELECT value FROM json_each(?))"
        with self._guard():
            return {row[0]: CaseRow(*row) for row in self._execute(statement, self._key(name), json.dumps(list(ids)))}

    def _write(self, key: int, commit: Commit) -> None:
        self._connection.executemany(
            "INSERT INTO cases (stream, id, seq, request, forecast, created) VALUES (?, ?, ?, ?, ?, ?)",
            [(key, row.id, row.seq, row.request, row.packed, row.created) for row in commit.cases],
        )
        self._connection.executemany(
            "UPDATE cases SET y = ?, y_seq = ?, learned = ? WHERE stream = ? AND id = ?",
            [(row.y, row.y_seq, row.learned, key, row.id) for row in commit.outcomes],
        )
        if commit.snapshot is not None:
            self._execute(
                "UPDATE snapshots SET snapshot = ?, seq = ? WHERE stream = ?", commit.snapshot, commit.seq, key
            )


def _file(path: str | Path) -> tuple[int, int] | None:
    """Which file a path leads to; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@cache
def _dialect(statement: str) -> str:
    return statement.replace("swapcal_", "")
