"""A stream's page, made in a process of its own: neither its memory nor its time is the server's.

The process reads the log with a connection of its own, and is told what it needs to know on its standard input.
"""

import asyncio
import contextlib
import os
import sys
import time
from html import escape
from typing import Any

import msgspec

import swapcal as sc
from swapcal.forecast import Identity
from swapcal.service.event_store import opened
from swapcal.service.problems import Problem
from swapcal.service.schemas import StreamStatus
from swapcal.service.served_stream import ServedStream
from swapcal.service.spec import StreamSpec

__all__ = ["PageRequest", "ReportPages", "asked_of"]

LATEST = 200_000
"""The page is about the last so many events: forecasts and outcomes."""
SECONDS = 120.0
KEPT = 10
FRESH = 60.0
"""A page takes some seconds of a core, so one that is not older than this will do."""
NOTHING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark"><title>stream {stream} · swapcal</title>'
    '<p style="font:16px system-ui;max-width:40em;margin:3em auto;padding:0 1em">No outcome has come to this '
    "stream yet, so there is nothing to report. Come back when some have.</p></html>"
)


class PageRequest(msgspec.Struct, frozen=True):
    """All that the page is made from, besides the log; the key stays between the two processes."""

    store: str
    name: str
    spec: StreamSpec
    groups: dict[str, Any]
    identity: str
    key: bytes
    seq: int
    status: StreamStatus


def asked_of(stream: ServedStream, store: str) -> PageRequest:
    """What is asked of the process for a stream, as it is now."""
    who = stream.identity
    spec = msgspec.structs.replace(stream.spec, seed=None)
    groups = dict(stream.groups.spec())
    return PageRequest(store, stream.name, spec, groups, str(who), who.key, stream.seq, stream.status())


class ReportPages:
    """Makes pages one at a time, and keeps the last of some streams while nothing happens there, or for a minute."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._kept: dict[str, tuple[PageRequest, float, str]] = {}

    async def page(self, asked: PageRequest) -> str:
        """The page; a `Problem` if it cannot be made."""
        async with self._one:
            kept = self._kept.pop(asked.name, None)
            # A stream that was deleted and made again is another one.
            if kept is None or kept[0].seq > asked.seq or kept[0].spec != asked.spec or not _current(kept, asked):
                kept = asked, time.monotonic(), await _made(asked)
            self._kept[asked.name] = kept
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return kept[2]


def _current(kept: tuple[PageRequest, float, str], asked: PageRequest) -> bool:
    nothing_yet = not kept[0].status.outcomes and asked.status.outcomes > 0
    return kept[0].seq == asked.seq or (time.monotonic() - kept[1] < FRESH and not nothing_yet)


async def _made(asked: PageRequest) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "swapcal.service.report_job", stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        told = process.communicate(msgspec.msgpack.encode(asked))
        page, errors = await asyncio.wait_for(told, SECONDS)
    except TimeoutError as error:
        raise Problem(503, f"the page took more than {SECONDS:g} seconds; try again later", retry_after=60) from error
    finally:
        # Also where whoever asked has hung up.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.returncode:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise Problem(503, f"the page cannot be made: {last}")
    return page.decode()


def make(asked: PageRequest) -> str:
    """The page of a stream, from its log."""
    from swapcal.report.page import html
    from swapcal.service.recorded_result import learned_cases, recorded_result

    groups = sc.Groups.from_spec(asked.groups)
    with opened(asked.store) as store:
        events = store.events(asked.name, max(0, asked.seq - LATEST))
        cases = learned_cases(events, asked.spec, groups.n, Identity(asked.identity, asked.key))
    if cases is None:
        return NOTHING.replace("{stream}", escape(asked.name))
    status = msgspec.structs.asdict(asked.status)
    return html(recorded_result(asked.name, asked.spec, groups, cases, status))


if __name__ == "__main__":
    os.nice(5)
    try:
        sys.stdout.write(make(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=PageRequest)))
    except sc.SwapcalError as failure:
        sys.exit(str(failure))
