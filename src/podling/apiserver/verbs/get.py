"""GET of one object: the bytes of the watch cache, which has all there is to have."""

from __future__ import annotations

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.list_options import check_not_ahead, revision
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show


async def get(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 504 for a state that is yet to come."""
    if "resourceVersion" in context.query:
        check_not_ahead(revision(context.query["resourceVersion"][0]), scope.store.cache.revision)
    return show(context, scope, scope.store.find(scope.namespace(context), context.info.name))
