"""A stream's page, made in a process of its own: neither its memory nor its time is the server's.

The process reads the log with a connection of its own, and is told what it needs to know on its standard input.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, NamedTuple

import msgspec
import numpy as np

import swapcal as sc
from swapcal.forecast import Identity
from swapcal.inputs import inside
from swapcal.protocols import Row, Rows
from swapcal.service.schemas import Problem, StreamStatus
from swapcal.service.spec import StreamSpec
from swapcal.service.store import Event, opened
from swapcal.service.stream import Stream, columns, groups_row, unweighted
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.evaluation import ContextColumns, ContextRows, binning
from swapcal.tasks.result import Counts, Range, Result
from swapcal.tasks.scalar import ScalarEvaluation
from swapcal.text.verdict import verdict
from swapcal.typing import Float64Array

# --------
# What the cases of a stream come to: the model's forecasts and swapcal's beside each other, with a verdict.
#
# The same audits, intervals and sentences as those of `swapcal run`, over the forecasts that were given at the time.


class LearnedCases(NamedTuple):
    """Cases whose outcomes have been learned, in that order; a hint that is missing is NaN."""

    y: Float64Array
    hint: Float64Array
    forecast: Float64Array
    rows: Rows
    weights: Float64Array | None
    first: float
    last: float


def learned_cases(events: Iterable[Event], n_groups: int, identity: Identity) -> LearnedCases | None:
    """The outcomes among the events of a stream; None if there is none."""
    rounds: list[tuple[float, float, Row]] = []
    hints, times = list[float](), list[float]()
    for _, is_outcome, row in events:
        if not is_outcome or row.y is None:
            continue
        forecast, hint = row.forecast(identity), row.inputs().used()
        hints.append(np.nan if hint is None else hint)
        rounds.append((row.y, forecast.value, groups_row(forecast, n_groups)))
        times.append(row.created)
    if not rounds:
        return None
    y, forecasts, rows = columns(rounds)
    return LearnedCases(y, np.array(hints), forecasts, *unweighted(rows), min(times), max(times))


def recorded_result(
    name: str, spec: StreamSpec, groups: sc.Groups, cases: LearnedCases, status: dict[str, Any]
) -> Result:
    """The result for a page; `status` is what the stream says of itself, for the page's list of what was asked."""
    kind, audience = spec.forecast_property(), ContextColumns(groups)
    for end in (cases.y.min(), cases.y.max()) if spec.beyond() == "follow" else ():
        kind = kind.covering(float(end))
    hinted = ~np.isnan(cases.hint)
    y, p = inside(kind, cases.y, cases.hint[hinted] if hinted.any() else cases.forecast)
    bins = binning(kind, p, None)
    both = ScalarEvaluation(kind, audience, bins if hinted.any() else None, bins, y, hints=p if hinted.any() else None)
    for part in both.parts(np.ones(len(cases.y), dtype=np.bool_)):
        rows = ContextRows(cases.rows, None).part(part)
        weights = None if cases.weights is None else cases.weights[part]
        both.add(cases.y[part], cases.hint[part], cases.forecast[part], rows, weights)
        both.note()
    section, paired, scored = both.section(history=both.history()), both.paired(), both.leading.n_rounds
    pair = paired.get(kind.wording.loss)
    missing = int(status["pending"] - status["held"] + status["expired"] + status["forgotten"])
    return Result.of(
        TaskConfig("the outcome", property=kind, groups=spec.config().groups),
        f"stream {name}",
        kind,
        counts=Counts(scored=scored, rows=scored + missing, without_outcome=missing),
        verdict=verdict(section.before, section.after, wording=kind.wording, paired=pair, changed=both.n_changed),
        sections=(section,),
        details=dict(_details(spec, cases, status)),
        range=Range(kind.low, kind.high),
        paired=paired,
    )


def _details(spec: StreamSpec, cases: LearnedCases, status: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What it takes to know which cases these are."""
    moment = "%Y-%m-%d %H:%M:%S"
    yield "first case", time.strftime(moment, time.gmtime(cases.first)) + " UTC"
    yield "last case", time.strftime(moment, time.gmtime(cases.last)) + " UTC"
    yield "outcome_order", spec.outcome_order
    for field in ("forecasts", "outcomes", "pending", "held", "expired", "forgotten", "late", "mean_share", "alarms"):
        yield f"{field} of the stream", status[field]


# The page is about the last so many events: forecasts and outcomes.
LATEST = 200_000
SECONDS = 120.0
KEPT = 10
# A page takes some seconds of a core, so one that is not older than this will do.
FRESH = 60.0
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


def page_request(stream: Stream, store: str) -> PageRequest:
    """What is asked of the process for a stream, as it is now."""
    who = stream.identity
    spec = msgspec.structs.replace(stream.spec, seed=None)
    groups = dict(stream.groups.spec())
    return PageRequest(store, stream.name, spec, groups, str(who), who.key, stream.seq, stream.status())


class _Page(NamedTuple):
    asked: PageRequest
    at: float
    html: str

    def answers(self, asked: PageRequest) -> bool:
        """Whether it is what is asked for now; a stream that was deleted and made again is another one."""
        if self.asked.seq > asked.seq or self.asked.spec != asked.spec:
            return False
        nothing_yet = not self.asked.status.outcomes and asked.status.outcomes > 0
        return self.asked.seq == asked.seq or (time.monotonic() - self.at < FRESH and not nothing_yet)


class ReportPages:
    """Makes pages one at a time, and keeps the last of some streams while nothing happens there, or for a minute."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._pages: dict[str, _Page] = {}

    async def page(self, asked: PageRequest) -> str:
        """The page; a `Problem` if it cannot be made."""
        async with self._one:
            page = self._pages.pop(asked.name, None)
            if page is None or not page.answers(asked):
                page = _Page(asked, time.monotonic(), await _in_process(asked))
            self._pages[asked.name] = page
            while len(self._pages) > KEPT:
                del self._pages[next(iter(self._pages))]
            return page.html


async def _in_process(asked: PageRequest) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "swapcal.service.report", stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        talk = process.communicate(msgspec.msgpack.encode(asked))
        page, errors = await asyncio.wait_for(talk, SECONDS)
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

    groups = sc.Groups.from_spec(asked.groups)
    with opened(asked.store) as store:
        events = store.events(asked.name, max(0, asked.seq - LATEST))
        cases = learned_cases(events, groups.n, Identity(asked.identity, asked.key))
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
