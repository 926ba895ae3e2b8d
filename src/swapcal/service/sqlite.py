"""The store in one file: SQLite in WAL mode, every commit flushed to the disk before anybody is answered."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import swapcal as sc
from swapcal.service.schemas import StoreDown
from swapcal.service.store import CaseRow, Commit, Event, NotOwner, StoredStream, TokenRow

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
_CASE = "id, seq, request, forecast, created, y, y_seq, learned"
BUSY_SECONDS = 10.0


class Sqlite:
    """One file, one owner: whoever first takes a stream locks the file's name, so that a second server is refused.

    Parameters
    ----------
    path
        Of the file. The lock is a file beside it; WAL and shared memory are SQLite's own.
    """

    kind = "sqlite"

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._keys: dict[str, int] = {}

    def open(self) -> None:
        """Connect and make tables that are missing."""
        if self._db is not None:
            self._db.close()
        with _named(self.path):
            # Cases hold personal data: nobody else on the machine reads them.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA cache_size = -16384")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                db.close()
                raise sc.StateFileError(
                    f"{self.path} has tables of version {version} and this swapcal reads {SCHEMA_VERSION}; upgrade it"
                )
            db.executescript(_TABLES)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db, self._keys = db, {}

    def close(self) -> None:
        """Let go of file and lock."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

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

    def names(self) -> list[str]:
        """The streams that there are."""
        with _named(self.path):
            return [name for (name,) in self._connection.execute("SELECT name FROM streams ORDER BY name")]

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        self._own(name)
        with self._transaction() as db:
            found = db.execute("SELECT 1 FROM streams WHERE name = ?", (name,)).fetchone()
            if found is None:
                made = db.execute("INSERT INTO streams (name, spec, seq, epoch) VALUES (?, ?, 0, 0)", (name, spec))
                db.execute("INSERT INTO snapshots VALUES (?, 0, ?)", (made.lastrowid, snapshot))
        return found is None

    def drop(self, name: str, epoch: int) -> None:
        """Delete a stream and its cases."""
        with self._transaction() as db:
            key = self._key(name)
            db.execute("DELETE FROM cases WHERE stream = ?", (key,))
            db.execute("DELETE FROM snapshots WHERE stream = ?", (key,))
            db.execute("DELETE FROM streams WHERE key = ?", (key,))
        self._keys.pop(name, None)

    def acquire(self, name: str) -> StoredStream | None:
        """Become the owner under a new epoch."""
        self._own(name)
        with self._transaction() as db:
            db.execute("UPDATE streams SET epoch = epoch + 1 WHERE name = ?", (name,))
            row = db.execute(
                "SELECT name, spec, streams.seq, snapshot, snapshots.seq, epoch FROM streams JOIN snapshots "
                "ON stream = key WHERE name = ?",
                (name,),
            ).fetchone()
        return None if row is None else StoredStream(*row)

    def release(self, name: str) -> None:
        """Nothing to do: the file as a whole has one owner until it is closed."""

    def find(self, name: str, ids: Sequence[str]) -> dict[str, CaseRow]:
        """Those of the cases that there are."""
        with _named(self.path):
            # One statement for any number of ids: it is compiled once, and an id is never part of it.
            rows = self._connection.execute(
                f"SELECT {_CASE} FROM cases WHERE stream = ? AND id IN (SELECT value FROM json_each(?))",
                (self._key(name), json.dumps(list(ids))),
            )
            return {row[0]: CaseRow(*row) for row in rows}

    def events(self, name: str, after: int) -> Iterator[Event]:
        """The log behind event number `after`, in order."""
        query = (
            f"SELECT seq AS number, 0 AS outcome, {_CASE} FROM cases WHERE stream = :stream AND seq > :after "
            f"UNION ALL SELECT y_seq, 1, {_CASE} FROM cases WHERE stream = :stream AND y_seq > :after ORDER BY number"
        )
        with _named(self.path):
            for row in self._connection.execute(query, {"stream": self._key(name), "after": after}):
                yield Event(row[0], bool(row[1]), CaseRow(*row[2:]))

    def commit(self, commits: Sequence[Commit]) -> None:
        """All of it in one transaction."""
        with self._transaction() as db:
            for one in commits:
                key = self._key(one.name)
                fenced = db.execute("UPDATE streams SET seq = ? WHERE key = ? AND epoch = ?", (one.seq, key, one.epoch))
                if fenced.rowcount != 1:
                    raise NotOwner(one.name, None)
                db.executemany(
                    "INSERT INTO cases (stream, id, seq, request, forecast, created) VALUES (?, ?, ?, ?, ?, ?)",
                    [(key, row.id, row.seq, row.request, row.packed, row.created) for row in one.cases],
                )
                db.executemany(
                    "UPDATE cases SET y = ?, y_seq = ?, learned = ? WHERE stream = ? AND id = ?",
                    [(row.y, row.y_seq, row.learned, key, row.id) for row in one.outcomes],
                )
                if one.snapshot is not None:
                    db.execute(
                        "UPDATE snapshots SET snapshot = ?, seq = ? WHERE stream = ?", (one.snapshot, one.seq, key)
                    )

    def prune(self, name: str, before: float, seq: int, limit: int) -> int:
        """Delete old cases whose events are all in the snapshot."""
        with self._transaction() as db:
            done = db.execute(
                "DELETE FROM cases WHERE rowid IN (SELECT rowid FROM cases WHERE stream = ? AND seq <= ? "
                "AND created < ? AND (y_seq IS NULL OR y_seq <= ?) ORDER BY seq LIMIT ?)",
                (self._key(name), seq, before, seq, limit),
            )
        return done.rowcount

    def tokens(self) -> list[TokenRow]:
        """The tokens that there are."""
        with _named(self.path):
            rows = self._connection.execute(
                "SELECT key, name, digest, scopes, streams, created FROM tokens ORDER BY created"
            )
            return [TokenRow(*row) for row in rows]

    def add_token(self, token: TokenRow) -> None:
        """Add a token."""
        with self._transaction() as db:
            db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", token)

    def remove_token(self, key: str) -> bool:
        """Delete a token; False if there is none."""
        with self._transaction() as db:
            return db.execute("DELETE FROM tokens WHERE key = ?", (key,)).rowcount == 1

    def _key(self, name: str) -> int:
        """The number that stands for a stream in its cases; none where there is no such stream."""
        if name not in self._keys:
            row = self._connection.execute("SELECT key FROM streams WHERE name = ?", (name,)).fetchone()
            if row is None:
                return -1
            self._keys[name] = row[0]
        return self._keys[name]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self._connection
        with _named(self.path):
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """SQLite's errors, and the system's, as one."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreDown(f"{path} cannot be used ({error})") from error
