"""Who may: bearer tokens on every request but those for health, a scope for each route, a rate for each token."""

import base64
import binascii
import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Collection, Iterable
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

import swapcal as sc
from swapcal.service.config import Config, is_loopback
from swapcal.service.metrics import Metrics
from swapcal.service.schemas import Problem, check_name
from swapcal.service.store import ALL_STREAMS, TokenRow

Scope = Literal["predict", "outcomes", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("predict", "outcomes", "read", "admin")
# What anybody may ask: whether the service is there.
OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready", "/ping"})
_FORM = re.compile(r"swapcal_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_encode = msgspec.json.Encoder().encode
Decoded = TypeVar("Decoded")


ANYBODY = TokenRow("", "anybody on this machine", "", " ".join(SCOPES), ALL_STREAMS)


def create(
    name: str, scopes: Iterable[str], streams: Iterable[str] | None, known: Collection[str] = ()
) -> tuple[str, TokenRow]:
    """A new token, to be shown once, and the row that is kept of it; for some of the `known` streams, or (None) all."""
    chosen = tuple(dict.fromkeys(scopes))
    if not chosen or any(scope not in SCOPES for scope in chosen):
        raise sc.InvalidInput(f"scopes are {', '.join(SCOPES)}, one or more; got {', '.join(chosen) or 'none'}")
    names = [ALL_STREAMS] if streams is None else [check_name(one) for one in dict.fromkeys(streams)]
    if not names:
        raise sc.InvalidInput("say which streams the token is good for: --stream for each, or --all-streams")
    unknown = sorted(set(names) - set(known) - {ALL_STREAMS})
    if unknown:
        raise sc.InvalidInput(
            f"there is no stream {unknown[0]!r}; there is {', '.join(sorted(known)) or 'none'}. Make the stream first"
        )
    key, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = TokenRow(key, name, digest_of(secret), " ".join(chosen), " ".join(names), time.time())
    return f"swapcal_{key}_{secret}", row


def digest_of(secret: str) -> str:
    """What is kept: with 256 random bits, a plain SHA-256 cannot be turned round."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(text: str, tokens: dict[str, TokenRow]) -> TokenRow | None:
    """The token that `text` is, or None. Digests are compared in a time that does not depend on where they differ."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    token = tokens.get(form[1])
    digest = "0" * 64 if token is None else token.digest
    return token if hmac.compare_digest(digest_of(form[2]), digest) else None


class Bucket:
    """So many cases a second, and `burst` at once after a pause."""

    __slots__ = ("_at", "_left", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left, self._at = burst, time.monotonic()

    def take(self, n: int) -> float:
        """0 if so many may pass, else the seconds until they may."""
        now = time.monotonic()
        self._left = min(self.burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if n > self._left:
            return (n - self._left) / self.rate
        self._left -= n
        return 0.0


class Access:
    """The tokens that are good now, and how much each has sent.

    Parameters
    ----------
    config
        Says whether tokens are needed, and brings some of them.
    """

    def __init__(self, config: Config, metrics: Metrics) -> None:
        self.needed, self.rate, self.metrics = config.service.auth, config.limits.rate, metrics
        # The largest batch must pass some time, else it would be told for ever to come back later.
        self.burst = max(2.0 * self.rate, float(config.limits.batch))
        self._fixed = {
            one.key: TokenRow(one.key, one.name, one.sha256, " ".join(one.scopes), " ".join(one.streams))
            for one in config.tokens
        }
        self._tokens = dict(self._fixed)
        self._buckets: dict[str, Bucket] = {}

    def refresh(self, rows: Iterable[TokenRow]) -> None:
        """The store's tokens, as they are now."""
        self._tokens = {row.key: row for row in rows} | self._fixed
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if key in self._tokens or key == ""}

    def identify(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> TokenRow:
        """Whose request it is; a `Problem` if that cannot be told."""
        if not self.needed:
            _needs_loopback(headers)
            return ANYBODY
        value = next((value for name, value in headers if name == b"authorization"), b"")
        token = self._token(method, value)
        if token is None:
            self.metrics.denied += 1
            raise Problem(401, "this needs a token: send the header  Authorization: Bearer swapcal_...")
        return token

    def _token(self, method: str, value: bytes) -> TokenRow | None:
        kind, _, text = value.decode("latin-1").partition(" ")
        if kind.lower() == "bearer":
            return find(text.strip(), self._tokens)
        # Browsers ask for a name and a password when they open the page. They also send them along when another site
        # makes them send something, so this way in is for reading alone.
        if kind.lower() == "basic" and method in ("GET", "HEAD"):
            try:
                password = base64.b64decode(text.strip(), validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return None
            return find(password, self._tokens)
        return None

    def permit(self, token: TokenRow, scope: Scope, stream: str | None) -> None:
        """A `Problem` unless the token is good for this; says nothing about what there is."""
        if not token.may(scope, stream):
            self.metrics.denied += 1
            raise Problem(403, f"this token is not good for {scope!r} here")

    def charge(self, token: TokenRow, cases: int) -> None:
        """A `Problem` if the token has sent too much of late."""
        bucket = self._buckets.get(token.key)
        if bucket is None:
            bucket = self._buckets[token.key] = Bucket(self.rate, self.burst)
        wait = bucket.take(cases)
        if wait:
            self.metrics.rate_limited += 1
            slow = f"this token may send {self.rate:g} cases a second; send the same request again in a while"
            raise Problem(429, slow, retry_after=max(1, math.ceil(min(wait, 3600.0))))


def _needs_loopback(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """A `Problem` unless a request was sent to this machine by name.

    A page from elsewhere, whose name leads here by now, could otherwise read and write all (DNS rebinding).
    """
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    try:
        good = bool(hosts) and all(is_loopback(urlsplit(f"//{host}").hostname or "") for host in hosts)
    except ValueError:
        good = False
    if not good:
        raise Problem(421, "without tokens, only requests to localhost or 127.0.0.1 are answered; check their Host")


async def read_body(request: Request, limit: int) -> bytes:
    """The body; a `Problem` if it is too large, or not JSON by its own account."""
    headers = dict(request.scope["headers"])
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise Problem(415, "the body must be JSON; send it with  Content-Type: application/json")
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    left, more = limit, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        left -= len(parts[-1])
        if left < 0:
            raise _too_large(limit)
        more = message.get("more_body", False)
    # For a request that is passed on: a body can be read once.
    body = request.scope["body"] = b"".join(parts)
    return body


def decode(decoder: msgspec.json.Decoder[Decoded], body: bytes) -> Decoded:
    """The body as the decoder's type; a `Problem` that names the place if it is not."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, f"this is not what the route takes: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def json(content: Any, status: int = 200) -> Response:
    """An answer."""
    return Response(_encode(content), status, media_type="application/json")


def _too_large(limit: int) -> Problem:
    return Problem(413, f"a body has at most {limit} bytes; send fewer cases at a time")
