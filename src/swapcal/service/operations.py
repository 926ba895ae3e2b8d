"""The table of routes: what OpenAPI describes is what is served, as both are read from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from swapcal.service.server import Server
from swapcal.service.tokens import Scope

__all__ = ["Handler", "Operation"]

Handler = Callable[[Server, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One route.

    `scope` None means that anybody may; `bodies` and `answer` are structs, or a media type for what is not JSON;
    `example` is a request that works, and `statuses` are the refusals besides those that every route of its kind has.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    scope: Scope | None
    summary: str
    handler: Handler
    answer: Any
    bodies: tuple[type, ...] = ()
    statuses: tuple[int, ...] = ()
    success: tuple[int, ...] = (200,)
    example: Any = None
    answer_example: Any = None
    tags: tuple[str, ...] = field(default=("streams",))

    @property
    def name(self) -> str:
        """The operation's id in OpenAPI."""
        return self.handler.__name__
