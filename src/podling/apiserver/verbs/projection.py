"""GET, PUT and PATCH of an object as another type that shows and changes a part of it: `scale`.

The body is of that type; what is stored, and whose fields are managed, is the object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Application, Track, by_apply, live_data
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.schema import schema_of
from podling.apiserver.kinds.kind import Part, Projection
from podling.apiserver.patch.parse import APPLY
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import flag
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import include_object, metadata_of, table_of
from podling.apiserver.store.object_meta import REPEATED_AFTER_ADMISSION, check_uid, drop_repeated_owners
from podling.apiserver.verbs.apply import check_unmanaged, plain, read_body, telling_of_repeats, type_of
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.list import until_fresh
from podling.apiserver.verbs.options import check_write, revision
from podling.apiserver.verbs.patch import OPTIONS, media_type, read_patch
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import not_shown_as
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.codec.unstructured import decode_unstructured
from podling.model.errors import bad_request, invalid
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
from podling.watch.entry import Entry

KEPT = Part[Any]()
"""The object changes in nothing but what the projection wrote."""


async def get_projection(context: RequestContext, scope: Scope) -> Response:
    await until_fresh(scope.store.cache, revision(context.query.get("resourceVersion", ("",))[0]))
    entry, projection = scope.store.find(scope.namespace(context), context.info.name), _projection(scope)
    return _shown(context, projection, projection.read(entry.object))


async def update_projection(context: RequestContext, scope: Scope) -> Response:
    projection, dry_run = _projection(scope), check_write(context.query, "UpdateOptions")
    wanted = await read_object(context, projection.body)
    check_place(wanted.metadata, scope.namespace(context), context.info.name)
    drop_repeated_owners(wanted.metadata, context.warnings)
    return await _write(context, scope, lambda _: wanted, scope.track(context), dry_run=dry_run)


async def patch_projection(context: RequestContext, scope: Scope) -> Response:
    projection, applies = _projection(scope), media_type(context) == APPLY
    dry_run = check_write(context.query, OPTIONS, applies=applies)
    if applies:
        return await _apply(context, scope, dry_run=dry_run)
    patched_from = await read_patch(context, projection.body)

    def wanted(standing: Entry) -> KubeObject:
        found: KubeObject = patched_from(json.to_data(projection.read(standing.object)))
        return _checked(context, scope, found, standing.object)

    return await _write(context, scope, wanted, scope.track(context), dry_run=dry_run)


async def _apply(context: RequestContext, scope: Scope, *, dry_run: bool) -> Response:
    """What a configuration of the projection says is applied to the object."""
    projection, type_ = _projection(scope), scope.resource.type
    sent = await read_body(context)
    data = plain(sent.json)
    body = _configuration(context, projection.body, data)
    written = projection.configured(body, data)
    schema, what = schema_of(type_), f"/; {body.api_version}, Kind={body.kind}"
    application = Application(
        type=type_,
        configuration={"apiVersion": type_.API_VERSION, "kind": type_.KIND, **written},
        fields=configured_fields(schema, written, what),
        writer=scope.writer(context),
        unwritten={},
        force=flag(context.query, "force"),
        told_version=body.api_version,
    )
    track = telling_of_repeats(context, sent, by_apply(application, now=context.now))

    def wanted(standing: Entry) -> KubeObject:
        entries = application.known_entries(standing, context.now)
        applied = json.from_data(application.result(live_data(standing), entries), type_)
        return _checked(context, scope, projection.applied(body, applied), standing.object)

    return await _write(context, scope, wanted, track, dry_run=dry_run)


def _checked(context: RequestContext, scope: Scope, body: KubeObject, standing: KubeObject) -> KubeObject:
    """What a patch makes of the projection of the object `standing`. Raises StatusError 400, 409."""
    check_place(body.metadata, scope.namespace(context), context.info.name)
    drop_repeated_owners(body.metadata, context.warnings, REPEATED_AFTER_ADMISSION)
    plural, group = f"{scope.resource.plural}/{_projection(scope).name}", scope.resource.group
    check_uid(body.metadata, standing.metadata, plural, group)
    return body


def _configuration(context: RequestContext, type_: type[KubeObject], data: dict[str, Any]) -> Any:
    """Raises StatusError 400."""
    version, kind = data.get("apiVersion") or "", data.get("kind") or ""
    if (version, kind) != (type_.API_VERSION, type_.KIND):
        raise bad_request(f"invalid object type: {type_of(data)}")
    check_unmanaged(data)
    # What the path says may be left out, but not said to be nothing.
    metadata = data["metadata"] = data.get("metadata") or {}
    if isinstance(metadata, dict):
        metadata.setdefault("name", context.info.name)
    configured_fields(schema_of(type_), data, f"/; {version}, Kind={kind}")
    return decode_unstructured(msgspec.json.encode(data), type_)


async def _write(
    context: RequestContext, scope: Scope, wanted: Any, track: Track, *, dry_run: bool
) -> Response:
    """`wanted`: from the object as it stands to the projection that is to be of it."""
    projection = _projection(scope)

    def change(current: Entry) -> Any:
        body = wanted(current)
        if faults := projection.validate(body):
            group = body.API_VERSION.rpartition("/")[0]
            raise invalid(body.KIND, body.metadata.name, faults, group)
        obj = scope.store.copy(current)
        obj.metadata.resource_version = body.metadata.resource_version
        scope.store.check_uid(body.metadata, current)
        projection.write(obj, body)
        return obj

    saved = await scope.store.update(
        scope.namespace(context),
        context.info.name,
        change,
        scope.admission(context, "UPDATE", dry_run=dry_run),
        rules=KEPT,
        track=_untimed(track, projection.name),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return _shown(context, projection, projection.read(saved.object))


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


def _shown(context: RequestContext, projection: Projection[Any], obj: KubeObject) -> Response:
    match context.wanted.kind:
        case "":
            return Response(200, json.encode(obj))
        case "Table":
            include = include_object(context.query.get("includeObject", ()))
            cells = projection.row(obj, context.now)
            return Response(200, table_of(projection.columns, cells, obj, include))
        case "PartialObjectMetadataList":
            what = f"not a list (*{obj.API_VERSION.partition('/')[0]}.{obj.KIND})"
            raise not_shown_as(context, what)
    return Response(200, metadata_of(obj))
