"""The pure step: the loop's numbers, however events are cut into batches, on either backend."""

import math
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.cases import Cases, Events, step

NAN = math.nan


def made(kind: str, **settings: Any) -> sc.Forecaster:
    settings = {"seed": 3, "identity": "k", "max_pending": 64, **settings}
    if kind == "learning hint":
        return sc.Forecaster(sc.Mean(), sc.Linear(4), hint=sc.OnlineRegression(), **settings)
    if kind == "groups":
        return sc.Forecaster(sc.Probability(), sc.Groups(["a", "b"], limit=20), **settings)
    return sc.Forecaster(sc.Quantile(0.8) if kind == "quantile" else sc.Probability(), sc.Finite(4), **settings)


def history(n: int, seed: int = 0) -> list[tuple[int, float, Any, float]]:
    """(id, y or NaN, context, hint): cases, and outcomes late and in another order; some never, some twice."""
    rng = np.random.default_rng(seed)
    events: list[tuple[float, tuple[int, float, Any, float]]] = []
    for t in range(n):
        x = [1.0, *(rng.random(3) < 0.4).astype(float).tolist()]
        hint = NAN if rng.random() < 0.1 else float(rng.random())
        events.append((float(t), (t, NAN, x, hint)))
        if rng.random() < 0.02:
            events.append((t + 0.4, (t, NAN, x, hint)))
        delay = 0.5 if rng.random() < 0.6 else float(rng.integers(1, 90)) + rng.random()
        if rng.random() < 0.95:
            events.append((t + delay, (t, float(rng.random() < 0.3), None, NAN)))
            if rng.random() < 0.05:
                events.append((t + delay + float(rng.integers(9)), (t, 1.0, None, NAN)))
    return [event for _, event in sorted(events, key=lambda each: each[0])]


def context(kind: str, x: list[float]) -> Any:
    return {"a": f"v{x[1]}", "b": x[2]} if kind == "groups" else x


def by_hand(kind: str, events: list[tuple[int, float, Any, float]]) -> tuple[list[float], list[str], sc.Forecaster]:
    forecaster = made(kind)
    waiting: dict[int, sc.Forecast] = {}
    values: dict[int, float] = {}
    ended: dict[int, str] = {}
    out: list[float] = []
    statuses: list[str] = []
    for name, y, x, hint in events:
        if math.isnan(y):
            if name not in values:
                forecast = forecaster.predict(context(kind, x), hint=None if math.isnan(hint) else hint)
                waiting[name], values[name] = forecast, float(forecast)
                statuses.append("forecast")
            else:
                statuses.append("same forecast")
            out.append(values[name])
            continue
        out.append(values[name])
        if name in ended:
            statuses.append(ended[name])
            continue
        try:
            forecaster.update(waiting.pop(name), y)
            statuses.append("learned")
            ended[name] = "repeated"
        except sc.ExpiredForecast:
            statuses.append("expired")
            ended[name] = "expired"
    return out, statuses, forecaster


def batch(kind: str, events: list[tuple[int, float, Any, float]]) -> Events:
    cases = [event for event in events if math.isnan(event[1])]
    return Events(
        [event[0] for event in events],
        [event[1] for event in events],
        [context(kind, event[2]) for event in cases],
        [event[3] for event in cases],
    )


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.parametrize("kind", ["plain", "quantile", "learning hint", "groups"])
@pytest.mark.parametrize("sizes", [(1,), (7, 1, 40), (10_000,)])
def test_it_is_the_loop_however_events_are_cut(kind: str, sizes: tuple[int, ...]) -> None:
    events = history(160)
    out, statuses, by_loop = by_hand(kind, events)
    state, found, words, at, k = made(kind).to_bytes(), [], [], 0, 0
    while at < len(events):
        part = events[at : at + sizes[k % len(sizes)]]
        state, played = step(state, batch(kind, part))
        found += played.forecast.tolist()
        words += played.status
        at, k = at + len(part), k + 1
    assert found == out
    assert words == statuses
    assert {"expired", "repeated", "same forecast"} <= set(words)
    stream = Cases.from_bytes(state)
    x, hint = context(kind, [1.0, 1.0, 0.0, 1.0]), 0.35
    nxt = stream.play(Events([10**6], [NAN], [x], [hint])).forecast.tolist()
    assert nxt == [float(by_loop.predict(x, hint=hint))]
    assert stream.state.ledger.n_rounds == by_loop.n_rounds
    assert stream.state.hinted == by_loop.state.hinted
    assert float(stream.state.ledger.drift.sum()) == float(by_loop.state.ledger.drift.sum())
    # Where it stood back, the caller's own number is the forecast of a case, and stays it.
    own, other = (each.gate.arrays(each.pending.issued) for each in (stream.state, by_loop.state))
    assert all((own[name] == other[name]).all() for name in own)
    assert (stream.state.ledger.apart == by_loop.state.ledger.apart).all()
    assert by_loop.lateness().n_stood_back > 0


def test_what_waits_and_what_is_remembered_are_bounded() -> None:
    state = made("plain", max_pending=16).to_bytes()
    stream = Cases.from_bytes(state, remember=8)
    for t in range(200):
        stream.play(Events([t], [NAN], [[1.0, 0.0, 0.0, 0.0]]))
    assert stream.n_waiting == 16
    assert stream.state.waiting.n == 16
    assert len(stream.book.done) == 8
    later = Events([0, 180, 199, 199, 178], [1.0, 1.0, 1.0, 1.0, 0.0], [])
    assert stream.play(later).status == ["unknown", "expired", "learned", "repeated", "expired"]
    assert len(stream.to_bytes()) < 6000


def test_what_is_not_allowed() -> None:
    stream = Cases(made("plain"))
    x = [1.0, 0.0, 0.0, 0.0]
    played = stream.play(Events(["a", "a", "a"], [NAN, 3.0, 1.0], [x]))
    assert played.status == ["forecast", "invalid", "learned"]
    with pytest.raises(sc.InvalidInput, match="one id and one y"):
        Events(["a"], [1.0, 2.0], [])
    with pytest.raises(sc.InvalidInput, match="outside"):
        Cases(made("plain")).play(Events(["a"], [NAN], [x], [7.0]))
    clipped = Cases(made("plain", outside="clip"))
    assert clipped.play(Events(["a", "a"], [NAN, 3.0], [x], [7.0])).status == ["forecast", "learned"]


def test_it_is_pure() -> None:
    first, events = made("plain").to_bytes(), batch("plain", history(50))
    assert step(first, events)[0] == step(first, events)[0] != first
