"""The store for several workers: PostgreSQL, one owner for each stream, fenced by an epoch.

A worker owns a stream while its connection holds the stream's advisory lock; when the worker dies, the lock goes with
its connection, and the next one that asks takes over. Each owner has a higher epoch, and every commit names its own:
whoever was thought dead and comes back writes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import psycopg

import swapcal as sc
from swapcal.service.schemas import StoreDown
from swapcal.service.store import CASE, CaseRow, Commit, EventStore, NotOwner, StoredStream

SCHEMA_VERSION = 1
_LOCK = "hashtextextended('swapcal.stream.' || ?::text, 0)"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS swapcal_version (version INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS swapcal_streams (key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "name TEXT NOT NULL UNIQUE, spec BYTEA NOT NULL, seq BIGINT NOT NULL, snapshot BYTEA NOT NULL, "
    "snapshot_seq BIGINT NOT NULL, epoch BIGINT NOT NULL, owner TEXT)",
    'CREATE TABLE IF NOT EXISTS swapcal_cases (stream BIGINT NOT NULL, id TEXT COLLATE "C" NOT NULL, '
    "seq BIGINT NOT NULL, request BYTEA NOT NULL, forecast BYTEA NOT NULL, created DOUBLE PRECISION NOT NULL, "
    "y DOUBLE PRECISION, y_seq BIGINT, learned DOUBLE PRECISION, PRIMARY KEY (stream, id))",
    "CREATE INDEX IF NOT EXISTS swapcal_cases_seq ON swapcal_cases (stream, seq)",
    "CREATE INDEX IF NOT EXISTS swapcal_cases_y_seq ON swapcal_cases (stream, y_seq) WHERE y_seq IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS swapcal_tokens (key TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, "
    "scopes TEXT NOT NULL, streams TEXT NOT NULL, created DOUBLE PRECISION NOT NULL)",
)


class Postgres(EventStore):
    """Tables `swapcal_*` in one database, shared by any number of workers.

    Parameters
    ----------
    address
        As libpq takes it; what it leaves out comes from PGPASSWORD and the like.
    owner
        Where other workers can reach this one, if they are to pass requests on.
    seconds
        How long a statement may take, and how long it may wait for a lock.
    """

    errors = (psycopg.Error,)
    not_down = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)

    def __init__(self, address: str, owner: str | None = None, *, seconds: float = 10.0) -> None:
        super().__init__(seconds)
        self.address, self.owner = address, owner
        self._db: psycopg.Connection[Any] | None = None

    def open(self) -> None:
        """Connect and make tables that are missing."""
        self.close()
        milliseconds = int(1000 * self.seconds)
        with self._guard():
            db = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=max(2, int(self.seconds)),
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=milliseconds,
                # A generic plan for hundreds of ids scans the table; and a dead worker must lose its locks soon.
                options="-c plan_cache_mode=force_custom_plan -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 "
                "-c tcp_keepalives_count=3 -c synchronous_commit=on -c client_encoding=UTF8 "
                f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
            )
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(hashtextextended('swapcal.tables', 0))")
                for statement in _TABLES:
                    db.execute(statement)
                row = db.execute("SELECT version FROM swapcal_version").fetchone()
                if row is None:
                    db.execute("INSERT INTO swapcal_version VALUES (%s)", (SCHEMA_VERSION,))
        if row is not None and row[0] != SCHEMA_VERSION:
            db.close()
            raise sc.StateFileError(
                f"the database has tables of version {row[0]} and this swapcal reads {SCHEMA_VERSION}; upgrade it"
            )
        self._db, self._keys = db, {}

    def close(self) -> None:
        """Let go of the connection, and with it of all streams."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _reason(self, error: Exception) -> str:
        # Without the address, which may hold a password.
        return f"PostgreSQL cannot be used ({type(error).__name__})"

    def _execute(self, statement: str, *parameters: Any) -> psycopg.Cursor[Any]:
        return self._connection.execute(_dialect(statement), parameters)

    @contextmanager
    def _cursor(self, statement: str, *parameters: Any) -> Iterator[psycopg.Cursor[Any]]:
        db = self._connection
        with db.transaction(), db.cursor("swapcal_log", binary=True) as cursor:
            cursor.execute(_dialect(statement), parameters)
            yield cursor

    def _transaction(self) -> AbstractContextManager[object]:
        return self._connection.transaction()

    @property
    def _connection(self) -> psycopg.Connection[Any]:
        if self._db is None or self._db.closed:
            raise StoreDown("there is no connection to the database")
        return self._db

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        with self._guard():
            cursor = self._execute(
                "INSERT INTO swapcal_streams (name, spec, seq, snapshot, snapshot_seq, epoch) "
                "VALUES (?, ?, 0, ?, 0, 0) ON CONFLICT (name) DO NOTHING",
                name, spec, snapshot,
            )  # fmt: skip
            return cursor.rowcount == 1

    def _delete(self, key: int) -> None:
        # Many cases take their time.
        self._execute("SET LOCAL statement_timeout = 0")
        super()._delete(key)

    def acquire(self, name: str) -> StoredStream | None:
        """Become the owner under a new epoch."""
        with self._guard():
            owner = self._execute("SELECT owner FROM swapcal_streams WHERE name = ?", name).fetchone()
            if owner is None:
                return None
            if self._execute(f"SELECT pg_try_advisory_lock({_LOCK})", name).fetchone() != (True,):
                raise NotOwner(name, owner[0])
            row = self._execute(
                "UPDATE swapcal_streams SET epoch = epoch + 1, owner = ? WHERE name = ? "
                "RETURNING name, spec, seq, snapshot, snapshot_seq, epoch",
                self.owner, name,
            ).fetchone()  # fmt: skip
            self._keys.pop(name, None)
            if row is None:
                self.release(name)
                return None
            return StoredStream(*row)

    def release(self, name: str) -> None:
        """Let others own the stream."""
        super().release(name)
        with self._guard():
            self._execute(f"SELECT pg_advisory_unlock({_LOCK})", name)

    def find(self, name: str, ids: Sequence[str]) -> dict[str, CaseRow]:
        """Those of the cases that there are."""
        statement = f"SELECT {CASE} FROM swapcal_cases WHERE stream = %s AND id = ANY(%s)"
        with self._guard():
            rows = self._connection.execute(statement, (self._key(name), list(ids)), binary=True)
            return {row[0]: CaseRow(*row) for row in rows}

    def _write(self, key: int, commit: Commit) -> None:
        db = self._connection
        if commit.cases:
            cases = ((row.id, row.seq, row.request, row.packed, row.created) for row in commit.cases)
            db.execute(
                "INSERT INTO swapcal_cases (stream, id, seq, request, forecast, created) SELECT %s, * FROM "
                "unnest(%b::text[], %b::bigint[], %b::bytea[], %b::bytea[], %b::float8[])",
                (key, *map(list, zip(*cases, strict=True))),
            )
        if commit.outcomes:
            outcomes = ((row.id, row.y, row.y_seq, row.learned) for row in commit.outcomes)
            db.execute(
                "UPDATE swapcal_cases AS c SET y = new.y, y_seq = new.y_seq, learned = new.learned FROM "
                "unnest(%b::text[], %b::float8[], %b::bigint[], %b::float8[]) AS new (id, y, y_seq, learned) "
                "WHERE c.stream = %s AND c.id = new.id",
                (*map(list, zip(*outcomes, strict=True)), key),
            )
        if commit.snapshot is not None:
            snapshot = "UPDATE swapcal_streams SET snapshot = %b, snapshot_seq = %s WHERE key = %s"
            db.execute(snapshot, (commit.snapshot, commit.seq, key))


@cache
def _dialect(statement: str) -> str:
    return statement.replace("?", "%s")
