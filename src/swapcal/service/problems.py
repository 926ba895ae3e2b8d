"""What is refused, and why: every error leaves as problem+json (RFC 9457), with a sentence that says what to do."""

from http import HTTPStatus

import msgspec

from swapcal.service.schemas import Refused

__all__ = ["MEDIA_TYPE", "Problem", "StoreDown", "body_of"]

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A refusal: a status, a sentence, and for what is safe to send again later, after how many seconds."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after
        self.store_down = False

    def refused(self, id: str | None = None) -> Refused:
        """The same as an entry of an answer."""
        return Refused(HTTPStatus(self.status).phrase, self.status, self.detail, id=msgspec.UNSET if id is None else id)


class StoreDown(Exception):
    """The store cannot be reached or cannot write; nothing that was not answered has been stored."""


def body_of(problem: Problem) -> bytes:
    """The problem as JSON."""
    return msgspec.json.encode(problem.refused())
