"""The OpenAPI document, generated from the table of routes and the structs that the routes decode."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from swapcal.service.operations import Operation
from swapcal.service.problems import MEDIA_TYPE
from swapcal.service.schemas import ID, NAME, Refused
from swapcal.version import __version__

__all__ = ["document"]

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
