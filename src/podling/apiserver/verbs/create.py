"""POST of a new object."""

from __future__ import annotations

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.owners import drop_repeated_owners
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.apiserver.verbs.tracked import tracked

OPTIONS = "CreateOptions"


async def create(context: RequestContext, scope: Scope) -> Response:
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    obj = await read_object(context, scope.resource.type, OPTIONS)
    drop_repeated_owners(context, obj)
    admission = scope.admission(context, "CREATE", dry_run=dry_run)
    track = tracked(context, scope, OPTIONS)
    saved = await scope.store.create(
        obj,
        scope.namespace(context),
        admission,
        track=track,
        dry_run=dry_run,
        size=len(context.request.body),
    )
    context.warnings += scope.store.kind.warnings(saved.object)
    return show(context, scope, saved, 201)
