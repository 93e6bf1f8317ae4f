"""GET, PUT and PATCH of an object as another type that shows and changes a part of it: `scale`.

The body is of that type; what is stored, and whose fields are managed, is the object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Track
from podling.apiserver.kinds.kind import Part, Projection
from podling.apiserver.patch.parse import APPLY, MEDIA_TYPES, parse_patch
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import metadata_of
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.patch import patched_object
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.errors import invalid, unsupported_media_type
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
from podling.process.waits import aside
from podling.watch.entry import Entry

KEPT = Part[Any]()
"""The object changes in nothing but what the projection wrote."""


async def get_projection(context: RequestContext, scope: Scope) -> Response:
    entry = scope.store.find(scope.namespace(context), context.info.name)
    return _shown(context, _projection(scope).read(entry.object))


async def update_projection(context: RequestContext, scope: Scope) -> Response:
    projection = _projection(scope)
    wanted = await read_object(context, projection.body, "UpdateOptions")
    check_place(wanted.metadata, scope.namespace(context), context.info.name)
    return await _write(context, scope, "UpdateOptions", lambda _: wanted)


async def patch_projection(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 415 for an apply patch: nothing that is shown so is applied."""
    projection, body = _projection(scope), context.request.body
    media_type = context.request.headers.get("Content-Type", "").partition(";")[0].strip()
    if media_type == APPLY:
        raise unsupported_media_type(tuple(one for one in MEDIA_TYPES if one != APPLY))
    patched_from = await aside(len(body), parse_patch, media_type, body, projection.body)

    def wanted(standing: KubeObject) -> KubeObject:
        document = json.to_data(projection.read(standing))
        found: KubeObject = patched_object(msgspec.json.encode(patched_from(document)), projection.body)
        check_place(found.metadata, scope.namespace(context), context.info.name)
        return found

    return await _write(context, scope, "PatchOptions", wanted)


async def _write(context: RequestContext, scope: Scope, options: str, wanted: Any) -> Response:
    """`wanted`: from the object as it stands to the projection that is to be of it."""
    projection, dry_run = _projection(scope), is_dry_run(context.query.get("dryRun", ()), options)

    def change(current: Entry) -> Any:
        body = wanted(current.object)
        if faults := projection.validate(body):
            group = body.API_VERSION.rpartition("/")[0]
            raise invalid(body.KIND, body.metadata.name, faults, group)
        obj = scope.store.copy(current)
        obj.metadata.resource_version = body.metadata.resource_version
        obj.metadata.uid = body.metadata.uid or obj.metadata.uid
        projection.write(obj, body)
        return obj

    saved = await scope.store.update(
        scope.namespace(context),
        context.info.name,
        change,
        scope.admission(context, "UPDATE", dry_run=dry_run),
        rules=KEPT,
        track=_untimed(scope.track(context, options), projection.name),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return _shown(context, projection.read(saved.object))


def _untimed(track: Track, subresource: str) -> Track:
    """As `track`, with no time at what a projection wrote, and that first, as Kubernetes keeps it."""

    def tracked(obj: Any, current: Entry | None) -> list[ManagedFieldsEntry]:
        entries = track(obj, current)
        for entry in entries:
            if entry.subresource == subresource:
                entry.time = ""
        return sorted(entries, key=lambda entry: entry.subresource != subresource)

    return tracked


def _projection(scope: Scope) -> Projection[Any]:
    assert isinstance(scope.subresource, Projection)
    return scope.subresource


def _shown(context: RequestContext, obj: KubeObject) -> Response:
    return Response(200, metadata_of(obj) if context.wanted.kind else json.encode(obj))
