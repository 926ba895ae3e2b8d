"""Tokens: 256 random bits, shown once, kept as a digest, good for some scopes of some streams."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import swapcal as sc
from swapcal.service.event_store import TokenRow

__all__ = ["SCOPES", "Bucket", "Scope", "Token", "create", "digest_of", "find"]

Scope = Literal["predict", "outcomes", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("predict", "outcomes", "read", "admin")
_FORM = re.compile(r"swapcal_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Bucket:
    """So many cases a second, and `burst` at once after a pause."""

    __slots__ = ("_at", "_left", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left, self._at = self.burst, time.monotonic()

    def take(self, n: int) -> float:
        """0 if so many may pass, else the seconds until they may."""
        now = time.monotonic()
        self._left = min(self.burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if n > self._left:
            return (n - self._left) / self.rate
        self._left -= n
        return 0.0


@dataclass(frozen=True, slots=True)
class Token:
    """Who may what: `streams` empty means all of them."""

    key: str
    name: str
    digest: str
    scopes: frozenset[str]
    streams: frozenset[str] = field(default_factory=frozenset)

    def may(self, scope: Scope, stream: str | None) -> bool:
        """Whether the token is good for a scope, of a stream or of the service as a whole."""
        return scope in self.scopes and (not self.streams or stream is None or stream in self.streams)

    @classmethod
    def of(cls, row: TokenRow) -> "Token":
        """The token of a row in the store."""
        return cls(row.key, row.name, row.digest, frozenset(row.scopes.split()), frozenset(row.streams.split()))


def create(name: str, scopes: Iterable[str], streams: Iterable[str] = ()) -> tuple[str, TokenRow]:
    """A new token, to be shown once, and the row that is kept of it."""
    chosen = tuple(dict.fromkeys(scopes))
    if not chosen or any(scope not in SCOPES for scope in chosen):
        raise sc.InvalidInput(f"scopes are {', '.join(SCOPES)}, one or more; got {', '.join(chosen) or 'none'}")
    key, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = TokenRow(key, name, digest_of(secret), " ".join(chosen), " ".join(streams), time.time())
    return f"swapcal_{key}_{secret}", row


def digest_of(secret: str) -> str:
    """What is kept: with 256 random bits, a plain SHA-256 cannot be turned round."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(text: str, tokens: dict[str, Token]) -> Token | None:
    """The token that `text` is, or None. Digests are compared in a time that does not depend on where they differ."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    token = tokens.get(form[1])
    kept = "0" * 64 if token is None else token.digest
    return token if hmac.compare_digest(digest_of(form[2]), kept) else None
