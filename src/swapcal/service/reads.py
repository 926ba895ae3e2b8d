"""What there is to read, streams for administrators, and health."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

import swapcal as sc
from swapcal.service.access import decode, json, read_body
from swapcal.service.metrics import CONTENT_TYPE
from swapcal.service.registry import Registry
from swapcal.service.report import page_request
from swapcal.service.schemas import Alarms, Health, Problem, StreamList
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.service.stream import check
from swapcal.text.numbers import counted

_SPEC = msgspec.json.Decoder(StreamSpec)
_SCRIPT = re.compile(r"'(sha256-[A-Za-z0-9+/=]{44})'")
KEEP_ALIVE = 15.0
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; {script}connect-src 'self'; "
    "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def audit(server: Server, request: Request) -> Response:
    """The errors of hints and forecasts, and every group's bias."""
    return json(await server.audit(request.path_params["stream"]))


async def report(server: Server, request: Request) -> Response:
    """The verdict on the latest cases, as a page that can be kept: the one that `swapcal run` writes."""
    name, store = request.path_params["stream"], server.config.service.store
    page = await server.pages.page(await server.query(lambda registry: page_request(registry.get(name), store)))
    # The page says by its hash which script is its own.
    own = _SCRIPT.search(page)
    return _page(page, f"script-src '{own[1]}'; " if own else "")


async def alarms(server: Server, request: Request) -> Response:
    """The alarms of the stream's monitor."""
    name: str = request.path_params["stream"]

    def read(registry: Registry) -> Alarms:
        stream = registry.get(name)
        if not stream.monitors:
            return Alarms([], [], "this stream has no monitor, so nothing raises alarms; leave out `monitor = false`")
        watch, model = stream.monitors.values()
        outcomes, tolerance = watch.monitor.n_rows, watch.monitor.tolerance
        note = (
            f"{counted(watch.raised, 'alarm')} over {counted(outcomes, 'outcome')}, {model.raised:,} for the model's "
            f"own numbers; tolerated is a bias of {tolerance:g} in any group"
        )
        return Alarms(watch.alarms.copy(), model.alarms.copy(), note)

    return json(await server.query(read))


async def events(server: Server, request: Request) -> Response:
    """Server-sent events: the last minutes at once, and then a pulse every second."""
    name: str = request.path_params["stream"]
    await server.query(lambda registry: registry.get(name).name)
    if server.live.n_listeners >= server.config.limits.listeners:
        raise Problem(503, "too many listen already; close a page, or raise `listeners` under [limits]", retry_after=10)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(server, name), media_type="text/event-stream", headers=headers)


async def _events(server: Server, name: str) -> AsyncIterator[bytes]:
    with server.live.listen(name) as listener:
        stopping = asyncio.create_task(server.stopping.wait())
        line: asyncio.Task[Any] | None = None
        try:
            yield _event("history", server.live.history(name))
            while not stopping.done():
                line = asyncio.create_task(listener.get())
                done, _ = await asyncio.wait({line, stopping}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
                if line in done:
                    yield _event("pulse", line.result())
                else:
                    line.cancel()
                    yield b": still here\n\n"
        finally:
            # The listener may leave at any of the points above.
            for task in (stopping, line):
                if task is not None:
                    task.cancel()


def _event(kind: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))


async def metrics(server: Server, request: Request) -> Response:
    """Counters and gauges for Prometheus."""
    try:
        statuses = await server.query(lambda registry: [stream.status() for stream in registry.streams.values()])
    except Problem:
        # Counters are wanted most when the store is down.
        statuses = []
    seen = [status for status in statuses if request.scope["token"].may("read", status.name)]
    text = await asyncio.to_thread(server.metrics.text, seen, queued=server.writer.queued, ready=server.writer.ready)
    return Response(text, media_type=CONTENT_TYPE)


async def live_page(server: Server, request: Request) -> Response:
    """The live page: rate, pending, error against the model's, groups off, alarms."""
    nonce = secrets.token_urlsafe(16)
    page = files("swapcal.service").joinpath("live.html").read_text(encoding="utf-8")
    return _page(page.replace("{{nonce}}", nonce), f"script-src 'nonce-{nonce}'; ")


def _page(html: str, script: str) -> Response:
    """A page that loads nothing from elsewhere and runs no script but the one that `script` allows."""
    headers = {name: value.replace("{script}", script) for name, value in SECURITY.items()}
    return Response(html, media_type="text/html; charset=utf-8", headers=headers)


async def list_streams(server: Server, request: Request) -> Response:
    """The streams that the token may see."""
    names = await server.query(lambda registry: registry.store.names())
    return json(StreamList([name for name in names if request.scope["token"].may("read", name)]))


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
    return json(Health(live=True, ready=server.writer.ready))


async def ready(server: Server, request: Request) -> Response:
    """Whether the store works and streams are loaded."""
    good = server.writer.ready and not server.stopping.is_set()
    return json(Health(live=True, ready=good), 200 if good else 503)


async def ping(server: Server, request: Request) -> Response:
    """The same, where MLflow's server has it."""
    return await ready(server, request)
