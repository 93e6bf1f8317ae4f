"""What the steps of the pipeline learn of one request and hand on to the verb, to audit and to metrics."""

from __future__ import annotations

from datetime import datetime

import msgspec

from podling.apiserver.authn.authenticators import ANONYMOUS
from podling.apiserver.authz.impersonation import Impersonation
from podling.apiserver.request.negotiation import Wanted
from podling.apiserver.request.request import Query, Request, RequestInfo, User

UNREAD = RequestInfo("", "")
AS_IT_IS = Wanted()


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
