"""Which streams this worker owns; a stream is loaded from its snapshot and the log behind it when first needed."""

import logging
import time
from contextlib import closing

import msgspec

from swapcal.service.schemas import Problem, StoreDown, check_name
from swapcal.service.spec import StreamSpec
from swapcal.service.store import CaseRow, EventStore, NotOwner
from swapcal.service.stream import ReplayMismatch, Stream

log = logging.getLogger("swapcal.service")
AT_ONCE = 500
# Seconds before a stream that could not be loaded, or is another worker's, is asked for again.
ASK_AGAIN = 0.3


class Registry:
    """The streams in memory. Used by the writer's thread alone.

    Parameters
    ----------
    store
        Where they come from.
    limit
        How many streams there may be.
    """

    def __init__(self, store: EventStore, limit: int) -> None:
        self.store, self.limit = store, limit
        self.streams: dict[str, Stream] = {}
        self._refused: dict[str, tuple[float, Exception]] = {}

    def get(self, name: str) -> Stream:
        """The stream; a `Problem` if there is none or it is closed, `NotOwner` if another worker has it."""
        stream = self.streams.get(name)
        if stream is not None:
            return stream
        until, refusal = self._refused.get(name, (0.0, None))
        if refusal is not None and time.monotonic() < until:
            raise refusal
        try:
            stream = self.streams[name] = self._load(name)
        except (NotOwner, Problem) as error:
            if len(self._refused) > 1000:
                self._refused.clear()
            self._refused[name] = (time.monotonic() + ASK_AGAIN, error)
            raise
        self._refused.pop(name, None)
        return stream

    def _load(self, name: str) -> Stream:
        """The stream as it is stored. Whatever is wrong with it closes this stream, and no other."""
        started = time.monotonic()
        row = self.store.acquire(name)
        if row is None:
            raise Problem(404, f"there is no stream {name!r}; an administrator can make it")
        try:
            spec = msgspec.json.decode(row.spec, type=StreamSpec)
            stream = Stream.from_bytes(row.snapshot, name=name, spec=spec)
            stream.epoch = row.epoch
            replay(stream, self.store)
            if stream.seq != row.seq:
                raise ReplayMismatch(
                    f"the log of stream {name!r} ends at event {stream.seq} and should end at {row.seq}"
                )
        except StoreDown:
            raise
        except Exception as error:
            self._release(name)
            log.error("stream cannot be loaded", extra={"stream": name, "reason": f"{type(error).__name__}: {error}"})
            raise Problem(503, f"stream {name!r} cannot be loaded: {error}") from error
        extra = {"stream": name, "epoch": row.epoch, "replayed": stream.seq - row.snapshot_seq}
        log.info("stream loaded", extra=extra | {"seconds": time.monotonic() - started})
        return stream

    def create(self, name: str, spec: StreamSpec) -> bool:
        """Make a stream; False if there is the same one already, a `Problem` if there is another of that name."""
        names = self.store.names()
        if name in names:
            if spec.asks_for(self.get(name).spec):
                return False
            raise Problem(409, f"there is a stream {name!r} with other settings; delete it first, or take another name")
        if len(names) >= self.limit:
            raise Problem(
                403, f"there are {len(names)} streams, and no more are allowed; raise `streams` under [limits]"
            )
        seeded = spec.seeded()
        fresh = Stream(name, seeded)
        created = self.store.create(check_name(name), msgspec.json.encode(seeded), fresh.to_bytes())
        self._refused.pop(name, None)
        self.get(name)
        return created

    def drop(self, name: str) -> None:
        """Delete a stream and its cases."""
        self.store.drop(name, self.get(name).epoch)
        self.streams.pop(name)

    def forget(self, *names: str) -> None:
        """Drop streams from memory; they are loaded again when they are needed."""
        for name in names:
            if self.streams.pop(name, None) is not None:
                self._release(name)

    def forget_all(self) -> None:
        """Drop everything from memory, without a word to the store: it may be gone."""
        self.streams.clear()
        self._refused.clear()

    def _release(self, name: str) -> None:
        try:
            self.store.release(name)
        except StoreDown as error:
            # With the connection the lock is gone too.
            log.warning("stream not released", extra={"stream": name, "reason": str(error)})


def replay(stream: Stream, store: EventStore) -> None:
    """Play the log behind a stream's snapshot: every forecast must come out as it was stored, to the last bit."""
    waiting: list[CaseRow] = []

    def play() -> None:
        rows, waiting[:] = list(waiting), []
        cases = [stream.validate(one.context, one.used(), one.weight) for one in (row.inputs() for row in rows)]
        for row, forecast in zip(rows, stream.predict(cases), strict=True):
            if forecast != row.forecast(stream.identity):
                raise ReplayMismatch(
                    f"forecast {row.seq} of stream {stream.name!r} comes out differently from how it was stored: start "
                    "the version of swapcal that stored it, stop it in good order, which leaves nothing to replay, and "
                    "upgrade then"
                )

    last = stream.seq
    # A log that is read in part only is closed at once: with PostgreSQL it is a transaction.
    with closing(store.events(stream.name, last)) as events:
        for number, is_outcome, row in events:
            if number != last + 1:
                reason = f"event {last + 1} is missing in the log of stream {stream.name!r}; restore a back-up"
                raise ReplayMismatch(reason)
            last = number
            time = float(row.learned if is_outcome and row.learned is not None else row.created)
            if is_outcome or (stream.counts_transactions and time != stream.time):
                play()
            stream.begin(time)
            if is_outcome:
                stream.close(row.forecast(stream.identity), row.inputs().used(), row.y)
            else:
                waiting.append(row)
                if len(waiting) >= AT_ONCE:
                    play()
    play()
    stream.end()
