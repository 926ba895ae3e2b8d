"""The store for several workers: PostgreSQL, one owner for each stream, fenced by an epoch.

A worker owns a stream while its connection holds the stream's advisory lock; when the worker dies, the lock goes with
its connection, and the next one that asks takes over. Each owner has a higher epoch, and every commit names its own:
whoever was thought dead and comes back writes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

import swapcal as sc
from swapcal.service.schemas import StoreDown
from swapcal.service.store import CaseRow, Commit, Event, NotOwner, StoredStream, TokenRow

SCHEMA_VERSION = 1
_LOCK = "hashtextextended('swapcal.stream.' || %s::text, 0)"
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
_CASE = "id, seq, request, forecast, created, y, y_seq, learned"


class Postgres:
    """Tables `swapcal_*` in one database, shared by any number of workers.

    Parameters
    ----------
    address
        As libpq takes it; what it leaves out comes from PGPASSWORD and the like.
    owner
        Where other workers can reach this one, if they are to pass requests on.
    """

    kind = "postgresql"

    def __init__(self, address: str, owner: str | None = None) -> None:
        self.address, self.owner = address, owner
        self._db: psycopg.Connection[Any] | None = None
        self._keys: dict[str, int] = {}

    def open(self) -> None:
        """Connect and make tables that are missing."""
        self.close()
        with self._named():
            db = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=5,
                # A generic plan for hundreds of ids scans the table; and a dead worker must lose its locks soon.
                options="-c plan_cache_mode=force_custom_plan -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 "
                "-c tcp_keepalives_count=3 -c synchronous_commit=on -c client_encoding=UTF8",
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

    @property
    def _connection(self) -> psycopg.Connection[Any]:
        if self._db is None or self._db.closed:
            raise StoreDown("there is no connection to the database")
        return self._db

    def names(self) -> list[str]:
        """The streams that there are."""
        with self._named():
            return [name for (name,) in self._connection.execute("SELECT name FROM swapcal_streams ORDER BY name")]

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        with self._named():
            made = self._connection.execute(
                "INSERT INTO swapcal_streams (name, spec, seq, snapshot, snapshot_seq, epoch) "
                "VALUES (%s, %s, 0, %s, 0, 0) ON CONFLICT (name) DO NOTHING",
                (name, spec, snapshot),
            )
            return made.rowcount == 1

    def drop(self, name: str, epoch: int) -> None:
        """Delete a stream and its cases."""
        with self._named(), self._connection.transaction():
            self._fence(name, epoch)
            self._connection.execute("DELETE FROM swapcal_cases WHERE stream = %s", (self._key(name),))
            self._connection.execute("DELETE FROM swapcal_streams WHERE name = %s", (name,))
        self.release(name)

    def acquire(self, name: str) -> StoredStream | None:
        """Become the owner under a new epoch."""
        with self._named():
            db = self._connection
            found = db.execute("SELECT owner FROM swapcal_streams WHERE name = %s", (name,)).fetchone()
            if found is None:
                return None
            locked = db.execute(f"SELECT pg_try_advisory_lock({_LOCK})", (name,)).fetchone()
            if locked is None or not locked[0]:
                raise NotOwner(name, found[0])
            row = db.execute(
                "UPDATE swapcal_streams SET epoch = epoch + 1, owner = %s WHERE name = %s "
                "RETURNING name, spec, seq, snapshot, snapshot_seq, epoch",
                (self.owner, name),
            ).fetchone()
            if row is None:
                self.release(name)
                return None
            self._keys.pop(name, None)
            return StoredStream(*row)

    def release(self, name: str) -> None:
        """Let others own the stream."""
        self._keys.pop(name, None)
        with self._named():
            self._connection.execute(f"SELECT pg_advisory_unlock({_LOCK})", (name,))

    def find(self, name: str, ids: Sequence[str]) -> dict[str, CaseRow]:
        """Those of the cases that there are."""
        with self._named():
            rows = self._connection.execute(
                f"SELECT {_CASE} FROM swapcal_cases WHERE stream = %s AND id = ANY(%s)",
                (self._key(name), list(ids)),
                binary=True,
            )
            return {row[0]: CaseRow(*row) for row in rows}

    def events(self, name: str, after: int) -> Iterator[Event]:
        """The log behind event number `after`, in order."""
        query = (
            f"SELECT seq AS number, FALSE, {_CASE} FROM swapcal_cases WHERE stream = %(stream)s AND seq > %(after)s "
            f"UNION ALL SELECT y_seq, TRUE, {_CASE} FROM swapcal_cases "
            "WHERE stream = %(stream)s AND y_seq > %(after)s ORDER BY number"
        )
        with self._named(), self._connection.transaction(), self._connection.cursor("swapcal_log", binary=True) as log:
            log.itersize = 5000
            log.execute(query, {"stream": self._key(name), "after": after})
            for row in log:
                yield Event(row[0], row[1], CaseRow(*row[2:]))

    def commit(self, commits: Sequence[Commit]) -> None:
        """All of it in one transaction."""
        with self._named(), self._connection.transaction():
            for one in commits:
                self._advance(one)
                self._write(self._key(one.name), one)

    def _write(self, key: int, one: Commit) -> None:
        db = self._connection
        if one.cases:
            db.execute(
                "INSERT INTO swapcal_cases (stream, id, seq, request, forecast, created) SELECT %s, * FROM "
                "unnest(%b::text[], %b::bigint[], %b::bytea[], %b::bytea[], %b::float8[])",
                (
                    key,
                    [row.id for row in one.cases],
                    [row.seq for row in one.cases],
                    [row.request for row in one.cases],
                    [row.packed for row in one.cases],
                    [row.created for row in one.cases],
                ),
            )
        if one.outcomes:
            db.execute(
                "UPDATE swapcal_cases AS c SET y = new.y, y_seq = new.y_seq, learned = new.learned FROM "
                "unnest(%b::text[], %b::float8[], %b::bigint[], %b::float8[]) AS new (id, y, y_seq, learned) "
                "WHERE c.stream = %s AND c.id = new.id",
                (
                    [row.id for row in one.outcomes],
                    [row.y for row in one.outcomes],
                    [row.y_seq for row in one.outcomes],
                    [row.learned for row in one.outcomes],
                    key,
                ),
            )

    def _advance(self, one: Commit) -> None:
        """Count the events, unless the stream has a newer owner; holds the row until the transaction ends."""
        set_, values = "seq = %s", list[Any]([one.seq])
        if one.snapshot is not None:
            set_, values = "seq = %s, snapshot = %b, snapshot_seq = %s", [one.seq, one.snapshot, one.seq]
        done = self._connection.execute(
            f"UPDATE swapcal_streams SET {set_} WHERE name = %s AND epoch = %s", (*values, one.name, one.epoch)
        )
        if done.rowcount != 1:
            raise NotOwner(one.name, None)

    def _fence(self, name: str, epoch: int) -> None:
        """Refuse to write for a stream that has a newer owner; holds the row until the transaction ends."""
        row = self._connection.execute(
            "SELECT epoch, owner FROM swapcal_streams WHERE name = %s FOR UPDATE", (name,)
        ).fetchone()
        if row is None or row[0] != epoch:
            raise NotOwner(name, None if row is None else row[1])

    def prune(self, name: str, before: float, seq: int, limit: int) -> int:
        """Delete old cases whose events are all in the snapshot."""
        with self._named():
            done = self._connection.execute(
                "DELETE FROM swapcal_cases WHERE ctid = ANY(ARRAY(SELECT ctid FROM swapcal_cases WHERE stream = %s AND "
                "seq <= %s AND created < %s AND (y_seq IS NULL OR y_seq <= %s) ORDER BY seq LIMIT %s))",
                (self._key(name), seq, before, seq, limit),
            )
            return done.rowcount

    def tokens(self) -> list[TokenRow]:
        """The tokens that there are."""
        with self._named():
            rows = self._connection.execute(
                "SELECT key, name, digest, scopes, streams, created FROM swapcal_tokens ORDER BY created"
            )
            return [TokenRow(*row) for row in rows]

    def add_token(self, token: TokenRow) -> None:
        """Add a token."""
        with self._named():
            self._connection.execute("INSERT INTO swapcal_tokens VALUES (%s, %s, %s, %s, %s, %s)", token)

    def remove_token(self, key: str) -> bool:
        """Delete a token; False if there is none."""
        with self._named():
            return self._connection.execute("DELETE FROM swapcal_tokens WHERE key = %s", (key,)).rowcount == 1

    def _key(self, name: str) -> int:
        """The number that stands for a stream in its cases; none where there is no such stream."""
        if name not in self._keys:
            row = self._connection.execute("SELECT key FROM swapcal_streams WHERE name = %s", (name,)).fetchone()
            if row is None:
                return -1
            self._keys[name] = row[0]
        return self._keys[name]

    @contextmanager
    def _named(self) -> Iterator[None]:
        """The database's errors as one, without the address, which may hold a password."""
        try:
            yield
        except psycopg.Error as error:
            raise StoreDown(f"PostgreSQL cannot be used ({type(error).__name__})") from error
