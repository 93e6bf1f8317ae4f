"""What the steps of the pipeline learn about a request, and pass to the verb, to audit and to metrics;
and what layers below the verbs ask of those above."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from podling.apiserver.request.negotiation import Wanted
from podling.apiserver.request.recorded import Recorded
from podling.apiserver.request.request import Query, RepeatedRequest, Request, RequestInfo, User
from podling.apiserver.request.response import Response
from podling.model.types.meta import KubeObject
from podling.model.types.rbac import UNAUTHENTICATED

T = TypeVar("T", bound=KubeObject)

ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
UNREAD = RequestInfo("", "")
AS_IT_IS = Wanted()
NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Of a struct's fields an empty dict would be made anew for each request."""


class Impersonation(NamedTuple):
    """`impersonator` acts as `user` (Kubernetes' constrained impersonation, KEP-5284).

    `constraint` is the verb that allowed it, such as `impersonate:user-info`. It is empty if the plain verb
    `impersonate` allowed it, which constrains nothing.
    """

    user: User
    impersonator: User
    constraint: str


class RequestContext(msgspec.Struct):
    """A field keeps its default until its step has run; if an earlier step refuses the request, for good."""

    request: Request
    audit_id: str
    now: datetime
    query: Query = NOTHING
    info: RequestInfo = UNREAD
    user: User = ANONYMOUS
    """The user to authorize: the impersonated user if there is one."""
    repeated: RepeatedRequest | None = None
    """`user` and `info`, for layers that remember what they have found about them; None if nobody should."""
    impersonation: Impersonation | None = None
    """None if the user acts in their own name."""
    wanted: Wanted = AS_IT_IS
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    """What the steps have to say in the request's audit event."""
    recorded: Recorded | None = None
    """What goes to the audit log; None if nothing does."""
    is_told_if_it_fails: bool = False
    """Whether it goes to the audit log only if it fails; then `recorded` is made when it does."""
    allowed_by: str | None = None
    """Why the request is allowed; None until it is."""
    flow_headers: Mapping[str, str] = NOTHING
    """The headers that say which FlowSchema and priority level it is of."""
    began: float = 0.0
    """When the request arrived, in seconds of `time.perf_counter`; set by the metrics."""


class PathHandler(Protocol):
    """Serves paths that are not resources, such as discovery."""

    @property
    def paths(self) -> Collection[str]:
        """The paths it serves, for the index at `/`."""
        ...

    async def serve(self, context: RequestContext) -> Response | None:
        """None if it does not serve the path of the request."""
        ...


class Find(Protocol):
    """Looks up the current state of an object; None if there is none. The store implements it."""

    def __call__(self, type: type[T], namespace: str, name: str) -> T | None: ...
