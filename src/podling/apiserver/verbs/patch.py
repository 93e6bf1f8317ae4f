"""PATCH of an object or of one of its subresources: an update whose new state is the patched current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from podling.apiserver.patch.json_patch import as_sent, json_patch
from podling.apiserver.patch.parse import (
    APPLY,
    JSON_PATCH,
    MEDIA_TYPES,
    STRATEGIC_MERGE_PATCH,
    Patch,
    parse_patch,
    patch_faults,
    unsupported,
)
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field
from podling.apiserver.store.object_meta import REPEATED_AFTER_ADMISSION, drop_repeated_owners
from podling.apiserver.verbs.apply import apply
from podling.apiserver.verbs.body import note_no_managers, other_kind, record_patch
from podling.apiserver.verbs.options import check_write, field_validation
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.codec.strict import field_faults, strict_message
from podling.model.codec.unstructured import decode_unstructured
from podling.model.errors import StatusError, bad_request, invalid, unsupported_media_type
from podling.process.waits import aside
from podling.watch.entry import Entry

OPTIONS = "PatchOptions"
MANAGED = "managedFields"
_NOTHING = b"{}"


async def patch(context: RequestContext, scope: Scope) -> Response:
    request = context.request
    applies = media_type(context) == APPLY
    dry_run = check_write(context.query, OPTIONS, applies=applies)
    namespace, name, type_ = scope.namespace(context), context.info.name, scope.resource.type
    if applies:
        return await apply(context, scope, dry_run=dry_run)
    patched_from = await read_patch(context, type_)
    track = scope.track(context)

    def change(current: Entry) -> Any:
        document = json.decode_data(current.data)
        if MANAGED.encode() not in request.body:
            # It is long, so it is left out, and thereby unchanged, unless the patch names it.
            document["metadata"].pop(MANAGED, None)
        wanted = patched_from(document)
        check_place(wanted.metadata, namespace, name)
        drop_repeated_owners(wanted.metadata, context.warnings, REPEATED_AFTER_ADMISSION)
        return wanted

    saved = await scope.store.update(
        namespace,
        name,
        change,
        scope.admission(context, "UPDATE", dry_run=dry_run),
        rules=scope.part,
        track=track,
        dry_run=dry_run,
        size=len(request.body),
    )
    return show(context, scope, saved)


def media_type(context: RequestContext) -> str:
    """Of a patch. Raises StatusError 415: as in Kubernetes before anybody looks at the query."""
    sent = context.request.headers.get("Content-Type", "")
    # Kubernetes' router looks for one of several, and who patches for one alone.
    if not any(part.partition(";")[0].strip() in MEDIA_TYPES for part in sent.split(",")):
        # And before anybody looks what is patched.
        context.warnings.clear()
        raise unsupported()
    sort = sent.partition(";")[0]
    if sort not in MEDIA_TYPES:
        raise unsupported_media_type(MEDIA_TYPES)
    return sort


async def read_patch(context: RequestContext, type_: type[Any]) -> Callable[[Any], Any]:
    """From the data of an object of `type_` to the object that the patch makes of it. The function raises
    StatusError, and tells of unknown fields as the request asks for."""
    try:
        return await _read(context, type_)
    except StatusError as error:
        found = error

    def refused(before: Any) -> Any:
        # Only what is there can be patched wrongly.
        raise found

    return refused


async def _read(context: RequestContext, type_: type[Any]) -> Callable[[Any], Any]:
    """Raises StatusError 400."""
    body = context.request.body
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise bad_request(f"the patch is not UTF-8: {error.reason} at byte {error.start}") from error
    sort = media_type(context)
    decoded = decode_unstructured if sort == STRATEGIC_MERGE_PATCH else json.decode_sent
    await aside(len(body), record_patch, context, body)
    validation = field_validation(context.query)

    def parsed() -> tuple[Patch, list[str]]:
        patch = parse_patch(sort, body, type_)
        return patch.apply, patch_faults(sort, body, patch.data) if validation != "Ignore" else []

    patched_from, own_faults = await aside(len(body), parsed)

    def faults_of(before: Any, document: dict[str, Any]) -> list[str]:
        """What is wrong with the fields of what `before` becomes, which is `document`."""
        if type_.leaves_out_version(document.get("apiVersion") or ""):
            # Kubernetes reads it as its internal type, whose fields have no names in JSON.
            return [f'unknown field "{name}"' for name in sorted({*document} - {"apiVersion", "kind"})]
        found = field_faults(msgspec.json.encode(document), type_, has_repeats=False)
        if not found and not own_faults:
            return []
        # As Go writes what it has patched: in the order of names, but what was not taken apart as it was.
        whole = json_patch(before, as_sent(body)) if sort == JSON_PATCH else document
        return field_faults(msgspec.json.encode(whole, order="sorted"), type_)

    def patched(before: Any) -> Any:
        document = patched_from(before)
        if isinstance(document, list):
            raise _refused(msgspec.json.encode(document), "couldn't get version/kind: it is an array")
        said = document.get("apiVersion") or ""
        is_known = sort == STRATEGIC_MERGE_PATCH or not type_.leaves_out_version(said)
        data = msgspec.json.encode(document)
        read = data if is_known else _NOTHING
        try:
            wanted = decoded(read, type_)
        except StatusError as error:
            raise _refused(data, str(error.__cause__ or error)) from error
        note_no_managers(wanted, read)
        if (wanted.kind, wanted.api_version) != (type_.KIND, type_.API_VERSION):
            raise _refused(data, other_kind(wanted, type_).message)
        if validation != "Ignore":
            faults = own_faults + faults_of(before, document)
            if faults and validation == "Strict":
                raise _refused(data, strict_message(faults))
            context.warnings += [fault for fault in faults if fault not in context.warnings]
        return wanted

    return patched


def _refused(patched: bytes, why: str) -> StatusError:
    return invalid("", "", [field.invalid("patch", patched.decode(errors="replace"), why)])
