"""`swapcal serve`: the ASGI application around the table of routes, and the process that runs it."""

import contextlib
import gc
import logging
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec

import httpx
import msgspec
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import swapcal as sc
from swapcal.service import metrics
from swapcal.service.access import OPEN_PATHS, json
from swapcal.service.config import Config, is_loopback
from swapcal.service.connection import connections
from swapcal.service.routes import OPERATIONS, Operation, document
from swapcal.service.schemas import MEDIA_TYPE, Problem, check_name, is_id
from swapcal.service.server import Server
from swapcal.service.store import EventStore, NotOwner, open_store, opened

log = logging.getLogger("swapcal.service")
BASIC = 'Basic realm="swapcal: any name, and a token as the password"'
_REFUSALS = {404: "there is nothing at this address", 405: "this address does not take this method"}
# How long one thread may keep the interpreter while the other waits: the writer must not wait 5 ms for its turn.
SWITCH_SECONDS = 0.001
# Files of the process besides its connections: the store's, the model servers', those of the page's process.
OWN_FILES = 200
PASSED_ON = "x-swapcal-passed-on"


class Application:
    """The door: asks for a token before anything else, so that nobody learns without one what there is.

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
        text = json(document(OPERATIONS)).body

        async def openapi(server: Server, request: Request) -> Response:
            """The OpenAPI document."""
            return Response(text, media_type="application/json")

        spec = Operation("GET", "/openapi.json", "read", "This document", openapi, None, tags=("operation",))
        routes = [Route(op.path, _Endpoint(op, self), methods=[op.method]) for op in (*OPERATIONS, spec)]
        router: ASGIApp = Router(routes, redirect_slashes=False, lifespan=self._lifespan)
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own start and end."""
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
            response.headers["WWW-Authenticate"] = BASIC if scope["path"].endswith("/report") else "Bearer"
            await response(scope, receive, send)
        except HTTPException as error:
            # What the router itself refuses.
            self.server.metrics.served("(no route)", error.status_code, 0.0)
            response = refusal(Problem(error.status_code, _REFUSALS.get(error.status_code, str(error.detail))))
            response.headers.update(error.headers or {})
            await response(scope, receive, send)


class _Endpoint:
    """A handler with what all of them share: names and ids checked, scope, time, problems, passing on."""

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
            extra = {"method": self.op.method, "route": self.op.path, "status": response.status_code}
            log.info("request", extra={**extra, "ms": round(1e3 * took, 2)})
        await response(scope, receive, send)

    async def _answer(self, server: Server, request: Request) -> Response:
        name, case = request.path_params.get("stream"), request.path_params.get("id")
        if self.op.scope is not None:
            server.access.permit(request.scope["token"], self.op.scope, name)
        try:
            if name is not None:
                check_name(name)
        except sc.InvalidInput as error:
            raise Problem(422 if self.op.method == "PUT" else 404, str(error)) from None
        if case is not None and not is_id(case):
            raise Problem(404, "no case can have this id")
        try:
            return await self.op.handler(server, request)
        except NotOwner as refusal:
            return await pass_on(server, request, refusal)


def refusal(problem: Problem) -> Response:
    """A problem as an answer."""
    headers = None if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return Response(msgspec.json.encode(problem.refused()), problem.status, headers, media_type=MEDIA_TYPE)


async def pass_on(server: Server, request: Request, refusal: NotOwner) -> Response:
    """The answer of the worker that owns the stream; a `Problem` if nobody knows where it is, or if it just died."""
    retry = Problem(503, f"{refusal}; send the same request again", retry_after=1)
    address = refusal.address
    if address is None or address == server.config.service.advertise or PASSED_ON in request.headers:
        raise retry
    names = ("authorization", "content-type", "accept")
    headers = {name: request.headers[name] for name in names if name in request.headers} | {PASSED_ON: "1"}
    target = address.rstrip("/") + request.scope["raw_path"].decode("latin-1")
    try:
        answer = await server.http.request(request.method, target, headers=headers, content=request.scope.get("body"))
    except httpx.HTTPError:
        raise retry from None
    server.metrics.forwarded += 1
    headers = {name: answer.headers[name] for name in ("content-type", "retry-after") if name in answer.headers}
    return Response(answer.content, answer.status_code, headers)


def traced(app: ASGIApp) -> ASGIApp:
    """The application with an OpenTelemetry span around each request, which costs about as much as a small request.

    Where spans go is OpenTelemetry's own business: its environment variables, or `opentelemetry-instrument`.
    """
    if find_spec("opentelemetry") is None:
        raise sc.MissingExtra("traces = true needs OpenTelemetry: install with  pip install opentelemetry-sdk")
    import opentelemetry.propagate as propagate
    import opentelemetry.trace as trace

    tracer = trace.get_tracer("swapcal.service")

    async def spanned(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        context = propagate.extract({name: carrier[name] for name in ("traceparent", "tracestate") if name in carrier})
        name = f"{scope['method']} swapcal"
        with tracer.start_as_current_span(name, context=context, kind=trace.SpanKind.SERVER) as span:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            span.set_attribute("http.request.method", scope["method"])
            await app(scope, receive, noted)
            # Starlette notes the route's pattern while it dispatches: the pattern holds no id.
            route = scope.get("route")
            if route is not None:
                span.set_attribute("http.route", route.path)
                span.update_name(f"{scope['method']} {route.path}")

    return spanned


def run(config: Config, *, started: Callable[[int], None] | None = None) -> int:
    """Serve until a signal; what was taken is finished. The exit code is 0, or 3 if it could not start."""
    service = config.service
    metrics.configure(service.log)
    if not is_loopback(service.host):
        _needs_tokens(config)
    app = Application(config, open_store(service.store, owner=service.advertise, seconds=service.store_seconds))
    _needs_files(config.limits.connections)
    # Half of the time to stop is for requests, and half for snapshots.
    where = {"host": service.host, "port": service.port, "timeout_graceful_shutdown": service.stop_seconds / 2}
    quiet = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    rest = {"proxy_headers": False, "timeout_keep_alive": 75, "lifespan": "on", "ws": "none"}
    rest["http"] = connections(config.limits)
    server = _Announcing(uvicorn.Config(app, **where, **quiet, **rest), app, started)  # type: ignore[arg-type]
    sys.setswitchinterval(SWITCH_SECONDS)
    # A batch makes thousands of small objects and no cycles: the collector need not look after every 700 of them.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    # uvicorn raises the signal again once it has stopped in good order; that is then the end, and no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    server.run()
    return 0 if server.started else 3


class _Announcing(uvicorn.Server):
    """Tells which port it got, and tells the application when it is to stop."""

    def __init__(self, config: uvicorn.Config, app: Application, show: Callable[[int], None] | None) -> None:
        super().__init__(config)
        self._app, self._show = app, show

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started and self._show is not None:
            self._show(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._app.server.begin_stop()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def _needs_files(connections: int) -> None:
    """Let the process have a file for each connection and some for itself, or refuse to start."""
    needed = connections + OWN_FILES
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < needed:
        raise sc.InvalidInput(
            f"connections = {connections} needs {needed} open files, and the system allows {most}; lower `connections` "
            "under [limits], or raise  ulimit -n"
        )
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def _needs_tokens(config: Config) -> None:
    """Refuse to listen to other machines while nobody could be told from anybody."""
    if not config.tokens:
        with opened(config.service.store) as store:
            if not store.tokens():
                raise sc.InvalidInput(
                    f"{config.service.host} can be reached from other machines, and there is no token yet: make one "
                    "with  swapcal serve token create --config ... --scope admin --all-streams"
                )
