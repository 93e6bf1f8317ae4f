"""POST to a subresource that answers, such as a service account's `token`: nothing is stored."""

from __future__ import annotations

from typing import Any, cast

from podling.apiserver.context import RequestContext
from podling.apiserver.registry.kind import Answer
from podling.apiserver.response import Response
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show_answer
from podling.apiserver.verbs.update import check_place
from podling.model.errors import invalid

OPTIONS = "CreateOptions"


async def answer(context: RequestContext, scope: Scope) -> Response:
    subresource = cast(Answer[Any], scope.subresource)
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    obj = scope.store.find(namespace, name).object
    body: Any = await read_object(context, subresource.body, OPTIONS)
    body.metadata.name = body.metadata.name or name
    check_place(body.metadata, namespace, name)
    body.metadata.namespace = namespace
    body.metadata.managed_fields = []
    if faults := subresource.validate(body):
        group = body.API_VERSION.rpartition("/")[0]
        raise invalid(body.KIND, "", faults, group)
    await scope.admission(context, "CREATE", dry_run=dry_run).admit(body, None)
    subresource.answer(obj, body, scope.judges, context.now)
    return show_answer(context, body)
