"""GET, PUT and PATCH of an object as another type that shows and changes a part of it: `scale`.

The body is of that type; what is stored, and whose fields are managed, is the object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Application, Track, by_apply
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.schema import schema_of
from podling.apiserver.kinds.kind import Part, Projection
from podling.apiserver.patch.parse import APPLY
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import flag
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import metadata_of
from podling.apiserver.verbs.apply import check_manager, read_data
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.patch import OPTIONS, media_type, read_patch
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.errors import bad_request, invalid
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
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
    projection = _projection(scope)
    if media_type(context) == APPLY:
        return await _apply(context, scope)
    patched_from = await read_patch(context, projection.body)

    def wanted(standing: KubeObject) -> KubeObject:
        found: KubeObject = patched_from(json.to_data(projection.read(standing)))
        check_place(found.metadata, scope.namespace(context), context.info.name)
        return found

    return await _write(context, scope, OPTIONS, wanted)


async def _apply(context: RequestContext, scope: Scope) -> Response:
    """What a configuration of the projection says is applied to the object."""
    projection, type_ = _projection(scope), scope.resource.type
    body = await _configuration(context, projection.body)
    # A configuration may leave out what the path says.
    body.metadata.name = body.metadata.name or context.info.name
    check_place(body.metadata, scope.namespace(context), context.info.name)
    written = projection.configured(body)
    schema, what = schema_of(type_), f"/; {body.api_version}, Kind={body.kind}"
    application = Application(
        type=type_,
        configuration={"apiVersion": type_.API_VERSION, "kind": type_.KIND, **written},
        fields=configured_fields(schema, written, what),
        writer=scope.writer(context, OPTIONS),
        unwritten={},
        force=flag(context.query, "force"),
    )
    return await _write(context, scope, OPTIONS, lambda _: body, by_apply(application, now=context.now))


async def _configuration(context: RequestContext, type_: type[KubeObject]) -> Any:
    """Raises StatusError 400, 422."""
    check_manager(context)
    data = await read_data(context)
    version, kind = data.get("apiVersion") or "/", data.get("kind") or ""
    if (version, kind) != (type_.API_VERSION, type_.KIND):
        raise bad_request(f"invalid object type: {version}, Kind={kind}")
    configured_fields(schema_of(type_), data, f"/; {version}, Kind={kind}")
    return json.decode_sent(msgspec.json.encode(data), type_)


async def _write(
    context: RequestContext, scope: Scope, options: str, wanted: Any, track: Track | None = None
) -> Response:
    """`wanted`: from the object as it stands to the projection that is to be of it. `track`: unless it is
    tracked as an update."""
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
        track=_untimed(track or scope.track(context, options), projection.name),
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
