"""Keys and events: one forecaster for each key, buckets of keys, and the pure step with any mixture of events."""

import math
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc
from plays import Played, Run, Runs, numbers, words
from swapcal.cases import Cases, Events, step
from swapcal.keyed.bucket import KeyBucket

NAN = math.nan
T = 240


class Event(NamedTuple):
    """A case (without y) or an outcome, at a time."""

    time: float
    id: str | int
    y: float
    x: Any
    hint: float


def history(seed: int = 0, n: int = T) -> list[Event]:
    """Cases, and outcomes late and in another order: some never, twice, of unknown cases, or no number of the range."""
    rng = np.random.default_rng(seed)
    events = []
    for t in range(n):
        name = t if t % 2 else f"case {t}"
        x = [1.0, *(rng.random(3) < 0.4).astype(float).tolist()]
        hint = NAN if rng.random() < 0.1 else float(rng.random())
        case = Event(float(t), name, NAN, x, hint)
        events.append(case)
        if rng.random() < 0.05:
            events.append(case._replace(time=t + 0.4))
        due = t + (0.5 if rng.random() < 0.5 else float(rng.integers(1, 70)) + float(rng.random()))
        outcome = Event(due, name, float(rng.random() < 0.3), None, NAN)
        chance = rng.random()
        if chance < 0.03:
            events.append(outcome._replace(y=7.0))
        if chance < 0.95:
            events.append(outcome)
        if chance < 0.08:
            events += [outcome._replace(time=due + float(rng.integers(9)), y=1.0), outcome._replace(id=f"nobody {t}")]
        if 0.08 < chance < 0.1:
            events.append(case._replace(time=due + 3.0))
    return sorted(events, key=lambda event: event.time)


def batch(events: list[Event], kind: str) -> Events:
    cases = [event for event in events if math.isnan(event.y)]
    contexts = [{"a": f"v{c.x[1]}", "b": c.x[2]} if kind == "Groups" else c.x for c in cases]
    features = [[c.x[1], c.time] for c in cases] if kind == "features" and cases else None
    return Events([e.id for e in events], [e.y for e in events], contexts, [c.hint for c in cases], features)


def forecaster(kind: str, **settings: Any) -> sc.Forecaster:
    settings = {
        "seed": 3,
        "identity": "k",
        "max_pending": 40,
        "protect": "loss" if kind == "Groups" else "nothing",
        **settings,
    }
    if kind == "features":
        return sc.Forecaster(sc.Mean(), sc.Linear(4), hint=sc.OnlineRegression(n_features=2), **settings)
    if kind == "Groups":
        return sc.Forecaster(sc.Probability(), sc.Groups(["a", "b", ("a", "b")], limit=20), **settings)
    kinds: dict[str, Any] = {"quantile": sc.Quantile(0.8), "expectile": sc.Expectile(0.3)}
    return sc.Forecaster(kinds.get(kind) or sc.Probability(), sc.Finite(4), **settings)


def steps(kind: str, sizes: tuple[int, ...]) -> Played:
    """The pure step, events cut into pieces."""
    events, state = history(n=50 if sizes == (1,) else T), forecaster(kind, max_pending=20).to_bytes()
    forecasts: list[float] = []
    status: list[str] = []
    k = 0
    while events:
        size = sizes[k % len(sizes)]
        while kind == "features" and not any(math.isnan(event.y) for event in events[:size]):
            size += 1  # today a piece of outcomes alone is refused where the hint has features
            if size > len(events):
                return _played(forecasts, status)
        part, events = events[:size], events[size:]
        state, played = step(state, batch(part, kind))
        forecasts += played.forecast.tolist()
        status += played.status
        k += 1
    return _played(forecasts, status)


def _played(forecasts: Any, status: list[str]) -> Played:
    return Played(numbers(forecasts) + words(*status), {word: status.count(word) for word in sorted(set(status))})


def stream_that_forgets() -> Played:
    """A stream that remembers few of the cases that no longer wait."""
    stream = Cases(forecaster("probability"), remember=5)
    events = history(seed=1)
    forecasts, status = [], []
    for start in range(0, len(events), 30):
        played = stream.play(batch(events[start : start + 30], "probability"))
        forecasts.append(played.forecast)
        status += played.status
        stream = Cases.from_bytes(stream.to_bytes())
    return _played(np.concatenate(forecasts), status)


def buckets(idle: float | None) -> Played:
    """Events of three keys in a bucket that becomes bytes in between; a key that was idle starts anew."""
    template = forecaster("probability", identity=None)
    bucket = KeyBucket(template, idle=idle, remember=20)
    forecasts: list[Any] = []
    status: list[str] = []
    keys: list[str | int] = ["Paris", 7, "Rome"]
    for turn in range(4):
        for seed, key in enumerate(keys):
            events = history(seed=seed)
            size = len(events) // 4
            part = [event for k, event in enumerate(events[turn * size : (turn + 1) * size]) if seed or k % 50 < 40]
            times = np.array([event.time for event in part])
            played = bucket.play(key, times, len(part), lambda some, part=part: batch(part[some], ""))  # type: ignore[misc]
            forecasts.append(played.forecast)
            status += played.status
        bucket = KeyBucket(template, idle=idle, remember=20).filled(bucket.to_bytes())
    ends = [len(bucket.forget(np.inf))]
    return Played(numbers(*forecasts, ends) + words(*status))


def keyed(kind: str, learn: bool, cold: int, spill: bool) -> Played:
    """Many keys, few of them in memory, late outcomes; with a file, closed and opened again in the middle."""
    hint = sc.OnlineRegression() if learn else None
    groups = sc.Groups(["a", "b"]) if kind == "Groups" else sc.Finite(4)
    template = sc.Forecaster(sc.Probability(), groups, seed=2, hint=hint, max_pending=64)
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"resident": 2, "cold": cold, "clock": lambda: 0.0}
        settings["spill"] = Path(folder, "keys.db") if spill else None
        keys = sc.Keyed(template, **settings)
        rng = np.random.default_rng(5)
        values: list[float] = []
        waiting: list[tuple[Any, float]] = []
        for t in range(130):
            key: str | int = f"store {rng.integers(4)}" if t % 5 else int(rng.integers(2))
            x: Any = [1.0, *(rng.random(3) < 0.4).astype(float).tolist()]
            x = {"a": f"v{x[1]}", "b": x[2]} if kind == "Groups" else x
            forecast = keys.predict(key, x, None if t % 7 == 0 else float(rng.random()))
            values += [float(forecast), float(forecast.pooled)]
            waiting.append((forecast, float(rng.random() < 0.3)))
            while len(waiting) > 6 or (waiting and t % 11 == 0):
                keys.update(*waiting.pop(int(rng.integers(len(waiting)))))
            if spill and t == 70:
                keys.close()
                keys = sc.Keyed(template, **settings)
        totals = [len(keys), keys.audit.n_rounds, keys.pooled.error()]
        keys.close()
    return Played(numbers(values, totals) + words(*map(str, keys)))


def runs() -> Runs:
    """Name and play of every run."""
    for kind in ("probability", "quantile", "expectile", "features", "Groups"):
        yield Run(f"steps: {kind}, one by one", lambda k=kind: steps(k, (1,)))  # type: ignore[misc]
        yield Run(f"steps: {kind}, in pieces", lambda k=kind: steps(k, (7, 1, 40)))  # type: ignore[misc]
    yield Run("steps: all at once", lambda: steps("probability", (10_000,)))
    yield Run("steps: few are remembered", stream_that_forgets)
    yield Run("buckets of keys", lambda: buckets(None))
    yield Run("buckets of keys: idle ones start anew", lambda: buckets(3.0))
    yield Run("keys: Finite", lambda: keyed("Finite", False, 20, False))
    yield Run("keys: Finite, spilled", lambda: keyed("Finite", False, 20, True))
    yield Run("keys: Finite, learning, spilled", lambda: keyed("Finite", True, 20, True))
    yield Run("keys: Groups, no start from others", lambda: keyed("Groups", False, 0, False))
