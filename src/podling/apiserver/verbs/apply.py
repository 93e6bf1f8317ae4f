"""Server-side apply: PATCH with the configuration that a field manager wants; it creates the object if
there is none.

The manager comes to own the fields that its configuration names, and loses, with their values, those that it
named before and names no longer. A field that another manager owns with another value is a conflict, unless
the request is forced.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Application, by_apply
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.managed_fields import belonging
from podling.apiserver.apply.schema import schema_of
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import flag
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.body import REPEATED_AFTER_ADMISSION, drop_repeated_owners, other_kind
from podling.apiserver.verbs.options import field_manager, field_validation, is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.apiserver.verbs.update import check_place, check_uid
from podling.apiserver.verbs.yaml_body import read_any_yaml
from podling.model.codec import json
from podling.model.errors import Cause, StatusError, bad_request, conflict, invalid
from podling.process.waits import aside
from podling.watch.entry import Entry

OPTIONS = "PatchOptions"


async def apply(context: RequestContext, scope: Scope) -> Response:
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    application = await _application(context, scope)
    namespace, name = scope.namespace(context), context.info.name
    if scope.part is None and not scope.store.has(namespace, name):
        try:
            return await _create(context, scope, application, dry_run=dry_run)
        except StatusError as error:
            # Another came first: then it is there.
            if error.reason != "AlreadyExists":
                raise

    def change(standing: Entry) -> Any:
        live = json.decode_data(standing.data)
        live["metadata"].pop("managedFields", None)
        known = standing.object.metadata.managed_fields
        entries = application.known_entries(live, known, context.now)
        wanted = _object(context, scope, application.result(live, entries))
        check_uid(wanted, standing.object)
        return wanted

    saved = await scope.store.update(
        namespace,
        name,
        change,
        scope.admission(context, "UPDATE", dry_run=dry_run),
        rules=scope.part,
        track=by_apply(application, now=context.now),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    context.warnings += scope.update_warnings(saved.object)
    return show(context, scope, saved)


async def _create(
    context: RequestContext, scope: Scope, application: Application, *, dry_run: bool
) -> Response:
    scope.check_may_create(context)
    namespace = scope.namespace(context)
    obj = _object(context, scope, dict(application.configuration))
    if obj.metadata.uid:
        uid = obj.metadata.uid
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(scope.resource.plural, obj.metadata.name, why, scope.resource.group)
    saved = await scope.store.create(
        obj,
        namespace,
        scope.admission(context, "CREATE", dry_run=dry_run),
        track=by_apply(application, now=context.now),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    context.warnings += scope.store.kind.create_warnings(saved.object)
    return show(context, scope, saved, 201)


async def _application(context: RequestContext, scope: Scope) -> Application:
    """The configuration with who applies it. Raises StatusError 400, 422."""
    resource = scope.resource
    check_manager(context)
    configuration = await _configuration(context, resource.api_version)
    by = scope.writer(context, OPTIONS)
    metadata = configuration.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    named = f"{said.get('namespace') or ''}/{said.get('name') or ''}"
    what = f"{named}; {resource.group}/{resource.version}, Kind={resource.kind}"
    schema = schema_of(resource.type)
    fields = await aside(len(context.request.body), configured_fields, schema, configuration, what)
    return Application(
        type=resource.type,
        configuration=configuration,
        fields=belonging(fields, by.subresource, scope.unwritten),
        writer=by,
        unwritten=scope.unwritten,
        force=flag(context.query, "force"),
        versions=scope.versions,
    )


def check_manager(context: RequestContext) -> None:
    """Raises StatusError 422 if the request does not name its field manager."""
    if not field_manager(context.query, OPTIONS):
        why = "Required value: is required for apply patch"
        raise invalid(OPTIONS, "", [Cause("FieldValueRequired", why, "fieldManager")], "meta.k8s.io")


async def _configuration(context: RequestContext, api_version: str) -> dict[str, Any]:
    """The body, for an object of this version. Raises StatusError 400."""
    data = await read_data(context)
    version = data.get("apiVersion")
    if version != api_version:
        raise bad_request(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version or ''}, expected: {api_version}"
        )
    metadata = data.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return data


async def read_data(context: RequestContext) -> dict[str, Any]:
    """The body, as plain data: YAML, or the JSON that most send and that is YAML, too. Tells of keys that are
    given twice. Raises StatusError 400."""
    validation = field_validation(context.query, OPTIONS)
    body = await read_any_yaml(context.request.body)
    if body.repeated and validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {', '.join(body.repeated)}")
    context.warnings += body.repeated if validation == "Warn" else []
    data = json.decode_data(body.json)
    if not isinstance(data, dict):
        raise bad_request("error decoding YAML: the configuration is no object")
    return data


def _object(context: RequestContext, scope: Scope, data: dict[str, Any]) -> Any:
    """Raises StatusError 400."""
    type_ = scope.resource.type
    obj: Any = json.decode_sent(msgspec.json.encode(data), type_)
    if (obj.kind, obj.api_version) != (type_.KIND, type_.API_VERSION):
        raise other_kind(obj, type_)
    check_place(obj.metadata, scope.namespace(context), context.info.name)
    drop_repeated_owners(context, obj, REPEATED_AFTER_ADMISSION)
    return obj
