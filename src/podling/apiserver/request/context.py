"""What the steps of the pipeline learn of one request and hand on to the verb, to audit and to metrics."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from podling.apiserver.request.negotiation import Wanted
from podling.apiserver.request.request import Query, Request, RequestInfo, User
from podling.apiserver.request.response import Response

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
UNREAD = RequestInfo("", "")
AS_IT_IS = Wanted()


class Impersonation(NamedTuple):
    """`constraint` is the verb that allowed it; empty of the old way, which constrains nothing."""

    user: User
    impersonator: User
    constraint: str


class RequestContext(msgspec.Struct):
    """What is not yet known, or never will be since the request is refused before, stays at its default."""

    request: Request
    audit_id: str
    now: datetime
    query: Query = {}
    info: RequestInfo = UNREAD
    user: User = ANONYMOUS
    """Whose rights count."""
    impersonation: Impersonation | None = None
    """Of a user who is somebody else's doing."""
    wanted: Wanted = AS_IT_IS
    warnings: list[str] = []
    began: float = 0.0
    """When it arrived, by the clock that metrics measure durations with."""


class PathHandler(Protocol):
    """Serves paths that are no resources, such as discovery."""

    @property
    def paths(self) -> Collection[str]:
        """Where it answers, for the index."""
        ...

    async def serve(self, context: RequestContext) -> Response | None:
        """None when the path is not one of its own."""
        ...
