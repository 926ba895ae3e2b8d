"""Forecasts, outcomes and cases: the routes that a client calls all day."""

import time
from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from swapcal.forecast import Forecast
from swapcal.service.bodies import decode, json, read_body
from swapcal.service.event_store import CaseRow
from swapcal.service.once import ForecastJob, OutcomeJob
from swapcal.service.problems import Problem
from swapcal.service.registry import Registry
from swapcal.service.schemas import (
    Answers,
    Case,
    Cases,
    CaseState,
    Forecasted,
    Forgotten,
    Learned,
    Outcome,
    Outcomes,
    Refused,
    Results,
    StoredCase,
)
from swapcal.service.served_stream import ServedStream
from swapcal.service.server import Server
from swapcal.service.upstream import fetch_hints

__all__ = ["forecast", "forecast_all", "learn", "stored_case"]

_CASE, _CASES = msgspec.json.Decoder(Case), msgspec.json.Decoder(Cases)
_OUTCOME, _OUTCOMES = msgspec.json.Decoder(Outcome), msgspec.json.Decoder(Outcomes)


async def forecast(server: Server, request: Request) -> Response:
    """Forecast one case, or several."""
    name: str = request.path_params["stream"]
    body = await read_body(request, server.config.limits.body)
    if b'"cases"' not in body:
        case = decode(_CASE, body)
        server.access.charge(request.scope["token"], 1)
        [answer] = await forecast_all(server, name, [case])
        return _single(answer)
    cases = decode(_CASES, body).cases
    _check_size(server, len(cases))
    server.access.charge(request.scope["token"], len(cases))
    answers = await forecast_all(server, name, cases)
    return json(Answers(answers), _status(answers))


async def forecast_all(server: Server, name: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
    """The answers to cases of a stream, with hints from its model server where they have none."""
    fetched = None
    upstream = server.config.upstream.get(name)
    if upstream is not None and any(case.hint is None for case in cases):
        fetched = await fetch_hints(server.http, upstream, cases, await _known(server, name, cases))
    try:
        answers: list[Forecasted | Refused] = await server.writer.submit(ForecastJob(name, cases, fetched), len(cases))
        return answers
    except Problem as problem:
        if not problem.store_down or server.config.service.when_down != "hint":
            raise
        hints = [
            case.hint if fetched is None or case.hint is not None else hint for case, hint in _paired(cases, fetched)
        ]
        if any(hint is None for hint in hints):
            raise
        server.metrics.raw_hints += len(cases)
        return [
            Forecasted(case.id, hint or 0.0, hint, calibrated=False) for case, hint in zip(cases, hints, strict=True)
        ]


async def _known(server: Server, name: str, cases: Sequence[Case]) -> set[str]:
    """Which of the cases are stored: they keep the hint that they had, and the model server is not asked again."""

    def look(registry: Registry) -> set[str]:
        registry.get(name)
        return set(registry.store.find(name, [case.id for case in cases]))

    try:
        return await server.look(look)
    except Problem as problem:
        if not problem.store_down:
            raise
        return set()


async def learn(server: Server, request: Request) -> Response:
    """Learn the outcome of one case, or of several; null says that it will never come."""
    name: str = request.path_params["stream"]
    body = await read_body(request, server.config.limits.body)
    if b'"outcomes"' not in body:
        outcome = decode(_OUTCOME, body)
        server.access.charge(request.scope["token"], 1)
        [answer] = await server.writer.submit(OutcomeJob(name, [outcome]))
        return _single(answer)
    outcomes = decode(_OUTCOMES, body).outcomes
    _check_size(server, len(outcomes))
    server.access.charge(request.scope["token"], len(outcomes))
    answers: list[Learned | Forgotten | Refused] = await server.writer.submit(OutcomeJob(name, outcomes), len(outcomes))
    return json(Results(answers), _status(answers))


async def stored_case(server: Server, request: Request) -> Response:
    """A case as it is stored."""
    name, wanted = request.path_params["stream"], request.path_params["id"]

    def look(registry: object) -> StoredCase:
        stream = server.writer.registry.get(name)
        row = server.writer.store.find(name, [wanted]).get(wanted)
        if row is None:
            raise Problem(404, "no such case was forecast in this stream, or it was too long ago to be kept")
        asked, made = row.asked(), row.forecast(stream.identity)
        return StoredCase(
            id=row.id,
            context=asked.context,
            hint=asked.used(),
            forecast=made.value,
            round=made.round,
            y=row.y,
            state=_state(stream, row, made),
            created=row.created,
            learned=row.learned,
        )

    return json(await server.look(look))


def _state(stream: ServedStream, row: CaseRow, made: Forecast) -> CaseState:
    if row.y is not None:
        return "held" if stream.is_held(made) else "learned"
    if row.is_closed:
        return "forgotten"
    return "expired" if row.created < time.time() - stream.delay or stream.is_expired(made) else "pending"


def _single(answer: Forecasted | Learned | Forgotten | Refused) -> Response:
    if isinstance(answer, Refused):
        raise Problem(answer.status, answer.detail)
    return json(answer)


def _status(answers: Sequence[Forecasted | Learned | Forgotten | Refused]) -> int:
    """207 says: look at the entries, some of them were refused."""
    return 207 if any(isinstance(answer, Refused) for answer in answers) else 200


def _check_size(server: Server, n: int) -> None:
    limit = server.config.limits.batch
    if n > limit:
        raise Problem(413, f"a request holds at most {limit} cases; got {n}")


def _paired(cases: Sequence[Case], fetched: Sequence[float | None] | None) -> list[tuple[Case, float | None]]:
    return list(zip(cases, fetched or [None] * len(cases), strict=True))
