"""A connection to the node of an object, or to what runs there: log, exec, attach, portforward, proxy."""

from __future__ import annotations

from typing import cast

from podling.apiserver.context import RequestContext
from podling.apiserver.proxy_target import asked_of
from podling.apiserver.registry.kind import Connect
from podling.apiserver.response import Response
from podling.apiserver.verbs.exec_container import attach_again, exec_container, makes_container
from podling.apiserver.verbs.scope import Scope


async def connect(context: RequestContext, scope: Scope) -> Response:
    subresource, name = cast(Connect, scope.subresource), context.info.name
    if subresource.has_path:
        name = asked_of(name, scope.resource.plural.removesuffix("s")).name
    obj = scope.store.find(scope.namespace(context), name).object
    await scope.admission(context, "CONNECT").admit(obj, None)
    rules = subresource.container_rules
    if rules is not None and makes_container(context.query):
        if context.info.subresource == "attach":
            return await scope.connector(attach_again(context, obj), obj)
        return await exec_container(context, scope, obj, rules)
    return await scope.connector(context, obj)
