"""`swapcal bench service`: a table of loads with their targets, or a soak; printed, and a section of the page."""

import asyncio
import os
from pathlib import Path

from swapcal_benchmarks.report import Report, Table, document
from swapcal_benchmarks.service.soak import soak
from swapcal_benchmarks.service.under_load import BATCH, LoadRow, measure

__all__ = ["service_report"]

SINGLE_ASKED, BATCH_ASKED = 0.4, 6.0
"""Single forecasts against the empty endpoint, and forecasts in batches against single ones: at least."""


def service_report(
    *, store: str | None, turns: int, minutes: float | None, rate: int, docs: Path | None = None
) -> Report:
    """Measure; not met where a target was missed or a request refused. The page in `docs` keeps its other sections."""
    kind = "SQLite" if store is None else "PostgreSQL"
    if minutes is not None:
        kind, text = f"{kind}, soak", asyncio.run(soak(store, minutes, rate))
        met = " 0 refused" in text
    else:
        rows = asyncio.run(measure(store, turns))
        text, met = _table(rows, kind), _met(rows)
    pages = {} if docs is None else {_PAGE: _page(docs / _PAGE, kind, text)}
    return Report(text, pages=pages, met=met)


def _met(rows: list[LoadRow]) -> bool:
    empty, single, batch = rows[0], rows[1], rows[3]
    fast = single.rate >= SINGLE_ASKED * empty.rate and batch.rate >= BATCH_ASKED * single.rate
    return fast and not any(row.failed for row in rows)


def _table(rows: list[LoadRow], store: str) -> str:
    empty, single, batch = rows[0], rows[1], rows[3]
    header = (store, "a second, times the empty endpoint", "for the server's CPU second, the same", "p50", "p99")
    cells = []
    for row in rows:
        ratios = f"{row.rate / empty.rate:.2f}", f"{row.cpu_rate / empty.cpu_rate:.2f}"
        cells.append((row.name, *ratios, *(f"{row.milliseconds(share):.1f} ms" for share in (0.5, 0.99))))
    failed = sum(row.failed for row in rows)
    lines = [
        Table("", header, tuple(cells)).markdown(),
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


_HEAD = """\
Ratios to an empty endpoint of the same stack (Starlette, msgspec, uvicorn) in the same run: both servers run on the
machine that makes the load, in turns of a second, so that whatever else the machine does falls on both. 64 connections
send single cases and 8 send batches. Written by `swapcal bench service --docs docs`, with `--store postgresql://...`
for PostgreSQL, which then runs on the same cores, and `--soak 60` for the soaks. Every stream watches its groups, which
costs outcomes and not forecasts."""


_PAGE = "service-bench.md"


def _page(path: Path, section: str, text: str) -> str:
    """The page with one section replaced, and the others as they are."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = [one for one in old.split("\n## ")[1:] if not one.startswith(f"{section}\n")]
    parts = sorted([*sections, f"{section}\n\n{text}"])
    return document("The service under load", _HEAD, *(f"## {one.rstrip()}" for one in parts))
