"""The ASGI application: routes from the table, behind one gate that asks everybody for a token."""

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from swapcal.service.access import OPEN_PATHS
from swapcal.service.bodies import json
from swapcal.service.config import Config
from swapcal.service.forward import pass_on
from swapcal.service.openapi import document
from swapcal.service.operations import Operation
from swapcal.service.problems import MEDIA_TYPE, Problem, body_of
from swapcal.service.routes import OPERATIONS
from swapcal.service.server import Server
from swapcal.service.store import Elsewhere, Store
from swapcal.service.tracing import traced

__all__ = ["Application", "create_app"]

log = logging.getLogger("swapcal.service")
_REFUSALS = {404: "there is nothing at this address", 405: "this address does not take this method"}


def create_app(config: Config, store: Store) -> "Application":
    """The application around a store. It opens the store when it starts, and closes it when it stops."""
    made: dict[str, Server] = {}

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server = made["server"] = app.state.server = Server(config, store)
        async with server.running():
            yield

    described = document(OPERATIONS)

    async def openapi(server: Server, request: Request) -> Response:
        """The OpenAPI document."""
        return json(described)

    spec = Operation("GET", "/openapi.json", "read", "This document", openapi, None, tags=("operation",))
    routes = [Route(op.path, _endpoint(op, lambda: made["server"]), methods=[op.method]) for op in (*OPERATIONS, spec)]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})
    return Application(traced(app) if config.service.traces else app, lambda: made["server"])


def _endpoint(op: Operation, server_of: Callable[[], Server]) -> Callable[[Request], Awaitable[Response]]:
    """A handler with what all of them share: scope, time, problems, passing on."""

    async def endpoint(request: Request) -> Response:
        server, started = server_of(), time.perf_counter()
        try:
            if op.scope is not None:
                server.access.permit(request.scope["token"], op.scope, request.path_params.get("stream"))
            response = await op.handler(server, request)
        except Problem as problem:
            response = refusal(problem)
        except Elsewhere as elsewhere:
            try:
                response = await pass_on(server, request, elsewhere)
            except Problem as problem:
                response = refusal(problem)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception as error:
            log.exception("a request failed", extra={"route": op.path})
            server.metrics.failures += 1
            response = refusal(Problem(500, f"something unforeseen happened ({type(error).__name__})"))
        took = time.perf_counter() - started
        server.metrics.served(op.path, response.status_code, took)
        if server.config.service.log_requests:
            # The route and not the address: ids and names of cases stay out of the log.
            told = {"method": op.method, "route": op.path, "status": response.status_code, "ms": round(1e3 * took, 2)}
            log.info("request", extra=told)
        return response

    return endpoint


class Application:
    """The gate: asks for a token before anything else, so that nobody learns without one what there is."""

    def __init__(self, app: ASGIApp, server_of: Callable[[], Server]) -> None:
        self.app, self.server_of = app, server_of

    def begin_stop(self) -> None:
        """End the event streams, which would else go on for as long as somebody watches."""
        self.server_of().stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own start and end."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            try:
                scope["token"] = self.server_of().access.identify(scope["method"], scope["headers"])
            except Problem as problem:
                self.server_of().metrics.served("(no token)", problem.status, 0.0)
                response = refusal(problem)
                kinds = (
                    'Basic realm="swapcal: any name, and a token as the password"' if scope["path"] == "/" else "Bearer"
                )
                response.headers["WWW-Authenticate"] = kinds
                await response(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)


def refusal(problem: Problem) -> Response:
    """A problem as an answer."""
    headers = None if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return Response(body_of(problem), problem.status, headers, media_type=MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> Response:
    """What the router itself refuses."""
    assert isinstance(error, HTTPException)
    response = refusal(Problem(error.status_code, _REFUSALS.get(error.status_code, str(error.detail))))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
