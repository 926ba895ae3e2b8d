"""A typed client of `swapcal serve`, for programs that wait (`Client`) and for those that await (`AsyncClient`).

Every call can be repeated: forecasts and outcomes are keyed by your id, so a request that was lost on the way is simply
sent again, and is never learned twice. The client does that by itself.
"""

from swapcal.client.calls import Retries, ServiceError, Unreachable
from swapcal.client.clients import AsyncClient, Client
from swapcal.service.reading import AuditReading
from swapcal.service.schemas import Case, Forecasted, Forgotten, Learned, Outcome, Refused, StoredCase, StreamStatus
from swapcal.service.spec import StreamSpec

__all__ = [
    "AsyncClient",
    "AuditReading",
    "Case",
    "Client",
    "Forecasted",
    "Forgotten",
    "Learned",
    "Outcome",
    "Refused",
    "Retries",
    "ServiceError",
    "StoredCase",
    "StreamSpec",
    "StreamStatus",
    "Unreachable",
]
