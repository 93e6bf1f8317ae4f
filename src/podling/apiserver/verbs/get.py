"""GET of one object: the encoded bytes of the watch cache."""

from __future__ import annotations

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.list import until_fresh
from podling.apiserver.verbs.options import revision
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show


async def get(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 404, and 504 if the cache does not reach the `resourceVersion` asked for in time."""
    if "resourceVersion" in context.query:
        await until_fresh(scope.store.cache, revision(context.query["resourceVersion"][0]))
    return show(context, scope, scope.store.find(scope.namespace(context), context.info.name))
