"""What the cases of a stream come to: the model's forecasts and swapcal's beside each other, with a verdict.

The same audits, intervals and sentences as those of `swapcal run`, over the forecasts that were given at the time.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc
from swapcal.audit.summary import summarize
from swapcal.forecast import Identity
from swapcal.jobs.audience import Audience, AudienceRows
from swapcal.jobs.auditing import versions
from swapcal.jobs.before_after import BeforeAfter
from swapcal.jobs.binning import binning
from swapcal.jobs.history import ErrorHistory
from swapcal.jobs.result import History, Result
from swapcal.roles import Rows
from swapcal.service.event_store import Event
from swapcal.service.spec import StreamSpec
from swapcal.service.stream_parts import property_of
from swapcal.typing import Float64Array
from swapcal.words.property_words import loss_name
from swapcal.words.verdicts import verdict

__all__ = ["LearnedCases", "learned_cases", "recorded_result"]


class LearnedCases(NamedTuple):
    """Cases whose outcomes have been learned, in that order; a hint that is missing is NaN."""

    y: Float64Array
    hint: Float64Array
    forecast: Float64Array
    rows: Rows
    first: float
    last: float


def learned_cases(events: Iterable[Event], spec: StreamSpec, n_groups: int, identity: Identity) -> LearnedCases | None:
    """The outcomes among the events of a stream; None if there is none."""
    numbers: list[tuple[float, float, float]] = []
    indices, values, times = list[Any](), list[Any](), list[float]()
    low, high = property_of(spec).domain
    for _, is_outcome, row in events:
        if not is_outcome or row.y is None:
            continue
        made, hint = row.forecast(identity), row.asked().used()
        hint = np.nan if hint is None else min(max(hint, low), high)
        numbers.append((min(max(row.y, spec.low), spec.high), hint, made.value))
        here = np.array(made.indices, dtype=np.int64)
        k = int(here.searchsorted(n_groups))
        indices.append(here[:k])
        values.append(np.array(made.values)[:k])
        times.append(row.created)
    if not numbers:
        return None
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in indices])]).astype(np.int64)
    y, hints, forecasts = (np.ascontiguousarray(one) for one in np.array(numbers).T)
    rows = Rows(indptr, np.concatenate(indices), np.concatenate(values))
    return LearnedCases(y, hints, forecasts, rows, min(times), max(times))


def recorded_result(
    name: str, spec: StreamSpec, groups: sc.Groups, cases: LearnedCases, status: dict[str, Any]
) -> Result:
    """The result for a page; `status` is what the stream says of itself, for the page's list of settings."""
    kind, audience = property_of(spec), Audience(groups)
    hinted = ~np.isnan(cases.hint)
    bins = binning(kind, cases.hint[hinted], None) if hinted.any() else None
    both = BeforeAfter(kind, audience, bins, cases.y, 2.0, cases.hint[hinted] if hinted.any() else None)
    history = ErrorHistory()
    for part in history.parts(0, np.ones(len(cases.y), dtype=np.bool_)):
        rows = AudienceRows(cases.rows, None).part(part)
        both.add(cases.y[part], None if bins is None else cases.hint[part], cases.forecast[part], rows, None)
        if history.due(part.stop):
            history.note(part.stop, *_errors(both))
    rounds, error_before, error_after = history.series(len(cases.y), *_errors(both))
    before = None if both.before is None else summarize(both.before)
    after, paired = summarize(both.after), both.losses.paired()
    return Result(
        kind="run",
        source=f"stream {name}",
        property=kind,
        loss_name=loss_name(kind),
        low=kind.low,
        high=kind.high,
        groups=both.after.names,
        n_rounds=both.after.n_rounds,
        n_missing=int(status["pending"] - status["held"] + status["expired"] + status["forgotten"]),
        n_clipped=0,
        before=before,
        after=after,
        history=History(rounds, None if before is None else error_before, error_after, None),
        paired=paired,
        verdict=verdict(before, after, property=kind, paired=paired),
        guarantee=None,
        settings=dict(_settings(spec, cases, status)),
        versions=versions(),
    )


def _errors(both: BeforeAfter) -> tuple[float, float]:
    before = 0.0 if both.before is None or not both.before.n_rounds else both.before.swap_error(2.0)
    return before, both.after.swap_error(2.0)


def _settings(spec: StreamSpec, cases: LearnedCases, status: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What it takes to know which cases these are."""
    moment = "%Y-%m-%d %H:%M:%S"
    yield "first case", time.strftime(moment, time.gmtime(cases.first)) + " UTC"
    yield "last case", time.strftime(moment, time.gmtime(cases.last)) + " UTC"
    yield "groups", [one if isinstance(one, str) else list(one) for one in spec.groups]
    yield "outcome_order", spec.outcome_order
    for field in ("forecasts", "outcomes", "pending", "held", "expired", "forgotten", "late", "stood_back", "alarms"):
        yield f"{field} of the stream", status[field]
