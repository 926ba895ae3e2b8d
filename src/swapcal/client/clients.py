"""The two clients: the same calls, one waits and one awaits."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import httpx

from swapcal.client import calls
from swapcal.client.calls import Call, Retries, Unreachable
from swapcal.service.reading import AuditReading
from swapcal.service.schemas import Alarms, Case, Forecasted, Forgotten, Learned, Outcome, Refused, Scalar, StoredCase
from swapcal.service.spec import StreamAnswer, StreamSpec

__all__ = ["AsyncClient", "Client"]

Answer = TypeVar("Answer")
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
        return self._call(calls.forecast(stream, id, context, hint))

    def forecasts(self, stream: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
        """The forecasts of several cases, in their order; each may be refused by itself."""
        return self._call(calls.forecasts(stream, cases)).forecasts

    def outcome(self, stream: str, id: str, y: float) -> Learned:
        """Send the outcome of one case; again does no harm."""
        return self._call(calls.outcome(stream, id, y))

    def forget(self, stream: str, id: str) -> Forgotten:
        """Say that the outcome of a case will never come; again does no harm."""
        return self._call(calls.forget(stream, id))

    def outcomes(self, stream: str, outcomes: Sequence[Outcome]) -> list[Learned | Forgotten | Refused]:
        """Send several outcomes, None for those that will never come; each may be refused by itself."""
        return self._call(calls.outcomes(stream, outcomes)).outcomes

    def case(self, stream: str, id: str) -> StoredCase:
        """A case as it is stored."""
        return self._call(calls.case(stream, id))

    def audit(self, stream: str) -> AuditReading:
        """Errors and groups, before and after."""
        return self._call(calls.audit(stream))

    def alarms(self, stream: str) -> Alarms:
        """The alarms of the stream's monitor."""
        return self._call(calls.alarms(stream))

    def streams(self) -> list[str]:
        """Names of the streams that the token may see."""
        return self._call(calls.streams()).streams

    def stream(self, name: str) -> StreamAnswer:
        """What a stream is and where it stands."""
        return self._call(calls.stream(name))

    def create_stream(self, name: str, spec: StreamSpec) -> StreamAnswer:
        """Make a stream; the same one again changes nothing."""
        return self._call(calls.create_stream(name, spec))

    def delete_stream(self, name: str) -> None:
        """Delete a stream and all that it has learned."""
        self._call(calls.delete_stream(name))

    def _call(self, call: Call[Answer]) -> Answer:
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
        return await self._call(calls.forecast(stream, id, context, hint))

    async def forecasts(self, stream: str, cases: Sequence[Case]) -> list[Forecasted | Refused]:
        """The forecasts of several cases, in their order; each may be refused by itself."""
        return (await self._call(calls.forecasts(stream, cases))).forecasts

    async def outcome(self, stream: str, id: str, y: float) -> Learned:
        """Send the outcome of one case; again does no harm."""
        return await self._call(calls.outcome(stream, id, y))

    async def forget(self, stream: str, id: str) -> Forgotten:
        """Say that the outcome of a case will never come; again does no harm."""
        return await self._call(calls.forget(stream, id))

    async def outcomes(self, stream: str, outcomes: Sequence[Outcome]) -> list[Learned | Forgotten | Refused]:
        """Send several outcomes, None for those that will never come; each may be refused by itself."""
        return (await self._call(calls.outcomes(stream, outcomes))).outcomes

    async def case(self, stream: str, id: str) -> StoredCase:
        """A case as it is stored."""
        return await self._call(calls.case(stream, id))

    async def audit(self, stream: str) -> AuditReading:
        """Errors and groups, before and after."""
        return await self._call(calls.audit(stream))

    async def alarms(self, stream: str) -> Alarms:
        """The alarms of the stream's monitor."""
        return await self._call(calls.alarms(stream))

    async def streams(self) -> list[str]:
        """Names of the streams that the token may see."""
        return (await self._call(calls.streams())).streams

    async def stream(self, name: str) -> StreamAnswer:
        """What a stream is and where it stands."""
        return await self._call(calls.stream(name))

    async def create_stream(self, name: str, spec: StreamSpec) -> StreamAnswer:
        """Make a stream; the same one again changes nothing."""
        return await self._call(calls.create_stream(name, spec))

    async def delete_stream(self, name: str) -> None:
        """Delete a stream and all that it has learned."""
        await self._call(calls.delete_stream(name))

    async def _call(self, call: Call[Answer]) -> Answer:
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
