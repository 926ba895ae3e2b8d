"""Every route, with who may, what it takes and what it answers: what OpenAPI describes is what is served."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from swapcal.service import handlers, schemas
from swapcal.service.access import Scope
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.version import __version__


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
    handler: Callable[[Server, Request], Awaitable[Response]]
    answer: Any
    bodies: tuple[type, ...] = ()
    statuses: tuple[int, ...] = ()
    success: tuple[int, ...] = (200,)
    example: Any = None
    answer_example: Any = None
    tags: tuple[str, ...] = ("streams",)

    @property
    def name(self) -> str:
        """The operation's id in OpenAPI."""
        return self.handler.__name__


_S = "/v1/streams/{stream}"
_CASE = {"id": "flight-1545", "context": {"carrier": "UA", "origin": "EWR", "hour": 5}, "hint": 0.21}
_FORECAST = {
    "result": "forecast", "id": "flight-1545", "forecast": 0.1818, "hint": 0.21, "other": 0.1818, "probability": 1.0,
    "round": 41, "calibrated": True, "replayed": False,
}  # fmt: skip
_OUTCOME = {"id": "flight-1545", "y": 0.0}
_LEARNED = {"result": "learned", "id": "flight-1545", "y": 0.0, "replayed": False}
_SPEC = {"property": "probability", "groups": ["carrier", "origin", ["carrier", "origin"]], "delay": "7d"}
_HEALTH: dict[str, Any] = {"answer": (schemas.Health,), "success": (200, 503), "tags": ("health",)}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", f"{_S}/forecasts", "predict", "Forecast one case or several", handlers.forecast,
        (schemas.Forecasted, schemas.Answers), (schemas.Case, schemas.Cases), (409, 502), (200, 207), _CASE, _FORECAST,
        ("cases",),
    ),
    Operation(
        "POST", f"{_S}/outcomes", "outcomes", "Learn one outcome or several", handlers.learn,
        (schemas.Learned, schemas.Forgotten, schemas.Results), (schemas.Outcome, schemas.Outcomes), (409, 410),
        (200, 207), _OUTCOME, _LEARNED, ("cases",),
    ),
    Operation(
        "GET", f"{_S}/cases/{{id}}", "read", "A case as it is stored", handlers.stored_case, (schemas.StoredCase,),
        tags=("cases",),
    ),
    Operation("GET", f"{_S}/audit", "read", "Errors and groups", handlers.audit, (schemas.AuditView,)),
    Operation("GET", f"{_S}/report", "read", "The audit as a page", handlers.report, "text/html"),
    Operation("GET", f"{_S}/alarms", "read", "Alarms", handlers.alarms, (schemas.Alarms,)),
    Operation("GET", "/v1/streams", "read", "The streams", handlers.list_streams, (schemas.StreamList,)),
    Operation(
        "PUT", _S, "admin", "Make a stream", handlers.put_stream, (StreamAnswer,), (StreamSpec,), (409,), (200, 201),
        _SPEC
    ),
    Operation("GET", _S, "read", "A stream", handlers.get_stream, (StreamAnswer,)),
    Operation("DELETE", _S, "admin", "Delete a stream", handlers.delete_stream, None, statuses=(409,), success=(204,)),
    Operation("GET", "/v2/health/live", None, "Alive", handlers.live, (schemas.Health,), tags=("health",)),
    Operation("GET", "/v2/health/ready", None, "Ready", handlers.ready, **_HEALTH),
    Operation("GET", "/ping", None, "Ready, MLflow", handlers.ping, **_HEALTH),
    Operation("GET", "/metrics", "read", "Prometheus metrics", handlers.metrics, "text/plain", tags=("operation",)),
)  # fmt: skip

_REF = "#/components/schemas/{name}"
_PROBLEM = {schemas.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Refused")}}}
_PARAMETERS = {"stream": schemas.NAME, "id": schemas.ID}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The OpenAPI document, version 3.1."""
    structs = [one for op in operations for one in (*op.bodies, *(op.answer if isinstance(op.answer, tuple) else ()))]
    _, components = msgspec.json.schema_components(dict.fromkeys([*structs, schemas.Refused]), ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for op in operations:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(op)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "swapcal",
            "version": __version__,
            "description": "Forecasts that are calibrated for every group, stored before they are answered. Requests "
            "with an id can be sent again: they are answered as before, and nothing is learned twice.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(op: Operation) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": op.name,
        "summary": op.summary,
        "description": (op.handler.__doc__ or "").strip(),
        "tags": list(op.tags),
        "responses": _responses(op),
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}
        for name, pattern in _PARAMETERS.items()
        if f"{{{name}}}" in op.path
    ]
    if parameters:
        entry["parameters"] = parameters
    if op.bodies:
        entry["requestBody"] = {"required": True, "content": _json(op.bodies, op.example)}
    if op.scope is not None:
        entry["security"] = [{"token": []}]
        entry["description"] += f" Needs the scope `{op.scope}`."
    return entry


def _responses(op: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {str(status): {"description": HTTPStatus(status).phrase} for status in op.success}
    if op.answer is not None:
        is_json = isinstance(op.answer, tuple)
        content = _json(op.answer, op.answer_example) if is_json else {op.answer: {"schema": {"type": "string"}}}
        for entry in responses.values():
            entry["content"] = content
    refusals = {*op.statuses, *((401, 403, 503) if op.scope else ()), *((404,) if "{stream}" in op.path else ())}
    if op.bodies:
        refusals |= {400, 413, 415, 422, 429}
    for status in sorted(refusals - set(op.success)):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": _PROBLEM}
        if status in (429, 502, 503):
            responses[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return responses


def _json(types: tuple[type, ...], example: Any) -> dict[str, Any]:
    refs = [{"$ref": _REF.format(name=one.__name__)} for one in types]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"application/json": {"schema": schema} | ({} if example is None else {"example": example})}
