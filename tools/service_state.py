"""Writes `state-1.db.gz` and `state-1.json` for the tests: a store as it is left, and what it forecasts next.

Run it once for each version of the state's format:  python tools/service_state.py
"""

import asyncio
import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from swapcal.service.config import Config, Service
from swapcal.service.idempotency import ForecastJob, OutcomeJob
from swapcal.service.registry import Registry
from swapcal.service.schemas import Case, Outcome
from swapcal.service.server import Server
from swapcal.service.spec import StreamSpec
from swapcal.service.sqlite import Sqlite

STREAMS = {
    "late": StreamSpec(groups=["carrier", ["carrier", "origin"]], group_limit=30, pending=1000, seed=1),
    "minutes": StreamSpec(
        property="quantile", level=0.9, low=-60, high=300, groups=["carrier"], group_limit=10, pending=1000, seed=2,
        hint="learn", features=["hour"], outside="clip",
    ),
}  # fmt: skip


def _case(k: int, name: str) -> Case:
    rng = random.Random(k)
    context: dict[str, Any] = {"carrier": rng.choice("ABC"), "origin": rng.choice("XY"), "hour": rng.randrange(24)}
    return Case(f"case-{k}", context, rng.random() * (1.0 if name == "late" else 100.0))


async def _write(path: Path) -> None:
    server = Server(
        Config(Service(store=str(path), auth=False, snapshot_every=150), streams=STREAMS), Sqlite(str(path))
    )
    async with server.running():
        for name in STREAMS:
            for k in range(120):
                await server.writer.submit(ForecastJob(name, [_case(k, name)]))
                if k > 10 and k % 4:
                    y = float(k % 2) if name == "late" else float(k % 90)
                    await server.writer.submit(OutcomeJob(name, [Outcome(f"case-{k - 6}", y)]))


def main() -> None:
    """Write both files."""
    data = Path(__file__).parents[1] / "tests" / "service" / "data"
    data.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "swapcal.db"
        asyncio.run(_write(path))
        (data / "state-1.db.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        store = Sqlite(str(path))
        store.open()
        registry, known = Registry(store, 10), {}
        for name in STREAMS:
            stream = registry.get(name)
            cases = [_case(k, name) for k in range(1000, 1010)]
            seq, outcomes = stream.seq, stream.scores.totals.outcomes
            made = stream.predict([stream.validate(case.context, case.hint) for case in cases])
            following = [
                {"context": case.context, "hint": case.hint, "forecast": one.value}
                for case, one in zip(cases, made, strict=True)
            ]
            known[name] = {"seq": seq, "outcomes": outcomes, "y": 1.0, "next": following}
        store.close()
    (data / "state-1.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
