"""What a verb works on: the store of a resource, the subresource, and what a write needs on its way to the
store: admission, and who is recorded as the manager of the fields that it sets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from podling.apiserver.admission.chain import Chain
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.apply.apply import Track, Versions, by_update
from podling.apiserver.apply.managed_fields import Fields, Writer
from podling.apiserver.authz.authorizers import AccessReviewer, Decision, refusal
from podling.apiserver.kinds.kind import Part, Subresource
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import Tables
from podling.apiserver.store.store import Store
from podling.apiserver.verbs.options import LONGEST_MANAGER, field_manager
from podling.model.remembered import remembered
from podling.model.scheme import Resource
from podling.process.waits import OneATurn

Connector = Callable[[RequestContext, Any], Awaitable[Response]]
"""Passes a request on to the node of its object. Raises StatusError."""


class Scope(msgspec.Struct, frozen=True):
    """One endpoint."""

    store: Store[Any]
    tables: Tables
    chain: Chain
    connector: Connector
    reviewer: AccessReviewer
    long_lists: OneATurn
    """Of all endpoints of a server."""
    versions: Versions = {}
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

    @property
    def unwritten(self) -> Fields:
        """The fields that nobody manages through this endpoint: of an object with a `status` subresource its
        status, which is written through that alone."""
        kind = self.store.kind
        if self.part is not None:
            return self.part.unwritten
        return {"f:status": {}, **kind.unwritten} if "status" in kind.subresources else kind.unwritten

    def writer(self, context: RequestContext, options_kind: str) -> Writer:
        """Who writes, and which part of the object: the query's `fieldManager`, or else the program that sent
        the request. Raises StatusError 422."""
        manager = field_manager(context.query, options_kind)
        manager = manager or program(context.request.headers.get("User-Agent", ""))
        subresource = self.subresource.name if self.subresource else ""
        return Writer(manager, self.resource.api_version, subresource)

    def track(self, context: RequestContext, options_kind: str) -> Track:
        """How an update or creation is recorded in `managedFields`. Raises StatusError 422."""
        by = self.writer(context, options_kind)
        return by_update(by, unwritten=self.unwritten, now=context.now, versions=self.versions)

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
        scope, meta, resource = self.scope, obj.metadata, self.scope.store.kind.resource
        subresource = scope.subresource.name if scope.subresource else ""
        target = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        return Attributes(
            self.operation,
            resource,
            subresource,
            meta.namespace,
            meta.name,
            self.user,
            f"{target}/{subresource}" if subresource else target,
            self.dry_run,
        )


@remembered(1024)
def program(user_agent: str) -> str:
    """`kubectl` for the `User-Agent` `kubectl/v1.32.0 (linux/amd64)`."""
    name = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:LONGEST_MANAGER].decode(errors="ignore")
