"""Streams for administrators: make, look at, delete; and the list of them."""

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
from swapcal.service.schemas import Alarms, AuditView, Problem, StreamList, StreamStatus
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.service.stream import Stream, audit_view, check
from swapcal.text.numbers import counted

# --------
# What there is to read: audit, report, alarms, events, metrics, and the live page.

_encode = msgspec.json.Encoder().encode
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
    return json(await _reading(server, request.path_params["stream"]))


async def report(server: Server, request: Request) -> Response:
    """The verdict on the latest cases, as a page that can be kept: the one that `swapcal run` writes."""
    name, store = request.path_params["stream"], server.config.service.store
    page = await server.pages.page(await server.query(lambda registry: page_request(registry.get(name), store)))
    # The page says by its hash which script is its own.
    own = _SCRIPT.search(page)
    return _page(page, f"script-src '{own[1]}'; " if own else "")


async def _reading(server: Server, name: str) -> AuditView:
    before, after = await server.query(lambda registry: registry.get(name).audits())
    return await asyncio.to_thread(audit_view, name, before, after)


async def alarms(server: Server, request: Request) -> Response:
    """The alarms of the stream's monitor."""
    name: str = request.path_params["stream"]

    def find(stream: Stream) -> Alarms:
        watch, model = stream.watch, stream.model_watch
        if watch is None or model is None:
            return Alarms([], [], "this stream has no monitor, so nothing raises alarms; leave out `monitor = false`")
        outcomes, tolerance = watch.monitor.n_rows, watch.monitor.tolerance
        note = (
            f"{counted(watch.raised, 'alarm')} over {counted(outcomes, 'outcome')}, {model.raised:,} for the model's "
            f"own numbers; tolerated is a bias of {tolerance:g} in any group"
        )
        return Alarms(watch.alarms.copy(), model.alarms.copy(), note)

    return json(await server.query(lambda registry: find(registry.get(name))))


async def events(server: Server, request: Request) -> Response:
    """Server-sent events: the last minutes at once, and then a pulse every second."""
    name: str = request.path_params["stream"]
    await server.query(lambda registry: registry.get(name).name)
    if server.live.n_listeners >= server.config.limits.listeners:
        raise Problem(503, "too many listen already; close a page, or raise `listeners` under [limits]", retry_after=10)
    return StreamingResponse(
        _stream(server, name),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(server: Server, name: str) -> AsyncIterator[bytes]:
    listener = server.live.listen(name)
    stopping = asyncio.create_task(server.stopping.wait())
    pulse: asyncio.Task[Any] | None = None
    try:
        yield _event("history", server.live.history(name))
        while not stopping.done():
            pulse = asyncio.create_task(listener.get())
            done, _ = await asyncio.wait({pulse, stopping}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            if pulse in done:
                yield _event("pulse", pulse.result())
            else:
                pulse.cancel()
                yield b": still here\n\n"
    finally:
        # The listener may leave at any of the points above.
        for task in (stopping, pulse):
            if task is not None:
                task.cancel()
        server.live.leave(name, listener)


def _event(kind: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _encode(data))


async def metrics(server: Server, request: Request) -> Response:
    """Counters and gauges for Prometheus."""
    token = request.scope["token"]
    try:
        statuses: list[StreamStatus] = await server.query(
            lambda registry: [stream.status() for stream in registry.streams.values()]
        )
    except Problem:
        # Counters are wanted most when the store is down.
        statuses = []
    seen = [status for status in statuses if token.may("read", status.name)]
    text = await asyncio.to_thread(server.metrics.text, seen, queued=server.writer.queued, ready=server.writer.ready)
    return Response(text, media_type=CONTENT_TYPE)


async def live_page(server: Server, request: Request) -> Response:
    """The live page: rate, pending, error against the model's, groups off, alarms."""
    nonce = secrets.token_urlsafe(16)
    page = files("swapcal.service").joinpath("live.html").read_text(encoding="utf-8")
    return _page(page.replace("{{nonce}}", nonce), f"script-src 'nonce-{nonce}'; ")


def _page(html: str, script: str = "") -> Response:
    """A page that loads nothing from elsewhere and runs no script but the one that `script` allows."""
    headers = {name: value.replace("{script}", script) for name, value in SECURITY.items()}
    return Response(html, media_type="text/html; charset=utf-8", headers=headers)


_SPEC = msgspec.json.Decoder(StreamSpec)


async def list_streams(server: Server, request: Request) -> Response:
    """The streams that the token may see."""
    token = request.scope["token"]
    names = await server.query(lambda registry: registry.store.names())
    return json(StreamList([name for name in names if token.may("read", name)]))


async def put_stream(server: Server, request: Request) -> Response:
    """Make a stream; the same one again changes nothing."""
    name: str = request.path_params["stream"]
    spec = decode(_SPEC, await read_body(request, server.config.limits.body))
    try:
        check(spec)
        made = await server.query(lambda registry: registry.create(name, spec))
    except sc.SwapcalError as error:
        raise Problem(422, str(error)) from error
    return json(await server.query(lambda registry: _answer(registry, name)), 201 if made else 200)


async def get_stream(server: Server, request: Request) -> Response:
    """What a stream is and where it stands."""
    name: str = request.path_params["stream"]
    return json(await server.query(lambda registry: _answer(registry, name)))


async def delete_stream(server: Server, request: Request) -> Response:
    """Delete a stream, its cases and all that it has learned."""
    name: str = request.path_params["stream"]
    if name in server.config.streams:
        raise Problem(409, f"stream {name!r} is in the configuration and would come back; take it out there first")

    def drop(registry: Registry) -> Any:
        registry.drop(name)

    await server.query(drop)
    return Response(status_code=204)


def _answer(registry: Registry, name: str) -> StreamAnswer:
    stream = registry.get(name)
    return StreamAnswer(msgspec.structs.replace(stream.spec, seed=None), stream.status())
