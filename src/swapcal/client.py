"""A typed client of `swapcal serve`, for programs that wait (`Client`) and for those that await (`AsyncClient`).

Every call can be repeated: forecasts and outcomes are keyed by your id, so a request that was lost on the way is simply
sent again, and is never learned twice. The client does that by itself.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from swapcal.errors import SwapcalError
from swapcal.service.schemas import (
    Alarms,
    Answers,
    AuditView,
    Case,
    Cases,
    Forecasted,
    Forgotten,
    Learned,
    Outcome,
    Outcomes,
    Refused,
    Results,
    Scalar,
    StoredCase,
    StreamList,
)
from swapcal.service.spec import StreamAnswer, StreamSpec

# --------
# What a call is: a request, the type of its answer, and when to send it again. Nothing here waits or awaits.

Answer = TypeVar("Answer")
AGAIN = frozenset({429, 502, 503, 504})


class ServiceError(SwapcalError):
    """The service refused: `status` and `detail` say why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{detail} (status {status})")
        self.status, self.detail = status, detail


class Unreachable(SwapcalError):
    """No answer, however often the request was sent; it may have been stored, and can be sent again later."""


class Retries(msgspec.Struct, frozen=True):
    """How often a request is sent again, and after what pause: doubling from `first` to `longest`, spread at random."""

    attempts: int = 6
    first: float = 0.1
    longest: float = 5.0

    def pauses(self) -> Iterator[float]:
        """The pauses between attempts."""
        for k in range(self.attempts - 1):
            yield min(self.longest, self.first * 2.0**k) * (0.5 + random.random() / 2.0)


class Call(Generic[Answer]):
    """One request and how to read its answer.

    Parameters
    ----------
    method, path, body
        The request.
    answer
        Type of the answer; None for one without a body.
    """

    __slots__ = ("answer", "body", "method", "path")

    def __init__(self, method: str, path: str, answer: type[Answer] | None, body: Any = None) -> None:
        self.method, self.path, self.answer = method, path, answer
        self.body = None if body is None else msgspec.json.encode(body)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the request."""
        return {} if self.body is None else {"content-type": "application/json"}

    def read(self, response: httpx.Response) -> Answer:
        """The answer; a `ServiceError` if it is a refusal."""
        if response.is_success:
            return msgspec.json.decode(response.content, type=self.answer) if self.answer is not None else None  # type: ignore[return-value]
        try:
            detail = msgspec.json.decode(response.content, type=Refused).detail
        except msgspec.DecodeError:
            detail = "the answer is not one of swapcal's"
        raise ServiceError(response.status_code, detail)

    @staticmethod
    def pause_after(response: httpx.Response | None, pause: float) -> float | None:
        """Seconds to wait before sending the request again; None if the answer is final."""
        if response is None:
            return pause
        if response.status_code not in AGAIN:
            return None
        wanted = response.headers.get("retry-after", "")
        return max(pause, min(float(wanted), 30.0)) if wanted.isdigit() else pause


def forecast(stream: str, id: str, context: Mapping[str, Scalar], hint: float | None) -> Call[Forecasted]:
    """Ask for one forecast."""
    return Call("POST", f"{_stream(stream)}/forecasts", Forecasted, Case(id, dict(context), hint))


def forecasts(stream: str, cases: Sequence[Case]) -> Call[Answers]:
    """Ask for many forecasts."""
    return Call("POST", f"{_stream(stream)}/forecasts", Answers, Cases(list(cases)))


def outcome(stream: str, id: str, y: float) -> Call[Learned]:
    """Tell one outcome."""
    return Call("POST", f"{_stream(stream)}/outcomes", Learned, Outcome(id, float(y)))


def forget(stream: str, id: str) -> Call[Forgotten]:
    """Say that an outcome will never come."""
    return Call("POST", f"{_stream(stream)}/outcomes", Forgotten, Outcome(id, None))


def outcomes_call(stream: str, outcomes: Sequence[Outcome]) -> Call[Results]:
    """Tell many outcomes."""
    return Call("POST", f"{_stream(stream)}/outcomes", Results, Outcomes(list(outcomes)))


def case(stream: str, id: str) -> Call[StoredCase]:
    """One stored case."""
    return Call("GET", f"{_stream(stream)}/cases/{quote(id, safe='')}", StoredCase)


def audit(stream: str) -> Call[AuditView]:
    """The audit of a stream."""
    return Call("GET", f"{_stream(stream)}/audit", AuditView)


def alarms(stream: str) -> Call[Alarms]:
    """Alarms of a stream."""
    return Call("GET", f"{_stream(stream)}/alarms", Alarms)


def streams() -> Call[StreamList]:
    """All streams."""
    return Call("GET", "/v1/streams", StreamList)


def stream(name: str) -> Call[StreamAnswer]:
    """One stream."""
    return Call("GET", _stream(name), StreamAnswer)


def create_stream(name: str, spec: StreamSpec) -> Call[StreamAnswer]:
    """The request: create_stream."""
    return Call("PUT", _stream(name), StreamAnswer, spec)


def delete_stream(name: str) -> Call[None]:
    """The request: delete_stream."""
    return Call("DELETE", _stream(name), None)


def _stream(name: str) -> str:
    return f"/v1/streams/{quote(name, safe='')}"


# --------
# The two clients: the same calls, one waits and one awaits.

Reply = TypeVar("Reply")
TIMEOUT = 10.0


class Client:
    """A client that waits for each answer. Use it as a context manager, or call `close`.

    Parameters
    ----------
    url : str
        Of the service, such as "http://127.0.0.1:8377".
    token : str, optional
        As `swapcal serve token create` printed it.
    retries : Retries, optional
        How often to send again what was not answered, or answered with 429, 502, 503 or 504.
    timeout : float
        Seconds to wait for one answer.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8377", token="swapcal_...")
    >>> made = client.forecast("late", "flight-1545", {"carrier": "UA"}, hint=0.21)  # doctest: +SKIP
    >>> client.outcome("late", "flight-1545", 0.0)  # doctest: +SKIP
    """

    def __init__(
        self, url: str, token: str | None = None, *, retries: Retries | None = None, timeout: float = TIMEOUT
    ) -> None:
        self.retries = Retries() if retries is None else retries
        self._http = httpx.Client(base_url=url, headers=_headers(token), timeout=timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def forecast(self, stream: str, id: str, context: Mapping[str, Scalar], hint: float | None = None) -> Forecasted:
        """The forecast of one case; the same id again gives the same answer."""
        return self._call(forecast(stream, id, context, hint))

    def forecasts(self, stream: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
        """The forecasts of several cases, in their order; each may be refused by itself."""
        return self._call(forecasts(stream, cases)).forecasts

    def outcome(self, stream: str, id: str, y: float) -> Learned:
        """Send the outcome of one case; again does no harm."""
        return self._call(outcome(stream, id, y))

    def forget(self, stream: str, id: str) -> Forgotten:
        """Say that the outcome of a case will never come; again does no harm."""
        return self._call(forget(stream, id))

    def outcomes(self, stream: str, outcomes: Sequence[Outcome]) -> list[Learned | Forgotten | Refused]:
        """Send several outcomes, None for those that will never come; each may be refused by itself."""
        return self._call(outcomes_call(stream, outcomes)).outcomes

    def case(self, stream: str, id: str) -> StoredCase:
        """A case as it is stored."""
        return self._call(case(stream, id))

    def audit(self, stream: str) -> AuditView:
        """Errors and groups, before and after."""
        return self._call(audit(stream))

    def alarms(self, stream: str) -> Alarms:
        """The alarms of the stream's monitor."""
        return self._call(alarms(stream))

    def streams(self) -> list[str]:
        """Names of the streams that the token may see."""
        return self._call(streams()).streams

    def stream(self, name: str) -> StreamAnswer:
        """What a stream is and where it stands."""
        return self._call(stream(name))

    def create_stream(self, name: str, spec: StreamSpec) -> StreamAnswer:
        """Make a stream; the same one again changes nothing."""
        return self._call(create_stream(name, spec))

    def delete_stream(self, name: str) -> None:
        """Delete a stream and all that it has learned."""
        self._call(delete_stream(name))

    def _call(self, call: Call[Reply]) -> Reply:
        failure: Exception | None = None
        for pause in [*self.retries.pauses(), None]:
            response = None
            try:
                response = self._http.request(call.method, call.path, content=call.body, headers=call.headers)
            except httpx.TransportError as error:
                failure = error
            wait = None if pause is None else Call.pause_after(response, pause)
            if wait is None:
                if response is None:
                    break
                return call.read(response)
            time.sleep(wait)
        raise _unreachable(failure) from failure


class AsyncClient:
    """A client whose calls are awaited; otherwise as `Client`."""

    def __init__(
        self, url: str, token: str | None = None, *, retries: Retries | None = None, timeout: float = TIMEOUT
    ) -> None:
        self.retries = Retries() if retries is None else retries
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=timeout)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def forecast(
        self, stream: str, id: str, context: Mapping[str, Scalar], hint: float | None = None
    ) -> Forecasted:
        """The forecast of one case; the same id again gives the same answer."""
        return await self._call(forecast(stream, id, context, hint))

    async def forecasts(self, stream: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
        """The forecasts of several cases, in their order; each may be refused by itself."""
        return (await self._call(forecasts(stream, cases))).forecasts

    async def outcome(self, stream: str, id: str, y: float) -> Learned:
        """Send the outcome of one case; again does no harm."""
        return await self._call(outcome(stream, id, y))

    async def forget(self, stream: str, id: str) -> Forgotten:
        """Say that the outcome of a case will never come; again does no harm."""
        return await self._call(forget(stream, id))

    async def outcomes(self, stream: str, outcomes: Sequence[Outcome]) -> list[Learned | Forgotten | Refused]:
        """Send several outcomes, None for those that will never come; each may be refused by itself."""
        return (await self._call(outcomes_call(stream, outcomes))).outcomes

    async def case(self, stream: str, id: str) -> StoredCase:
        """A case as it is stored."""
        return await self._call(case(stream, id))

    async def audit(self, stream: str) -> AuditView:
        """Errors and groups, before and after."""
        return await self._call(audit(stream))

    async def alarms(self, stream: str) -> Alarms:
        """The alarms of the stream's monitor."""
        return await self._call(alarms(stream))

    async def streams(self) -> list[str]:
        """Names of the streams that the token may see."""
        return (await self._call(streams())).streams

    async def stream(self, name: str) -> StreamAnswer:
        """What a stream is and where it stands."""
        return await self._call(stream(name))

    async def create_stream(self, name: str, spec: StreamSpec) -> StreamAnswer:
        """Make a stream; the same one again changes nothing."""
        return await self._call(create_stream(name, spec))

    async def delete_stream(self, name: str) -> None:
        """Delete a stream and all that it has learned."""
        await self._call(delete_stream(name))

    async def _call(self, call: Call[Reply]) -> Reply:
        failure: Exception | None = None
        for pause in [*self.retries.pauses(), None]:
            response = None
            try:
                response = await self._http.request(call.method, call.path, content=call.body, headers=call.headers)
            except httpx.TransportError as error:
                failure = error
            wait = None if pause is None else Call.pause_after(response, pause)
            if wait is None:
                if response is None:
                    break
                return call.read(response)
            await asyncio.sleep(wait)
        raise _unreachable(failure) from failure


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _unreachable(failure: Exception | None) -> Unreachable:
    return Unreachable(f"the service does not answer ({type(failure).__name__}); send the same request again later")
