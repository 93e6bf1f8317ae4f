"""GET of what nodes and pods use, of one or of all: kubelets are asked when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podling.apiserver.connect.metrics import RUNNING, Measures
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.components import Unversioned
from podling.apiserver.verbs.list import matcher, matching
from podling.apiserver.verbs.options import list_options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show, show_list
from podling.model.errors import not_found
from podling.model.types.meta import ListMeta
from podling.model.types.metrics import NodeMetrics, PodMetrics
from podling.process.waits import Turn


async def get_metrics(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 404."""
    namespace, name = scope.namespace(context), context.info.name
    found = _measures(scope).subjects(pods=scope.resource.namespaced).find(namespace, name).object
    if namespace and found.status.phase != RUNNING:
        raise not_found("pods", name)
    if measured := await _measured(scope, [found]):
        return show(context, scope, Unversioned(measured[0]))
    whose = f"{namespace}/{name}" if namespace else name
    raise not_found(scope.resource.singular, whose, scope.resource.group)


async def list_metrics(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 400 for a malformed selector."""
    subjects = _measures(scope).subjects(pods=scope.resource.namespaced)
    match = await matcher(scope, list_options(context.query))
    found = subjects.cache.select(subjects.prefix(scope.namespace(context)))
    if match is not None:
        found = await matching(found, match, 0)
    turn, every = Turn(), []
    for entry in found.entries:
        every.append(entry.object)
        await turn.share()
    entries = [Unversioned(one) for one in await _measured(scope, every)]
    return await show_list(context, scope, entries, ListMeta())


async def _measured(scope: Scope, subjects: Sequence[Any]) -> Sequence[NodeMetrics | PodMetrics]:
    measures = _measures(scope)
    return await (measures.pods(subjects) if scope.resource.namespaced else measures.nodes(subjects))


def _measures(scope: Scope) -> Measures:
    assert scope.measures is not None, "the kinds are served, and nothing measures"
    return scope.measures
