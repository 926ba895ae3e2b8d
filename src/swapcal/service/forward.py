"""Requests for a stream that another worker owns are passed on to it, once."""

import httpx
from starlette.requests import Request
from starlette.responses import Response

from swapcal.service.event_store import Elsewhere
from swapcal.service.problems import Problem
from swapcal.service.server import Server

__all__ = ["pass_on"]

MARK = "x-swapcal-passed-on"
_KEPT = ("authorization", "content-type", "accept")


async def pass_on(server: Server, request: Request, elsewhere: Elsewhere) -> Response:
    """The owner's answer; a `Problem` if nobody knows where it is, or if it just died."""
    retry = Problem(503, f"{elsewhere}; send the same request again", retry_after=1)
    address = elsewhere.address
    if address is None or address == server.config.service.advertise or MARK in request.headers:
        raise retry
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers} | {MARK: "1"}
    target = address.rstrip("/") + request.scope["raw_path"].decode("latin-1")
    if request.url.path.endswith("/events"):
        raise Problem(503, f"this stream is served by another worker; listen to it at {address}", retry_after=10)
    try:
        answer = await server.http.request(request.method, target, headers=headers, content=request.scope.get("body"))
    except httpx.HTTPError:
        raise retry from None
    server.metrics.forwarded += 1
    kept = {name: answer.headers[name] for name in ("content-type", "retry-after") if name in answer.headers}
    return Response(answer.content, answer.status_code, kept)
