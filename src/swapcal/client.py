"""A typed client of `swapcal serve`, for programs that wait (`Client`) and for those that await (`AsyncClient`).

Every call can be repeated: forecasts and outcomes are keyed by your id, so a request that was lost on the way is simply
sent again, and is never learned twice. The client does that by itself.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote

import httpx
import msgspec

from swapcal.errors import SwapcalError
from swapcal.service import schemas
from swapcal.service.schemas import Case, Forecasted, Forgotten, Learned, Outcome, Refused, Scalar
from swapcal.service.spec import StreamAnswer, StreamSpec

AGAIN = frozenset({429, 502, 503, 504})
TIMEOUT = 10.0
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class ServiceError(SwapcalError):
    """The service refused: `status` and `detail` say why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{detail} (status {status})")
        self.status, self.detail = status, detail


class Unreachable(SwapcalError):
    """No answer, however often the request was sent; it may have been stored, and can be sent again later."""


class Retries(msgspec.Struct, frozen=True):
    """How often a request is sent again, and after what pause, which is spread at random.

    Parameters
    ----------
    attempts : int
        How often in all.
    first, longest : float
        The first pause in seconds, and the longest: each is twice the one before.

    Examples
    --------
    >>> [round(pause, 1) <= 5.0 for pause in Retries(attempts=4).pauses()]
    [True, True, True]
    """

    attempts: int = 6
    first: float = 0.1
    longest: float = 5.0

    def pauses(self) -> Iterator[float]:
        """The pauses between attempts."""
        for k in range(self.attempts - 1):
            yield min(self.longest, self.first * 2.0**k) * (0.5 + random.random() / 2.0)


class Call(Generic[Answer]):
    """One request below `/v1/streams`, and how to read its answer: as `kind`, or as the `field` of it.

    Parameters
    ----------
    method, path, body
        The request; `path` in pieces, which are quoted.
    kind, field
        Of the answer; None for one without a body.
    """

    def __init__(self, method: str, *path: str, kind: Any = None, field: str | None = None, body: Any = None) -> None:
        self.method, self.kind, self.field = method, kind, field
        self.path = "/".join(["/v1/streams", *(quote(piece, safe="") for piece in path)])
        self.body = None if body is None else msgspec.json.encode(body)

    def sent(self, http: Any) -> Any:
        """What the client of httpx gives for the request: its response, or that to be awaited."""
        headers = {} if self.body is None else {"content-type": "application/json"}
        return http.request(self.method, self.path, content=self.body, headers=headers)

    def read(self, response: httpx.Response | None, failure: Exception | None) -> Answer:
        """The answer; a `ServiceError` if it is a refusal, `Unreachable` if there is none."""
        if response is None:
            reason = f"the service does not answer ({type(failure).__name__}); send the same request again later"
            raise Unreachable(reason) from failure
        if response.is_success:
            answer: Any = None if self.kind is None else msgspec.json.decode(response.content, type=self.kind)
            return answer if self.field is None else getattr(answer, self.field)  # type: ignore[no-any-return]
        try:
            detail = msgspec.json.decode(response.content, type=Refused).detail
        except msgspec.DecodeError:
            detail = "the answer is not one of swapcal's"
        raise ServiceError(response.status_code, detail)


class _Method(Generic[Arguments, Answer]):
    """A method of both clients, written as the call that it makes: one waits for the answer, one awaits it."""

    def __init__(self, make: Callable[Concatenate["_Calls", Arguments], Call[Answer]]) -> None:
        self._make = make

    @overload
    def __get__(self, client: "Client", kind: type) -> Callable[Arguments, Answer]: ...
    @overload
    def __get__(self, client: "AsyncClient", kind: type) -> Callable[Arguments, Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(self, client: None, kind: type) -> Callable[Concatenate["_Calls", Arguments], Call[Answer]]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        if client is None:
            return self._make
        return lambda *args, **kwargs: client._send(self._make(client, *args, **kwargs))


class _Calls:
    """Every call, once for both clients; see `Client` for the parameters."""

    _transport: ClassVar[Callable[..., Any]]

    def __init__(
        self, url: str, token: str | None = None, *, retries: Retries | None = None, timeout: float = TIMEOUT
    ) -> None:
        self.retries = Retries() if retries is None else retries
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = self._transport(base_url=url, headers=headers, timeout=timeout)

    @_Method
    def forecast(
        self, stream: str, id: str, context: Mapping[str, Scalar], hint: float | None = None, weight: float = 1.0
    ) -> Call[Forecasted]:
        """The forecast of one case, which counts for a share `weight`; the same id again gives the same answer."""
        return Call("POST", stream, "forecasts", kind=Forecasted, body=Case(id, dict(context), hint, weight))

    @_Method
    def forecasts(self, stream: str, cases: Sequence[Case]) -> Call[list[Forecasted | Refused]]:
        """The forecasts of several cases, in their order; each may be refused by itself."""
        return Call("POST", stream, "forecasts", kind=schemas.Answers, field="forecasts", body={"cases": list(cases)})

    @_Method
    def outcome(self, stream: str, id: str, y: float) -> Call[Learned]:
        """Send the outcome of one case; again does no harm."""
        return Call("POST", stream, "outcomes", kind=Learned, body=Outcome(id, float(y)))

    @_Method
    def forget(self, stream: str, id: str) -> Call[Forgotten]:
        """Say that the outcome of a case will never come; again does no harm."""
        return Call("POST", stream, "outcomes", kind=Forgotten, body=Outcome(id, None))

    @_Method
    def outcomes(self, stream: str, outcomes: Sequence[Outcome]) -> Call[list[Learned | Forgotten | Refused]]:
        """Send several outcomes, None for those that will never come; each may be refused by itself."""
        return Call(
            "POST", stream, "outcomes", kind=schemas.Results, field="outcomes", body={"outcomes": list(outcomes)}
        )

    @_Method
    def case(self, stream: str, id: str) -> Call[schemas.StoredCase]:
        """A case as it is stored."""
        return Call("GET", stream, "cases", id, kind=schemas.StoredCase)

    @_Method
    def audit(self, stream: str) -> Call[schemas.AuditView]:
        """Errors and groups, before and after."""
        return Call("GET", stream, "audit", kind=schemas.AuditView)

    @_Method
    def alarms(self, stream: str) -> Call[schemas.Alarms]:
        """The alarms of the stream's monitor."""
        return Call("GET", stream, "alarms", kind=schemas.Alarms)

    @_Method
    def streams(self) -> Call[list[str]]:
        """Names of the streams that the token may see."""
        return Call("GET", kind=schemas.StreamList, field="streams")

    @_Method
    def stream(self, name: str) -> Call[StreamAnswer]:
        """What a stream is and where it stands."""
        return Call("GET", name, kind=StreamAnswer)

    @_Method
    def create_stream(self, name: str, spec: StreamSpec) -> Call[StreamAnswer]:
        """Make a stream; the same one again changes nothing."""
        return Call("PUT", name, kind=StreamAnswer, body=spec)

    @_Method
    def delete_stream(self, name: str) -> Call[None]:
        """Delete a stream and all that it has learned."""
        return Call("DELETE", name)


def _pause(response: httpx.Response | None, pause: float | None) -> float | None:
    """Seconds to wait before sending the request again; None if what came of it is final."""
    if pause is None or response is None:
        return pause
    if response.status_code not in AGAIN:
        return None
    wanted = response.headers.get("retry-after", "")
    return max(pause, min(float(wanted), 30.0)) if wanted.isdigit() else pause


class Client(_Calls):
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

    _transport = httpx.Client

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        pauses, failure = self.retries.pauses(), None
        while True:
            response = None
            try:
                response = call.sent(self._http)
            except httpx.TransportError as error:
                failure = error
            pause = _pause(response, next(pauses, None))
            if pause is None:
                return call.read(response, failure)
            time.sleep(pause)


class AsyncClient(_Calls):
    """A client whose calls are awaited; otherwise as `Client`.

    Parameters
    ----------
    url, token, retries, timeout
        As for `Client`.

    Examples
    --------
    >>> client = AsyncClient("http://127.0.0.1:8377", token="swapcal_...")
    >>> made = await client.forecast("late", "flight-1545", {"carrier": "UA"}, hint=0.21)  # doctest: +SKIP
    """

    _transport = httpx.AsyncClient

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Answer]) -> Answer:
        pauses, failure = self.retries.pauses(), None
        while True:
            response = None
            try:
                response = await call.sent(self._http)
            except httpx.TransportError as error:
                failure = error
            pause = _pause(response, next(pauses, None))
            if pause is None:
                return call.read(response, failure)
            await asyncio.sleep(pause)
