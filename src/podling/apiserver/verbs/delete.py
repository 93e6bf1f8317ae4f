"""DELETE of one object, and of all objects of a list.

One object is deleted with a grace period, kept while finalizers hold it, or removed at once, and the answer
tells which, as in Kubernetes. Of a list, each object is deleted like a single one; the answer is the list as
it was before.
"""

from __future__ import annotations

import msgspec

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.list import matcher, select
from podling.apiserver.verbs.options import dry_run_faults, list_options, options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show, show_list
from podling.model.errors import Cause, StatusError, invalid
from podling.model.scheme import Resource
from podling.model.types.meta import DeleteOptions, Preconditions
from podling.watch.entry import Entry

OPTIONS = "DeleteOptions"
ALL = 1 << 62
"""More than there are."""
POLICIES = ("Foreground", "Background", "Orphan")


async def delete(context: RequestContext, scope: Scope) -> Response:
    wanted = await delete_options(context)
    dry_run = bool(wanted.dry_run)
    warn_of_orphans(context, scope, wanted)
    admission = scope.admission(context, "DELETE", dry_run=dry_run, deletion=wanted)
    deleted = await scope.store.delete(
        scope.namespace(context), context.info.name, wanted, admission, dry_run=dry_run
    )
    if deleted.gone and not scope.store.kind.returns_deleted:
        return Response(200, success(scope.resource, deleted.entry))
    # Who asks by the older option not to orphan is told that there is something to wait for.
    is_awaited = not deleted.gone and wanted.orphan_dependents is False
    return show(context, scope, deleted.entry, 202 if is_awaited else 200)


def warn_of_orphans(context: RequestContext, scope: Scope, wanted: DeleteOptions) -> None:
    warning = scope.store.kind.deletion_warning
    if warning and wanted.propagation_policy is None and wanted.orphan_dependents is None:
        context.warnings.append(warning)


async def delete_options(context: RequestContext) -> DeleteOptions:
    """The DeleteOptions of the body, or of the query if there is no body. Raises StatusError 400, 422."""
    if context.request.body:
        wanted = await read_object(context, DeleteOptions)
    else:
        wanted = options(context.query, DeleteOptions)
        # They have no prefix there: the revision that a list is read at is one, too.
        uid, revision = (context.query.get(name, ("",))[0] or None for name in ("uid", "resourceVersion"))
        if uid or revision:
            wanted.preconditions = Preconditions(uid, revision)
    check_deletion(wanted)
    if wanted.grace_period_seconds is not None and wanted.grace_period_seconds < 0:
        wanted.grace_period_seconds = 1
    return wanted


def check_deletion(wanted: DeleteOptions) -> None:
    """Raises StatusError 422."""
    faults = []
    if wanted.propagation_policy is not None:
        if wanted.orphan_dependents is not None:
            why = "orphanDependents and deletionPropagation cannot be both set"
            faults.append(field.invalid("propagationPolicy", wanted.propagation_policy, why))
        if wanted.propagation_policy not in POLICIES:
            message = f'Unsupported value: "{wanted.propagation_policy}": supported values: ' + ", ".join(
                f'"{policy}"' for policy in (*POLICIES, "nil")
            )
            faults.append(Cause("FieldValueNotSupported", message, "propagationPolicy"))
    faults += dry_run_faults(wanted.dry_run)
    if faults:
        raise invalid(OPTIONS, "", faults, "meta.k8s.io")


def success(resource: Resource, entry: Entry) -> bytes:
    """The Status that answers the removal of an object."""
    meta = entry.object.metadata
    details = {"name": meta.name, "group": resource.group, "kind": resource.plural, "uid": meta.uid}
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {key: value for key, value in details.items() if value},
        }
    )


async def deletecollection(context: RequestContext, scope: Scope) -> Response:
    wanted = await delete_options(context)
    dry_run = bool(wanted.dry_run)
    listed = list_options(context.query)
    if not listed.limit:
        # Kubernetes goes through them in pages, so a revision is exactly what is listed.
        listed.limit = ALL
    # Who selects nothing that can be selected is not warned of anything.
    await matcher(scope, listed)
    warn_of_orphans(context, scope, wanted)
    page = await select(context, scope, listed)
    admission = scope.admission(context, "DELETE", dry_run=dry_run, deletion=wanted)
    for entry in page.entries:
        meta = entry.object.metadata
        try:
            await scope.store.delete(meta.namespace, meta.name, wanted, admission, dry_run=dry_run)
        except StatusError as error:
            # Somebody else has deleted it: that is what was asked for.
            if error.code != 404:
                raise
    return await show_list(context, scope, page.entries, page.metadata)
