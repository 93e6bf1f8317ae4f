"""What a verb works on: a resource's store, the subresource meant, and whom to ask on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from podling.apiserver.admission.plugin import Attributes, Chain, Operation
from podling.apiserver.context import RequestContext
from podling.apiserver.judges import Judges
from podling.apiserver.registry.kind import Part, Subresource
from podling.apiserver.registry.store import Admit, Store
from podling.apiserver.response import Response
from podling.apiserver.table import Tables
from podling.model.scheme import Resource

Connector = Callable[[RequestContext, Any], Awaitable[Response]]
"""Hands a request on to the node of its object. Raises StatusError."""


@dataclass(frozen=True, slots=True)
class Scope:
    store: Store[Any]
    tables: Tables
    chain: Chain
    connector: Connector
    judges: Judges
    subresource: Subresource | None = None

    @property
    def resource(self) -> Resource:
        return self.store.kind.resource

    @property
    def part(self) -> Part[Any] | None:
        """The rules to write by, where they are not the kind's own."""
        return self.subresource if isinstance(self.subresource, Part) else None

    def namespace(self, context: RequestContext) -> str:
        """The namespace objects are in; the path of a Namespace names itself as one, too."""
        return context.info.namespace if self.resource.namespaced else ""

    def admission(
        self, context: RequestContext, operation: Operation, *, dry_run: bool = False
    ) -> Admit[Any]:
        """Admission of what `context` asks for, to be asked about each object it changes."""
        subresource = self.subresource.name if self.subresource else ""

        async def admit(new: Any, old: Any) -> None:
            meta = (new or old).metadata
            attributes = Attributes(
                operation, self.resource, subresource, meta.namespace, meta.name, context.user, dry_run
            )
            await self.chain.admit(attributes, new, old)

        return admit
