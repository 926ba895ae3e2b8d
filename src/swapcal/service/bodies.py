"""Reading a request's body: so large and no larger, of the right kind, decoded into structs; and answers as JSON."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from swapcal.service.problems import Problem

__all__ = ["decode", "json", "read_body"]

_encode = msgspec.json.Encoder().encode
Decoded = TypeVar("Decoded")


async def read_body(request: Request, limit: int) -> bytes:
    """The body; a `Problem` if it is too large, or not JSON by its own account."""
    length: str | None = None
    kind = b""
    for name, value in request.scope["headers"]:
        if name == b"content-length":
            length = value.decode("latin-1")
        elif name == b"content-type":
            kind = value
    if not kind.lower().startswith(b"application/json"):
        raise Problem(415, "the body must be JSON; send it with  Content-Type: application/json")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    left, more = limit, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        left -= len(part)
        if left < 0:
            raise _too_large(limit)
        parts.append(part)
        more = message.get("more_body", False)
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    # For `forward`: a body can be read once.
    request.scope["body"] = body
    return body


def decode(decoder: msgspec.json.Decoder[Decoded], body: bytes) -> Decoded:
    """The body as the decoder's type; a `Problem` that names the place if it is not."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, f"this is not what the route takes: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer."""
    return Response(_encode(content), status, headers, media_type="application/json")


def _too_large(limit: int) -> Problem:
    return Problem(413, f"a body has at most {limit} bytes; send fewer cases at a time")
