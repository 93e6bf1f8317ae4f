"""DELETE of all objects of a list: each as if alone; the answer is the list as it was."""

from __future__ import annotations

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.delete import OPTIONS, delete_options
from podling.apiserver.verbs.list import list_options, select
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show_list
from podling.model.errors import StatusError


async def deletecollection(context: RequestContext, scope: Scope) -> Response:
    wanted = await delete_options(context)
    dry_run = is_dry_run(wanted.dry_run, OPTIONS)
    page = await select(context, scope, list_options(context))
    admission = scope.admission(context, "DELETE", dry_run=dry_run)
    for entry in page.entries:
        meta = entry.object.metadata
        try:
            await scope.store.delete(meta.namespace, meta.name, wanted, admission, dry_run=dry_run)
        except StatusError as error:
            # Somebody else has deleted it: that is what was asked for.
            if error.code != 404:
                raise
    return show_list(context, scope, page.entries, page.metadata)
