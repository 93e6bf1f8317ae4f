"""PUT of an object or of one of its subresources."""

from __future__ import annotations

from typing import Any

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.store import object_meta
from podling.apiserver.store.object_meta import drop_repeated_owners
from podling.apiserver.verbs.body import Body, json_body, note_no_managers, object_of
from podling.apiserver.verbs.options import check_write
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.model.errors import bad_request
from podling.model.types.meta import ObjectMeta
from podling.process.waits import aside
from podling.watch.entry import Entry

OPTIONS = "UpdateOptions"


async def update(context: RequestContext, scope: Scope) -> Response:
    dry_run = check_write(context.query, OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    body = await json_body(context, scope.resource.type)
    size = len(body.json)
    wanted = await aside(size, _read, context, scope, body)
    check_place(wanted.metadata, namespace, name)
    track = scope.track(context)
    if scope.store.kind.creates_on_update:
        # Whether it is there decides what is done.
        await scope.store.storage.current()
    if scope.store.kind.creates_on_update and not scope.store.has(namespace, name):
        nobody = ObjectMeta(name=name)
        object_meta.check_uid(wanted.metadata, nobody, scope.resource.plural, scope.resource.group)
        object_meta.read_version(wanted.metadata.resource_version)
        await scope.check_may_create(context)
        admission = scope.admission(context, "CREATE", dry_run=dry_run)
        if not dry_run:
            wanted.metadata.resource_version = ""
        saved = await scope.store.create(
            wanted, namespace, admission, track=track, dry_run=dry_run, size=size
        )
        return show(context, scope, saved, 201)
    unused = [wanted]

    def change(standing: Entry) -> Any:
        # Deciding changes the object in place: to decide again it is read again.
        new = unused.pop() if unused else _read(context, scope, body)
        scope.store.check_uid(new.metadata, standing)
        return new

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
    return show(context, scope, saved)


def _read(context: RequestContext, scope: Scope, body: Body) -> Any:
    obj = object_of(context, body, scope.resource.type)
    note_no_managers(obj, body.json)
    drop_repeated_owners(obj.metadata, context.warnings)
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
