"""From a resource request to the verb that answers it: which endpoints exist, and what refuses the others.

The endpoints are those of the kinds: a kind's verbs on itself, and per subresource the verbs of its sort.
Unknown resources are 404, known ones with a method they do not have 405, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from podling.apiserver.context import RequestContext
from podling.apiserver.errors import method_not_supported
from podling.apiserver.negotiation import OBJECT_SHAPES, negotiate
from podling.apiserver.registry.kind import Action, Connect
from podling.apiserver.registry.review import Review
from podling.apiserver.request import RequestInfo
from podling.apiserver.response import Response
from podling.apiserver.verbs.act import act
from podling.apiserver.verbs.connect import connect
from podling.apiserver.verbs.create import create
from podling.apiserver.verbs.delete import delete
from podling.apiserver.verbs.deletecollection import deletecollection
from podling.apiserver.verbs.get import get
from podling.apiserver.verbs.list import list_
from podling.apiserver.verbs.patch import patch
from podling.apiserver.verbs.review import review
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import update
from podling.apiserver.verbs.watch import watch
from podling.model.errors import page_not_found

Verb = Callable[[RequestContext, Scope], Awaitable[Response]]

ON_OBJECTS: Mapping[str, Verb] = {"get": get, "update": update, "patch": patch, "delete": delete}
ON_COLLECTIONS: Mapping[str, Verb] = {
    "list": list_,
    "watch": watch,
    "create": create,
    "deletecollection": deletecollection,
}
ON_REVIEWS: Mapping[str, Verb] = {"create": review}
ON_ACTIONS: Mapping[str, Verb] = {"create": act}
ON_NODES: Mapping[str, Verb] = {"create": connect, "get": connect}
EVERYWHERE = frozenset({"list", "watch"})
"""What a namespaced resource may be asked without naming a namespace."""


class Route(NamedTuple):
    """One endpoint: what it works on, and its verbs with a name in the path and without."""

    scope: Scope
    named: Mapping[str, Verb]
    unnamed: Mapping[str, Verb]


class Routes:
    def __init__(self, scopes: Sequence[Scope]) -> None:
        self._routes = {_path(scope): _route(scope) for scope in scopes}

    async def serve(self, context: RequestContext) -> Response:
        """Raises StatusError."""
        info = context.info
        route = self._routes.get((info.api_group, info.api_version, info.resource, info.subresource))
        if route is None:
            raise page_not_found()
        _check_place(info, route.scope)
        verb = (route.named if info.name else route.unnamed).get(info.verb)
        if verb is None:
            raise method_not_supported()
        if verb is not connect:
            context.wanted = negotiate(context.request.headers.get("Accept", ""), OBJECT_SHAPES)
        return await verb(context, route.scope)


def _path(scope: Scope) -> tuple[str, str, str, str]:
    resource, subresource = scope.resource, scope.subresource
    return resource.group, resource.version, resource.plural, subresource.name if subresource else ""


def _route(scope: Scope) -> Route:
    subresource = scope.subresource
    if isinstance(subresource, Connect):
        return Route(scope, _only(ON_NODES, subresource.verbs), {})
    if isinstance(subresource, Action):
        return Route(scope, _only(ON_ACTIONS, subresource.verbs), {})
    if isinstance(scope.store.kind, Review):
        return Route(scope, {}, ON_REVIEWS)
    verbs = subresource.verbs if subresource else scope.store.kind.verbs
    return Route(scope, _only(ON_OBJECTS, verbs), {} if subresource else _only(ON_COLLECTIONS, verbs))


def _only(verbs: Mapping[str, Verb], allowed: Sequence[str]) -> Mapping[str, Verb]:
    return {name: verb for name, verb in verbs.items() if name in allowed}


def _check_place(info: RequestInfo, scope: Scope) -> None:
    """Refuse a namespaced resource outside of one, and the other way round."""
    if scope.resource.namespaced:
        if not info.namespace and info.verb not in EVERYWHERE:
            raise page_not_found() if info.name else method_not_supported()
    elif info.namespace and info.resource != "namespaces":
        raise page_not_found()
