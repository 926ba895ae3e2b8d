"""The ASGI application: routes from the table, behind one gate that asks everybody for a token."""

import contextlib
import logging
import time
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from swapcal.service.access import OPEN_PATHS
from swapcal.service.bodies import json
from swapcal.service.config import Config
from swapcal.service.event_store import Elsewhere, EventStore
from swapcal.service.forward import pass_on
from swapcal.service.openapi import document
from swapcal.service.operations import Operation
from swapcal.service.problems import MEDIA_TYPE, Problem, body_of
from swapcal.service.routes import OPERATIONS
from swapcal.service.server import Server
from swapcal.service.tracing import traced

__all__ = ["Application"]

log = logging.getLogger("swapcal.service")
BASIC = 'Basic realm="swapcal: any name, and a token as the password"'
_REFUSALS = {404: "there is nothing at this address", 405: "this address does not take this method"}


class Application:
    """The gate: asks for a token before anything else, so that nobody learns without one what there is.

    It opens the store when it starts, and closes it when it stops. Starlette's router does the rest; its middleware is
    left out, as problems are caught here, and nothing else is needed.

    Parameters
    ----------
    config, store
        As for `Server`.
    """

    def __init__(self, config: Config, store: EventStore) -> None:
        self.config, self.store = config, store
        self._server: Server | None = None
        described = json(document(OPERATIONS)).body

        async def openapi(server: Server, request: Request) -> Response:
            """The OpenAPI document."""
            return Response(described, media_type="application/json")

        spec = Operation("GET", "/openapi.json", "read", "This document", openapi, None, tags=("operation",))
        routes = [Route(op.path, _Endpoint(op, self), methods=[op.method]) for op in (*OPERATIONS, spec)]
        router: ASGIApp = Router(routes, lifespan=self._lifespan)
        self._router = traced(router) if config.service.traces else router

    @property
    def server(self) -> Server:
        """What runs, from start to end."""
        assert self._server is not None, "the application has not been started"
        return self._server

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        self._server = Server(self.config, self.store)
        async with self._server.running():
            yield

    def begin_stop(self) -> None:
        """End the event streams, which would else go on for as long as somebody watches."""
        if self._server is not None:
            self._server.stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own start and end."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        scope["app"] = self
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        try:
            if scope["path"] not in OPEN_PATHS:
                scope["token"] = self.server.access.identify(scope["method"], scope["headers"])
            await self._router(scope, receive, send)
        except Problem as problem:
            self.server.metrics.served("(no token)", problem.status, 0.0)
            response = refusal(problem)
            response.headers["WWW-Authenticate"] = BASIC if scope["path"] == "/" else "Bearer"
            await response(scope, receive, send)
        except HTTPException as error:
            # What the router itself refuses.
            self.server.metrics.served("(no route)", error.status_code, 0.0)
            response = refusal(Problem(error.status_code, _REFUSALS.get(error.status_code, str(error.detail))))
            for name, value in (error.headers or {}).items():
                response.headers[name] = value
            await response(scope, receive, send)


class _Endpoint:
    """A handler with what all of them share: scope, time, problems, passing on."""

    def __init__(self, op: Operation, app: Application) -> None:
        self.op, self.app = op, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, server, started = Request(scope, receive), self.app.server, time.perf_counter()
        try:
            response = await self._answer(server, request)
        except Problem as problem:
            response = refusal(problem)
        except ClientDisconnect:
            return
        except Exception as error:
            log.exception("a request failed", extra={"route": self.op.path})
            server.metrics.failures += 1
            response = refusal(Problem(500, f"something unforeseen happened ({type(error).__name__})"))
        took = time.perf_counter() - started
        server.metrics.served(self.op.path, response.status_code, took)
        if server.config.service.log_requests:
            # The route and not the address: ids and names of cases stay out of the log.
            told = {"method": self.op.method, "route": self.op.path, "status": response.status_code}
            log.info("request", extra={**told, "ms": round(1e3 * took, 2)})
        await response(scope, receive, send)

    async def _answer(self, server: Server, request: Request) -> Response:
        if self.op.scope is not None:
            server.access.permit(request.scope["token"], self.op.scope, request.path_params.get("stream"))
        try:
            return await self.op.handler(server, request)
        except Elsewhere as elsewhere:
            return await pass_on(server, request, elsewhere)


def refusal(problem: Problem) -> Response:
    """A problem as an answer."""
    headers = None if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return Response(body_of(problem), problem.status, headers, media_type=MEDIA_TYPE)
