"""What the steps of the pipeline learn of one request and hand on to the verb, to audit and to metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from podling.apiserver.authn.authenticator import ANONYMOUS
from podling.apiserver.negotiation import Wanted
from podling.apiserver.request import Query, Request, RequestInfo, User


@dataclass(slots=True)
class RequestContext:
    """`user` and `wanted` stay at their defaults when the request is refused before they are known."""

    request: Request
    audit_id: str
    now: datetime
    query: Query
    info: RequestInfo
    user: User = ANONYMOUS
    wanted: Wanted = field(default_factory=Wanted)
    warnings: list[str] = field(default_factory=list)
