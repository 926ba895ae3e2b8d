"""The service: events over the network to a server with SQLite, which is ended and started again in the middle."""

import functools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from plays import Played, Run, Runs

HELPERS = str(Path(__file__).resolve().parents[1] / "helpers")
STREAMS: dict[str, dict[str, Any]] = {
    "plain": {"groups": ["carrier", ["carrier", "origin"]], "seed": 1},
    "quantile": {"property": "quantile", "level": 0.9, "low": -5, "high": 5, "groups": ["carrier"], "seed": 2},
    "learning": {"property": "mean", "hint": "learn", "features": ["hour"], "groups": ["carrier"], "seed": 3}
    | {"protect": "nothing"},
    "ordered": {"groups": ["carrier"], "seed": 5, "outcome_order": "forecast", "settle": 20, "monitor": False},
    "small": {"groups": ["carrier"], "seed": 6, "pending": 20, "protect": "nothing"},
    "watched": {"groups": ["carrier"], "seed": 7, "bins": 11, "monitor": {"tolerance": 0.0, "alpha": 0.9}},
    "clipping": {"property": "expectile", "level": 0.7, "outside": "clip", "group_limit": 4, "seed": 4, "bins": 11}
    | {"protect": "nothing"},
    "never back": {"groups": ["carrier"], "seed": 8, "protect": "nothing"},
}
T = 80


def events(spec: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """Cases alone and in batches; outcomes late, in another order, twice, of nobody, outside the range, and never."""
    rng = np.random.default_rng(seed)
    low, high = spec.get("low", 0.0), spec.get("high", 1.0)
    binary = "property" not in spec
    calls: list[tuple[float, str, dict[str, Any]]] = []
    for t in range(T):
        carrier, origin, hour = str(rng.choice(list("ABCDE"))), int(rng.integers(3)), int(rng.integers(24))
        context = {"carrier": carrier, "origin": origin, "hour": hour}
        hint = None if t % 9 == 0 else float(rng.uniform(low, high))
        case = {"id": f"c{t}", "context": context, "hint": hint}
        calls.append((t, "forecasts", case))
        if t % 40 == 7:
            calls.append((t + 0.3, "forecasts", case))
        y = float(rng.random() < 0.3) if binary else round(float(rng.uniform(low, high)), 3)
        due = t + (0.5 if rng.random() < 0.5 else float(rng.integers(1, 40)))
        outcome: dict[str, Any] = {"id": f"c{t}", "y": None if t % 17 == 3 else y}
        if t % 23 != 5:
            calls.append((due, "outcomes", outcome))
        if t % 19 == 2:
            calls += [(due + 2.0, "outcomes", outcome), (due + 3.0, "outcomes", {"id": f"c{t}", "y": high})]
        if t % 29 == 1:
            calls += [
                (t, "outcomes", {"id": f"nobody{t}", "y": low}),
                (t, "outcomes", {"id": f"c{t}", "y": high + 9.0}),
            ]
    calls.sort(key=lambda call: call[0])
    return [(kind, body) for _, kind, body in calls]


def answer(response: Any) -> Any:
    """The status and what is said, without sentences and times."""
    body = response.json()
    entries = body.get("forecasts", body.get("outcomes", [body]))
    skipped = ("detail", "title", "type", "created", "learned")
    return [response.status_code, [{k: v for k, v in entry.items() if k not in skipped} for entry in entries]]


def play(server: Any, stream: str, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Send calls, neighbors of the same kind together now and then."""
    out, k = [], 0
    while k < len(calls):
        kind = calls[k][0]
        stop = k + 1
        while k % 3 and stop < len(calls) and calls[stop][0] == kind and stop < k + 5:
            stop += 1
        bodies = [body for _, body in calls[k:stop]]
        plural = {"forecasts": "cases", "outcomes": "outcomes"}[kind]
        body = bodies[0] if len(bodies) == 1 else {plural: bodies}
        out.append(answer(server.post(f"/v1/streams/{stream}/{kind}", body)))
        k = stop
    return out


@functools.cache
def served() -> dict[str, Played]:
    """All streams on one server, which is killed after half of the events and started again."""
    sys.path.insert(0, HELPERS)
    from service_running import start

    specs = {name.replace(" ", "-"): spec for name, spec in STREAMS.items()}
    calls = {name: events(spec, seed) for seed, (name, spec) in enumerate(specs.items())}
    out: dict[str, list[Any]] = {name: [] for name in specs}
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = {"store": str(Path(folder, "swapcal.db")), "config": {"streams": specs}}
        for turn in range(2):
            server = start(Path(folder), turn, settings)
            try:
                for name, listed in calls.items():
                    half = len(listed) // 2
                    out[name] += play(server, name, listed[:half] if turn == 0 else listed[half:])
                    if turn:
                        figures[name] = looks(server, name)
            finally:
                server.kill()
    return {name: Played(json.dumps(out[key]).encode(), figures[key]) for name, key in zip(STREAMS, specs, strict=True)}


def looks(server: Any, stream: str) -> dict[str, Any]:
    """The stream's audit, counters, alarms, and states of cases."""
    audit = server.http.get(f"/v1/streams/{stream}/audit").json()
    cases = [server.http.get(f"/v1/streams/{stream}/cases/c{t}").json() for t in range(0, T, 3)]
    alarms = server.http.get(f"/v1/streams/{stream}/alarms").json()["alarms"]
    counts = {key: each for key, each in server.status(stream).items() if isinstance(each, int)}
    sides = {side: {k: v for k, v in audit[side].items() if k != "witness"} for side in ("before", "after")}
    return {
        **sides,
        "groups": audit["groups"],
        "status": counts,
        "cases": [[case["id"], case["forecast"], case["y"], case["state"]] for case in cases],
        "alarms": [[alarm["group"], alarm["side"]] for alarm in alarms],
    }


def runs() -> Runs:
    """Name and play of every run."""
    for name in STREAMS:
        yield Run(f"service: {name}", lambda name=name: served()[name], both=False)  # type: ignore[misc]
