"""GET, PUT and PATCH of an object as another type that shows and changes a part of it: `scale`.

The body is of that type, and so is what admission is asked about. What is stored is the object: those who
manage what both have are taken over to the projection before a write, and back after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from podling.apiserver.apply.apply import Application, Track, by_apply, by_update, live_data
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.managed_fields import Fields, Writer, of_projection, with_projection
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
from podling.apiserver.verbs.scope import RequestAdmission, Scope
from podling.apiserver.verbs.show import not_shown_as
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.codec.unstructured import decode_unstructured
from podling.model.errors import bad_request, invalid
from podling.model.types.meta import KubeObject
from podling.watch.entry import Decoder, Entry

KEPT = Part[Any]()
"""The object changes in nothing but what the projection wrote."""


async def get_projection(context: RequestContext, scope: Scope) -> Response:
    await until_fresh(scope.store.cache, revision(context.query.get("resourceVersion", ("",))[0]))
    entry, projection = scope.store.find(scope.namespace(context), context.info.name), _projection(scope)
    return _shown(context, projection, projection.read(entry.object))


async def update_projection(context: RequestContext, scope: Scope) -> Response:
    projection, dry_run = _projection(scope), check_write(context.query, "UpdateOptions")
    sent = await read_object(context, projection.body)
    check_place(sent.metadata, scope.namespace(context), context.info.name)
    drop_repeated_owners(sent.metadata, context.warnings)
    track = _by_update(context, scope)

    def wanted(live: Entry) -> KubeObject:
        sent.metadata.managed_fields = track(sent, live)
        return sent

    return await _write(context, scope, wanted, dry_run=dry_run)


async def patch_projection(context: RequestContext, scope: Scope) -> Response:
    projection, applies = _projection(scope), media_type(context) == APPLY
    dry_run = check_write(context.query, OPTIONS, applies=applies)
    if applies:
        return await _apply(context, scope, dry_run=dry_run)
    patched_from, track = await read_patch(context, projection.body), _by_update(context, scope)

    def wanted(live: Entry) -> KubeObject:
        patched: KubeObject = patched_from(live_data(live))
        patched.metadata.managed_fields = track(patched, live)
        return _checked(context, scope, patched, live)

    return await _write(context, scope, wanted, dry_run=dry_run)


async def _apply(context: RequestContext, scope: Scope, *, dry_run: bool) -> Response:
    # Of what is not there no configuration is at fault.
    await scope.store.storage.current()
    scope.store.find(scope.namespace(context), context.info.name)
    type_, sent = _projection(scope).body, await read_body(context)
    data = plain(sent.json)
    application = Application(
        type=type_,
        configuration=data,
        fields=_configured(context, type_, data),
        writer=_writer(context, scope),
        unwritten={},
        force=flag(context.query, "force"),
    )
    track = telling_of_repeats(context, sent, by_apply(application, now=context.now))

    def wanted(live: Entry) -> KubeObject:
        result = application.result(live_data(live), application.known_entries(live, context.now))
        applied: KubeObject = decode_unstructured(msgspec.json.encode(result), type_)
        applied.metadata.managed_fields = track(applied, live)
        return _checked(context, scope, applied, live)

    return await _write(context, scope, wanted, dry_run=dry_run)


def _writer(context: RequestContext, scope: Scope) -> Writer:
    return scope.writer(context)._replace(api_version=_projection(scope).body.API_VERSION)


def _by_update(context: RequestContext, scope: Scope) -> Track:
    return by_update(_writer(context, scope), unwritten={}, now=context.now, versions={})


def _checked(context: RequestContext, scope: Scope, body: KubeObject, live: Entry) -> KubeObject:
    """What a patch makes of the projection of an object. Raises StatusError 400, 409."""
    check_place(body.metadata, scope.namespace(context), context.info.name)
    drop_repeated_owners(body.metadata, context.warnings, REPEATED_AFTER_ADMISSION)
    plural, group = f"{scope.resource.plural}/{_projection(scope).name}", scope.resource.group
    check_uid(body.metadata, live.object.metadata, plural, group)
    return body


def _configured(context: RequestContext, type_: type[KubeObject], data: dict[str, Any]) -> Fields:
    """The fields that a configuration names, which has a name then. Raises StatusError 400."""
    version, kind = data.get("apiVersion") or "", data.get("kind") or ""
    if (version, kind) != (type_.API_VERSION, type_.KIND):
        raise bad_request(f"invalid object type: {type_of(data)}")
    check_unmanaged(data)
    # What the path says may be left out, but not said to be nothing.
    metadata = data["metadata"] = data.get("metadata") or {}
    if isinstance(metadata, dict):
        metadata.setdefault("name", context.info.name)
    failing = f"failed to create typed patch object (/; {version}, Kind={kind})"
    fields = configured_fields(schema_of(type_), data, failing)
    decode_unstructured(msgspec.json.encode(data), type_)
    return fields


async def _write(
    context: RequestContext, scope: Scope, wanted: Callable[[Entry], KubeObject], *, dry_run: bool
) -> Response:
    """`wanted`: from the projection of the object as it stands to what is to be of it, with who manages
    that."""
    projection, version = _projection(scope), scope.resource.api_version
    admission = ProjectedAdmission(scope, context, scope.admission(context, "UPDATE", dry_run=dry_run))
    decoder = Decoder(partial(json.decode, type_=projection.body))

    def change(current: Entry) -> Any:
        shown, entries = projection.read(current.object), current.object.metadata.managed_fields
        shown.metadata.managed_fields = of_projection(
            entries, projection.fields, version, projection.body.API_VERSION
        )
        admission.live = Entry("", 0, json.encode(shown), decoder)
        admission.body = wanted(admission.live)
        scope.store.check_uid(admission.body.metadata, current)
        return scope.store.copy(current)

    saved = await scope.store.update(
        scope.namespace(context),
        context.info.name,
        change,
        admission,
        rules=KEPT,
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return _shown(context, projection, projection.read(saved.object))


class ProjectedAdmission:
    """Asks about the projection, writes to the object what that became, and asks whether that may be."""

    def __init__(self, scope: Scope, context: RequestContext, asked: RequestAdmission) -> None:
        self._scope, self._context, self._asked = scope, context, asked
        self.body: Any
        self.live: Entry

    @property
    def waits(self) -> bool:
        return self._asked.waits

    async def admit(self, new: Any, old: Any) -> None:
        await self._asked.admit(self.body, self.live.object)
        projection, scope, body = _projection(self._scope), self._scope, self.body
        if faults := projection.validate(body):
            raise invalid(body.KIND, body.metadata.name, faults, body.API_VERSION.rpartition("/")[0])
        new.metadata.resource_version = body.metadata.resource_version
        projection.write(new, body)
        managers, version = body.metadata.managed_fields, scope.resource.api_version
        new.metadata.managed_fields = with_projection(
            old.metadata.managed_fields, managers, projection.fields, version
        )

    async def settle(self, new: Any, old: Any) -> None:
        await self._asked.settle(self.body, self.live.object)

    async def validate(self, new: Any, old: Any) -> None:
        read = _projection(self._scope).read
        self._context.warnings += self._scope.store.kind.update_warnings(new, old)
        await self._asked.validate(read(new), read(old))


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
