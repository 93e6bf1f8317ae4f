"""GET of one object: the bytes of the watch cache."""

from __future__ import annotations

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show


async def get(context: RequestContext, scope: Scope) -> Response:
    return show(context, scope, scope.store.find(scope.namespace(context), context.info.name))
