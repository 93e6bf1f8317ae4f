"""What a verb works on: the store of a resource, the subresource, and what a write needs on its way to the
store: admission, and who is recorded as the manager of the fields that it sets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from podling.apiserver.admission.chain import Chain
from podling.apiserver.admission.forms import Form, forms_of
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.apply.apply import Track, Versions, by_update
from podling.apiserver.apply.managed_fields import Fields, Writer
from podling.apiserver.authz.authorizers import AccessReviewer, Decision, refusal, settled
from podling.apiserver.connect.metrics import Measures
from podling.apiserver.kinds.kind import Kind, Part, Subresource, View
from podling.apiserver.observe.components import Components
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules.metadata import LONGEST_MANAGER
from podling.apiserver.show.table import Tables
from podling.apiserver.store.store import Store
from podling.apiserver.verbs.options import field_manager, options
from podling.model.codec import json
from podling.model.remembered import remembered
from podling.model.scheme import Resource
from podling.model.types.meta import CreateOptions, DeleteOptions, UpdateOptions

Connector = Callable[[RequestContext, Any], Awaitable[Response]]
"""Passes a request on to the node of its object. Raises StatusError."""
UNKNOWN = "Unknown"
OPTIONS_VERSION = "meta.k8s.io/v1"


class Scope(msgspec.Struct, frozen=True, dict=True):
    """One endpoint."""

    store: Store[Any]
    tables: Tables
    chain: Chain
    connector: Connector
    reviewer: AccessReviewer
    components: Components = {}
    """The parts of the cluster, for the endpoint that tells of them."""
    measures: Measures | None = None
    """What measures nodes and pods, for the endpoints that tell of it."""
    versions: Versions = {}
    subresource: Subresource | None = None
    alike: Sequence[Kind[Any]] = ()
    """The kinds whose objects are kept as those of this one."""
    acts_on: Scope | None = None
    """The endpoint of the action, where what is posted is one on an object that it names itself."""

    @cached_property
    def forms(self) -> Sequence[Form]:
        """How what is written here is shown to webhooks and policies."""
        return forms_of(self.store.kind, self.alike, self.subresource)

    @cached_property
    def resource(self) -> Resource:
        return self.store.kind.resource

    @cached_property
    def target(self) -> str:
        """What is written through this endpoint, as admission plugins name what they handle."""
        resource = self.resource
        target = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        return f"{target}/{self.subresource.name}" if self.subresource else target

    @property
    def part(self) -> Part[Any] | None:
        """The rules for writes through this subresource; None for those of the kind itself."""
        return self.subresource if isinstance(self.subresource, Part) else None

    def namespace(self, context: RequestContext) -> str:
        """The namespace of the objects; empty for a cluster-scoped resource, also for a Namespace, whose path
        names itself as one."""
        return context.info.namespace if self.resource.namespaced else ""

    async def check_may_create(self, context: RequestContext) -> None:
        """For PUT and apply that turn out to create: authorize `create` as well. Raises StatusError 403."""
        asked = context.info._replace(verb="create")
        opinion = await settled(lambda: self.reviewer.may(context.user, asked))
        if opinion.decision is not Decision.ALLOW:
            raise refusal(context.user, asked, opinion.reason)

    def warnings(self, operation: Operation, obj: Any, old: Any) -> list[str]:
        """The Warning headers for an object as it would be stored; through a subresource, whose writer did
        not choose the rest of the object, only those of its part."""
        kind = self.store.kind
        kind = kind.stored if isinstance(kind, View) else kind
        if self.subresource is not None:
            return [] if self.part is None else list(self.part.warnings(obj))
        return kind.create_warnings(obj) if operation == "CREATE" else kind.update_warnings(obj, old)

    @property
    def unwritten(self) -> Fields:
        """The fields that nobody manages through this endpoint: of an object with a `status` subresource its
        status, which is written through that alone."""
        kind = self.store.kind
        if self.part is not None:
            return self.part.unwritten
        return {"f:status": {}, **kind.unwritten} if "status" in kind.subresources else kind.unwritten

    def writer(self, context: RequestContext) -> Writer:
        """Who writes, and which part of the object: the query's `fieldManager`, or else the program that sent
        the request. Raises StatusError 422."""
        manager = field_manager(context.query)
        manager = manager or program(context.request.headers.get("User-Agent", ""))
        subresource = self.subresource.name if self.subresource else ""
        return Writer(manager, self.resource.api_version, subresource)

    def track(self, context: RequestContext) -> Track:
        """How an update or creation is recorded in `managedFields`. Raises StatusError 422."""
        by = self.writer(context)
        return by_update(by, unwritten=self.unwritten, now=context.now, versions=self.versions)

    def admission(
        self,
        context: RequestContext,
        operation: Operation,
        *,
        dry_run: bool = False,
        deletion: DeleteOptions | None = None,
        forms: Sequence[Form] | None = None,
    ) -> RequestAdmission:
        """Admission for the request, to be asked about each object that the request changes. `forms`: how
        that is shown, if not as the endpoint's own objects are."""
        return RequestAdmission(
            self, context, operation, dry_run, deletion, self.forms if forms is None else forms
        )


class RequestAdmission(msgspec.Struct, frozen=True):
    """The admission chain with the user, operation and resource of one request. Implements
    `podling.apiserver.admission.plugin.Sent`."""

    scope: Scope
    context: RequestContext
    operation: Operation
    dry_run: bool
    deletion: DeleteOptions | None
    forms: Sequence[Form]

    async def admit(self, new: Any, old: Any) -> None:
        await self.scope.chain.admit(self._attributes(new, old), new, old)

    async def settle(self, new: Any, old: Any) -> None:
        if self.scope.chain.settles(self.scope.target, self.operation):
            await self.scope.chain.settle(self._attributes(new, old), new, old)

    async def validate(self, new: Any, old: Any) -> None:
        if new is not None:
            # Before what plugins warn of, and also if they refuse it, as in Kubernetes.
            self.context.warnings += self.scope.warnings(self.operation, new, old)
        await self.scope.chain.validate(self._attributes(new, old), new, old)

    @property
    def waits(self) -> bool:
        """Whether somebody outside of the server may be asked, which can take long."""
        return bool(self.forms) and self.scope.chain.waits(self.forms, self._subresource, self.operation)

    @property
    def _subresource(self) -> str:
        return self.scope.subresource.name if self.scope.subresource else ""

    @property
    def options(self) -> Mapping[str, Any] | None:
        if self.operation == "CONNECT":
            return None
        if self.deletion is not None:
            return {"kind": "DeleteOptions", "apiVersion": OPTIONS_VERSION, **_said(self.deletion)}
        type_: type[CreateOptions | UpdateOptions] = (
            CreateOptions if self.operation == "CREATE" else UpdateOptions
        )
        said = _said(options(self.context.query, type_))
        said.pop("pretty", None)
        return {"kind": type_.__name__, "apiVersion": OPTIONS_VERSION, **said}

    @property
    def warnings(self) -> list[str]:
        return self.context.warnings

    @property
    def annotations(self) -> dict[str, str]:
        return self.context.annotations

    def _attributes(self, new: Any, old: Any) -> Attributes:
        scope, resource, subresource = self.scope, self.scope.resource, self._subresource
        unnamed = UNKNOWN
        if self.operation == "CONNECT":
            namespace, name = scope.namespace(self.context), self.context.info.name
        else:
            meta = (old if new is None else new).metadata
            namespace, name = meta.namespace, self.context.info.name if subresource else meta.name
            if new is not None:
                unnamed = meta.generate_name or UNKNOWN
            if self.context.info.verb == "deletecollection":
                # What is deleted is not named, and webhooks are told as little.
                name = ""
        return Attributes(
            self.operation,
            resource,
            subresource,
            namespace,
            name,
            self.context.user,
            scope.target,
            self,
            self.dry_run,
            self.context.info.name,
            unnamed,
            self.context.info.verb,
        )


def _said(options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.to_data(options)
    data.pop("kind", None)
    data.pop("apiVersion", None)
    return data


@remembered(1024)
def program(user_agent: str) -> str:
    """`kubectl` for the `User-Agent` `kubectl/v1.32.0 (linux/amd64)`."""
    name = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:LONGEST_MANAGER].decode(errors="ignore")
