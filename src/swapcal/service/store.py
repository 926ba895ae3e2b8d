"""What a store keeps and promises: cases, streams, and tokens.

`cases` is log, idempotency key and pending store in one: `seq` orders the forecasts and `y_seq` the outcomes of a
stream in one count. A case with a `y_seq` and no `y` is forgotten: that event said that no outcome will come.
`streams` holds what a stream is, its last snapshot, and the epoch of its owner. Everything that a commit is given is
there after it returns, also after a crash, or none of it is.
"""

import hmac
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

import swapcal as sc
from swapcal.forecast import Identity
from swapcal.lifecycle import Entry
from swapcal.service.schemas import Case, Context, StoreDown

# --------
# Forecasts as bytes in the store: all their fields under a seal of the stream's own, and back into its hands.
#
# `Forecast.outside` has a seal too, for forecasts that travel as JSON. Those of a service never leave it but for the
# store; one keyed hash over the packed bytes says the same at a tenth of the cost, and what comes back goes straight
# to the compiled update.

SEAL_BYTES = 16
_FIELDS = tuple(one.name for one in fields(sc.Forecast) if one.name not in ("forecaster", "seal"))
_get = attrgetter(*_FIELDS)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list).decode


def pack(forecast: sc.Forecast, identity: Identity) -> bytes:
    """The bytes of a forecast that a stream's forecaster has made.

    Examples
    --------
    >>> import swapcal as sc
    >>> forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1), seed=1)
    >>> forecast, identity = forecaster.predict([1.0], 0.3), forecaster.state.identity
    >>> unpack(pack(forecast, identity), identity) == forecast
    True
    """
    body = _encode(_get(forecast))
    return _seal(body, identity) + body


def unpack(packed: bytes, identity: Identity) -> sc.Forecast:
    """The forecast that `pack` wrote; an `UnknownForecast` for anything else, or of another stream."""
    seal, body = packed[:SEAL_BYTES], packed[SEAL_BYTES:]
    if not hmac.compare_digest(seal, _seal(body, identity)):
        raise sc.UnknownForecast("the stored forecast of this case is not as it was made; restore a back-up")
    values = dict(zip(_FIELDS, _decode(body), strict=True), forecaster=identity, seal=None)
    if values["features"] is not None:
        values["features"] = tuple(values["features"])
    # Bytes under the seal are a forecast that never left: nothing is checked again, and it is the forecaster's own.
    forecast = sc.Forecast.__new__(sc.Forecast)
    for name, value in values.items():
        object.__setattr__(forecast, name, value)
    return forecast


def _seal(body: bytes, identity: Identity) -> bytes:
    return blake2b(body, digest_size=SEAL_BYTES, key=identity.key).digest()


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a case was asked with; `fetched` is the hint that the model server gave, where the client gave none."""

    context: Context
    hint: float | None = None
    fetched: float | None = None
    weight: float = 1.0

    def same_as(self, case: Case) -> bool:
        """Whether a case asks the same."""
        # Python takes 1, 1.0 and True for one; in JSON, and as values of a column, they are three.
        ours, theirs = ({name: (type(one), one) for name, one in each.context.items()} for each in (self, case))
        return self.hint == case.hint and self.weight == case.weight and ours == theirs

    def used(self) -> float | None:
        """The hint that the forecaster got."""
        return self.fetched if self.hint is None else self.hint


@dataclass(slots=True, eq=False)
class CaseRow:
    """A case; its forecast is unpacked when somebody needs it, and is then `made`."""

    id: str
    seq: int
    request: bytes
    packed: bytes
    created: float
    y: float | None = None
    y_seq: int | None = None
    learned: float | None = None
    made: sc.Forecast | None = None

    @property
    def entry(self) -> Entry:
        """The case as the table of cases knows it: an outcome that is held was told for good, like a learned one."""
        state = "waiting" if self.y_seq is None else "forgotten" if self.y is None else "learned"
        return Entry(state, self.y)

    def inputs(self) -> Request:
        """The request; a `StateFileError` where the row is damaged."""
        try:
            return _REQUEST.decode(self.request)
        except (msgspec.DecodeError, TypeError) as error:
            raise sc.StateFileError(f"event {self.seq} of the log is damaged ({error}); restore a back-up") from error

    def forecast(self, identity: Identity) -> sc.Forecast:
        """The forecast, which the forecaster of this identity has made."""
        if self.made is None:
            self.made = unpack(self.packed, identity)
        return self.made


_REQUEST = msgspec.json.Decoder(Request)


class StoredStream(NamedTuple):
    """A stream as it is stored; with its snapshot only for whoever owns it."""

    name: str
    spec: bytes
    seq: int
    snapshot: bytes
    snapshot_seq: int
    epoch: int


ALL_STREAMS = "*"


class TokenRow(NamedTuple):
    """Who may what: a digest of 256 random bits, good for some scopes of some streams, with blanks between them."""

    key: str
    name: str
    digest: str
    scopes: str
    streams: str
    created: float = 0.0

    def may(self, scope: str, stream: str | None) -> bool:
        """Whether the token is good for a scope, of a stream or of the service as a whole."""
        streams = self.streams.split()
        return scope in self.scopes.split() and (stream is None or stream in streams or ALL_STREAMS in streams)


class Event(NamedTuple):
    """A line of the log: the forecast of a case, or its outcome; None for one that will not come."""

    seq: int
    is_outcome: bool
    row: CaseRow


class Commit(NamedTuple):
    """What one stream adds in one transaction."""

    name: str
    epoch: int
    seq: int
    cases: Sequence[CaseRow]
    outcomes: Sequence[CaseRow]
    snapshot: bytes | None


class NotOwner(Exception):
    """The stream belongs to another worker, at `address` if that is known."""

    def __init__(self, name: str, address: str | None) -> None:
        super().__init__(f"stream {name!r} belongs to another worker")
        self.name, self.address = name, address


AT_ONCE = 5000
TABLES = (
    "CREATE TABLE IF NOT EXISTS swapcal_streams (key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "name TEXT NOT NULL UNIQUE, spec BYTEA NOT NULL, seq BIGINT NOT NULL, epoch BIGINT NOT NULL)",
    # Apart from its stream, as SQLite writes a row as a whole, and `seq` changes with every commit.
    "CREATE TABLE IF NOT EXISTS swapcal_snapshots (stream BIGINT PRIMARY KEY, seq BIGINT NOT NULL, "
    "snapshot BYTEA NOT NULL)",
    'CREATE TABLE IF NOT EXISTS swapcal_cases (stream BIGINT NOT NULL, id TEXT COLLATE "C" NOT NULL, '
    "seq BIGINT NOT NULL, request BYTEA NOT NULL, forecast BYTEA NOT NULL, created DOUBLE PRECISION NOT NULL, "
    "y DOUBLE PRECISION, y_seq BIGINT, learned DOUBLE PRECISION, UNIQUE (stream, id))",
    "CREATE INDEX IF NOT EXISTS swapcal_cases_seq ON swapcal_cases (stream, seq)",
    "CREATE INDEX IF NOT EXISTS swapcal_cases_y_seq ON swapcal_cases (stream, y_seq) WHERE y_seq IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS swapcal_tokens (key TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, "
    "scopes TEXT NOT NULL, streams TEXT NOT NULL, created DOUBLE PRECISION NOT NULL)",
)
CASE = "id, seq, request, forecast, created, y, y_seq, learned"
_EVENTS = (
    f"SELECT seq AS number, FALSE, {CASE} FROM swapcal_cases WHERE stream = ? AND seq > ? UNION ALL "
    f"SELECT y_seq, TRUE, {CASE} FROM swapcal_cases WHERE stream = ? AND y_seq > ? ORDER BY number"
)
_STREAM = (
    "SELECT name, spec, s.seq, snapshot, saved.seq, epoch FROM swapcal_streams AS s JOIN swapcal_snapshots AS saved "
    "ON saved.stream = s.key WHERE name = ?"
)
_PRUNE = (
    "DELETE FROM swapcal_cases WHERE stream = ? AND id IN (SELECT id FROM swapcal_cases WHERE stream = ? AND seq <= ? "
    "AND created < ? AND (y_seq IS NULL OR y_seq <= ?) ORDER BY seq LIMIT ?)"
)


class EventStore(ABC):
    """Where everything is kept. One thread uses it; every method may raise `StoreDown`, and then changed nothing.

    Statements and tables are PostgreSQL's, with `?` for a parameter; each store has its own dialect.

    Parameters
    ----------
    seconds
        How long the store may take for one statement, or wait for somebody else's.
    """

    # What the store's library raises, and which of it says that a statement is wrong and not that the store is down.
    errors: tuple[type[Exception], ...]
    not_down: tuple[type[Exception], ...]
    # A condition on an id: it is one of many, which are one parameter; and what makes that of a list.
    among: str
    listed: Callable[..., Any]
    # What the store says instead of PostgreSQL's words, in this order.
    dialect: tuple[tuple[str, str], ...]

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # When what is asked of it now began; None while nothing is. Other threads may read it.
        self.since: float | None = None
        self._keys: dict[str, int] = {}
        self._db: Any = None

    @property
    def _connection(self) -> Any:
        if self._db is None or getattr(self._db, "closed", False):
            raise StoreDown("there is no connection to the store")
        return self._db

    @abstractmethod
    def open(self) -> None:
        """Connect, make tables that are missing, and check that this version can read them; again after `StoreDown`."""

    def close(self) -> None:
        """Let go of the connection."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def names(self) -> list[str]:
        """The streams that there are."""
        with self._guard():
            return [name for (name,) in self._execute("SELECT name FROM swapcal_streams ORDER BY name")]

    def create(self, name: str, spec: bytes, snapshot: bytes) -> bool:
        """Add a stream; False if there is one of that name."""
        add = "INSERT INTO swapcal_streams (name, spec, seq, epoch) VALUES (?, ?, 0, 0) ON CONFLICT (name) DO NOTHING"
        with self._guard(), self._transaction():
            created = bool(self._execute(add, name, spec).rowcount == 1)
            if created:
                self._keys.pop(name, None)
                self._execute("INSERT INTO swapcal_snapshots VALUES (?, 0, ?)", self._key(name), snapshot)
            return created

    def drop(self, name: str, epoch: int) -> None:
        """Delete a stream and its cases; its owner may."""
        with self._guard(), self._transaction():
            key = self._key(name)
            self._delete_cases(key)
            self._execute("DELETE FROM swapcal_snapshots WHERE stream = ?", key)
            if self._execute("DELETE FROM swapcal_streams WHERE name = ? AND epoch = ?", name, epoch).rowcount != 1:
                raise NotOwner(name, None)
        self.release(name)

    def acquire(self, name: str) -> StoredStream | None:
        """Become the owner under a new epoch; None if there is no such stream, `NotOwner` if it has an owner."""
        with self._guard():
            self._lock(name)
            with self._transaction():
                self._execute("UPDATE swapcal_streams SET epoch = epoch + 1 WHERE name = ?", name)
                row = self._execute(_STREAM, name).fetchone()
            self._keys.pop(name, None)
            if row is None:
                self.release(name)
            return None if row is None else StoredStream(*row)

    @abstractmethod
    def _lock(self, name: str) -> None:
        """Own a stream, or raise `NotOwner`."""

    def release(self, name: str) -> None:
        """Let others own the stream."""
        self._keys.pop(name, None)

    def find(self, name: str, ids: Sequence[str]) -> dict[str, CaseRow]:
        """Those of the cases that there are."""
        # One statement for any number of ids: it is compiled once, and an id is never part of it.
        statement = f"SELECT {CASE} FROM swapcal_cases WHERE stream = ? AND id {self.among}"
        with self._guard():
            return {row[0]: CaseRow(*row) for row in self._execute(statement, self._key(name), self.listed(list(ids)))}

    def events(self, name: str, after: int) -> Generator[Event, None, None]:
        """The log behind event number `after`, in order."""
        with self._guard():
            key = self._key(name)
            with self._cursor(_EVENTS, key, after, key, after) as cursor:
                while rows := cursor.fetchmany(AT_ONCE):
                    # What is done with the rows takes no time of the store's.
                    self.since = None
                    for number, is_outcome, *row in rows:
                        yield Event(number, bool(is_outcome), CaseRow(*row))
                    self.since = time.monotonic()

    def commit(self, commits: Sequence[Commit]) -> None:
        """All of it in one transaction; `NotOwner` if a stream has a newer owner, and then nothing is written."""
        with self._guard(), self._transaction():
            for one in commits:
                key = self._key(one.name)
                fence = "UPDATE swapcal_streams SET seq = ? WHERE key = ? AND epoch = ?"
                if self._execute(fence, one.seq, key, one.epoch).rowcount != 1:
                    raise NotOwner(one.name, None)
                self._write(key, one)
                if one.snapshot is not None:
                    snapshot = "UPDATE swapcal_snapshots SET snapshot = ?, seq = ? WHERE stream = ?"
                    self._execute(snapshot, one.snapshot, one.seq, key)

    def prune(self, name: str, before: float, seq: int, limit: int) -> int:
        """Delete up to `limit` cases older than `before`, all of whose events are at most `seq`; says how many."""
        with self._guard(), self._transaction():
            key = self._key(name)
            return int(self._execute(_PRUNE, key, key, seq, before, seq, limit).rowcount)

    def tokens(self) -> list[TokenRow]:
        """The tokens that there are."""
        columns = ", ".join(TokenRow._fields)
        with self._guard():
            return [TokenRow(*row) for row in self._execute(f"SELECT {columns} FROM swapcal_tokens ORDER BY created")]

    def add_token(self, token: TokenRow) -> None:
        """Add a token."""
        with self._guard(), self._transaction():
            self._execute("INSERT INTO swapcal_tokens VALUES (?, ?, ?, ?, ?, ?)", *token)

    def remove_token(self, key: str) -> bool:
        """Delete a token; False if there is none."""
        with self._guard(), self._transaction():
            return bool(self._execute("DELETE FROM swapcal_tokens WHERE key = ?", key).rowcount)

    @abstractmethod
    def _execute(self, statement: str, *parameters: Any) -> Any:
        """A cursor with what a statement gives."""

    @abstractmethod
    def _cursor(self, statement: str, *parameters: Any) -> AbstractContextManager[Any]:
        """A cursor for a long result."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[object]:
        """All or nothing."""

    @abstractmethod
    def _write(self, key: int, commit: Commit) -> None:
        """Cases and outcomes of a commit, within its transaction."""

    @abstractmethod
    def _reason(self, error: Exception) -> str:
        """Why the store is down."""

    def _delete_cases(self, key: int) -> None:
        self._execute("DELETE FROM swapcal_cases WHERE stream = ?", key)

    def _check(self) -> None:  # noqa: B027
        """Raise `StoreDown` where what was just done will not last."""

    def _key(self, name: str) -> int:
        """The number that stands for a stream in its cases; -1 where there is no such stream."""
        key = self._keys.get(name)
        if key is None:
            row = self._execute("SELECT key FROM swapcal_streams WHERE name = ?", name).fetchone()
            if row is None:
                return -1
            key = self._keys[name] = row[0]
        return key

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Around everything that is asked of the store: notes since when, and tells its failures as one."""
        outer, self.since = self.since, self.since or time.monotonic()
        try:
            yield
            self._check()
        except self.errors as error:
            if isinstance(error, self.not_down):
                raise
            raise StoreDown(self._reason(error)) from error
        finally:
            self.since = outer


@cache
def translated(statement: str, dialect: tuple[tuple[str, str], ...]) -> str:
    """A statement in the words of a store."""
    for word, own in dialect:
        statement = statement.replace(word, own)
    return statement


def open_store(address: str, *, owner: str | None = None, seconds: float = 10.0) -> EventStore:
    """The store at an address: `postgresql://...`, or the path of a SQLite file."""
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from swapcal.service.postgres import Postgres
        except ImportError as error:
            raise sc.MissingExtra("PostgreSQL needs psycopg: install with  pip install 'swapcal[postgres]'") from error
        return Postgres(address, owner, seconds=seconds)
    from swapcal.service.sqlite import Sqlite

    return Sqlite(address.removeprefix("sqlite://"), seconds=seconds)


@contextmanager
def opened(address: str) -> Iterator[EventStore]:
    """The store at an address, opened, and closed at the end; failures are told as `InvalidInput`."""
    store = open_store(address)
    try:
        store.open()
        yield store
    except StoreDown as error:
        raise sc.InvalidInput(f"the store cannot be used: {error}") from error
    finally:
        store.close()
