"""From a resource request to the verb that answers it: the endpoints, and the refusal of all others.

The endpoints follow from the kinds: each kind has its verbs, and each subresource the verbs of its sort. As
in Kubernetes, an unknown resource is 404 and a method that a known one does not have is 405. `/watch/` in the
path is the deprecated way to ask for a watch; it is the only way to watch a single object by its path.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from podling.apiserver.kinds.components import Bindings, ComponentStatuses
from podling.apiserver.kinds.kind import (
    PROXY_VERBS,
    Action,
    Answer,
    Connect,
    Members,
    Part,
    Projection,
    Subresource,
)
from podling.apiserver.kinds.metrics import Measured
from podling.apiserver.kinds.reviews import Review
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import (
    METADATA_SHAPES,
    OBJECT_SHAPES,
    SERVED,
    STREAMED,
    TEXT,
    check_offered,
    negotiate,
)
from podling.apiserver.request.request import BODY_LIMIT, MOST_REPEATED, RepeatedRequest, RequestInfo
from podling.apiserver.request.response import MethodNotSupported, Response, no_such_page
from podling.apiserver.show.table import BETA, in_beta
from podling.apiserver.verbs.components import get_component, list_components, watch_components
from podling.apiserver.verbs.connect import connect
from podling.apiserver.verbs.create import act, act_on_named, answer, create, review
from podling.apiserver.verbs.delete import delete, deletecollection
from podling.apiserver.verbs.get import get
from podling.apiserver.verbs.list import list_
from podling.apiserver.verbs.members import create_member, delete_member, get_member
from podling.apiserver.verbs.metrics import get_metrics, list_metrics
from podling.apiserver.verbs.patch import patch
from podling.apiserver.verbs.projection import get_projection, patch_projection, update_projection
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import update
from podling.apiserver.verbs.watch import watch
from podling.model.errors import GenericError, bad_request, page_not_found, too_large

Verb = Callable[[RequestContext, Scope], Awaitable[Response]]

ON_OBJECTS: Mapping[str, Verb] = {
    "get": get,
    "update": update,
    "patch": patch,
    "delete": delete,
    "watch": watch,
}
ON_COLLECTIONS: Mapping[str, Verb] = {
    "list": list_,
    "watch": watch,
    "create": create,
    "deletecollection": deletecollection,
}
ON_REVIEWS: Mapping[str, Verb] = {"create": review}
ON_COMPONENTS: Mapping[str, Verb] = {"list": list_components, "watch": watch_components}
ON_MEASURED: Mapping[str, Verb] = {"list": list_metrics}
ON_PROJECTIONS: Mapping[str, Verb] = {
    "get": get_projection,
    "patch": patch_projection,
    "update": update_projection,
}
ON_SUBRESOURCES: Sequence[tuple[type[Subresource], Mapping[str, Verb]]] = (
    (Connect, dict.fromkeys(PROXY_VERBS, connect)),
    (Action, {"create": act}),
    (Answer, {"create": answer}),
    (Projection, ON_PROJECTIONS),
    (Members, {"create": create_member, "get": get_member, "delete": delete_member}),
)
"""The verbs of each sort of subresource; any other has those of an object."""
NOT_TABLES = frozenset({review, answer, act, act_on_named, connect})
"""Verbs that do not answer with an object of the resource, and so cannot answer with a Table."""
CONFIRMED = frozenset({create, update, patch, delete})
"""Verbs that are held against what any server has written when they write or refuse (`Store._write`); not of
kinds whose objects have a share of what others may have given back."""
IN_STREAMS = frozenset({list_, watch})
"""The verbs of paths that answer with a stream, too."""
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
NO_VERSION = ("",)
PASSED_ON = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that `proxy` passes on."""
EVERYWHERE = frozenset({"list", "watch"})
"""The verbs of a namespaced resource that work across all namespaces."""


class Route(NamedTuple):
    """One endpoint: what it works on, and its verbs for a path with an object's name and for one without."""

    scope: Scope
    named: Mapping[str, Verb]
    unnamed: Mapping[str, Verb]


class Way(NamedTuple):
    """How to answer a request. The same for every request of one path and method, so it can be cached."""

    verb: Verb
    scope: Scope
    deprecation: str
    shapes: frozenset[tuple[str, str, str]]
    """The (kind, group, version) that a client may ask for in `Accept`."""
    is_shaped: bool
    """Whether `Accept` matters and the body is read; what a node is asked and answers is passed on."""
    offered: Sequence[str]
    """The media types that the path is said to have."""
    is_confirmed: bool
    """Whether the verb is of CONFIRMED."""


class Routes:
    """Answers resource requests by the verbs of `scopes`."""

    def __init__(self, scopes: Sequence[Scope], current: Callable[[], Awaitable[int]] | None) -> None:
        """`current` returns once the caches have all that anybody was told of; None if they always do."""
        self._current = current
        self._scopes = {endpoint(scope): scope for scope in scopes}
        # As they begin a path.
        self._groups = ("/api/", *{f"/apis/{group}/" for group, _, _, _ in self._scopes if group})
        self._ways: dict[RepeatedRequest | None, Way | None] = {}

    async def serve(self, context: RequestContext) -> Response:
        """Answer a resource request. Raises StatusError."""
        # Of most requests it is known already.
        way = self._ways.get(context.repeated) or self._way(context)
        if way is None:
            return no_such_page()
        if context.recorded is not None:
            context.recorded.kind = way.scope.store.kind
        if way.deprecation:
            context.warnings.append(way.deprecation)
        if way.is_shaped:
            request = context.request
            if accept := request.headers.get("Accept", ""):
                try:
                    check_offered(accept, way.offered)
                    context.wanted = negotiate(accept, way.shapes)
                except GenericError:
                    # Refused before anybody looks what is asked for.
                    context.warnings.clear()
                    raise
            if request.read is not None:
                request.body = await request.read()
            if len(request.body) > BODY_LIMIT:
                raise too_large(BODY_LIMIT)
        if (
            self._current is not None
            and not way.is_confirmed
            and not context.query.get("resourceVersion", NO_VERSION)[0]
        ):
            await self._current()
        response = await way.verb(context, way.scope)
        if context.wanted.version == BETA and isinstance(response.body, bytes):
            response.body = in_beta(response.body)
        return response

    def _way(self, context: RequestContext) -> Way | None:
        repeated = context.repeated
        if repeated is None:
            return self._found(context.info, context.request.method)
        way = self._ways.get(repeated)
        if way is None:
            if len(self._ways) >= MOST_REPEATED:
                self._ways.clear()
            way = self._ways[repeated] = self._found(context.info, context.request.method)
        return way

    def _found(self, info: RequestInfo, method: str) -> Way | None:
        """None if the group is not served. Raises StatusError."""
        path = info.path
        if not path.startswith(self._groups):
            return None
        scope = self._scopes.get((info.api_group, info.api_version, info.resource, info.subresource))
        if scope is None:
            raise page_not_found()
        kind = scope.store.kind
        if isinstance(kind, Bindings):
            scope = msgspec.structs.replace(scope, acts_on=self._scopes[kind.acts_on])
        route = _route(scope)
        if route.scope.resource.namespaced:
            if not info.namespace and (info.verb not in EVERYWHERE or "list" not in route.unnamed):
                is_served = "list" in route.unnamed and not info.name
                raise not_among(EVERYWHERE) if is_served else page_not_found()
        elif info.namespace and not (
            # The path of the namespace itself is one with a namespace.
            info.resource == "namespaces" and f"/namespaces/{info.namespace}/namespaces" not in info.path
        ):
            raise page_not_found()
        if info.subresource and not info.name:
            raise bad_request("name must be provided")
        subresource = route.scope.subresource
        is_passed_on = isinstance(subresource, Connect) and subresource.has_path
        if not is_passed_on and len(info.rest) != isinstance(subresource, Members):
            raise page_not_found()
        verbs = route.named if info.name else route.unnamed
        verb = connect if is_passed_on and method in PASSED_ON else verbs.get(info.verb)
        # RequestInfo reads HEAD as get, and POST to /watch/ as watch, but neither is served.
        if not verbs or (_is_watch_path(info) and verbs.get("watch") is not watch):
            raise page_not_found()
        if verb is None or (METHODS.get(info.verb) != method and not is_passed_on):
            raise not_among(verbs)
        if info.namespace in (".", "..") and info.resource != "namespaces":
            raise bad_request(f"Namespace parameter invalid: {json.dumps(info.namespace)}")
        has_tables = verb not in NOT_TABLES and (not isinstance(subresource, Part) or subresource.has_tables)
        shapes = OBJECT_SHAPES if has_tables else METADATA_SHAPES
        deprecation = route.scope.store.kind.deprecation
        is_confirmed = verb in CONFIRMED and route.scope.store.kind.kept is None
        is_read = isinstance(subresource, Connect) and subresource.is_read
        is_shaped, offered = verb is not connect or is_read, STREAMED if verb in IN_STREAMS else SERVED
        if is_read:
            offered = TEXT, *SERVED
        return Way(verb, route.scope, deprecation, shapes, is_shaped, offered, is_confirmed)


def endpoint(scope: Scope) -> tuple[str, str, str, str]:
    """Group, version, resource and subresource."""
    resource, subresource = scope.resource, scope.subresource
    return resource.group, resource.version, resource.plural, subresource.name if subresource else ""


def _route(scope: Scope) -> Route:
    subresource = scope.subresource
    for sort, verbs_of_sort in ON_SUBRESOURCES:
        if isinstance(subresource, sort):
            return Route(scope, _only(verbs_of_sort, subresource.verbs), {})
    if scope.acts_on is not None:
        return Route(scope, {}, {"create": act_on_named})
    if isinstance(scope.store.kind, Review):
        return Route(scope, {}, ON_REVIEWS)
    if isinstance(scope.store.kind, ComponentStatuses):
        return Route(scope, {"get": get_component}, ON_COMPONENTS)
    if isinstance(scope.store.kind, Measured):
        return Route(scope, {"get": get_metrics}, ON_MEASURED)
    verbs = subresource.verbs if subresource else scope.store.kind.verbs
    return Route(scope, _only(ON_OBJECTS, verbs), {} if subresource else _only(ON_COLLECTIONS, verbs))


def _only(verbs: Mapping[str, Verb], allowed: Sequence[str]) -> Mapping[str, Verb]:
    return {name: verb for name, verb in verbs.items() if name in allowed}


def not_among(verbs: Iterable[str]) -> MethodNotSupported:
    return MethodNotSupported(METHODS[verb] for verb in verbs)


def _is_watch_path(info: RequestInfo) -> bool:
    return info.path.split("/")[4 if info.api_group else 3] == "watch"
