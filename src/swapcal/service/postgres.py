"""The store for several workers: PostgreSQL, one owner for each stream, fenced by an epoch.

A worker owns a stream while its connection holds the stream's advisory lock; when the worker dies, the lock goes with
its connection, and the next one that asks takes over. Each owner has a higher epoch, and every commit names its own:
whoever was thought dead and comes back writes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

import swapcal as sc
from swapcal.service.store import TABLES, Commit, EventStore, NotOwner, translated

SCHEMA_VERSION = 2
_LOCK = "hashtextextended('swapcal.stream.' || ?::text, 0)"
_TABLES = (*TABLES, "ALTER TABLE swapcal_streams ADD COLUMN IF NOT EXISTS owner TEXT")


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
    among = "= ANY(?)"
    listed = staticmethod(list[str])
    dialect = (("?", "%s"),)

    def __init__(self, address: str, owner: str | None = None, *, seconds: float = 10.0) -> None:
        super().__init__(seconds)
        self.address, self.owner = address, owner

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
                db.execute("CREATE TABLE IF NOT EXISTS swapcal_version (version INTEGER NOT NULL)")
                row = db.execute("SELECT version FROM swapcal_version").fetchone()
                if row is None:
                    db.execute("INSERT INTO swapcal_version VALUES (%s)", (SCHEMA_VERSION,))
                for statement in _TABLES if row in (None, (SCHEMA_VERSION,)) else ():
                    db.execute(statement)
        if row not in (None, (SCHEMA_VERSION,)):
            db.close()
            raise sc.StateFileError(
                f"the database has tables of version {row[0]} and this swapcal reads {SCHEMA_VERSION}; upgrade it"
            )
        self._db, self._keys = db, {}

    def _reason(self, error: Exception) -> str:
        # Without the address, which may hold a password.
        return f"PostgreSQL cannot be used ({type(error).__name__})"

    def _execute(self, statement: str, *parameters: Any) -> Any:
        return self._connection.execute(translated(statement, self.dialect), parameters, binary=True)

    @contextmanager
    def _cursor(self, statement: str, *parameters: Any) -> Iterator[Any]:
        db = self._connection
        with db.transaction(), db.cursor("swapcal_log", binary=True) as cursor:
            cursor.execute(translated(statement, self.dialect), parameters)
            yield cursor

    def _transaction(self) -> Any:
        return self._connection.transaction()

    def _delete_cases(self, key: int) -> None:
        # Many cases take their time.
        self._execute("SET LOCAL statement_timeout = 0")
        super()._delete_cases(key)

    def _lock(self, name: str) -> None:
        if self._execute(f"SELECT pg_try_advisory_lock({_LOCK})", name).fetchone() != (True,):
            owner = self._execute("SELECT owner FROM swapcal_streams WHERE name = ?", name).fetchone()
            raise NotOwner(name, None if owner is None else owner[0])
        self._execute("UPDATE swapcal_streams SET owner = ? WHERE name = ?", self.owner, name)

    def release(self, name: str) -> None:
        """Let others own the stream."""
        super().release(name)
        with self._guard():
            self._execute(f"SELECT pg_advisory_unlock({_LOCK})", name)

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
