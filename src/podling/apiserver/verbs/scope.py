"""What a verb works on: the store of a resource, the subresource, and the parts to ask on the way to the
store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from podling.apiserver.admission.chain import Attributes, Chain, Operation
from podling.apiserver.authz.authorizers import Decision, refusal
from podling.apiserver.authz.reviewer import AccessReviewer
from podling.apiserver.kinds.kind import Part, Subresource
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import Tables
from podling.apiserver.store.store import Store
from podling.model.scheme import Resource

Connector = Callable[[RequestContext, Any], Awaitable[Response]]
"""Passes a request on to the node of its object. Raises StatusError."""


class Scope(msgspec.Struct, frozen=True):
    """One endpoint."""

    store: Store[Any]
    tables: Tables
    chain: Chain
    connector: Connector
    reviewer: AccessReviewer
    subresource: Subresource | None = None

    @property
    def resource(self) -> Resource:
        return self.store.kind.resource

    @property
    def part(self) -> Part[Any] | None:
        """The rules for writes through this subresource; None for those of the kind itself."""
        return self.subresource if isinstance(self.subresource, Part) else None

    def namespace(self, context: RequestContext) -> str:
        """The namespace of the objects; empty for a cluster-scoped resource, also for a Namespace, whose path
        names itself as one."""
        return context.info.namespace if self.resource.namespaced else ""

    def check_may_create(self, context: RequestContext) -> None:
        """For PUT and apply that turn out to create: authorize `create` as well. Raises StatusError 403."""
        asked = context.info._replace(verb="create")
        opinion = self.reviewer.may(context.user, asked)
        if opinion.decision is not Decision.ALLOW:
            raise refusal(context.user, asked, opinion.reason)

    def update_warnings(self, obj: Any) -> list[str]:
        """The Warning headers for an updated object; none for a subresource, whose writer did not choose the
        rest of the object."""
        return [] if self.part is not None else self.store.kind.update_warnings(obj)

    def admission(
        self, context: RequestContext, operation: Operation, *, dry_run: bool = False
    ) -> RequestAdmission:
        """Admission for the request, to be asked about each object that the request changes."""
        return RequestAdmission(self, context.user, operation, dry_run)


class RequestAdmission(msgspec.Struct, frozen=True):
    """The admission chain with the user, operation and resource of one request."""

    scope: Scope
    user: User
    operation: Operation
    dry_run: bool

    async def admit(self, new: Any, old: Any) -> None:
        await self.scope.chain.admit(self._attributes(new or old), new, old)

    async def validate(self, new: Any, old: Any) -> None:
        await self.scope.chain.validate(self._attributes(new or old), new, old)

    def _attributes(self, obj: Any) -> Attributes:
        scope, meta = self.scope, obj.metadata
        subresource = scope.subresource.name if scope.subresource else ""
        return Attributes(
            self.operation, scope.resource, subresource, meta.namespace, meta.name, self.user, self.dry_run
        )
