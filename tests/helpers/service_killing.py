"""A server under load that is killed again and again, and what must be true of its store afterwards."""

import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from service_running import GROUPS, start
from swapcal.audits.column import Column
from swapcal.service.spec import StreamSpec
from swapcal.service.store import open_store
from swapcal.service.stream import Stream

__all__ = ["ORDERED", "SPEC", "Load", "check_log", "check_store", "finish", "killed"]

SPEC: dict[str, Any] = {"groups": GROUPS, "seed": 7, "group_limit": 60, "monitor": {"tolerance": 0.01, "every": 100}}
"""Alarms come soon, and come again."""
ORDERED: dict[str, Any] = SPEC | {"outcome_order": "forecast", "settle": 60}
WORLD_SEED = 11


@dataclass
class Load:
    """Clients that send forecasts and outcomes until told to stop, and remember every answer that they got."""

    urls: list[str]
    threads: int = 4
    forecasts: dict[str, float] = field(default_factory=dict)
    outcomes: dict[str, float | None] = field(default_factory=dict)
    """None for those that were forgotten."""
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._client, args=(k,), daemon=True) for k in range(self.threads)]
        for thread in threads:
            thread.start()
        return threads

    def _client(self, number: int) -> None:
        rng, waiting, k = random.Random(WORLD_SEED + number), list[str](), 0
        with httpx.Client(timeout=60.0) as http:
            while not self.over.is_set():
                n = rng.choice([1, 1, 1, 5, 30])
                cases = [_case(f"{number}-{k + j}", rng) for j in range(n)]
                k += n
                for answer in self._send(http, rng, "forecasts", {"cases": cases}):
                    self._note(self.forecasts, answer["id"], answer.get("forecast"), answer)
                    waiting.append(answer["id"])
                rng.shuffle(waiting)
                due, waiting = waiting[: n - 1], waiting[n - 1 :]
                if due:
                    # Now and then an outcome is sent twice, as a careful client would after a lost answer.
                    outcomes = [{"id": one, "y": _outcome(one)} for one in due + due[:1]]
                    for answer in self._send(http, rng, "outcomes", {"outcomes": outcomes}):
                        self._note(self.outcomes, answer["id"], answer.get("y"), answer)

    def _note(self, kept: dict[str, Any], id: str, value: float | None, answer: Any) -> None:
        if answer["result"] == "refused" or (value is None) != (answer["result"] == "forgotten"):
            self.wrong.append(f"{id} was refused: {answer}")
        elif kept.setdefault(id, value) != value:
            self.wrong.append(f"{id} was answered with {kept[id]} and with {value}")

    def _send(self, http: httpx.Client, rng: random.Random, what: str, body: Any) -> list[Any]:
        """The answers, from whichever server gives them; the same request is sent until there are some."""
        url = rng.choice(self.urls)
        while True:
            try:
                response = http.post(f"{url}/v1/streams/late/{what}", json=body)
                if response.status_code in (200, 207):
                    answers: list[Any] = response.json()[what]
                    return answers
                if response.status_code != 503:
                    self.wrong.append(f"status {response.status_code}: {response.text}")
                    return []
                url = rng.choice(self.urls)  # a worker that does not have the stream says so as long as another has it
            except httpx.TransportError:
                # Nobody there, or the answer was lost: exactly what this is about.
                url = rng.choice(self.urls)
            if self.over.is_set():
                return []
            time.sleep(0.01)


def _outcome(id: str) -> float | None:
    """Of a case, the same whoever asks; None for one in seven, which will not come."""
    number = sum(map(ord, id))
    return None if number % 7 == 0 else float(number % 3 == 0)


def _case(id: str, rng: random.Random) -> dict[str, Any]:
    context = {"carrier": rng.choice("ABCDEFG"), "origin": rng.choice(["EWR", "JFK"]), "n": rng.randrange(100)}
    return {"id": id, "context": context, "hint": round(rng.random(), 3)}


def killed(folder: Path, store: str, kills: int, *, seed: int = 1, spec: dict[str, Any] = SPEC) -> Load:
    """Start a server, load it, kill it so often at random moments, stop it in the end; what the clients saw."""
    rng = random.Random(seed)
    settings = {"store": store, "snapshot_every": 150, "config": {"streams": {"late": spec}}}
    server = start(folder, 0, settings)
    port, load = server.port, Load([server.url])
    threads = load.run()
    try:
        for k in range(kills):
            time.sleep(rng.uniform(0.02, 0.5))
            server.kill()
            server = start(folder, k + 1, settings | {"port": port})
        finish(load, threads)
        assert server.stop() == 0
    finally:
        load.over.set()
        server.kill()
    return load


def answered(load: Load, n: int) -> None:
    """Wait until so many more cases were answered, however long that takes."""
    until, wanted = time.monotonic() + 600.0, len(load.forecasts) + n
    while len(load.forecasts) < wanted:
        assert time.monotonic() < until
        time.sleep(0.02)


def finish(load: Load, threads: list[threading.Thread]) -> None:
    """Let the clients end, after some more answers; everything that they were answered is then known."""
    answered(load, 100)
    load.over.set()
    for thread in threads:
        thread.join(600.0)
        assert not thread.is_alive()


def check_store(address: str, load: Load, spec: dict[str, Any] = SPEC) -> int:
    """Every answer is in the store once, and the log, played without a crash, gives every forecast bit for bit."""
    assert load.wrong == []
    seen, learned = check_log(address, spec)
    assert {one: seen.get(one) for one in load.forecasts} == load.forecasts
    assert {one: learned[one] for one in load.outcomes} == load.outcomes
    assert None in learned.values(), "some were to be forgotten"
    return len(seen) + len(learned)


def check_log(address: str, spec: dict[str, Any]) -> tuple[dict[str, float], dict[str, float | None]]:
    """The forecasts and outcomes of a log from which a stream in memory comes to what the last snapshot holds."""
    store = open_store(address)
    store.open()
    stored_spec = msgspec.convert(spec, StreamSpec)
    reference = Stream("late", stored_spec)
    seen: dict[str, float] = {}
    learned: dict[str, float | None] = {}
    try:
        for number, (seq, is_outcome, row) in enumerate(store.events("late", 0), start=1):
            assert seq == number, "the log has a gap, or an event twice"
            asked, stored = row.inputs(), row.forecast(reference.identity)
            reference.begin(row.learned if is_outcome and row.learned is not None else row.created)
            if is_outcome:
                assert row.id not in learned
                learned[row.id] = row.y
                reference.close(stored, asked.used(), row.y)
            else:
                assert row.id not in seen
                seen[row.id] = stored.value
                [made] = reference.predict([reference.validate(asked.context, asked.used(), asked.weight)])
                assert made == stored
        reference.end()
        acquired = store.acquire("late")
        assert acquired is not None
        restored = Stream.from_bytes(acquired.snapshot, name="late", spec=stored_spec)
        assert restored.seq == reference.seq == acquired.snapshot_seq, "an orderly stop leaves nothing to replay"
        assert _bits(restored) == _bits(reference)
    finally:
        store.close()
    return seen, learned


def _bits(stream: Stream) -> list[Any]:
    """What the state comes to: scores, evidence, alarms, held outcomes, and the next forecasts of some cases."""
    before, after = stream.scores.audits()
    watch = [one.to_bytes() for one in stream.monitors.values()]
    order = None if stream.order is None else sorted((t, each.y) for t, each in stream.order.known.items())
    rng = random.Random(3)
    cases = [_case(f"next-{k}", rng) for k in range(50)]
    made = stream.predict([stream.validate(case["context"], case["hint"]) for case in cases])
    bits = [(one.value, one.other, one.probability, one.evidence_at, one.context) for one in made]
    return [bits, _sums(before), _sums(after), stream.scores.totals, watch, order]


def _sums(column: Column) -> dict[str, bytes]:
    """The sums of a column, without the room for more groups, which depends on when it was read back."""
    n, arrays = len(column.audit.function_names), column.to_state().arrays
    return {name: (each[:, :n] if each.ndim == 2 else each).tobytes() for name, each in arrays.items()}
