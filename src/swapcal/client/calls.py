"""What a call is: a request, the type of its answer, and when to send it again. Nothing here waits or awaits."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from swapcal.errors import SwapcalError
from swapcal.service.reading import AuditReading
from swapcal.service.schemas import (
    Alarms,
    Answers,
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

__all__ = ["Call", "Retries", "ServiceError", "Unreachable"]

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
    return Call("POST", f"{_stream(stream)}/forecasts", Forecasted, Case(id, dict(context), hint))


def forecasts(stream: str, cases: Sequence[Case]) -> Call[Answers]:
    return Call("POST", f"{_stream(stream)}/forecasts", Answers, Cases(list(cases)))


def outcome(stream: str, id: str, y: float) -> Call[Learned]:
    return Call("POST", f"{_stream(stream)}/outcomes", Learned, Outcome(id, float(y)))


def forget(stream: str, id: str) -> Call[Forgotten]:
    return Call("POST", f"{_stream(stream)}/outcomes", Forgotten, Outcome(id, None))


def outcomes(stream: str, outcomes: Sequence[Outcome]) -> Call[Results]:
    return Call("POST", f"{_stream(stream)}/outcomes", Results, Outcomes(list(outcomes)))


def case(stream: str, id: str) -> Call[StoredCase]:
    return Call("GET", f"{_stream(stream)}/cases/{quote(id, safe='')}", StoredCase)


def audit(stream: str) -> Call[AuditReading]:
    return Call("GET", f"{_stream(stream)}/audit", AuditReading)


def alarms(stream: str) -> Call[Alarms]:
    return Call("GET", f"{_stream(stream)}/alarms", Alarms)


def streams() -> Call[StreamList]:
    return Call("GET", "/v1/streams", StreamList)


def stream(name: str) -> Call[StreamAnswer]:
    return Call("GET", _stream(name), StreamAnswer)


def create_stream(name: str, spec: StreamSpec) -> Call[StreamAnswer]:
    return Call("PUT", _stream(name), StreamAnswer, spec)


def delete_stream(name: str) -> Call[None]:
    return Call("DELETE", _stream(name), None)


def _stream(name: str) -> str:
    return f"/v1/streams/{quote(name, safe='')}"
