"""A service under steady load: forecasts, outcomes, and the memory of the server all the while."""

import asyncio
import time

from swapcal_benchmarks.service.load import cpu_seconds, drive, resident_megabytes
from swapcal_benchmarks.service.under_load import (
    BATCH,
    FORECASTS,
    OUTCOMES,
    case,
    cases,
    outcome,
    outcomes,
    servers,
)

__all__ = ["soak"]

MARKS = (0, 10, 30, 50, 70, 100)
"""Percent of the time at which memory is told."""
SINGLES = 10
"""One case in so many comes by itself."""


async def soak(store: str | None, minutes: float, rate: int) -> str:
    """Load of `rate` cases a second, each with its outcome a second later; what became of it, in a sentence."""
    samples: list[float] = []
    latencies: list[float] = []
    sent = refused = k = batch = 0
    singles, batches = max(1, rate // SINGLES), max(1, rate * (SINGLES - 1) // SINGLES // BATCH)
    with servers(store) as (_, (port, pid)):
        started, used = time.monotonic(), cpu_seconds(pid)
        while time.monotonic() - started < 60.0 * minutes:
            turn = time.monotonic()
            for path, body, first, most in (
                (FORECASTS, cases, batch, batches),
                (FORECASTS, case, k, singles),
                (OUTCOMES, outcomes, batch, batches),
                (OUTCOMES, outcome, k, singles),
            ):
                made = await drive(port, path, body, seconds=30.0, connections=2, first=first, most=most)
                sent += made.requests
                refused += made.failed
                latencies += made.latencies
            k, batch = k + singles, batch + batches
            samples.append(resident_megabytes(pid))
            latencies = latencies[-200_000:]
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - turn)))
        took, used = time.monotonic() - started, cpu_seconds(pid) - used
    marks = [samples[min(len(samples) - 1, len(samples) * part // 100)] for part in MARKS]
    half = len(samples) // 2
    later, before = samples[half:], samples[half // 2 : half] or samples
    p99 = 1e3 * sorted(latencies)[int(0.99 * len(latencies))]
    return (
        f"Soak of {took / 60.0:.1f} minutes: {k + BATCH * batch:,} forecasts and as many outcomes in "
        f"{sent:,} requests, {refused} refused; p99 {p99:.0f} ms; {100.0 * used / took:.0f} % of a core. Resident "
        f"memory in MB at the start and after {', '.join(map(str, MARKS[1:-1]))} and {MARKS[-1]} % of the time: "
        f"{', '.join(f'{size:.0f}' for size in marks)}; the second half's mean against that of the quarter before it: "
        f"{sum(later) / len(later) - sum(before) / len(before):+.1f} MB."
    )
