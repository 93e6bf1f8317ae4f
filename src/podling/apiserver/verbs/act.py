"""POST to a subresource that acts on its object, such as `binding` and `eviction`."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from podling.apiserver.context import RequestContext
from podling.apiserver.registry.kind import Action, Deletion
from podling.apiserver.registry.store import UNRULED
from podling.apiserver.response import Response
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import check_place
from podling.watch.entry import Entry

OPTIONS = "CreateOptions"
CREATED = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


async def act(context: RequestContext, scope: Scope) -> Response:
    action = cast(Action[Any], scope.subresource)
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    body = await read_object(context, action.body, OPTIONS)
    body.metadata.name = body.metadata.name or name
    check_place(body.metadata, namespace, name)
    effect = action.effect(scope.store.copy(scope.store.find(namespace, name)), body, context.now)
    if isinstance(effect, Deletion):
        dry_run = dry_run or is_dry_run(effect.options.dry_run, "DeleteOptions")
        admission = scope.admission(context, "DELETE", dry_run=dry_run)
        await scope.store.delete(
            namespace, name, effect.options, admission, mark=effect.mark, dry_run=dry_run
        )
        return Response(201, CREATED)

    def change(standing: Entry) -> Any:
        return action.effect(scope.store.copy(standing), body, context.now)

    admission = scope.admission(context, "UPDATE", dry_run=dry_run)
    await scope.store.update(namespace, name, change, admission, rules=UNRULED, dry_run=dry_run)
    return Response(201, CREATED)
