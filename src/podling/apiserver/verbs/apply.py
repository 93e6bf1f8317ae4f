"""Server-side apply: PATCH with the configuration that a field manager wants; it creates the object if
there is none.

The manager comes to own the fields that its configuration names, and loses, with their values, those that it
named before and names no longer. A field that another manager owns with another value is a conflict, unless
the request is forced.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Application, Track, by_apply
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.managed_fields import belonging, nowhere
from podling.apiserver.apply.schema import schema_of
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import flag
from podling.apiserver.request.response import Response
from podling.apiserver.store.object_meta import REPEATED_AFTER_ADMISSION, drop_repeated_owners, read_version
from podling.apiserver.verbs.body import other_kind, record_patch
from podling.apiserver.verbs.options import field_validation
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.apiserver.verbs.update import check_place
from podling.apiserver.verbs.yaml_body import YamlBody, read_any_yaml, unmarshal_errors
from podling.model.codec import json
from podling.model.codec.unstructured import decode_unstructured
from podling.model.errors import StatusError, bad_request, conflict
from podling.model.types.meta import ManagedFieldsEntry, ObjectMeta
from podling.process.waits import aside
from podling.watch.entry import Entry


async def apply(context: RequestContext, scope: Scope, *, dry_run: bool) -> Response:
    namespace, name = scope.namespace(context), context.info.name
    # Whether it is there decides what is done.
    await scope.store.storage.current()
    creates = scope.part is None or scope.part.applies_none or scope.store.kind.creates_on_update
    if not creates:
        scope.store.find(namespace, name)
    body = await read_body(context)
    application = await _application(context, scope, body.json)
    track = by_apply(application, now=context.now)
    if creates and not scope.store.has(namespace, name):
        try:
            return await _create(context, scope, application, body, track, dry_run=dry_run)
        except StatusError as error:
            # Another came first: then it is there.
            if error.reason != "AlreadyExists":
                raise

    def change(standing: Entry) -> Any:
        live = json.decode_data(standing.data)
        live["metadata"].pop("managedFields", None)
        entries = application.known_entries(standing, context.now)
        result = application.result(live, entries)
        try:
            wanted = _object(context, scope, result)
            check_place(wanted.metadata, namespace, name)
        except StatusError:
            # Of conflicts it is told first, and then of keys that are given twice.
            application.entries_after(live, result, entries, context.now, nowhere)
            _tell_of_repeats(context, body)
            raise
        return wanted

    saved = await scope.store.update(
        namespace,
        name,
        change,
        scope.admission(context, "UPDATE", dry_run=dry_run),
        rules=scope.part,
        track=telling_of_repeats(context, body, track),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return show(context, scope, saved)


async def _create(
    context: RequestContext,
    scope: Scope,
    application: Application,
    body: YamlBody,
    track: Track,
    *,
    dry_run: bool,
) -> Response:
    await scope.check_may_create(context)
    namespace = scope.namespace(context)
    obj = _object(context, scope, dict(application.configuration))
    _tell_of_repeats(context, body)
    check_place(obj.metadata, namespace, context.info.name)
    if obj.metadata.uid:
        uid = obj.metadata.uid
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(scope.resource.plural, obj.metadata.name, why, scope.resource.group)
    read_version(obj.metadata.resource_version)
    if not dry_run:
        obj.metadata.resource_version = ""
    saved = await scope.store.create(
        obj,
        namespace,
        scope.admission(context, "CREATE", dry_run=dry_run),
        track=track,
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return show(context, scope, saved, 201)


async def _application(context: RequestContext, scope: Scope, body: bytes) -> Application:
    """The configuration with who applies it. Raises StatusError 400."""
    resource = scope.resource
    configuration = plain(body)
    is_of_version = resource.type.is_of_version(configuration.get("apiVersion"))
    if not is_of_version or configuration.get("kind") != resource.kind:
        raise bad_request(f"invalid object type: {type_of(configuration)}")
    configuration["apiVersion"] = resource.api_version
    check_unmanaged(configuration)
    if configuration.get("metadata", "") is None:
        configuration["metadata"] = {}
    by = scope.writer(context)
    metadata = configuration.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    names = (one if isinstance(one := said.get(name), str) else "" for name in ("namespace", "name"))
    named = "/".join(names)
    what = f"{named}; {resource.group}/{resource.version}, Kind={resource.kind}"
    schema = schema_of(resource.type)
    failing = f"failed to create typed patch object ({what})"
    fields = await aside(len(context.request.body), configured_fields, schema, configuration, failing)
    return Application(
        type=resource.type,
        configuration=configuration,
        fields=belonging(fields, by.subresource, scope.unwritten),
        writer=by,
        unwritten=scope.unwritten,
        force=flag(context.query, "force"),
        versions=scope.versions,
    )


def check_unmanaged(data: dict[str, Any]) -> None:
    """Raises StatusError 400 for a configuration that says who manages it. As in Kubernetes, a list with null
    among its entries says nothing, and is left out."""
    metadata = data.get("metadata")
    if not isinstance(metadata, dict) or (entries := metadata.get("managedFields")) is None:
        return
    rest = [entry for entry in entries if entry is not None] if isinstance(entries, list) else entries
    if rest != entries:
        made = json.decode_sent(msgspec.json.encode({"managedFields": rest}), ObjectMeta)
        if all(bytes(entry.fields_v1)[:1] in (b"", b"n", b"{") for entry in made.managed_fields):
            del metadata["managedFields"]
            return
    raise bad_request("metadata.managedFields must be nil")


def type_of(data: dict[str, Any]) -> str:
    """Group, version and kind that a body names, as Go shows them."""
    version, kind = (
        said if isinstance(said := data.get(name), str) else "" for name in ("apiVersion", "kind")
    )
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else f'/{version}'}, Kind={kind}"


async def read_body(context: RequestContext) -> YamlBody:
    """The body: YAML, or the JSON that most send and that is YAML, too. Raises StatusError 400."""
    body = await read_any_yaml(context.request.body)
    record_patch(context, body.json)
    return body


def plain(body: bytes) -> dict[str, Any]:
    """The body as data. Raises StatusError 400."""
    data = json.decode_data(body)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise bad_request("error decoding YAML: the configuration is no object")
    return data


def telling_of_repeats(context: RequestContext, body: YamlBody, track: Track) -> Track:
    """As `track`, which tells of keys that are given twice once it has no conflict to tell of."""

    def tracked(new: Any, standing: Entry | None) -> list[ManagedFieldsEntry]:
        entries = track(new, standing)
        _tell_of_repeats(context, body)
        return entries

    return tracked


def _tell_of_repeats(context: RequestContext, body: YamlBody) -> None:
    """Raises StatusError 400."""
    validation = field_validation(context.query)
    if body.repeated and validation == "Strict":
        why = unmarshal_errors(body.repeated)
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {why}")
    context.warnings += body.repeated if validation == "Warn" else []


def _object(context: RequestContext, scope: Scope, data: dict[str, Any]) -> Any:
    """Raises StatusError 400."""
    type_ = scope.resource.type
    obj: Any = decode_unstructured(msgspec.json.encode(data), type_)
    if (obj.kind, obj.api_version) != (type_.KIND, type_.API_VERSION):
        raise other_kind(obj, type_)
    drop_repeated_owners(obj.metadata, context.warnings, REPEATED_AFTER_ADMISSION)
    return obj
