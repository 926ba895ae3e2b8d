"""What clients call all day (forecasts, outcomes, cases), what there is to read, streams for administrators, health."""

import asyncio
import re
import time
from collections.abc import Collection, Sequence
from typing import Any

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response

import swapcal as sc
from swapcal.forecast import Forecast
from swapcal.service import schemas
from swapcal.service.access import decode, json, read_body
from swapcal.service.config import Upstream
from swapcal.service.idempotency import ForecastJob, OutcomeJob
from swapcal.service.metrics import CONTENT_TYPE
from swapcal.service.registry import Registry
from swapcal.service.report import page_request
from swapcal.service.schemas import Case, Forecasted, Problem, Refused
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.service.store import CaseRow
from swapcal.service.stream import Stream, audit_view, check
from swapcal.text.numbers import counted

# --------
# What there is to read, streams for administrators, and health.

_SPEC = msgspec.json.Decoder(StreamSpec)
_SCRIPT = re.compile(r"'(sha256-[A-Za-z0-9+/=]{44})'")
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; {script}"
    "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def audit(server: Server, request: Request) -> Response:
    """The errors of hints and forecasts, and every group's bias."""
    name: str = request.path_params["stream"]
    before, after = await server.query(lambda registry: registry.get(name).scores.audits())
    return json(await asyncio.to_thread(audit_view, name, before, after))


async def report(server: Server, request: Request) -> Response:
    """The verdict on the latest cases, as a page that can be kept: the one that `swapcal run` writes."""
    name, store = request.path_params["stream"], server.config.service.store
    page = await server.pages.page(await server.query(lambda registry: page_request(registry.get(name), store)))
    # The page says by its hash which script is its own; it loads nothing from elsewhere and runs no other.
    own = _SCRIPT.search(page)
    policy = SECURITY["Content-Security-Policy"].replace("{script}", f"script-src '{own[1]}'; " if own else "")
    return Response(page, headers=SECURITY | {"Content-Security-Policy": policy}, media_type="text/html; charset=utf-8")


async def alarms(server: Server, request: Request) -> Response:
    """The alarms of the stream's monitor."""
    name: str = request.path_params["stream"]

    def read(registry: Registry) -> schemas.Alarms:
        stream = registry.get(name)
        if not stream.monitors:
            none = "this stream has no monitor, so nothing raises alarms; leave out `monitor = false`"
            return schemas.Alarms([], [], none)
        watch, model = stream.monitors.values()
        outcomes, tolerance = watch.monitor.n_rows, watch.monitor.tolerance
        note = (
            f"{counted(watch.raised, 'alarm')} over {counted(outcomes, 'outcome')}, {model.raised:,} for the model's "
            f"own numbers; tolerated is a bias of {tolerance:g} in any group"
        )
        return schemas.Alarms(watch.alarms.copy(), model.alarms.copy(), note)

    return json(await server.query(read))


async def metrics(server: Server, request: Request) -> Response:
    """Counters and gauges for Prometheus."""
    try:
        statuses = await server.query(lambda registry: [stream.status() for stream in registry.streams.values()])
    except Problem:
        # Counters are wanted most when the store is down.
        statuses = []
    token, writer = request.scope["token"], server.writer
    seen = [status for status in statuses if token.may("read", status.name)]
    text = await asyncio.to_thread(server.metrics.text, seen, token.may, queued=writer.queued, ready=writer.ready)
    return Response(text, media_type=CONTENT_TYPE)


async def list_streams(server: Server, request: Request) -> Response:
    """The streams that the token may see."""
    names = await server.query(lambda registry: registry.store.names())
    return json(schemas.StreamList([name for name in names if request.scope["token"].may("read", name)]))


async def put_stream(server: Server, request: Request) -> Response:
    """Make a stream; the same one again changes nothing."""
    name: str = request.path_params["stream"]
    spec = decode(_SPEC, await read_body(request, server.config.limits.body))
    try:
        check(spec)
        created = await server.query(lambda registry: registry.create(name, spec))
    except sc.SwapcalError as error:
        raise Problem(422, str(error)) from error
    return json(await server.query(lambda registry: _stream(registry, name)), 201 if created else 200)


async def get_stream(server: Server, request: Request) -> Response:
    """What a stream is and where it stands."""
    return json(await server.query(lambda registry: _stream(registry, request.path_params["stream"])))


def _stream(registry: Registry, name: str) -> StreamAnswer:
    stream = registry.get(name)
    return StreamAnswer(msgspec.structs.replace(stream.spec, seed=None), stream.status())


async def delete_stream(server: Server, request: Request) -> Response:
    """Delete a stream, its cases and all that it has learned."""
    name: str = request.path_params["stream"]
    if name in server.config.streams:
        raise Problem(409, f"stream {name!r} is in the configuration and would come back; take it out there first")
    await server.query(lambda registry: registry.drop(name))
    return Response(status_code=204)


async def live(server: Server, request: Request) -> Response:
    """Whether the process answers."""
    return json(schemas.Health(live=True, ready=server.writer.ready))


async def ready(server: Server, request: Request) -> Response:
    """Whether the store works and streams are loaded."""
    good = server.writer.ready and not server.stop_at
    return json(schemas.Health(live=True, ready=good), 200 if good else 503)


async def ping(server: Server, request: Request) -> Response:
    """The same, where MLflow's server has it."""
    return await ready(server, request)


# Bytes that a model server may answer with.
LONGEST_ANSWER = 16 * 2**20


async def fetch_hints(
    http: httpx.AsyncClient, upstream: Upstream, cases: Sequence[Case], known: Collection[str]
) -> list[float | None]:
    """A hint for each new case that has none, in one call; None for the others and for those whose id is `known`.

    A `Problem` if the server gives none. Its address comes from the configuration and nowhere else.
    """
    contexts = [case.context for case in cases if case.hint is None and case.id not in known]
    if not contexts:
        return [None] * len(cases)
    columns = upstream.columns
    records = [one if columns is None else {name: one.get(name) for name in columns} for one in contexts]
    body = {"dataframe_records": records} if upstream.kind == "mlflow" else _tensors(records)
    try:
        async with asyncio.timeout(upstream.timeout):
            hints = _hints(await _asked(http, upstream.url, body), upstream)
    except (httpx.HTTPError, TimeoutError, msgspec.DecodeError, RecursionError, ValueError, LookupError) as error:
        reason = str(error) if isinstance(error, ValueError) else ""
        reason = f"{type(error).__name__}{reason and ': '}{reason[:200]}"
        raise Problem(502, f"the model server gave no hint ({reason}); nothing was stored", retry_after=1) from error
    if len(hints) != len(records):
        raise Problem(502, f"the model server gave {len(hints)} hints for {len(records)} cases; nothing was stored")
    rest = iter(hints)
    return [next(rest) if case.hint is None and case.id not in known else None for case in cases]


def _tensors(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns as the tensors of the Open Inference Protocol."""
    inputs = []
    for name in dict.fromkeys(name for record in records for name in record):
        data = [record.get(name) for record in records]
        numbers = [float(value) for value in data if isinstance(value, (int, float))]
        column: dict[str, Any] = {"datatype": "FP64", "data": numbers}
        if len(numbers) < len(data):
            column = {"datatype": "BYTES", "data": ["" if value is None else str(value) for value in data]}
        inputs.append({"name": name, "shape": [len(data)], **column})
    return {"inputs": inputs}


async def _asked(http: httpx.AsyncClient, url: str, body: Any) -> bytes:
    """What a model server answers, as far as `LONGEST_ANSWER`."""
    answer = bytearray()
    async with http.stream("POST", url, json=body, timeout=None) as response:
        response.raise_for_status()
        async for piece in response.aiter_bytes():
            answer += piece
            if len(answer) > LONGEST_ANSWER:
                raise ValueError(f"its answer has more than {LONGEST_ANSWER} bytes")
    return bytes(answer)


def _hints(answer: bytes, upstream: Upstream) -> list[float]:
    if upstream.kind == "v2":
        outputs = msgspec.json.decode(answer, type=schemas.Inferred).outputs
        [numbers, *_] = [one.data for one in outputs if upstream.output in (None, one.name)] or [[]]
    elif upstream.output is None:
        numbers = msgspec.json.decode(answer, type=schemas.Predicted).predictions
    else:
        records = msgspec.json.decode(answer, type=schemas.PredictedRecords).predictions
        numbers = [msgspec.convert(one[upstream.output], float) for one in records]
    return [one[0] if isinstance(one, list) else one for one in numbers]


_CASES = {"one": msgspec.json.Decoder(Case), "cases": msgspec.json.Decoder(schemas.Cases)}
_OUTCOMES = {"one": msgspec.json.Decoder(schemas.Outcome), "outcomes": msgspec.json.Decoder(schemas.Outcomes)}
_SEVERAL = msgspec.json.Decoder(schemas.Several)
Entry = Forecasted | schemas.Learned | schemas.Forgotten | Refused


async def forecast(server: Server, request: Request) -> Response:
    """Forecast one case, or several."""
    cases, several = await _items(server, request, "cases", _CASES)
    answers = await forecast_all(server, request.path_params["stream"], cases)
    return _answer(answers, schemas.Answers(answers) if several else None)


async def forecast_all(server: Server, name: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
    """The answers to cases of a stream, with hints from its model server where they have none."""
    fetched = None
    upstream = server.config.upstream.get(name)
    if upstream is not None and any(case.hint is None for case in cases):
        fetched = await fetch_hints(server.http, upstream, cases, await _known(server, name, cases))
    try:
        answers: list[Forecasted | Refused] = await server.writer.submit(ForecastJob(name, cases, fetched), len(cases))
    except Problem as problem:
        pairs = zip(cases, fetched or [None] * len(cases), strict=True)
        hints = [(case.id, hint if case.hint is None else case.hint) for case, hint in pairs]
        if not problem.store_down or server.config.service.when_down != "hint":
            raise
        answers = [Forecasted(name, hint, hint, calibrated=False) for name, hint in hints if hint is not None]
        if len(answers) < len(cases):
            raise
        server.metrics.raw_hints += len(cases)
    return answers


async def _known(server: Server, name: str, cases: Sequence[Case]) -> set[str]:
    """Which of the cases are stored: they keep the hint that they had, and the model server is not asked again."""

    def find(registry: Registry) -> set[str]:
        registry.get(name)
        return set(registry.store.find(name, [case.id for case in cases]))

    try:
        return await server.query(find)
    except Problem as problem:
        if not problem.store_down:
            raise
        return set()


async def learn(server: Server, request: Request) -> Response:
    """Learn the outcome of one case, or of several; null says that it will never come."""
    outcomes, several = await _items(server, request, "outcomes", _OUTCOMES)
    answers = await server.writer.submit(OutcomeJob(request.path_params["stream"], outcomes), len(outcomes))
    return _answer(answers, schemas.Results(answers) if several else None)


async def stored_case(server: Server, request: Request) -> Response:
    """A case as it is stored."""
    name, case = request.path_params["stream"], request.path_params["id"]

    def read(registry: Registry) -> schemas.StoredCase:
        stream = registry.get(name)
        row = registry.store.find(name, [case]).get(case)
        if row is None:
            raise Problem(404, "no such case was forecast in this stream, or it was too long ago to be kept")
        inputs, forecast = row.inputs(), row.forecast(stream.identity)
        return schemas.StoredCase(
            id=case,
            context=inputs.context,
            hint=inputs.used(),
            forecast=forecast.value,
            round=forecast.round,
            y=row.y,
            state=_state(stream, row, forecast),
            created=row.created,
            learned=row.learned,
            weight=inputs.weight,
        )

    return json(await server.query(read))


def _state(stream: Stream, row: CaseRow, forecast: Forecast) -> schemas.CaseState:
    if row.y is not None:
        return "held" if stream.is_held(forecast) else "learned"
    if row.y_seq is not None:
        return "forgotten"
    return "expired" if row.created < time.time() - stream.delay or stream.is_expired(forecast) else "pending"


async def _items(server: Server, request: Request, field: str, decoders: dict[str, Any]) -> tuple[list[Any], bool]:
    """What the body holds, one or several, for which the token is charged; and whether it is several."""
    body = await read_body(request, server.config.limits.body)
    several = bool(bytes(getattr(decode(_SEVERAL, body), field)))
    items = getattr(decode(decoders[field], body), field) if several else [decode(decoders["one"], body)]
    limit = server.config.limits.batch
    if len(items) > limit:
        raise Problem(413, f"a request holds at most {limit} cases; got {len(items)}")
    server.access.charge(request.scope["token"], len(items))
    return items, several


def _answer(answers: Sequence[Entry], several: schemas.Answers | schemas.Results | None) -> Response:
    """The answer to one item, or to several: 207 says that some of the entries were refused."""
    if several is not None:
        return json(several, 207 if any(isinstance(answer, Refused) for answer in answers) else 200)
    [answer] = answers
    if isinstance(answer, Refused):
        raise Problem(answer.status, answer.detail)
    return json(answer)
