"""PATCH of an object or of one of its subresources: an update whose new state is the patched current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from podling.apiserver.patch.parse import APPLY, parse_patch, patch_faults
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field
from podling.apiserver.verbs.apply import apply
from podling.apiserver.verbs.body import REPEATED_AFTER_ADMISSION, drop_repeated_owners, other_kind
from podling.apiserver.verbs.options import field_validation, is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show
from podling.apiserver.verbs.update import check_place, check_uid
from podling.model.codec import json
from podling.model.codec.strict import field_faults, strict_message
from podling.model.errors import Cause, StatusError, bad_request, invalid
from podling.process.waits import aside
from podling.watch.entry import Entry

OPTIONS = "PatchOptions"
FORCED = Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")


async def patch(context: RequestContext, scope: Scope) -> Response:
    request = context.request
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name, type_ = scope.namespace(context), context.info.name, scope.resource.type
    if media_type(context) == APPLY:
        return await apply(context, scope)
    patched_from = await read_patch(context, type_)
    track = scope.track(context, OPTIONS)

    def change(current: Entry) -> Any:
        document = json.decode_data(current.data)
        if b"managedFields" not in request.body:
            # It is long, so it is left out, and thereby unchanged, unless the patch names it.
            document["metadata"].pop("managedFields", None)
        wanted = patched_from(document)
        check_place(wanted.metadata, namespace, name)
        check_uid(wanted, current.object)
        drop_repeated_owners(context, wanted, REPEATED_AFTER_ADMISSION)
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
    context.warnings += scope.update_warnings(saved.object)
    return show(context, scope, saved)


def media_type(context: RequestContext) -> str:
    return context.request.headers.get("Content-Type", "").partition(";")[0].strip()


async def read_patch(context: RequestContext, type_: type[Any]) -> Callable[[Any], Any]:
    """From the data of an object of `type_` to the object that the patch makes of it. Raises StatusError, as
    does the function; both tell of unknown fields as the request asks for."""
    body = context.request.body
    if "force" in context.query:
        raise invalid(OPTIONS, "", [FORCED], "meta.k8s.io")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise bad_request(f"the patch is not UTF-8: {error.reason} at byte {error.start}") from error
    sort = media_type(context)
    patched_from = await aside(len(body), parse_patch, sort, body, type_)
    validation = field_validation(context.query, OPTIONS)
    own_faults: list[str] = []
    if validation != "Ignore":
        own_faults = await aside(len(body), patch_faults, sort, body)

    def patched(document: Any) -> Any:
        data = msgspec.json.encode(patched_from(document))
        try:
            wanted = json.decode_sent(data, type_)
        except StatusError as error:
            raise _refused(data, str(error.__cause__ or error)) from error
        if (wanted.kind, wanted.api_version) != (type_.KIND, type_.API_VERSION):
            raise _refused(data, other_kind(wanted, type_).message)
        if validation != "Ignore":
            faults = own_faults + field_faults(data, type_)
            if faults and validation == "Strict":
                raise _refused(data, strict_message(faults))
            context.warnings += [fault for fault in faults if fault not in context.warnings]
        return wanted

    return patched


def _refused(patched: bytes, why: str) -> StatusError:
    return invalid("", "", [field.invalid("patch", patched.decode(errors="replace"), why)])
