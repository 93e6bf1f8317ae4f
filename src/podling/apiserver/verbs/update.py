"""PUT of an object or of one of its subresources."""

from __future__ import annotations

from typing import Any

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field
from podling.apiserver.store import object_meta
from podling.apiserver.verbs.body import Body, drop_repeated_owners, json_body, object_of
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.model.errors import bad_request, invalid
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.process.waits import aside
from podling.watch.entry import Entry

OPTIONS = "UpdateOptions"


async def update(context: RequestContext, scope: Scope) -> Response:
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    body = await json_body(context, scope.resource.type)
    size = len(body.json)
    wanted = await aside(size, _read, context, scope, body)
    check_place(wanted.metadata, namespace, name)
    track = scope.track(context, OPTIONS)
    if scope.part is None and scope.store.kind.creates_on_update and not scope.store.has(namespace, name):
        scope.check_may_create(context)
        admission = scope.admission(context, "CREATE", dry_run=dry_run)
        saved = await scope.store.create(
            wanted, namespace, admission, track=track, dry_run=dry_run, size=size
        )
        return show(context, scope, saved, 201)
    unused = [wanted]

    def change(_: Entry) -> Any:
        # Deciding changes the object in place: to decide again it is read again.
        return unused.pop() if unused else _read(context, scope, body)

    admission = scope.admission(context, "UPDATE", dry_run=dry_run)
    saved = await scope.store.update(
        namespace,
        name,
        change,
        admission,
        rules=scope.part,
        track=track,
        dry_run=dry_run,
        size=len(body.json),
    )
    context.warnings += scope.update_warnings(saved.object)
    return show(context, scope, saved)


def _read(context: RequestContext, scope: Scope, body: Body) -> Any:
    obj = object_of(context, body, scope.resource.type, OPTIONS)
    drop_repeated_owners(context, obj)
    return obj


def check_place(meta: ObjectMeta, namespace: str, name: str) -> None:
    """Refuse, with 400, a body whose name or namespace differs from the path's, or that has no name."""
    object_meta.place(meta, namespace)
    if not meta.name:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if meta.name != name:
        raise bad_request(f"the name of the object ({meta.name}) does not match the name on the URL ({name})")


def check_uid(wanted: KubeObject, standing: KubeObject) -> None:
    """Refuse, with 422, a patch that changes the object's uid."""
    uid = wanted.metadata.uid
    if uid and uid != standing.metadata.uid:
        cause = field.invalid("metadata.uid", uid, "field is immutable")
        # Kubernetes looks twice, and says so.
        raise invalid(
            wanted.KIND, standing.metadata.name, [cause, cause], wanted.API_VERSION.rpartition("/")[0]
        )
