"""Streams for administrators: make, look at, delete; and the list of them."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import swapcal as sc
from swapcal.service.bodies import decode, json, read_body
from swapcal.service.problems import Problem
from swapcal.service.registry import Registry
from swapcal.service.schemas import StreamList
from swapcal.service.server import Server
from swapcal.service.spec import StreamAnswer, StreamSpec
from swapcal.service.stream_parts import check

__all__ = ["delete_stream", "get_stream", "list_streams", "put_stream"]

_SPEC = msgspec.json.Decoder(StreamSpec)


async def list_streams(server: Server, request: Request) -> Response:
    """The streams that the token may see."""
    token = request.scope["token"]
    names = await server.look(lambda registry: registry.store.names())
    return json(StreamList([name for name in names if token.may("read", name)]))


async def put_stream(server: Server, request: Request) -> Response:
    """Make a stream; the same one again changes nothing."""
    name: str = request.path_params["stream"]
    spec = decode(_SPEC, await read_body(request, server.config.limits.body))
    try:
        check(spec)
        made = await server.look(lambda registry: registry.create(name, spec))
    except sc.SwapcalError as error:
        raise Problem(422, str(error)) from error
    return json(await server.look(lambda registry: _answer(registry, name)), 201 if made else 200)


async def get_stream(server: Server, request: Request) -> Response:
    """What a stream is and where it stands."""
    name: str = request.path_params["stream"]
    return json(await server.look(lambda registry: _answer(registry, name)))


async def delete_stream(server: Server, request: Request) -> Response:
    """Delete a stream, its cases and all that it has learned."""
    name: str = request.path_params["stream"]
    if name in server.config.streams:
        raise Problem(409, f"stream {name!r} is in the configuration and would come back; take it out there first")

    def drop(registry: Registry) -> Any:
        registry.drop(name)

    await server.look(drop)
    return Response(status_code=204)


def _answer(registry: Registry, name: str) -> StreamAnswer:
    stream = registry.get(name)
    return StreamAnswer(msgspec.structs.replace(stream.spec, seed=None), stream.status())
