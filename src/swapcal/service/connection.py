"""What one connection may cost: the bytes of a head, the time of a request, and how many connections there are.

Uvicorn has no limits of its own for the first two: whatever comes is kept until the head of a request is whole, and
half a body is waited for. Bodies are counted where they are read, after the token.
"""

import asyncio
from asyncio.events import TimerHandle
from typing import Any

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from swapcal.service.config import Limits
from swapcal.service.schemas import MEDIA_TYPE, Problem

# So many requests of a connection may wait for the answer to an earlier one.
AHEAD = 16


class Connection(HttpToolsProtocol):
    """Uvicorn's protocol with limits. Made by `connections`."""

    limits = Limits()

    def __init__(self, config: Config, *arguments: Any, **named: Any) -> None:
        super().__init__(config, *arguments, **named)
        # Bytes of the message so far that are not its body; those of the body pay for the lines between its pieces.
        self._around = 0
        self._whole = True
        self._refusal = Problem(400, "this is not HTTP")
        # Of a request that is not whole, and of answers that are not read.
        self._request: TimerHandle | None = None
        self._answers: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody connects: refused where there are too many already, else the time of the first request begins."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(Problem(503, "too many connections; send the same request again", retry_after=1))
        else:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._stop_request()
        self._stop_answers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes: parsed as they come, and refused where a message has too many around its body."""
        self._around += len(data)
        super().data_received(data)
        if self._around > self.limits.head and not self.transport.is_closing():
            self._refuse(self._too_large())
        elif not self._whole and self._request is None:
            self._begin()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole. It may have come in one piece that is larger than a head may be."""
        if len(self.pipeline) >= AHEAD:
            self._refusal = Problem(429, f"a connection has at most {AHEAD} requests that wait for their answers")
            raise httptools.HttpParserError
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.limits.head:
            self._refusal = self._too_large()
            raise httptools.HttpParserError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._around = max(-self.limits.head, self._around - 2 * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is there, and has taken its time."""
        self._whole, self._around = True, 0
        self._stop_request()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered; whoever does not read the answer is not waited for."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._end_soon()

    def pause_writing(self) -> None:
        """Answers are not read; they are kept for so long and no longer."""
        super().pause_writing()
        self._end_soon()

    def resume_writing(self) -> None:
        """They are read again."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_answers()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing has come for long; what was not read by now never will be."""
        self.transport.abort()

    def shutdown(self) -> None:
        """The service stops: a request that is not whole is not waited for."""
        if self._whole:
            super().shutdown()
        else:
            self._refuse(Problem(503, "the service stops; send the same request again", retry_after=1))

    def send_400_response(self, msg: str) -> None:
        """What could not be parsed."""
        self._refuse(self._refusal)

    def _too_large(self) -> Problem:
        return Problem(431, f"what comes before the body has at most {self.limits.head} bytes")

    def _begin(self) -> None:
        self._request = self.loop.call_later(self.limits.request_seconds, self._late)

    def _late(self) -> None:
        self._refuse(Problem(408, f"a request must be whole within {self.limits.request_seconds:g} seconds"))

    def _refuse(self, problem: Problem) -> None:
        """Answer, unless an answer is on its way, and close."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            body = msgspec.json.encode(problem.refused())
            again = "" if problem.retry_after is None else f"retry-after: {problem.retry_after}\r\n"
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{again}\r\n"
            self.transport.write(STATUS_LINE[problem.status] + head.encode() + body)
        self.transport.close()
        self._stop_request()
        self._end_soon()

    def _end_soon(self) -> None:
        # Closing waits until all is sent, which may be never.
        if self._answers is None:
            self._answers = self.loop.call_later(self.limits.request_seconds, self.transport.abort)

    def _stop_request(self) -> None:
        if self._request is not None:
            self._request.cancel()
            self._request = None

    def _stop_answers(self) -> None:
        if self._answers is not None:
            self._answers.cancel()
            self._answers = None


def connections(limits: Limits) -> type[Connection]:
    """The protocol under these limits."""
    return type("Connection", (Connection,), {"limits": limits})
