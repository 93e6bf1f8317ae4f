"""A connection to the node of an object: log, exec, attach, portforward."""

from __future__ import annotations

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.scope import Scope


async def connect(context: RequestContext, scope: Scope) -> Response:
    obj = scope.store.find(scope.namespace(context), context.info.name).object
    await scope.admission(context, "CONNECT")(obj, None)
    return await scope.connector(context, obj)
