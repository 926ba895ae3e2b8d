"""Who may: bearer tokens on every request but those for health, a scope for each route, a rate for each token."""

import base64
import binascii
import math
from collections.abc import Iterable

from swapcal.service.config import Config
from swapcal.service.event_store import TokenRow
from swapcal.service.metrics import Metrics
from swapcal.service.problems import Problem
from swapcal.service.tokens import SCOPES, Bucket, Scope, Token, find

__all__ = ["OPEN_PATHS", "Access"]

OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready", "/ping"})
"""What anybody may ask: whether the service is there."""

ANYBODY = Token("", "anybody on this machine", "", frozenset(SCOPES))
Headers = Iterable[tuple[bytes, bytes]]


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
            one.key: Token(one.key, one.name, one.sha256, frozenset(one.scopes), frozenset(one.streams))
            for one in config.tokens
        }
        self._tokens = dict(self._fixed)
        self._buckets: dict[str, Bucket] = {}

    def refresh(self, rows: Iterable[TokenRow]) -> None:
        """The store's tokens, as they are now."""
        self._tokens = {**{row.key: Token.of(row) for row in rows}, **self._fixed}
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if key in self._tokens or key == ""}

    def identify(self, method: str, headers: Headers) -> Token:
        """Whose request it is; a `Problem` if that cannot be told."""
        if not self.needed:
            return ANYBODY
        for name, value in headers:
            if name == b"authorization":
                token = self._token(method, value)
                if token is not None:
                    return token
                break
        self.metrics.denied += 1
        raise Problem(401, "this needs a token: send the header  Authorization: Bearer swapcal_...")

    def _token(self, method: str, value: bytes) -> Token | None:
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

    def permit(self, token: Token, scope: Scope, stream: str | None) -> None:
        """A `Problem` unless the token is good for this; says nothing about what there is."""
        if not token.may(scope, stream):
            self.metrics.denied += 1
            raise Problem(403, f"this token is not good for {scope!r} here")

    def charge(self, token: Token, cases: int) -> None:
        """A `Problem` if the token has sent too much of late."""
        bucket = self._buckets.get(token.key)
        if bucket is None:
            bucket = self._buckets[token.key] = Bucket(self.rate, self.burst)
        wait = bucket.take(cases)
        if wait:
            self.metrics.rate_limited += 1
            raise Problem(
                429,
                f"this token may send {self.rate:g} cases a second; send the same request again in a while",
                retry_after=max(1, math.ceil(min(wait, 3600.0))),
            )
