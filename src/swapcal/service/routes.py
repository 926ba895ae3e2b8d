"""Every route, with who may, what it takes and what it answers."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from swapcal.service import handlers, reads
from swapcal.service.access import Scope
from swapcal.service.schemas import (
    ID,
    MEDIA_TYPE,
    NAME,
    Alarms,
    Answers,
    AuditView,
    Case,
    Cases,
    Forecasted,
    Forgotten,
    Health,
    Learned,
    Outcome,
    Outcomes,
    Refused,
    Results,
    StoredCase,
    StreamList,
)
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.version import __version__

# --------
# The table of routes: what OpenAPI describes is what is served, as both are read from it.

Handler = Callable[[Server, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One route.

    `scope` None means that anybody may; `bodies` and `answer` are structs, or a media type for what is not JSON;
    `example` is a request that works, and `statuses` are the refusals besides those that every route of its kind has.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    scope: Scope | None
    summary: str
    handler: Handler
    answer: Any
    bodies: tuple[type, ...] = ()
    statuses: tuple[int, ...] = ()
    success: tuple[int, ...] = (200,)
    example: Any = None
    answer_example: Any = None
    tags: tuple[str, ...] = field(default=("streams",))

    @property
    def name(self) -> str:
        """The operation's id in OpenAPI."""
        return self.handler.__name__


# --------
# The OpenAPI document, generated from the table of routes and the structs that the routes decode.

_REF = "#/components/schemas/{name}"


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    listed = list(operations)
    structs = list(dict.fromkeys([*(one for op in listed for one in (*op.bodies, *_structs(op))), Refused]))
    _, components = msgspec.json.schema_components(structs, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for op in listed:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(op)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "swapcal",
            "version": __version__,
            "description": "Forecasts that are calibrated for everybody, stored before they are answered. Requests "
            "with an id can be sent again: they are answered as before, and nothing is learned twice.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _structs(op: Operation) -> tuple[type, ...]:
    return op.answer if isinstance(op.answer, tuple) else ()


def _operation(op: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": op.name,
        "summary": op.summary,
        "description": (op.handler.__doc__ or "").strip(),
        "tags": list(op.tags),
        "responses": _responses(op),
    }
    parameters = [_parameter(name) for name in ("stream", "id") if f"{{{name}}}" in op.path]
    if parameters:
        made["parameters"] = parameters
    if op.bodies:
        content: dict[str, Any] = {"schema": _one_of(op.bodies)}
        if op.example is not None:
            content["example"] = op.example
        made["requestBody"] = {"required": True, "content": {"application/json": content}}
    if op.scope is not None:
        made["security"] = [{"token": []}]
        made["description"] += f" Needs the scope `{op.scope}`."
    return made


def _responses(op: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if isinstance(op.answer, tuple):
        answer: dict[str, Any] = {"schema": _one_of(op.answer)}
        if op.answer_example is not None:
            answer["example"] = op.answer_example
        content = {"application/json": answer}
    elif op.answer is not None:
        content = {op.answer: {"schema": {"type": "string"}}}
    responses: dict[str, Any] = {}
    for status in op.success:
        responses[str(status)] = {"description": HTTPStatus(status).phrase, **({"content": content} if content else {})}
    refusals = set(op.statuses)
    if op.scope is not None:
        refusals |= {401, 403, 503}
    if "{stream}" in op.path or "{id}" in op.path:
        refusals |= {404}
    if op.bodies:
        refusals |= {400, 413, 415, 422, 429}
    problem = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Refused")}}}
    for status in sorted(refusals - set(op.success)):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
        if status in (429, 502, 503):
            responses[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return responses


def _parameter(name: str) -> dict[str, Any]:
    pattern = NAME if name == "stream" else ID
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _one_of(types: tuple[type, ...]) -> dict[str, Any]:
    refs = [{"$ref": _REF.format(name=one.__name__)} for one in types]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


S = "/v1/streams/{stream}"
_CASE = {"id": "flight-1545", "context": {"carrier": "UA", "origin": "EWR", "hour": 5}, "hint": 0.21}
_FORECAST = {
    "result": "forecast",
    "id": "flight-1545",
    "forecast": 0.1818,
    "hint": 0.21,
    "other": 0.1818,
    "probability": 1.0,
    "round": 0,
    "calibrated": True,
    "replayed": False,
}
_SPEC = {"property": "probability", "groups": ["carrier", "origin", ["carrier", "origin"]], "delay": "7d"}
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", f"{S}/forecasts", "predict", "Forecast one case or several", handlers.forecast,
        (Forecasted, Answers), (Case, Cases), (404, 409, 502), (200, 207), _CASE, _FORECAST, ("cases",),
    ),
    Operation(
        "POST", f"{S}/outcomes", "outcomes", "Learn one outcome or several", handlers.learn,
        (Learned, Forgotten, Results), (Outcome, Outcomes), (404, 409, 410), (200, 207),
        {"id": "flight-1545", "y": 0.0},
        {"result": "learned", "id": "flight-1545", "y": 0.0, "replayed": False}, ("cases",),
    ),
    Operation(
        "GET", f"{S}/cases/{{id}}", "read", "A case as it is stored", handlers.stored_case, (StoredCase,),
        statuses=(404,), tags=("cases",),
    ),
    Operation("GET", f"{S}/audit", "read", "Errors and groups", reads.audit, (AuditView,), statuses=(404,)),
    Operation("GET", f"{S}/report", "read", "The audit as a page", reads.report, "text/html", statuses=(404,)),
    Operation("GET", f"{S}/alarms", "read", "Alarms", reads.alarms, (Alarms,), statuses=(404,)),
    Operation("GET", f"{S}/events", "read", "Pulses as they come", reads.events, "text/event-stream", statuses=(404,)),
    Operation("GET", "/v1/streams", "read", "The streams", reads.list_streams, (StreamList,)),
    Operation(
        "PUT", S, "admin", "Make a stream", reads.put_stream, (StreamAnswer,), (StreamSpec,), (409,),
        (200, 201), _SPEC,
    ),
    Operation("GET", S, "read", "A stream", reads.get_stream, (StreamAnswer,), statuses=(404,)),
    Operation(
        "DELETE", S, "admin", "Delete a stream", reads.delete_stream, None, statuses=(404, 409), success=(204,)
    ),
    Operation("GET", "/v2/health/live", None, "Alive", reads.live, (Health,), tags=("health",)),
    Operation(
        "GET", "/v2/health/ready", None, "Ready", reads.ready, (Health,), success=(200, 503),
        tags=("health",),
    ),
    Operation(
        "GET", "/ping", None, "Ready, MLflow", reads.ping, (Health,), success=(200, 503), tags=("health",)
    ),
    Operation("GET", "/metrics", "read", "Prometheus metrics", reads.metrics, "text/plain", tags=("operation",)),
    Operation("GET", "/", "read", "The live page", reads.live_page, "text/html", tags=("operation",)),
)  # fmt: skip
