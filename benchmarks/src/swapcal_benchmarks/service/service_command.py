"""`swapcal bench service`: a table of loads with their targets, or a soak; printed, and a section of the page."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from swapcal_benchmarks.service.soak import soak
from swapcal_benchmarks.service.under_load import BATCH, LoadRow, measure

__all__ = ["load_service"]

SINGLE_ASKED, BATCH_ASKED = 0.4, 6.0
"""Single forecasts against the empty endpoint, and forecasts in batches against single ones: at least."""


def load_service(
    *,
    store: str | None,
    turns: int,
    minutes: float | None,
    rate: int,
    docs: Path | None,
    echo: Callable[[str], None],
) -> int:
    """Measure, print, write; the exit code, which is 1 where a target was missed or a request refused."""
    kind = "SQLite" if store is None else "PostgreSQL"
    if minutes is not None:
        kind, text = f"{kind}, soak", asyncio.run(soak(store, minutes, rate))
        met = " 0 refused" in text
    else:
        rows = asyncio.run(measure(store, turns))
        text, met = _table(rows, kind), _met(rows)
    echo(text)
    if docs is not None:
        _write(docs / "service-bench.md", kind, text)
    return 0 if met else 1


def _met(rows: list[LoadRow]) -> bool:
    empty, single, batch = rows[0], rows[1], rows[3]
    fast = single.rate >= SINGLE_ASKED * empty.rate and batch.rate >= BATCH_ASKED * single.rate
    return fast and not any(row.failed for row in rows)


def _table(rows: list[LoadRow], store: str) -> str:
    empty, single, batch = rows[0], rows[1], rows[3]
    lines = [
        f"| {store} | a second, times the empty endpoint | for the server's CPU second, the same | p50 | p99 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row.name} | {row.rate / empty.rate:.2f} | {row.cpu_rate / empty.cpu_rate:.2f} | "
        f"{row.milliseconds(0.5):.1f} ms | {row.milliseconds(0.99):.1f} ms |"
        for row in rows
    ]
    failed = sum(row.failed for row in rows)
    lines += [
        "",
        f"Single forecasts, stored: {single.rate / empty.rate:.2f} of the empty endpoint a second, "
        f"{single.cpu_rate / empty.cpu_rate:.2f} for the CPU (asked: {SINGLE_ASKED}). Batches of {BATCH}: "
        f"{batch.rate / single.rate:.1f} times as many forecasts a second as single ones, "
        f"{batch.cpu_rate / single.cpu_rate:.1f} for the CPU (asked: {BATCH_ASKED:g}). "
        f"{sum(row.requests for row in rows):,} requests, {failed} refused. The empty endpoint answered "
        f"{empty.rate:,.0f} requests a second in this run, on a machine with {os.cpu_count()} cores and a load of "
        f"{os.getloadavg()[0]:.1f}.",
    ]
    return "\n".join(lines)


_HEAD = """# The service under load

Ratios to an empty endpoint of the same stack (Starlette, msgspec, uvicorn) in the same run: both servers run on the
machine that makes the load, in turns of a second, so that whatever else the machine does falls on both. 64 connections
send single cases and 8 send batches. Written by `swapcal bench service --docs docs`, with `--store postgresql://...`
for PostgreSQL, which then runs on the same cores, and `--soak 30` for the soaks. Every stream watches its groups, which
costs outcomes and not forecasts.
"""


def _write(path: Path, section: str, text: str) -> None:
    """Replace one section of the page, and leave the others."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = [one for one in old.split("\n## ")[1:] if not one.startswith(f"{section}\n")]
    parts = [_HEAD, *(f"{one.rstrip()}\n" for one in sorted([*sections, f"{section}\n\n{text}"]))]
    path.write_text("\n## ".join(parts), encoding="utf-8")
